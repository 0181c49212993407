// Who may run: a queue for each device, in one fair order, and memory by planned bytes.
//
// Start-time fair queueing on two levels (Goyal, Vin, Cheng 1996): each principal, each of its sessions and each run
// has a virtual time, the device time that it has had. Who waits is ordered by the virtual time of its principal, then
// of its session, then of the run; who was idle begins at the virtual time of those that are served, so that nobody
// saves time up. Example: a's run has had 2 ms of device 0 and others wait: b's new run is next, then a's again.
//
// 1. All entries that wait are ordered, and looked at in that order. An entry starts when nobody runs on its devices
//    and no earlier entry waits for one of them; an entry that cannot start reserves its devices against later ones.
//    Devices are taken all at once and in one global order, so there is no circular wait.
// 2. A new entry also needs its planned bytes. They are given in the same order: a large run is not overtaken for ever.
//    An entry that waits for bytes alone reserves no device, because those that have bytes must be able to end.
// 3. An entry for whose devices others wait is told so (kWanted) and yields when its time slice is over: it keeps its
//    bytes and waits again. One that waits for somebody outside steps aside, and comes back before those of its
//    session.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "service/core/locked.h"

namespace meshd::device {

/// A run in the queues. Fields belong to the scheduler.
class QueueEntry {
 public:
  virtual ~QueueEntry() = default;

 protected:
  /// What a running entry has to attend to, by bits. The scheduler sets and clears kWanted, others are the run's.
  static constexpr uint32_t kWanted = 1;
  std::atomic<uint32_t> attention_{0};

 private:
  friend class Scheduler;
  enum class State : uint8_t { kGone, kWaiting, kRunning, kAside };
  State state_ = State::kGone;
  uint64_t ticket_ = 0;
  uint64_t number_ = 0;  // breaks ties
  std::vector<int64_t> devices_;
  int64_t bytes_ = 0;
  std::chrono::nanoseconds used_{0};  // virtual time
  std::string principal_;
  std::string session_;
  bool has_bytes_ = false;   // it ran: bytes are its own until it leaves
  bool comes_back_ = false;  // from aside
};
using QueueEntryRef = std::shared_ptr<QueueEntry>;

struct QueueRequest {
  uint64_t ticket = 0;           ///< among entries of equal virtual time, lower ones are first; 0: behind all
  std::vector<int64_t> devices;  ///< distinct or not, in any order
  int64_t bytes = 0;
  std::string principal;
  std::string session;
};

/// Any thread. Calls nobody: whoever may start now is returned, in order.
class Scheduler {
 public:
  enum class Order : uint8_t {
    kFair,
    kTickets,  ///< lower tickets first and nobody yields: the same order on every rank
  };
  /// `memory_limit_bytes` 0: no limit.
  Scheduler(int64_t device_count, int64_t memory_limit_bytes, Order order = Order::kFair);

  std::vector<QueueEntryRef> add(const QueueEntryRef& entry, QueueRequest request);
  /// A run is over, or is not to start any more; `used` is what it had of its devices since it was started last.
  std::vector<QueueEntryRef> remove(const QueueEntryRef& entry, std::chrono::nanoseconds used);
  /// Takes a run that waits in the queues out of them; false when it runs, is aside or is gone. Who may start now is
  /// put into `starting`.
  bool withdraw(const QueueEntryRef& entry, std::vector<QueueEntryRef>& starting);
  /// A running run waits again. It is among those that start when it is the next in the order.
  std::vector<QueueEntryRef> yield(const QueueEntryRef& entry, std::chrono::nanoseconds used);
  /// A running run gives its devices to others for as long as it waits for somebody outside.
  std::vector<QueueEntryRef> step_aside(const QueueEntryRef& entry, std::chrono::nanoseconds used);
  /// It wants its devices again. Returns it, if nobody else has them; else a later call does.
  std::vector<QueueEntryRef> step_back(const QueueEntryRef& entry);
  /// Everybody who waits, runs or is aside.
  [[nodiscard]] std::vector<QueueEntryRef> everybody() const;

  struct Stats {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t aside = 0;
    int64_t planned_bytes = 0;
    std::vector<int64_t> device_queue;  ///< entries that wait for the device or run on it
  };
  [[nodiscard]] Stats stats() const;

 private:
  using Time = std::chrono::nanoseconds;
  struct Session {
    Time used{0};
    Time floor{0};  // where new runs begin
    int64_t entries = 0;
  };
  struct Principal {
    Time used{0};
    Time floor{0};  // where sessions begin that were idle
    int64_t entries = 0;
    std::map<std::string, Session, std::less<>> sessions;
  };
  struct State {
    std::vector<QueueEntry*> holders;    // by device; null: free
    std::vector<uint64_t> reserved_in;   // by device: the round that reserved it
    std::vector<QueueEntryRef> waiting;  // in the order of the last round
    std::set<QueueEntryRef> members;
    std::map<std::string, Principal, std::less<>> principals;
    Time floor{0};  // where principals begin that were idle
    uint64_t round = 0;
    uint64_t last_ticket = 0;
    uint64_t next_number = 0;
    int64_t bytes = 0;
    int64_t running = 0;
    int64_t aside = 0;
  };
  using Key = std::tuple<Time, Time, bool, Time, uint64_t, uint64_t>;

  std::vector<QueueEntryRef> start(State& state) const;
  [[nodiscard]] static Key key_of(const State& state, const QueueEntry& entry);
  void charge(State& state, QueueEntry& entry, Time used) const;
  static void stop(State& state, QueueEntry& entry);
  static void join(State& state, const QueueEntryRef& entry);
  static void leave(State& state, const QueueEntryRef& entry);

  const int64_t limit_;
  const Order order_;
  core::Locked<State> state_;
};

}  // namespace meshd::device
