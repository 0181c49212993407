#include "api/codecs/webhook_codec.h"

#include <string_view>

#include "api/codecs/runs/effect_codec.h"
#include "api/codecs/runs/job_answer_codec.h"

namespace meshd::api {
namespace {

struct EffectsDelivery {
  const storage::WebhookRow& webhook;
  std::vector<EffectDocument> effects;
};

struct JobDelivery {
  const storage::WebhookRow& webhook;
  const jobs::JobView& view;
};

}  // namespace

template <>
Schema<EffectsDelivery> make_schema() {
  using Doc = EffectsDelivery;
  return {"EffectsDelivery",
          {{"type", [](const Doc&) { return std::string_view("effects"); }, {.words = {"effects"}}},
           {"webhook", [](const Doc& doc) -> std::string_view { return doc.webhook.id; }},
           {"session", [](const Doc& doc) -> std::string_view { return doc.webhook.session; }},
           {"first", [](const Doc& doc) { return doc.effects.front().sequence; }, {.low = 1}},
           {"last", [](const Doc& doc) { return doc.effects.back().sequence; }, {.low = 1}},
           {"effects", &Doc::effects}}};
}

template <>
Schema<JobDelivery> make_schema() {
  using Doc = JobDelivery;
  return {"JobDelivery",
          {{"type", [](const Doc&) { return std::string_view("job"); }, {.words = {"job"}}},
           {"webhook", [](const Doc& doc) -> std::string_view { return doc.webhook.id; }},
           {"session", [](const Doc& doc) -> std::string_view { return doc.webhook.session; }},
           {"number", [](const Doc& doc) { return doc.view.row.number; }, {.low = 1}},
           {"job", [](const Doc& doc) { return JobDocument{doc.view}; }}}};
}

std::string encode_effects_delivery(const storage::WebhookRow& webhook, std::vector<storage::EffectRow> rows) {
  EffectsDelivery document{webhook, {}};
  for (storage::EffectRow& row : rows) {
    document.effects.push_back(effect_document(row, ValueEncoding::kJson));
    row.values = {};  // it may be large: of an entry nothing is there twice
  }
  return to_json(document);
}

std::string encode_job_delivery(const storage::WebhookRow& webhook, const storage::JobRow& row) {
  jobs::JobView view;
  view.row = row;
  return to_json(JobDelivery{webhook, view});
}

std::vector<const SchemaBase*> delivery_schemas() { return {&schema<EffectsDelivery>(), &schema<JobDelivery>()}; }

}  // namespace meshd::api
