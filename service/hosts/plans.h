// Which plans the other ranks have made. A plan gets a number and is sent as its recipe to each rank that executes a
// run of it, once; the ranks' digests have to be that of rank 0's plan.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "service/compile/pipeline.h"
#include "service/hosts/messages.h"
#include "service/hosts/protocol.h"

namespace meshd::hosts {

/// A plan that ranks know by number. It is kept by them while somebody has this.
struct PlanNumber {
  uint64_t number = 0;
  std::string key;  ///< LoweredProgram::key
  std::string digest;
  std::string record;
};
using PlanNumberRef = std::shared_ptr<const PlanNumber>;

/// Any thread.
class Plans {
 public:
  explicit Plans(Messages& messages) : messages_(messages) {}

  struct Asked {
    PlanNumberRef plan;
    bool is_there = false;  ///< the ranks have it: `then` is not called
  };
  /// Called on the network's thread when the ranks have the plan, or with the error of the first that cannot make it.
  using Then = std::function<void(std::optional<core::Error>)>;
  /// `members`: ranks; rank 0 has every plan.
  Asked prepare(const compile::LoweredProgram& lowered, const std::vector<int>& members, Then then);
  void prepared(int rank, const Prepared& message);

 private:
  struct Waiting {
    std::set<int> ranks;
    std::optional<core::Error> error;
    Then then;
  };
  struct Entry {
    PlanNumberRef plan;
    std::set<int> ready;
    std::set<int> asked;
    std::list<std::shared_ptr<Waiting>> waiting;
    uint64_t used = 0;
  };
  void drop_old();

  Messages& messages_;
  std::mutex mutex_;                      // of what follows
  std::map<std::string, Entry> entries_;  // by key
  std::map<uint64_t, std::string> keys_;  // by number
  uint64_t last_number_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace meshd::hosts
