#include "service/core/memory_ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string>

#include "service/core/error.h"

namespace meshd::core {
namespace {

// Of 32, as the table in the header has them.
constexpr int64_t kWhole = 32;
constexpr int64_t kJobs = 16, kArrays = 8, kRecycled = 2, kAccounted = 5;
struct Part {
  std::string_view name;
  int64_t of_32;
};
constexpr Part kParts[] = {{"requests", 4}, {"answers", 4}, {"downloads", 2}, {"events", 4},
                           {"programs", 1}, {"effects", 2}, {"waiting", 2}};
static_assert(std::size(kParts) == kMemoryAccounts);
constexpr int kRetryAfterSeconds = 1;
constexpr int64_t kTrimsPerLimit = 8;

void raise_peak(std::atomic<int64_t>& peak, int64_t held) {
  int64_t known = peak.load(std::memory_order_relaxed);
  while (known < held && !peak.compare_exchange_weak(known, held, std::memory_order_relaxed)) continue;
}

}  // namespace

MemoryShares memory_shares(int64_t process_bytes) {
  const int64_t part = process_bytes / kWhole;
  return {part * kJobs, part * kArrays, part * kRecycled, part * kAccounted};
}

MemoryLedger::MemoryLedger(int64_t limit_bytes) : limit_(limit_bytes) {
  for (size_t i = 0; i < kMemoryAccounts; ++i) accounts_[i].limit = limit_bytes / kAccounted * kParts[i].of_32;
}

std::shared_ptr<MemoryLedger> MemoryLedger::create(int64_t limit_bytes) {
  return std::shared_ptr<MemoryLedger>(new MemoryLedger(limit_bytes));
}

std::array<MemoryLedger::Stats, kMemoryAccounts> MemoryLedger::stats() const {
  std::array<Stats, kMemoryAccounts> out;
  for (size_t i = 0; i < kMemoryAccounts; ++i) {
    const Account& account = accounts_[i];
    out[i] = {kParts[i].name, account.limit, account.held.load(std::memory_order_relaxed),
              account.peak.load(std::memory_order_relaxed), account.refused.load(std::memory_order_relaxed)};
  }
  return out;
}

bool MemoryLedger::take(MemoryAccount which, int64_t bytes, Fit fit) {
  Account& account = of(which);
  // Looked at first, so that who is refused seldom takes the room of another for a moment.
  if (fit == Fit::kWithin && (bytes > account.limit - account.held || bytes > limit_ - held_)) {
    account.refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const int64_t held = account.held.fetch_add(bytes) + bytes;
  const int64_t all = held_.fetch_add(bytes) + bytes;
  if (fit == Fit::kWithin && (held > account.limit || all > limit_)) {
    give_back(which, bytes);
    account.refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  raise_peak(account.peak, held);
  return true;
}

void MemoryLedger::give_back(MemoryAccount which, int64_t bytes) {
  of(which).held.fetch_sub(bytes);  // before the look for who waits
  held_.fetch_sub(bytes);
  given_back_.fetch_add(bytes, std::memory_order_relaxed);
}

void MemoryLedger::notify_waiting() {
  if (has_waiters_ && has_waiters_.exchange(false)) waiters_.notify_once();
}

bool MemoryLedger::is_trim_due() {
  const int64_t due = limit_ / kTrimsPerLimit;
  return given_back_.load(std::memory_order_relaxed) >= due && given_back_.exchange(0) >= due;
}

MemoryReservation::MemoryReservation(MemoryReservation&& other) noexcept
    : ledger_(std::move(other.ledger_)),
      share_(std::move(other.share_)),
      account_(other.account_),
      is_beyond_(std::exchange(other.is_beyond_, false)),
      bytes_(std::exchange(other.bytes_, 0)),
      borrowed_(std::exchange(other.borrowed_, 0)) {}

MemoryReservation& MemoryReservation::operator=(MemoryReservation&& other) noexcept {
  if (this == &other) return *this;
  shrink(bytes_);
  ledger_ = std::move(other.ledger_);
  share_ = std::move(other.share_);
  account_ = other.account_;
  is_beyond_ = std::exchange(other.is_beyond_, false);
  bytes_ = std::exchange(other.bytes_, 0);
  borrowed_ = std::exchange(other.borrowed_, 0);
  return *this;
}

bool MemoryReservation::try_grow(int64_t bytes) {
  if (share_ != nullptr && !share_->try_take(bytes)) {
    if (ledger_ != nullptr) ledger_->of(account_).refused.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (ledger_ != nullptr && !ledger_->take(account_, bytes, MemoryLedger::Fit::kWithin)) {
    if (share_ != nullptr) share_->give_back(bytes);
    return false;
  }
  bytes_ += bytes;
  return true;
}

void MemoryReservation::grow(int64_t bytes) {
  if (try_grow(bytes)) return;
  const std::string name(kParts[static_cast<size_t>(account_)].name);
  const int64_t limit = limit_bytes();
  if (bytes_ + bytes > limit) {
    throw Error("body_too_large",
                fmt::format("this takes more than the {} bytes of memory that all {} of {} may take together", limit,
                            name, share_ != nullptr ? "one principal" : "this server"));
  }
  const bool is_own = share_ != nullptr && share_->held_bytes() + bytes > share_->limit_bytes();
  throw Error("memory_full", fmt::format("other {}{} hold the memory that this one needs", name,
                                         is_own ? " of the same principal" : ""))
      .with_retry_after(kRetryAfterSeconds);
}

int64_t MemoryReservation::limit_bytes() const {
  const int64_t of_account = ledger_ == nullptr ? INT64_MAX : ledger_->accounts_[static_cast<size_t>(account_)].limit;
  return share_ == nullptr ? of_account : std::min(of_account, share_->limit_bytes());
}

bool MemoryReservation::try_grow_beyond(int64_t bytes) {
  if (try_grow(bytes)) return true;
  if (!is_beyond_ && ledger_->of(account_).has_beyond.exchange(true)) return false;
  is_beyond_ = true;
  grow_regardless(bytes);
  return true;
}

bool MemoryReservation::try_borrow(int64_t bytes) {
  if (ledger_ == nullptr || ledger_->lender_.try_lend == nullptr) return try_grow_beyond(bytes);
  if (try_grow(bytes)) return true;
  std::atomic<bool>& has_borrower = ledger_->of(account_).has_borrower;
  const bool is_first = borrowed_ == 0;
  if (is_first && has_borrower.exchange(true)) return false;
  bool is_lent = false;
  try {
    is_lent = ledger_->lender_.try_lend(bytes);
  } catch (...) {
    if (is_first) has_borrower = false;
    throw;
  }
  if (is_lent) {
    borrowed_ += bytes;
    bytes_ += bytes;
  } else if (is_first) {
    has_borrower = false;
  }
  return is_lent;
}

void MemoryReservation::grow_beyond(int64_t bytes, std::string_view user) {
  if (try_borrow(bytes)) return;
  MemoryLedger::Account& account = ledger_->of(account_);
  bool is_held = false;
  if (!account.has_waiting.exchange(true)) {
    const std::shared_ptr<void> leaves(nullptr, [&](void*) { account.has_waiting = false; });
    const WaiterRef waiter = std::make_shared<ThreadWaiter>();
    const auto until = std::chrono::steady_clock::now() + kLongestWait;
    for (;;) {
      notify_when_given(waiter);
      is_held = try_borrow(bytes);
      if (is_held || std::chrono::steady_clock::now() >= until) break;
      waiter->wait(until);
    }
  }
  if (is_held) return;
  throw Error("memory_full",
              fmt::format("other {} hold the memory that {} needs", kParts[static_cast<size_t>(account_)].name, user))
      .with_retry_after(kRetryAfterSeconds);
}

void MemoryReservation::notify_when_given(const WaiterRef& waiter) const {
  if (ledger_ == nullptr) return;
  ledger_->waiters_.add(waiter);
  ledger_->has_waiters_ = true;
}

void MemoryReservation::grow_regardless(int64_t bytes) {
  if (share_ != nullptr) share_->take_anyway(bytes);
  if (ledger_ != nullptr) ledger_->take(account_, bytes, MemoryLedger::Fit::kAnyway);
  bytes_ += bytes;
}

void MemoryReservation::shrink(int64_t bytes) {
  bytes_ -= bytes;
  const int64_t back = std::min(bytes, borrowed_);
  if (share_ != nullptr) share_->give_back(bytes - back);
  if (ledger_ == nullptr) return;
  if (bytes == 0) return;
  if (back > 0) {
    borrowed_ -= back;
    if (borrowed_ == 0) ledger_->of(account_).has_borrower = false;  // whom the lender notifies may borrow
    ledger_->lender_.take_back(back);
    ledger_->given_back_.fetch_add(back, std::memory_order_relaxed);
    bytes -= back;
  }
  ledger_->give_back(account_, bytes);
  if (bytes_ == 0 && std::exchange(is_beyond_, false)) ledger_->of(account_).has_beyond.store(false);
  ledger_->notify_waiting();
}

}  // namespace meshd::core
