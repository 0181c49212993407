// The memory ledger: who may hold how much of the process's memory, and who holds it now.
//
// memory_shares() divides the memory of the process (`--memory`, else its container's limit, else the machine's):
//
//   share      of 32  what it is for                             when none is free
//   jobs       16     planned bytes of running jobs, and of      a job waits for its turn (device::Engine)
//                       results until they are written or sent
//   arrays      8       shards of arrays that leave it to jobs   they leave memory (arrays::ArrayStore)
//     recycled  2       of what both leave: released buffers,    they go back to the system (tensor::BufferPool)
//                       kept for reuse
//   accounted   5     the accounts of the ledger:
//     requests  4       bodies, what they are decoded with and   503 memory_full at once (one principal's at three
//                       parsed into, and rows that are read      quarters); for compiling, one request at a time
//                                                                borrows from jobs, or waits up to a second
//     answers   4       what is made for responses until they    503 memory_full for reads; others are charged anyway;
//                       are sent                                 one text at a time borrows from jobs
//     downloads 2       pages of arrays, read while they are     503 memory_full for more of them
//                       sent to clients that may be slow
//     events    4       backlogs of event streams                the stream ends; its client resumes
//     programs  1       parsed and planned programs              the least recently used one leaves its cache
//     effects   2       effects of runs that are not in a log    a run that streams its effects waits until those that
//                       yet                                      it has are committed; any other one fails
//     waiting   2       requests of background jobs that wait,   the request leaves memory and is read again from the
//                       and results that wait for the session    job's row; the job begins when it is next in order
//   (rest)      3     the program itself: code, stacks, database
//
// Of the memory of jobs, results that are sent as they are (files, binary outputs of models) may hold as much as
// answers, so that slow readers of large files leave the rest to others: a second ledger of jobs::JobRunner counts them
// (service/jobs/execution/answer_memory.h). Metrics show it as one more account, "files".
//
// The parts of the accounts overlap: an account's limit bounds that account, the ledger's limit all of them together.
// Example with 1 GiB: requests may hold 128 MiB and all accounts 160 MiB, so that requests get at most 96 MiB while
// answers hold 64 MiB.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "service/core/memory_share.h"
#include "service/core/waits/waiter.h"
#include "service/core/waits/waiter_list.h"

namespace meshd::core {

/// The shares of those who count for themselves, and of the ledger, in bytes.
struct MemoryShares {
  int64_t jobs = 0;
  int64_t arrays = 0;
  int64_t recycled = 0;
  int64_t accounted = 0;
};
MemoryShares memory_shares(int64_t process_bytes);

enum class MemoryAccount : uint8_t { kRequests, kAnswers, kDownloads, kEvents, kPrograms, kEffects, kWaiting };
inline constexpr size_t kMemoryAccounts = 7;

/// Who lends what one reservation at a time needs beyond its account: the memory of jobs. Any thread; called without a
/// lock.
struct MemoryLender {
  std::function<bool(int64_t bytes)> try_lend;
  std::function<void(int64_t bytes)> take_back;
};

/// Counts bytes by account. Any thread; without a lock unless somebody waits. Shared with its reservations, which may
/// outlive its owner.
class MemoryLedger {
 public:
  /// `limit_bytes`: of all accounts together; each has its part of it.
  static std::shared_ptr<MemoryLedger> create(int64_t limit_bytes);

