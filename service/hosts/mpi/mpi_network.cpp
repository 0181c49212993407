// The network on MPI. One thread makes all calls of MPI; others give it messages. Without memory it tries until there
// is some: a message that is lost is missed by its receiver for ever. MPI itself ends the process then.
//
// A message is an MPI message with the header, and its bytes too when they are few. More bytes follow in pieces of
// 1 MiB, of which several are under way at once, straight from the sender's memory into the receiver's. Between two
// ranks MPI keeps the order of messages with one tag: headers have one, pieces the other, so pieces need no numbers.
//
// A message of 2.5 MiB: header (tag 1), then pieces of 1, 1 and 0.5 MiB (tag 2). The receiver reads the header, asks
// where the bytes go, and posts receives for the three pieces.
//
// While messages are under way or expected the thread looks again and again for 50 us after each that moved, and then
// every 20 us. Else it looks for 300 us, so that a rank that is asked again and again is awake, and then sleeps until
// its bell rings (doorbells.h): for a message of a rank of this host, or one to send. Ranks of other hosts have no bell
// to ring. Where there are any, it sleeps the longer the longer nothing has moved: 20 us between looks in the first
// millisecond, then 50 us, and 150 us when there was nothing for 20 ms.
#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "service/core/keep_trying.h"
#include "service/hosts/mpi/doorbells.h"
#include "service/hosts/network/network.h"

namespace meshd::hosts {
namespace {

constexpr int kHeaderTag = 1;
constexpr int kPieceTag = 2;
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kInlineBytes = 3072;  // with the header below 4 KiB: MPI sends so much at once
constexpr size_t kMostRequests = 8;    // pieces of one rank that are under way
constexpr std::chrono::microseconds kPollFor{50};
constexpr std::chrono::microseconds kAnswerWithin{300};
constexpr std::chrono::microseconds kBusySleep{20};
constexpr std::chrono::microseconds kIdleSleep{150};  // where other hosts cannot ring
constexpr std::chrono::microseconds kRungSleep{5000};
constexpr std::chrono::seconds kPatience{10};  // for the others, at the end

using Clock = std::chrono::steady_clock;

// How long to sleep when nothing has moved for `quiet`, and ranks of other hosts may have sent something.
std::chrono::microseconds idle_sleep(Clock::duration quiet) {
  if (quiet < std::chrono::milliseconds(1)) return kBusySleep;
  return quiet < std::chrono::milliseconds(20) ? std::chrono::microseconds(50) : kIdleSleep;
}

struct Outgoing {
  Header header;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

// A send or a receive under way, and what it needs until it is complete.
struct Pending {
  MPI_Request request = MPI_REQUEST_NULL;
  std::shared_ptr<const void> keep;
  std::vector<std::byte> packed;
  bool is_whole_piece = false;  // so large that MPI completes it only once the receiver has asked for it
};

// What a rank is being sent, and what it is sending. The thread alone.
struct Peer {
  std::deque<Outgoing> queue;
  size_t sent_bytes = 0;  // of the first in the queue
  bool is_header_sent = false;
  std::deque<Pending> sends;

  struct Incoming {
    Header header;
    std::vector<std::byte> bytes;  // those that came with the header
  };
  std::deque<Incoming> waiting;  // behind the one that is arriving
  bool is_arriving = false;
  Header header;
  std::span<std::byte> target;
  size_t posted_bytes = 0;
  std::deque<MPI_Request> receives;
};

class MpiNetwork final : public Network {
 public:
  MpiNetwork() {
    std::unique_lock held(mutex_);
    thread_ = std::thread([this] { work(); });
    wake_.wait(held, [&] { return is_open_ || !problem_.empty(); });
    if (problem_.empty()) return;
    held.unlock();
    thread_.join();
    throw std::runtime_error(problem_);
  }
  ~MpiNetwork() override {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard held(mutex_);
      aborts_ = true;
      wake();
    }
    thread_.join();
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int local_size() const override { return local_size_; }
  void start(std::shared_ptr<Receiver> receiver) override {
    const std::lock_guard held(mutex_);
    receiver_ = std::move(receiver);
    wake();
  }
  void send(int peer, const Header& header, std::span<const std::byte> bytes,
            std::shared_ptr<const void> keep) override {
    const std::lock_guard held(mutex_);
    given_.emplace_back(peer, Outgoing{header, bytes, std::move(keep)});
    wake();
  }
  void expect_traffic(bool is_soon) override {
    const std::lock_guard held(mutex_);
    is_busy_ = is_soon;
    wake();
  }
  void close() override {
    {
      const std::lock_guard held(mutex_);
      closes_ = true;
      wake();
    }
    thread_.join();
  }

