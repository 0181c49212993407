#include "api/codecs/runs/effect_codec.h"

#include "service/effects/effect_log.h"
#include "service/effects/value_text.h"

namespace meshd::api {

template <>
Schema<EffectDocument> make_schema() {
  using Doc = EffectDocument;
  return {"Effect",
          {{"sequence", &Doc::sequence, {.low = 0}},
           {"effect", &Doc::effect},
           {"name", &Doc::name},
           {"ordered", &Doc::ordered},
           {"job", [](const Doc& doc) { return unless_empty(doc.job); }},
           {"shard", &Doc::shard, {.low = 0}},
           {"point", &Doc::point, {.low = 0}},
           {"device", &Doc::device, {.low = 0}},
           {"number", [](const Doc& doc) { return unless_zero(doc.number); }, {.low = 1}},
           {"values", [](const Doc& doc) { return value_documents(doc.values, doc.encoding); }}}};
}

EffectDocument effect_document(const storage::EffectRow& row, ValueEncoding encoding) {
  const effects::EffectOrigin origin = effects::place_from_text(row.values);
  // The entry that says how a job ended is no effect of its program, and has none.
  auto values = row.values.empty() ? std::vector<tensor::DenseValue>() : effects::values_from_text(row.values);
  return {row.sequence, row.kind,      row.name,   row.ordered,       row.job, row.shard_index,
          origin.point, origin.device, row.number, std::move(values), encoding};
}

EffectDocument effect_document(const jobs::JobEffect& made, const std::string& job, ValueEncoding encoding) {
  const effects::RecordedEffect& effect = made.effect;
  return {made.sequence, std::string(effect.kind->name),
          effect.name,   effect.ordered,
          job,           effect.shard_index,
          effect.point,  effect.device,
          made.number,   effect.values,
          encoding};
}

template <>
Schema<CallbackRequestDocument> make_schema() {
  using Doc = CallbackRequestDocument;
  return {"CallbackRequest",
          {{"number", [](const Doc& doc) { return doc.asked.number; }, {.low = 1}},
           {"job", [](const Doc& doc) { return or_null(doc.job()); }},
           {"array", [](const Doc& doc) { return unless_empty(doc.array()); }},
           {"state",
            [](const Doc& doc) { return effects::to_string(doc.asked.state); },
            {.words = {"open", "answered", "withdrawn"}}},
           {"callback", [](const Doc& doc) { return doc.asked.request.callback; }, {.low = 0}},
           {"name", [](const Doc& doc) -> std::string_view { return doc.asked.request.name; }},
           {"ordered", [](const Doc& doc) { return doc.asked.request.ordered; }},
           {"shard", [](const Doc& doc) { return doc.asked.request.shard; }, {.low = 0}},
           {"point", [](const Doc& doc) { return doc.asked.request.point; }, {.low = 0}},
           {"device", [](const Doc& doc) { return doc.asked.request.device; }, {.low = 0}},
           {"created", [](const Doc& doc) { return doc.asked.created; }},
           {"values", [](const Doc& doc) { return value_documents(doc.asked.request.values, doc.encoding); }},
           {"expected",
            [](const Doc& doc) {
              std::vector<ValueType> out;
              for (const tensor::TensorType& type : doc.asked.request.expected) out.push_back({type});
              return out;
            }},
           {"answer", [](const Doc& doc) -> std::optional<std::vector<ValueDocument>> {
              if (doc.asked.state != effects::CallbackState::kAnswered || effects::asks_for_parts(doc.asked))
                return std::nullopt;
              return value_documents(doc.asked.reply, doc.encoding);
            }}}};
}

}  // namespace meshd::api
