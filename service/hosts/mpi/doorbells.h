// What wakes a thread that sleeps until another rank sends it something: MPI itself can only be asked again and again.
//
// Each rank has a bell, a semaphore, in memory that the ranks of one host share (MPI_Win_allocate_shared). Who has sent
// a message rings the receiver's. Ranks of other hosts cannot: for their messages a thread has to look now and then.
//
// No message is slept through: the thread announces its sleep, looks once more, and only then sleeps; the sender hands
// its message to MPI and only then asks whether the receiver sleeps. So either the look finds the message, or the
// sender finds the announcement.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <vector>

namespace meshd::hosts {

class Doorbells {
 public:
  /// All ranks of `comm` make theirs at the same time, and `local` has those of this host. Throws where the system has
  /// no semaphores.
  Doorbells(MPI_Comm comm, MPI_Comm local);
  /// All ranks at the same time; MPI is still up.
  void close();

  /// Whether every rank can ring this one's.
  [[nodiscard]] bool reach_all() const { return reach_all_; }
  /// Wakes the rank if it sleeps; nothing for one of another host. Any thread.
  void ring(int rank);

  /// The thread that sleeps: it is going to, after one more look.
  void announce_sleep();
  /// It has found something, and does not sleep.
  void end_sleep();
  /// After announce_sleep(): until the bell rings, at most so long.
  void sleep(std::chrono::microseconds most);

 private:
  struct Bell;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<std::max_align_t> unshared_;  // for one bell, where MPI shares no memory
  std::vector<Bell*> bells_;                // by rank; null: of another host
  Bell* own_ = nullptr;
  bool reach_all_ = false;
};

}  // namespace meshd::hosts