 private:
  // The thread, from any other; under the lock.
  void wake() {
    wake_.notify_all();
    bells_->ring(rank_);
  }

  void work() {
    // A sleep of 20 us that takes 70 is what a thread gets without this.
    ::prctl(PR_SET_TIMERSLACK, 1000UL);
    int provided = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
        provided < MPI_THREAD_FUNNELED) {
      const std::lock_guard held(mutex_);
      problem_ = "MPI_Init_thread failed";
      wake_.notify_all();
      return;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm local = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    bells_.emplace(comm_, local);
    MPI_Comm_free(&local);
    peers_.resize(static_cast<size_t>(size_));
    {
      const std::lock_guard held(mutex_);
      is_open_ = true;
      wake_.notify_all();
    }
    try {
      loop();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank_, error.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (!meets_all()) MPI_Abort(MPI_COMM_WORLD, 1);
    bells_->close();
    MPI_Finalize();
  }

  // All ranks are here, within a time in which those that live are.
  bool meets_all() {
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(comm_, &all);
    const Clock::time_point end = Clock::now() + kPatience;
    while (!is_complete(all)) {
      if (Clock::now() > end) return false;
      std::this_thread::sleep_for(kIdleSleep);
    }
    return true;
  }

  void loop() {
    Clock::time_point moved_at = Clock::now();
    bool is_announced = false;  // this is the look before it sleeps
    while (true) {
      bool closes = false;
      {
        std::unique_lock held(mutex_);
        if (aborts_) {
          held.unlock();
          MPI_Abort(MPI_COMM_WORLD, 1);
        }
        if (receiver_ == nullptr && !closes_) {
          wake_.wait(held);
          continue;
        }
        closes = closes_;
        take_given();
      }
      bool has_moved = false;
      for (size_t peer = 0; peer < peers_.size(); ++peer) has_moved = push(static_cast<int>(peer)) || has_moved;
      if (!closes) has_moved = pull() || has_moved;
      const Clock::time_point now = Clock::now();
      if (has_moved) moved_at = now;
      const bool is_under_way = std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
        return !peer.queue.empty() || !peer.sends.empty() || peer.is_arriving;
      });
      if (closes && !is_under_way) return;
      if (has_moved) {
        bells_->end_sleep();
        is_announced = false;
        continue;
      }
      const bool is_busy = this->is_busy() || is_under_way;
      if (now - moved_at < (is_busy ? kPollFor : kAnswerWithin)) {
        ::sched_yield();
      } else if (!is_announced) {
        bells_->announce_sleep();
        is_announced = true;
      } else {
        bells_->sleep(is_busy ? kBusySleep : bells_->reach_all() ? kRungSleep : idle_sleep(now - moved_at));
        is_announced = false;
      }
    }
  }

  bool is_busy() {
    const std::lock_guard held(mutex_);
    return is_busy_;
  }

  void take_given() {
    for (; !given_.empty(); given_.pop_front()) {
      auto& [peer, outgoing] = given_.front();
      core::keep_trying([&] { peers_[static_cast<size_t>(peer)].queue.push_back(std::move(outgoing)); });
    }
  }

  // Sends what may be under way. True: something began or ended.
  bool push(int number) {
    Peer& peer = peers_[static_cast<size_t>(number)];
    bool has_moved = false;
    while (!peer.sends.empty() && is_complete(peer.sends.front().request)) {
      if (peer.sends.front().is_whole_piece && receiver_ != nullptr) receiver_->moved(number);
      peer.sends.pop_front();
      has_moved = true;
    }
    while (!peer.queue.empty() && peer.sends.size() < kMostRequests) {
      const Outgoing& first = peer.queue.front();
      Pending& pending = core::keep_trying([&]() -> Pending& { return peer.sends.emplace_back(); });
      const bool is_inline = first.bytes.size() <= kInlineBytes;
      if (!peer.is_header_sent) {
        core::keep_trying([&] { pending.packed.resize(sizeof(Header) + (is_inline ? first.bytes.size() : 0)); });
        std::memcpy(pending.packed.data(), &first.header, sizeof(Header));
        if (is_inline && !first.bytes.empty())
          std::memcpy(pending.packed.data() + sizeof(Header), first.bytes.data(), first.bytes.size());
        MPI_Isend(pending.packed.data(), static_cast<int>(pending.packed.size()), MPI_BYTE, number, kHeaderTag, comm_,
                  &pending.request);
        peer.is_header_sent = true;
        peer.sent_bytes = is_inline ? first.bytes.size() : 0;
      } else {
        const size_t count = std::min(kPieceBytes, first.bytes.size() - peer.sent_bytes);
        pending.keep = first.keep;
        pending.is_whole_piece = count == kPieceBytes;
        MPI_Isend(first.bytes.data() + peer.sent_bytes, static_cast<int>(count), MPI_BYTE, number, kPieceTag, comm_,
                  &pending.request);
        peer.sent_bytes += count;
      }
      has_moved = true;
      if (peer.sent_bytes < first.bytes.size()) continue;
      peer.queue.pop_front();
      peer.is_header_sent = false;
      peer.sent_bytes = 0;
    }
    if (has_moved) bells_->ring(number);
    return has_moved;
  }

