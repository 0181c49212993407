// A body that comes in several requests: one row, and parts that are blobs. The state of the IETF's upload resource
// (draft-ietf-httpbis-resumable-upload, section 4.1): offset, completeness, length.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "service/core/clock.h"
#include "service/core/locked.h"
#include "service/core/waits/waiter.h"
#include "service/quotas/array_ledger.h"

namespace meshd::uploads {

/// Shared by all requests about it. Id, principal and request are immutable; the rest is behind its lock. Any thread.
struct Upload {
  Upload(std::string id_, std::string principal_, std::string request_)
      : id(std::move(id_)), principal(std::move(principal_)), request(std::move(request_)) {}

  const std::string id;
  const std::string principal;
  const std::string request;  ///< what the bytes are for, as the caller wrote it

  struct State {
    int64_t offset = 0;  ///< bytes that have come and are durable
    int64_t part_count = 0;
    std::optional<int64_t> length;  ///< of all bytes, once it is known
    bool is_done = false;           ///< the request has run
    bool is_gone = false;           ///< cancelled or expired
    std::string result;             ///< where to find what the request made; empty: nowhere
    core::SteadyTime touched;       ///< when something came last
    bool is_taken = false;          ///< a request appends or finishes
    bool is_interrupted = false;    ///< that request is to end: another has taken over
    core::WaiterRef appender;       ///< of that request, while it waits for its client
    quotas::ArrayCharge charge;
  };
  core::Locked<State> state;
};

using UploadRef = std::shared_ptr<Upload>;

/// A moment of it.
struct UploadStatus {
  int64_t offset = 0;
  std::optional<int64_t> length;
  bool is_done = false;
  std::string result;
  std::chrono::seconds time_left{};  ///< until it expires
};

}  // namespace meshd::uploads
