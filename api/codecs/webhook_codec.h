// Bodies of deliveries to webhooks (service/webhooks).
#pragma once

#include <string>
#include <vector>

#include "api/json/schema.h"
#include "storage/rows/rows.h"

namespace meshd::api {

/// Effects, as they are in the log: {"type": "effects", "webhook", "session", "first", "last", "effects"}.
std::string encode_effects_delivery(const storage::WebhookRow& webhook, std::vector<storage::EffectRow> rows);
/// The end of a job: {"type": "job", "webhook", "session", "number", "job"}.
std::string encode_job_delivery(const storage::WebhookRow& webhook, const storage::JobRow& row);

/// Both documents, for the comparison with openapi.yaml.
std::vector<const SchemaBase*> delivery_schemas();

}  // namespace meshd::api
