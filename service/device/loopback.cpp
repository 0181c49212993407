#include "service/device/transport.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace meshd::device {
namespace {

// All ranks' letters. A message waits for its receiver or the receiver for it, whoever comes first.
struct Office {
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
  std::map<Address, std::vector<std::byte>> letters;
  std::map<Address, Expected> expected;
};

class Loopback final : public Transport {
 public:
  Loopback(std::shared_ptr<Office> office, int rank) : office_(std::move(office)), rank_(rank) {}

  void post(int peer, const MessageKey& key, std::span<const std::byte> bytes) override {
    std::unique_lock held(office_->mutex);
    const Office::Address address{rank_, peer, key};
    const auto waiting = office_->expected.find(address);
    if (waiting == office_->expected.end()) {
      office_->letters[address].assign(bytes.begin(), bytes.end());
      return;
    }
    const Office::Expected expected = std::move(waiting->second);
    office_->expected.erase(waiting);
    std::memcpy(expected.buffer.data(), bytes.data(), expected.buffer.size());
    held.unlock();
    expected.completion();
  }

  void expect(int peer, const MessageKey& key, std::span<std::byte> buffer, std::function<void()> completion) override {
    std::unique_lock held(office_->mutex);
    const Office::Address address{peer, rank_, key};
    const auto letter = office_->letters.find(address);
    if (letter == office_->letters.end()) {
      office_->expected[address] = {buffer, std::move(completion)};
      return;
    }
    std::memcpy(buffer.data(), letter->second.data(), buffer.size());
    office_->letters.erase(letter);
    held.unlock();
    completion();
  }

  void forget(uint64_t run) override {
    const std::lock_guard held(office_->mutex);
    std::erase_if(office_->expected,
                  [&](const auto& entry) { return entry.first.to == rank_ && entry.first.key.run == run; });
    std::erase_if(office_->letters,
                  [&](const auto& entry) { return entry.first.to == rank_ && entry.first.key.run == run; });
  }

 private:
  std::shared_ptr<Office> office_;
  int rank_;
};

}  // namespace

std::vector<std::shared_ptr<Transport>> make_loopback(int rank_count) {
  const auto office = std::make_shared<Office>();
  std::vector<std::shared_ptr<Transport>> ends;
  for (int rank = 0; rank < rank_count; ++rank) ends.push_back(std::make_shared<Loopback>(office, rank));
  return ends;
}

}  // namespace meshd::device
