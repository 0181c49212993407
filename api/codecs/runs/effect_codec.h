// Documents of effects of the log and of callback requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/value.h"
#include "api/json/schema.h"
#include "service/effects/callback_store.h"
#include "service/jobs/job_request.h"
#include "service/tensor/dense_value.h"
#include "storage/rows/rows.h"

namespace meshd::api {

/// An effect in the log.
struct EffectDocument {
  int64_t sequence = 0;
  std::string effect, name;
  bool ordered = false;
  std::string job;  ///< empty: none
  int64_t shard = 0, point = 0, device = 0;
  int64_t number = 0;  ///< 0: in no queue
  std::vector<tensor::DenseValue> values;
  ValueEncoding encoding = ValueEncoding::kJson;
};
template <>
Schema<EffectDocument> make_schema();
/// A log entry.
EffectDocument effect_document(const storage::EffectRow& row, ValueEncoding encoding);
/// One of a job's answer.
EffectDocument effect_document(const jobs::JobEffect& made, const std::string& job, ValueEncoding encoding);

/// A callback request to the client.
struct CallbackRequestDocument {
  const effects::SessionCallback& asked;
  ValueEncoding encoding = ValueEncoding::kJson;

  /// The requester: a job, or a pending array for its parts; the other is empty.
  [[nodiscard]] std::string_view job() const {
    return effects::asks_for_parts(asked) ? "" : std::string_view(asked.job);
  }
  [[nodiscard]] std::string_view array() const {
    return effects::asks_for_parts(asked) ? std::string_view(asked.job) : "";
  }
};
template <>
Schema<CallbackRequestDocument> make_schema();

}  // namespace meshd::api
