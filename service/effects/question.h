// What a program asks its client while it runs: the call of a callback whose answer is not prepared. A question is
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
#include "service/effects/owned_value.h"
#include "service/effects/wake_table.h"
#include "storage/catalog.h"

namespace meshd::effects {

/// One call.
struct Question {
  int64_t call = 0;      ///< 0..: how many questions the job asked before
  int64_t callback = 0;  ///< index in the text
  std::string name;      ///< of the binding
  bool ordered = false;
  int64_t shard = 0;
  int64_t device = 0;
  int64_t point = 0;
  std::vector<OwnedValue> values;            ///< what the callback was called with
  std::vector<tensor::TensorType> expected;  ///< types of the values that answer it
};

std::string question_to_text(const Question& question);
Question question_from_text(int64_t call, std::string_view text);

enum class QuestionState : uint8_t {
  kOpen,
  kAnswered,
  kWithdrawn,  ///< its job is over
};
std::string_view to_string(QuestionState state);

/// A question with its place in the session.
struct AskedQuestion {
  int64_t number = 0;  ///< 1.. within the session
  std::string job;
  Question question;
  QuestionState state = QuestionState::kOpen;
  std::vector<OwnedValue> answer;  ///< when answered
  core::WallTime created;
};

/// Any thread; it waits for the disk.
class QuestionStore {
 public:
  QuestionStore(storage::Catalog& catalog, const core::Clock& clock) : catalog_(catalog), clock_(clock) {}

  /// Asks, durable when it returns; one that the job has asked before is found with the answer it may have. Throws
  /// nondeterministic_job when it was another question.
  AskedQuestion ask(const std::string& session, const std::string& job, const Question& question);
  /// Throws not_found.
  AskedQuestion get(const std::string& session, int64_t number);
  /// Those that are open, by number.
  std::vector<AskedQuestion> open(const std::string& session);
  /// Durable when it returns. The same answer again changes nothing. Throws invalid_request for values of other types
  /// (pointers below /values), conflict when there is another answer, job_finished when nobody waits for it any more.
  AskedQuestion answer(const std::string& session, int64_t number, const std::vector<OwnedValue>& values);

  /// `wake` runs after something was asked or answered in the session; it must not block.
  WakeTable::Subscription subscribe(const std::string& session, std::function<void()> wake) {
    return wakes_.subscribe(session, std::move(wake));
  }

 private:
  storage::Catalog& catalog_;
  const core::Clock& clock_;
  WakeTable wakes_;
};

}  // namespace meshd::effects
