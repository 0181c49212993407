// Subscriptions to the events of a session.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "service/core/locked.h"

namespace meshd::effects {

/// Any thread.
class WakeTable {
 public:
  /// Dropping the handle ends it.
  using Subscription = std::shared_ptr<void>;
  /// `wake` runs on the thread that notifies; it must not block.
  Subscription subscribe(const std::string& session, std::function<void()> wake);
  void notify(const std::string& session);

 private:
  struct Table {
    uint64_t next = 0;
    std::multimap<std::string, std::pair<uint64_t, std::shared_ptr<std::function<void()>>>> readers;
  };
  std::shared_ptr<core::Locked<Table>> table_ = std::make_shared<core::Locked<Table>>();
};

}  // namespace meshd::effects
