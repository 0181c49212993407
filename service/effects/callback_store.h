// What a client is asked: by a program while it runs, the call of a callback whose answer is not prepared; for an array
// that is pulled, the parts of it. A callback request is
// durable before it is shown, its answer before it is used; a run that starts again asks the same and finds the
// answers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"
#include "service/effects/value_text.h"
#include "service/effects/wake_table.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// One call.
struct CallbackRequest {
  int64_t call = 0;      ///< 0..: how many callback requests the job asked before
  int64_t callback = 0;  ///< index in the text
  std::string name;      ///< of the binding
  bool ordered = false;
  int64_t shard = 0;
  int64_t device = 0;
  int64_t point = 0;
  std::vector<tensor::DenseValue> values;    ///< what the callback was called with
  std::vector<tensor::TensorType> expected;  ///< types of the values that answer it
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
  std::vector<tensor::DenseValue> answer;  ///< when answered; empty for parts of an array, which has them
  core::WallTime created;
};

/// Any thread; it waits for the disk.
class CallbackStore {
 public:
  CallbackStore(storage::Catalog& catalog, const core::Clock& clock) : catalog_(catalog), clock_(clock) {}

  /// Asks, durable when it returns; one that the job has asked before is found with the answer it may have. Throws
  /// nondeterministic_job when it was another callback request.
  SessionCallback ask(const std::string& session, const std::string& job, const CallbackRequest& request);
  /// Throws not_found.
  SessionCallback get(const std::string& session, int64_t number);
  /// Those that are open, by number.
  std::vector<SessionCallback> open(const std::string& session);
  /// Durable when it returns. The same answer again changes nothing. Throws invalid_request for values of other types
  /// (pointers below /values), conflict when there is another answer, job_finished when nobody waits for it any more.
  SessionCallback answer(const std::string& session, int64_t number, const std::vector<tensor::DenseValue>& values);

  /// Asks for parts of a pending array, each callback request with a `call` of its own: all are durable when it
  /// returns, or none is asked. Throws not_found, session_closed.
  void ask_for_parts(const std::string& session, const std::string& array,
                     const std::vector<CallbackRequest>& callbacks);
  /// The array has the parts now; `digest` tells a repeated answer from another one, which throws conflict. Nothing
  /// happens where the callback request was withdrawn.
  SessionCallback note_parts(const std::string& session, int64_t number, const std::string& digest);
  /// Callback requests of a job or array that have no answer are there no more.
  void withdraw(const std::string& asker);

  /// `wake` runs after something was asked or answered in the session; it must not block.
  WakeTable::Subscription subscribe(const std::string& session, std::function<void()> wake) {
    return wakes_.subscribe(session, std::move(wake));
  }

 private:
  /// A callback request of `asker` as it is stored, not asked yet.
  [[nodiscard]] storage::CallbackRow row_of(const std::string& session, const std::string& asker,
                                            const CallbackRequest& request) const;

  storage::Catalog& catalog_;
  const core::Clock& clock_;
  WakeTable wakes_;
};

/// Throws invalid_request when these values cannot answer the callback request (pointers below /values).
void check_answer(const CallbackRequest& request, const std::vector<tensor::DenseValue>& values);
/// Whether the callback request is for parts of an array.
bool asks_for_parts(const SessionCallback& asked);

}  // namespace meshd::effects
