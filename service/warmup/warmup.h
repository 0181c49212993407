// Warm-up: programs that ran lately are compiled again when the server starts, in the background, before clients ask
// for them. Each lowering that a run asks for leaves a record in a folder (storage/entry_folder.h); a start compiles
// the records, most recently used first, into the compiler's own caches. What runs is then what a first call would have
// compiled: a record decides no bit of any answer, and any build can use it.
//
// It ends when three quarters of a cache are full, after `most_time`, or when all is compiled: then a thread is left
// that writes records, so that no request waits for the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>

#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "storage/entry_folder.h"

namespace meshd::warmup {

struct WarmupOptions {
  std::chrono::milliseconds most_time = std::chrono::seconds(60);
  double most_fullness = 0.75;                                     ///< of the compiler's caches
  int64_t most_waiting_bytes = int64_t{16} << 20;                  ///< of records that wait to be written
  std::chrono::milliseconds save_every = std::chrono::minutes(5);  ///< the order of use
};

/// Since the start.
struct WarmupStats {
  int64_t records = 0;       ///< in the folder now
  int64_t record_bytes = 0;  ///< in the folder now
  int64_t compiled = 0;      ///< records that the warm-up has compiled
  int64_t unusable = 0;      ///< records that were removed because they could not be used
  int64_t hits = 0;          ///< lowerings of the warm-up that a run has used
  int64_t misses = 0;        ///< lowerings that a run had to wait for
  double seconds = 0;        ///< that the warm-up has taken
  bool is_over = false;
};

/// One warm-up of one compiler, which it observes. Any thread.
class Warmup final : public compile::LoweringObserver {
 public:
  /// `compiler` (whose observer it becomes), `records` and `clock` outlive it; nobody calls Compiler::lower after it is
  /// gone.
  Warmup(compile::Compiler& compiler, storage::EntryFolder& records, const core::Clock& clock,
         WarmupOptions options = {});
  /// Waits for the record that is being compiled or written.
  ~Warmup() override;
  Warmup(const Warmup&) = delete;
  Warmup& operator=(const Warmup&) = delete;

  /// Begins to compile. `over` is called with the figures once it is done, on its thread; must not throw. Once.
  void start(std::function<void(const WarmupStats&)> over);
  /// Compiles no further record.
  void stop();
  [[nodiscard]] WarmupStats stats() const;

  void on_lowered(const compile::LoweredProgram& lowered, const compile::LowerRequest& request,
                  bool is_known) noexcept override;

 private:
  struct Waiting {
    std::string name;
    compile::ParsedRef program;
    compile::LowerRequest request;
    int64_t bytes = 0;
  };

  void run();
  [[nodiscard]] bool wants_more(core::SteadyTime began) const;
  void compile_all(core::SteadyTime began);
  void compile_one(const std::string& name);
  /// Writes what waits; true when it is to end.
  bool write_waiting();
  void note(const compile::LoweredProgram& lowered, const compile::LowerRequest& request, bool is_known);

  compile::Compiler& compiler_;
  storage::EntryFolder& records_;
  const core::Clock& clock_;
  const WarmupOptions options_;
  std::function<void(const WarmupStats&)> over_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool ending_ = false;
  std::deque<Waiting> waiting_;
  std::unordered_set<std::string> waiting_names_;
  int64_t waiting_bytes_ = 0;
  std::optional<core::SteadyTime> refused_at_;  // the last record that was not kept
  std::unordered_set<std::string> unused_;      // lowerings of the warm-up that no run has used
  WarmupStats stats_;
  std::thread thread_;
};

}  // namespace meshd::warmup
