#include "service/webhooks/webhook_store.h"

#include <fmt/core.h>

#include <utility>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/outbound/post_pool.h"
#include "service/quotas/limits.h"
#include "service/webhooks/signature.h"

namespace meshd::webhooks {
namespace {

constexpr int64_t kMostWebhooks = 100;  // of one principal
constexpr size_t kLongestUrl = 2'000;

core::Error no_webhook(std::string_view id) { return {"not_found", "there is no webhook '" + std::string(id) + "'"}; }

storage::WebhookRow require(storage::Reader& reader, std::string_view id, std::string_view principal) {
  auto row = reader.webhook(id);
  if (!row || row->principal != principal) throw no_webhook(id);
  return *row;
}

}  // namespace

storage::WebhookRow WebhookStore::create(const std::string& principal, const WebhookRequest& request,
                                         std::optional<storage::IdempotencyRow> key) {
  core::Diagnostics wrong;
  if (request.url.size() > kLongestUrl) {
    wrong.add("/url", fmt::format("expected at most {} characters", kLongestUrl));
  } else if (const auto mistake = outbound::mistake_of_url(request.url, guard_)) {
    wrong.add("/url", *mistake);
  }
  storage::WebhookRow row;
  const auto secret = request.secret ? key_of_secret(*request.secret) : new_key();
  if (!secret) wrong.add("/secret", "expected whsec_ and the base64 of 24 to 64 bytes");
  if (!request.wants_effects && !request.wants_jobs) wrong.add("/events", "expected effects, jobs or both");
  wrong.throw_if_any("invalid_request");
  row.id = core::new_id("whk", clock_);
  row.principal = principal;
  row.session = request.session;
  row.url = request.url;
  row.secret = *secret;
  row.wants_effects = request.wants_effects;
  row.wants_jobs = request.wants_jobs;
  row.created = clock_.wall();
  if (key) key->made = row.id;
  catalog_.write([&](storage::Transaction& transaction) {
    const auto session = transaction.session(row.session, principal);
    if (!session) throw core::Error("not_found", "there is no session '" + row.session + "'");
    quotas::require_below(transaction.count_of(storage::Counted::kWebhooks, principal), kMostWebhooks, principal,
                          "webhooks");
    row.sequence = request.after.value_or(session->last_sequence);
    if (row.sequence > session->last_sequence) {
      core::Diagnostics beyond;
      beyond.add("/after", fmt::format("the log ends at {}", session->last_sequence));
      beyond.throw_if_any("invalid_request");
    }
    row.job_number = request.after == 0 ? 0 : session->next_job_number - 1;
    transaction.insert_webhook(row);
    transaction.claim_key(key);
  });
  changed_(row);
  return row;
}

storage::WebhookRow WebhookStore::get(std::string_view id, std::string_view principal) {
  return catalog_.read([&](storage::Reader& reader) { return require(reader, id, principal); });
}

storage::Page<storage::WebhookRow> WebhookStore::list(std::string_view principal, std::string_view session,
                                                      const storage::PageRequest& page) {
  return catalog_.read([&](storage::Reader& reader) { return reader.webhooks(principal, session, page); });
}

void WebhookStore::remove(std::string_view id, std::string_view principal) {
  catalog_.write(
      [&](storage::Transaction& transaction) {
        static_cast<void>(require(transaction, id, principal));
        transaction.delete_webhook(id);
      },
      storage::Space::kFrees);
  removed_(std::string(id));
}

storage::WebhookRow WebhookStore::resume(std::string_view id, std::string_view principal,
                                         std::optional<storage::IdempotencyRow> key) {
  storage::WebhookRow row;
  if (key) key->made = id;
  catalog_.write([&](storage::Transaction& transaction) {
    row = require(transaction, id, principal);
    row.state = storage::WebhookState::kActive;
    row.failures = 0;
    row.failing_since.reset();
    row.last_error.clear();
    transaction.update_webhook(row);
    transaction.claim_key(key);
  });
  changed_(row);
  return row;
}

}  // namespace meshd::webhooks
