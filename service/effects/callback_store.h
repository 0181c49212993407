// Stores callback requests to the client and their replies: calls of client callbacks of a running program, and parts
// of an array that the client computes. A request is durable before it is visible, its reply before it is used; a run
// that starts again makes the same requests and finds their replies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"
#include "service/effects/wake_table.h"
#include "service/tensor/dense_value.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// One call.
struct CallbackRequest {
  int64_t call = 0;      ///< 0..: number of earlier callback requests of the job
  int64_t callback = 0;  ///< index in the text
  std::string name;      ///< of the binding
  bool ordered = false;
  int64_t shard = 0;
  int64_t device = 0;
  int64_t point = 0;
  std::vector<tensor::DenseValue> values;    ///< what the callback was called with
  std::vector<tensor::TensorType> expected;  ///< types of the values of the reply
};

std::string callback_to_text(const CallbackRequest& request);
CallbackRequest callback_from_text(int64_t call, std::string_view text);

enum class CallbackState : uint8_t {
  kOpen,
  kAnswered,
  kWithdrawn,  ///< its job is over
};
std::string_view to_string(CallbackState state);

/// A callback request with its place in the session.
struct SessionCallback {
  int64_t number = 0;  ///< 1.. within the session
  std::string job;     ///< or the id of a pending array
  CallbackRequest request;
  CallbackState state = CallbackState::kOpen;
  std::vector<tensor::DenseValue> reply;  ///< once replied; empty for parts of an array, which holds them
  core::WallTime created;
};

/// Any thread; it waits for the disk.
class CallbackStore {
 public:
  CallbackStore(storage::Catalog& catalog, const core::Clock& clock) : catalog_(catalog), clock_(clock) {}

  /// Creates a callback request, durable when it returns; a repeated one is found, with its reply if there is one.
  /// Throws nondeterministic_job when the job made another request at this `call`.
  SessionCallback ask(const std::string& session, const std::string& job, const CallbackRequest& request);
  /// `admit` learns how many bytes it has before they are read, and may throw. Throws not_found.
  SessionCallback get(const std::string& session, int64_t number, const storage::AdmitRow& admit = {});
  /// Those that are open with number > after, at most limit (1..1000), by number.
  std::vector<SessionCallback> open(const std::string& session, int64_t after, int64_t limit,
                                    const storage::AdmitRow& admit = {});
  /// Stores the reply, durable when it returns. A repeated reply changes nothing. Throws invalid_request for values of
  /// other types (pointers below /values), conflict when there is a different reply, job_finished when the job is over.
  SessionCallback reply(const std::string& session, int64_t number, const std::vector<tensor::DenseValue>& values);

  /// Creates callback requests for parts of a pending array, each with a `call` of its own: all are durable when it
  /// returns, or none exists. Throws not_found, session_closed.
  void ask_for_parts(const std::string& session, const std::string& array,
                     const std::vector<CallbackRequest>& callbacks);
  /// Marks the request as replied: the array holds the parts. `digest` tells a repeated reply from a different one,
  /// which throws conflict. No effect on a withdrawn request.
  SessionCallback note_parts(const std::string& session, int64_t number, const std::string& digest);
  /// Deletes the callback requests of a job or array that have no reply.
  void withdraw(const std::string& asker);

  /// `wake` runs after a request or reply in the session; it must not block.
  WakeTable::Subscription subscribe(const std::string& session, std::function<void()> wake) {
    return wakes_.subscribe(session, std::move(wake));
  }

 private:
  /// A callback request of `asker` as it is stored, not yet visible.
  [[nodiscard]] storage::CallbackRow row_of(const std::string& session, const std::string& asker,
                                            const CallbackRequest& request) const;

  storage::Catalog& catalog_;
  const core::Clock& clock_;
  WakeTable wakes_;
};

/// Throws invalid_request when these values do not fit the callback request (pointers below /values).
void check_reply(const CallbackRequest& request, const std::vector<tensor::DenseValue>& values);
/// Whether the callback request is for parts of an array.
bool asks_for_parts(const SessionCallback& asked);

}  // namespace meshd::effects
