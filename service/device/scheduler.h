// The device scheduler: a queue of runs in one fair order over all devices, and admission by planned bytes.
// Start-time fair queueing (Goyal, Vin, Cheng 1996) on three levels: principals, their sessions, their runs.
//
// Invariant: a device has at most one holder. Entries take all their devices at once, in one global order, so there is
// no circular wait.
//
// 1. Each principal, session and run has a virtual time: how long its runs held their devices. A time slice counts as
//    its length, whatever the number of devices.
// 2. A principal or session that was idle begins at the greatest virtual time at which one of its level was started, if
//    its own is less; a new run begins at that of the runs of its session. So idle time earns no credit.
// 3. Waiting entries are ordered by virtual time of the principal, then of the session; then entries that come back
//    from aside; then by virtual time of the run, ticket and arrival.
// 4. start() visits them in that order. An entry starts when its devices have no holder and no earlier entry waits for
//    one of them. An entry that cannot start reserves its devices against later ones, and marks those that hold them
//    (kWanted), which yield when their time slice is over.
// 5. A new entry also needs its planned bytes. They are given in the same order: later entries do not overtake a large
//    one. An entry that waits for bytes alone reserves no device, because those that have bytes must be able to end.
// 6. An entry that yields keeps its bytes and waits again. One that waits for a reply or a message steps aside: it
//    releases its devices and, once back, precedes the runs of its session.
// 7. An entry that keeps its devices (other ranks execute the run, too) does not yield.
// 8. With Order::kTickets no entry is charged or yields: lower tickets first, the same order on every rank. An entry
//    gets its bytes before later ones do, whether its devices are free or not.
//
// Example: one device, slices of 2 ms. Principal a has run A1 in session s and A2 in session t, b has B1. In: A1, A2,
// B1 arrive together. Virtual times of (a, b) before each slice, and who runs:
//   (0, 0) A1   (2, 0) B1   (2, 2) A2   (4, 2) B1   (4, 4) A1   (6, 4) B1   (6, 6) A2 ...
// Out: b has half of the time, each session of a a quarter. At (2, 2) A2 precedes A1 because its session has had 0 ms,
// and a precedes b because t's 0 ms are less than the 2 ms of b's session.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
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
  /// Requests to a running entry, one bit each. The scheduler sets and clears kWanted; the run owns the others.
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
  bool keeps_devices_ = false;
  bool has_bytes_ = false;   // admitted: it keeps its bytes until it leaves
  bool comes_back_ = false;  // it stepped aside before
};
using QueueEntryRef = std::shared_ptr<QueueEntry>;

struct QueueRequest {
  uint64_t ticket = 0;           ///< among entries of equal virtual time, lower ones are first; 0: behind all
  std::vector<int64_t> devices;  ///< distinct or not, in any order
  int64_t bytes = 0;
  std::string principal;
  std::string session;
  bool keeps_devices = false;  ///< once started, it keeps them until it leaves: it neither yields nor is asked to
};

/// Any thread. Calls no code outside while it is locked; entries that may start now are returned, in order.
class Scheduler {
 public:
  enum class Order : uint8_t {
    kFair,
    /// Lower tickets first, no yields, and bytes in the order of tickets, too: the same order on every rank, so that of
    /// the runs that several ranks execute the earliest has all that it needs on each of them.
    kTickets,
  };
  /// `memory_limit_bytes` 0: no limit. `on_bytes_back` is called without a lock after bytes that were planned have been
  /// given back, for those that try_take() has refused; it throws nothing; may be null.
  Scheduler(int64_t device_count, int64_t memory_limit_bytes, Order order = Order::kFair,
            std::function<void()> on_bytes_back = nullptr);

  std::vector<QueueEntryRef> add(const QueueEntryRef& entry, QueueRequest request);
  /// A run is over, or is not to start any more; `used`: how long it held its devices since it was started last. So
  /// many of its bytes stay planned until give_back().
  std::vector<QueueEntryRef> remove(const QueueEntryRef& entry, std::chrono::nanoseconds used, int64_t kept_bytes = 0);
  std::vector<QueueEntryRef> give_back(int64_t bytes);
  /// Makes so many planned that belong to no run, until give_back(); false: there are not so many.
  [[nodiscard]] bool try_take(int64_t bytes);
  /// Takes a waiting run out of the queue; false when it runs, is aside or has ended. `starting` gets the entries that
  /// may start now.
  bool withdraw(const QueueEntryRef& entry, std::vector<QueueEntryRef>& starting);
  /// A running run waits again. It is among those that start if it is the next in the order.
  std::vector<QueueEntryRef> yield(const QueueEntryRef& entry, std::chrono::nanoseconds used);
  /// A running run releases its devices while it waits for a reply or a message.
  std::vector<QueueEntryRef> step_aside(const QueueEntryRef& entry, std::chrono::nanoseconds used);
  /// Requests its devices again. Returns it if they are free; else a later call does.
  std::vector<QueueEntryRef> step_back(const QueueEntryRef& entry);
  /// All entries that wait, run or are aside.
  [[nodiscard]] std::vector<QueueEntryRef> entries() const;

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
  void note_bytes_back() const;

  const int64_t limit_;
  const Order order_;
  const std::function<void()> on_bytes_back_;
  core::Locked<State> state_;
};

}  // namespace meshd::device
