#include "service/hosts/mpi/doorbells.h"

#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <new>
#include <system_error>

namespace meshd::hosts {

struct Doorbells::Bell {
  std::atomic<bool> sleeps{false};
  sem_t rung;
};
static_assert(std::atomic<bool>::is_always_lock_free, "it is shared between processes");

Doorbells::Doorbells(MPI_Comm comm, MPI_Comm local) {
  int rank = 0, size = 1, local_size = 1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Comm_size(local, &local_size);
  bells_.resize(static_cast<size_t>(size));

  void* memory = nullptr;
  MPI_Comm_set_errhandler(local, MPI_ERRORS_RETURN);
  int is_shared = MPI_Win_allocate_shared(sizeof(Bell), 1, MPI_INFO_NULL, local, static_cast<void*>(&memory),
                                          &window_) == MPI_SUCCESS;
  MPI_Allreduce(MPI_IN_PLACE, &is_shared, 1, MPI_INT, MPI_MIN, local);
  if (is_shared == 0) {  // an MPI that is told to do without shared memory
    window_ = MPI_WIN_NULL;
    unshared_.resize(sizeof(Bell) / sizeof(std::max_align_t) + 1);
    memory = unshared_.data();
  }
  own_ = new (memory) Bell;
  if (::sem_init(&own_->rung, 1, 0) != 0) throw std::system_error(errno, std::generic_category(), "sem_init");

  std::vector<int> ranks(static_cast<size_t>(local_size));
  MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, local);  // after it each bell is there
  for (int i = 0; i < local_size && is_shared != 0; ++i) {
    MPI_Aint bytes = 0;
    int unit = 1;
    void* place = nullptr;
    MPI_Win_shared_query(window_, i, &bytes, &unit, static_cast<void*>(&place));
    bells_[static_cast<size_t>(ranks[static_cast<size_t>(i)])] = static_cast<Bell*>(place);
  }
  bells_[static_cast<size_t>(rank)] = own_;
  reach_all_ = is_shared != 0 && local_size == size;
}

void Doorbells::close() {
  if (window_ != MPI_WIN_NULL) MPI_Win_free(&window_);
}

void Doorbells::ring(int rank) {
  Bell* bell = bells_[static_cast<size_t>(rank)];
  if (bell == nullptr) return;
  // Both sides exchange: the one that comes second sees what the other did before its own.
  if (bell->sleeps.exchange(false)) ::sem_post(&bell->rung);
}

void Doorbells::announce_sleep() { own_->sleeps.exchange(true); }

void Doorbells::end_sleep() { own_->sleeps = false; }

void Doorbells::sleep(std::chrono::microseconds most) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t nanoseconds = until.tv_nsec + std::chrono::nanoseconds(most).count();
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  ::sem_clockwait(&own_->rung, CLOCK_MONOTONIC, &until);
  end_sleep();
  while (::sem_trywait(&own_->rung) == 0) {
  }  // rung between its end and here
}

}  // namespace meshd::hosts
