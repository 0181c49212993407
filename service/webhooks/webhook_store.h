// Webhooks of sessions: who is told of a session's effects and ends of jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "service/core/clock.h"
#include "service/outbound/address_guard.h"
#include "storage/catalog.h"

namespace meshd::webhooks {

/// What a client asks for.
struct WebhookRequest {
  std::string session;
  std::string url;
  std::optional<std::string> secret;  ///< whsec_...; nothing: one is made
  bool wants_effects = true;
  bool wants_jobs = true;
  /// Effects behind this one are delivered, and with 0 the ends of all jobs; nothing: what happens from now on.
  std::optional<int64_t> after;
};

/// Any thread. Waits for the disk.
class WebhookStore {
 public:
  /// `changed` is told each webhook that is made or resumed, `removed` the id of each that is deleted.
  WebhookStore(storage::Catalog& catalog, const core::Clock& clock, outbound::AddressGuard guard,
               std::function<void(const storage::WebhookRow&)> changed, std::function<void(const std::string&)> removed)
      : catalog_(catalog),
        clock_(clock),
        guard_(std::move(guard)),
        changed_(std::move(changed)),
        removed_(std::move(removed)) {}

  /// Throws not_found for a session of others, invalid_request for a URL, secret or `after` that cannot be,
  /// limit_reached.
  storage::WebhookRow create(const std::string& principal, const WebhookRequest& request,
                             std::optional<storage::IdempotencyRow> key);
  /// Throws not_found.
  storage::WebhookRow get(std::string_view id, std::string_view principal);
  storage::Page<storage::WebhookRow> list(std::string_view principal, std::string_view session,
                                          const storage::PageRequest& page);
  /// A delivery under way may still arrive. Throws not_found.
  void remove(std::string_view id, std::string_view principal);
  /// Delivers from where it was, at once; a disabled webhook is active again. `key`: stored with that, the webhook's id
  /// as what was made. Throws not_found, idempotency_in_progress.
  storage::WebhookRow resume(std::string_view id, std::string_view principal,
                             std::optional<storage::IdempotencyRow> key = std::nullopt);

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  const outbound::AddressGuard guard_;
  const std::function<void(const storage::WebhookRow&)> changed_;
  const std::function<void(const std::string&)> removed_;
};

}  // namespace meshd::webhooks
