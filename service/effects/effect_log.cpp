#include "service/effects/effect_log.h"

#include "service/effects/value_text.h"

namespace meshd::effects {

EffectOrigin place_from_text(std::string_view text) {
  if (text.empty()) return {};  // `failed` and `cancelled` have no place in a program
  static_cast<void>(read_values(text));
  if (text.empty()) return {};
  EffectOrigin place;
  place.point = take_number<int64_t>(text);
  place.device = take_number<int64_t>(text);
  return place;
}

std::vector<storage::EffectRow> EffectLog::outgoing(const std::string& session, const std::string& queue, int64_t after,
                                                    int64_t limit, const storage::AdmitRow& admit) {
  return catalog_.read([&](storage::Reader& reader) { return reader.outgoing(session, queue, after, limit, admit); });
}

std::vector<storage::EffectRow> EffectLog::after(const std::string& session, int64_t after, int64_t limit,
                                                 const storage::AdmitRow& admit) {
  return catalog_.read([&](storage::Reader& reader) { return reader.effects(session, after, limit, admit); });
}

}  // namespace meshd::effects
