#include "tests/support/loopback_transport.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace meshd::testing {
namespace {

using device::MessageKey;
using device::Transport;

// What was posted and is not received yet, and what is expected and was not posted yet.
struct Messages {
  struct Address {
    int from = 0;
    int to = 0;
    MessageKey key;
    friend auto operator<=>(const Address&, const Address&) = default;
  };
  struct Expected {
    std::span<std::byte> buffer;
    std::function<void()> completion;
  };
  std::mutex mutex;
  std::map<Address, std::vector<std::byte>> posted;
  std::map<Address, Expected> expected;
};

class Loopback final : public Transport {
 public:
  Loopback(std::shared_ptr<Messages> messages, int rank) : messages_(std::move(messages)), rank_(rank) {}

  void post(int peer, const MessageKey& key, std::span<const std::byte> bytes) override {
    std::unique_lock held(messages_->mutex);
    const Messages::Address address{rank_, peer, key};
    const auto waiting = messages_->expected.find(address);
    if (waiting == messages_->expected.end()) {
      messages_->posted[address].assign(bytes.begin(), bytes.end());
      return;
    }
    const Messages::Expected expected = std::move(waiting->second);
    messages_->expected.erase(waiting);
    std::memcpy(expected.buffer.data(), bytes.data(), expected.buffer.size());
    held.unlock();
    expected.completion();
  }

  void expect(int peer, const MessageKey& key, std::span<std::byte> buffer, std::function<void()> completion) override {
    std::unique_lock held(messages_->mutex);
    const Messages::Address address{peer, rank_, key};
    const auto found = messages_->posted.find(address);
    if (found == messages_->posted.end()) {
      messages_->expected[address] = {buffer, std::move(completion)};
      return;
    }
    std::memcpy(buffer.data(), found->second.data(), buffer.size());
    messages_->posted.erase(found);
    held.unlock();
    completion();
  }

  void forget(uint64_t run) override {
    const std::lock_guard held(messages_->mutex);
    std::erase_if(messages_->expected,
                  [&](const auto& entry) { return entry.first.to == rank_ && entry.first.key.run == run; });
    std::erase_if(messages_->posted,
                  [&](const auto& entry) { return entry.first.to == rank_ && entry.first.key.run == run; });
  }

 private:
  std::shared_ptr<Messages> messages_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> make_loopback(int rank_count) {
  const auto messages = std::make_shared<Messages>();
  std::vector<std::shared_ptr<Transport>> ends;
  for (int rank = 0; rank < rank_count; ++rank) ends.push_back(std::make_shared<Loopback>(messages, rank));
  return ends;
}

}  // namespace meshd::testing
