// What kill_test knows from the lines of its children, and whether a reopened folder agrees with it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/store.h"

namespace meshd::testing {

/// One thread. Each check makes certain what was open before: what was seen once may never change again.
class KillHistory {
 public:
  /// Takes one line of kill_protocol.h.
  void note(const std::string& line);
  /// What is wrong in the store, a line each; empty when all is right.
  [[nodiscard]] std::vector<std::string> check(storage::Store& store);
  [[nodiscard]] int64_t acknowledged() const { return acknowledged_; }

 private:
  enum class Fate { kThere, kMaybeDeleted, kDeleted, kMaybeDonated, kDonated };
  struct Array {
    Fate fate = Fate::kThere;
    std::string output;  ///< what its donation makes
  };
  void check_arrays(storage::Store& store);
  void check_array(storage::Store& store, const storage::ArrayRow& row);
  void check_effects(storage::Store& store);
  void check_stream(const storage::EffectRow& row);
  void check_jobs(storage::Store& store);
  void check_answers(storage::Store& store);
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }

  std::map<std::string, Array> arrays_;
  struct Stream {
    int64_t count = 0;      ///< of effects that have a place in their job
    bool is_ended = false;  ///< the log says how it ended
  };
  std::map<int64_t, std::string> effects_;  ///< values by sequence
  std::map<std::string, Stream> streamed_;  ///< by job, of the last check
  std::map<std::string, int64_t> jobs_;
  std::map<std::string, std::string> answers_;
  int64_t acknowledged_ = 0;
  std::vector<std::string> wrong_;
};

}  // namespace meshd::testing
