// Who may run: a first-in-first-out queue for each device, and memory by planned bytes. A run starts when it is first
// in the queues of all its devices and its bytes fit; bytes are given in ticket order, so that a large run is not
// overtaken for ever. All queues are joined in one step and in ticket order, so nobody waits in a circle. A run that
// waits for somebody outside steps aside and keeps its bytes; it comes back behind those that run and before all that
// have never run, so that nobody whom it keeps from starting keeps it from going on.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "service/core/locked.h"

namespace meshd::device {

/// A run's place in the queues. Fields belong to the scheduler.
class Seat {
 public:
  virtual ~Seat() = default;

 private:
  friend class Scheduler;
  uint64_t ticket_ = 0;
  uint64_t number_ = 0;  // breaks ties
  std::vector<int64_t> devices_;
  int64_t bytes_ = 0;
  size_t first_in_ = 0;  // queues in which it stands first
  bool is_running_ = false;
  bool has_bytes_ = false;  // it ran: bytes are its own until it leaves
  bool is_aside_ = false;   // in no queue
  bool is_seated_ = false;
};
using SeatRef = std::shared_ptr<Seat>;

/// Any thread. Calls nobody: whoever may start now is returned.
class Scheduler {
 public:
  /// `memory_limit_bytes` 0: no limit.
  Scheduler(int64_t device_count, int64_t memory_limit_bytes);

  /// Queues a run on distinct devices; ticket 0 means behind all. Returns who may start, in ticket order.
  std::vector<SeatRef> add(const SeatRef& seat, uint64_t ticket, std::vector<int64_t> devices, int64_t bytes);
  /// A run is over, or is not to start any more. Returns who may start now.
  std::vector<SeatRef> remove(const SeatRef& seat);
  /// Takes a run that stands in the queues and does not run out of them; false when it runs, is aside or is gone. Who
  /// may start now is put into `starting`.
  bool withdraw(const SeatRef& seat, std::vector<SeatRef>& starting);
  /// A running run gives its devices to others for as long as it waits. Returns who may start now.
  std::vector<SeatRef> step_aside(const SeatRef& seat);
  /// It wants its devices again. Returns it, if nobody else has them; else a later call does.
  std::vector<SeatRef> step_back(const SeatRef& seat);
  /// Everybody who is queued or running.
  [[nodiscard]] std::vector<SeatRef> everybody() const;

  struct Stats {
    int64_t queued = 0;
    int64_t running = 0;
    int64_t aside = 0;
    int64_t planned_bytes = 0;
    std::vector<int64_t> device_queue;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct State {
    std::vector<std::deque<SeatRef>> queues;  // by device
    std::set<SeatRef> seated;
    std::map<std::pair<uint64_t, uint64_t>, SeatRef> ready;  // first everywhere, waiting for memory
    uint64_t last_ticket = 0;
    uint64_t next_number = 0;
    std::vector<SeatRef> returning;  // first everywhere and with bytes
    int64_t bytes = 0;
    int64_t running = 0;
    int64_t aside = 0;
  };
  std::vector<SeatRef> start(State& state) const;
  static std::pair<uint64_t, uint64_t> order(const Seat& seat) { return {seat.ticket_, seat.number_}; }
  /// Stands the seat behind those in a queue that run or ran, and, when it is new, behind lower tickets.
  static void enqueue(State& state, const SeatRef& seat);
  static void dequeue(State& state, const SeatRef& seat);
  static void put_aside(State& state, const SeatRef& seat);
  static void look_at(State& state, const SeatRef& seat);
  static void leave(State& state, const SeatRef& seat);

  const int64_t limit_;
  core::Locked<State> state_;
};

}  // namespace meshd::device
