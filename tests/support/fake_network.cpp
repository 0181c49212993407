#include "tests/support/fake_network.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace meshd::testing {
namespace {

using hosts::Header;

struct Message {
  Header header;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keep;
};

struct Wires {
  explicit Wires(int count) : queues(static_cast<size_t>(count)), closed(static_cast<size_t>(count)) {
    for (auto& queue : queues) queue.resize(static_cast<size_t>(count));
  }
  std::mutex mutex;
  std::condition_variable wake;
  std::vector<std::vector<std::deque<Message>>> queues;  // [to][from]
  std::vector<char> closed;
};

class FakeNetwork final : public hosts::Network {
 public:
  FakeNetwork(std::shared_ptr<Wires> wires, int rank, int size, uint32_t seed)
      : wires_(std::move(wires)), rank_(rank), size_(size), random_(seed + static_cast<uint32_t>(rank)) {}
  ~FakeNetwork() override { end(); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] int local_size() const override { return size_; }
  void start(std::shared_ptr<hosts::Receiver> receiver) override {
    thread_ = std::thread([this, receiver] { work(*receiver); });
  }
  void send(int peer, const Header& header, std::span<const std::byte> bytes,
            std::shared_ptr<const void> keep) override {
    const std::lock_guard held(wires_->mutex);
    wires_->queues[static_cast<size_t>(peer)][static_cast<size_t>(rank_)].push_back({header, bytes, std::move(keep)});
    wires_->wake.notify_all();
  }
  void expect_traffic(bool /*is_soon*/) override {}
  void close() override { end(); }

 private:
  void end() {
    {
      const std::lock_guard held(wires_->mutex);
      wires_->closed[static_cast<size_t>(rank_)] = 1;
      wires_->wake.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  void work(hosts::Receiver& receiver) {
    const auto self = static_cast<size_t>(rank_);
    // What arrives from each rank, and how much of it is there.
    struct Arriving {
      Message message;
      std::span<std::byte> target;
      bool is_there = false;
    };
    std::vector<Arriving> arriving(static_cast<size_t>(size_));
    std::unique_lock held(wires_->mutex);
    while (true) {
      std::vector<size_t> peers;
      for (size_t peer = 0; peer < arriving.size(); ++peer) {
        if (arriving[peer].is_there || !wires_->queues[self][peer].empty()) peers.push_back(peer);
      }
      if (peers.empty()) {
        if (wires_->closed[self] != 0) return;
        wires_->wake.wait(held);
        continue;
      }
      const size_t peer = peers[random_() % peers.size()];
      Arriving& now = arriving[peer];
      if (!now.is_there) {
        now.message = std::move(wires_->queues[self][peer].front());
        wires_->queues[self][peer].pop_front();
        held.unlock();
        now.target = receiver.begin(static_cast<int>(peer), now.message.header);
        now.is_there = true;
      } else {
        held.unlock();
        if (!now.target.empty()) std::memcpy(now.target.data(), now.message.bytes.data(), now.target.size());
        receiver.end(static_cast<int>(peer), now.message.header);
        now = {};
      }
      held.lock();
    }
  }

  const std::shared_ptr<Wires> wires_;
  const int rank_, size_;
  std::mt19937 random_;
  std::thread thread_;
};

}  // namespace

std::vector<std::unique_ptr<hosts::Network>> make_fake_network(int rank_count, uint32_t seed) {
  const auto wires = std::make_shared<Wires>(rank_count);
  std::vector<std::unique_ptr<hosts::Network>> out;
  for (int rank = 0; rank < rank_count; ++rank)
    out.push_back(std::make_unique<FakeNetwork>(wires, rank, rank_count, seed));
  return out;
}

}  // namespace meshd::testing