  bool pull() {
    bool has_moved = false;
    while (true) {
      int is_there = 0;
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      MPI_Improbe(MPI_ANY_SOURCE, kHeaderTag, comm_, &is_there, &message, &status);
      if (is_there == 0) break;
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      auto packed = core::keep_trying([&] { return std::vector<std::byte>(static_cast<size_t>(count)); });
      MPI_Mrecv(packed.data(), count, MPI_BYTE, &message, &status);
      Peer::Incoming incoming;
      std::memcpy(&incoming.header, packed.data(), sizeof(Header));
      core::keep_trying([&] { incoming.bytes.assign(packed.begin() + sizeof(Header), packed.end()); });
      Peer& peer = peers_[static_cast<size_t>(status.MPI_SOURCE)];
      core::keep_trying([&] { peer.waiting.push_back(std::move(incoming)); });
      has_moved = true;
    }
    for (size_t peer = 0; peer < peers_.size(); ++peer) has_moved = receive(static_cast<int>(peer)) || has_moved;
    return has_moved;
  }

  bool receive(int number) {
    Peer& peer = peers_[static_cast<size_t>(number)];
    bool has_moved = false;
    while (true) {
      if (!peer.is_arriving) {
        if (peer.waiting.empty()) return has_moved;
        const Peer::Incoming first = std::move(peer.waiting.front());
        peer.waiting.pop_front();
        peer.header = first.header;
        peer.target = receiver_->begin(number, peer.header);
        if (!first.bytes.empty()) std::memcpy(peer.target.data(), first.bytes.data(), first.bytes.size());
        peer.posted_bytes = first.bytes.size();
        peer.is_arriving = true;
      }
      while (!peer.receives.empty() && is_complete(peer.receives.front())) {
        peer.receives.pop_front();
        receiver_->moved(number);
        has_moved = true;
      }
      while (peer.posted_bytes < peer.header.bytes && peer.receives.size() < kMostRequests) {
        const size_t count = std::min(kPieceBytes, peer.header.bytes - peer.posted_bytes);
        MPI_Request& request = core::keep_trying([&]() -> MPI_Request& { return peer.receives.emplace_back(); });
        MPI_Irecv(peer.target.data() + peer.posted_bytes, static_cast<int>(count), MPI_BYTE, number, kPieceTag, comm_,
                  &request);
        peer.posted_bytes += count;
        has_moved = true;
      }
      if (peer.posted_bytes < peer.header.bytes || !peer.receives.empty()) return has_moved;
      peer.is_arriving = false;
      receiver_->end(number, peer.header);
      has_moved = true;
    }
  }

  static bool is_complete(MPI_Request& request) {
    int is_done = 0;
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  }

  int rank_ = 0, size_ = 1, local_size_ = 1;  // constant once it is open
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<Doorbells> bells_;  // once it is open
  std::vector<Peer> peers_;
  std::shared_ptr<Receiver> receiver_;  // set once, then the thread's

  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::deque<std::pair<int, Outgoing>> given_;
  bool is_open_ = false, is_busy_ = false, closes_ = false, aborts_ = false;
  std::string problem_;
  std::thread thread_;
};

}  // namespace
}  // namespace meshd::hosts

// The one symbol of the module: a network, which the caller deletes; null with a line in `problem` where MPI does not
// start.
extern "C" __attribute__((visibility("default"))) meshd::hosts::Network* meshd_open_network(char* problem,
                                                                                            size_t size) {
  try {
    return new meshd::hosts::MpiNetwork();
  } catch (const std::exception& error) {
    std::snprintf(problem, size, "%s", error.what());
    return nullptr;
  }
}