  struct Stats {
    std::string_view name;
    int64_t limit_bytes = 0;
    int64_t held_bytes = 0;
    int64_t peak_bytes = 0;  ///< the most that was held at once
    int64_t refused = 0;     ///< reservations that were not made
  };
  [[nodiscard]] std::array<Stats, kMemoryAccounts> stats() const;
  [[nodiscard]] int64_t held_bytes() const { return held_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t limit_bytes() const { return limit_; }
  /// Before any thread uses the ledger; what `lender` captures outlives the reservations.
  void borrow_from(MemoryLender lender) { lender_ = std::move(lender); }
  /// Notifies those that wait for memory: for the lender, which has some again.
  void notify_waiting();
  /// True each time that an eighth of the limit has been given back: time to return free memory to the system, which an
  /// allocator keeps by thread. What it keeps is in no account.
  bool is_trim_due();

 private:
  friend class MemoryReservation;
  struct Account {
    int64_t limit = 0;
    std::atomic<int64_t> held{0}, peak{0}, refused{0};
    std::atomic<bool> has_beyond{false};    ///< a reservation has gone beyond the limit
    std::atomic<bool> has_borrower{false};  ///< the lender has lent to one
    std::atomic<bool> has_waiting{false};   ///< a thread is in grow_beyond
  };
  explicit MemoryLedger(int64_t limit_bytes);
  enum class Fit : uint8_t { kWithin, kAnyway };
  bool take(MemoryAccount account, int64_t bytes, Fit fit);
  void give_back(MemoryAccount account, int64_t bytes);
  Account& of(MemoryAccount account) { return accounts_[static_cast<size_t>(account)]; }

  const int64_t limit_;
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> given_back_{0};  ///< since the last trim
  std::array<Account, kMemoryAccounts> accounts_;

  MemoryLender lender_;  ///< empty: nobody lends

  std::atomic<bool> has_waiters_{false};  ///< some were added since they were notified
  WaiterList waiters_;
};
using MemoryLedgerRef = std::shared_ptr<MemoryLedger>;

/// Bytes held of one account, given back when it is destroyed. Moves. One thread at a time. A default one belongs to no
/// ledger: it counts its bytes and is never refused.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  MemoryReservation(MemoryLedgerRef ledger, MemoryAccount account) : ledger_(std::move(ledger)), account_(account) {}
  ~MemoryReservation() { shrink(bytes_); }
  MemoryReservation(MemoryReservation&& other) noexcept;
  MemoryReservation& operator=(MemoryReservation&& other) noexcept;

  /// What it holds of its account counts in the share of its owner, too, and may not be more than that. Before it holds
  /// anything.
  void count_in(MemoryShareRef share) { share_ = std::move(share); }
  /// Holds so many bytes more. Throws memory_full (with Retry-After) when others hold what is missing, body_too_large
  /// when the account, or the share, would not have them even if it were empty; then nothing is held beyond what was.
  void grow(int64_t bytes);
  /// The same, without a throw: false when there are not so many left.
  [[nodiscard]] bool try_grow(int64_t bytes);
  /// The same for what may be larger than the account: one reservation at a time may go beyond the limit this way,
  /// until it holds nothing. Whoever is refused tries again later.
  [[nodiscard]] bool try_grow_beyond(int64_t bytes);
  /// The same, but what is beyond the account is borrowed where the ledger has a lender, and then not counted in the
  /// account. For what no run waits for.
  [[nodiscard]] bool try_borrow(int64_t bytes);
  /// The same, and throws memory_full, which names who wants the bytes ("compiling the program"). It blocks for up to a
  /// second until others have given back what is missing, so that of many that each hold a part of what they need one
  /// goes on; while one of the account waits, all others are refused at once.
  void grow_beyond(int64_t bytes, std::string_view user);
  /// Notifies the waiter once when memory has been given back, of whichever account or by the lender. Who was refused
  /// calls it, tries again, and then waits for kLongestWait at most: of two that try at the same time both may be
  /// refused.
  void notify_when_given(const WaiterRef& waiter) const;
  static constexpr std::chrono::seconds kLongestWait{1};
  /// Holds them whatever the limit is: for what exists already and has to be finished.
  void grow_regardless(int64_t bytes);
  void shrink(int64_t bytes);
  /// Holds so many from now on, whatever the limit is.
  void hold(int64_t bytes) { bytes > bytes_ ? grow_regardless(bytes - bytes_) : shrink(bytes_ - bytes); }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  /// What the account, or the share, may hold in all; without a ledger as much as there is.
  [[nodiscard]] int64_t limit_bytes() const;

 private:
  MemoryLedgerRef ledger_;  ///< null: of none
  MemoryShareRef share_;    ///< null: of nobody
  MemoryAccount account_ = MemoryAccount::kRequests;
  bool is_beyond_ = false;
  int64_t bytes_ = 0;
  int64_t borrowed_ = 0;  ///< of these
};

}  // namespace meshd::core
