// Random work on a store, each step reported in the lines of kill_protocol.h: what is about to be tried, and what was
// acknowledged.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "storage/store.h"

namespace meshd::testing {

/// Makes the session that all workers log into, if it is not there.
void open_kill_session(storage::Store& store);

/// One thread; several may work on one store under different names. Throws what the store throws.
class StoreWorker {
 public:
  StoreWorker(storage::Store& store, std::string name, std::function<void(const std::string&)> say);
  /// One step: an array made, donated or deleted, a job, an idempotent answer, effects, or a round of the collector.
  void step();

 private:
  std::string next(const char* prefix) { return prefix + name_ + "-" + std::to_string(++count_); }
  std::vector<storage::CommittedBlob> put_shards(const std::string& array);
  std::string take_mine();
  void create();
  void donate();
  void remove();
  void accept_job();
  void stream();
  void keep_answer();
  void log();

  storage::Store& store_;
  std::string name_;
  std::function<void(const std::string&)> say_;
  std::mt19937_64 random_;
  int count_ = 0;
  std::vector<std::string> mine_;
};

}  // namespace meshd::testing
