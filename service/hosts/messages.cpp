#include "service/hosts/messages.h"

#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "service/core/error.h"
#include "service/core/keep_trying.h"

namespace meshd::hosts {
namespace {

constexpr uint32_t kBlock = 0;  // Header::kind of messages of runs
// Blocks of so many bytes are offered: asking for one takes a round trip, in which so many could be sent.
constexpr size_t kOfferedBytes = size_t{1} << 20;

Header header_of(const device::MessageKey& key, size_t bytes, uint32_t kind = kBlock) {
  return {.kind = kind, .run = key.run, .visit = key.visit, .shard = key.shard, .source = key.source, .bytes = bytes};
}

device::MessageKey key_of(const Header& header) { return {header.run, header.visit, header.shard, header.source}; }

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (to.size() != from.size()) {
    throw core::Error("internal",
                      fmt::format("a block of another rank has {} bytes, expected {}", from.size(), to.size()));
  }
  if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}

// Takes what belongs to the run out of a map by (rank, key).
template <typename Map>
std::vector<typename Map::mapped_type> take_of_run(Map& map, uint64_t run) {
  std::vector<typename Map::mapped_type> out;
  for (auto at = map.begin(); at != map.end();) {
    if (at->first.second.run != run) {
      ++at;
      continue;
    }
    out.push_back(std::move(at->second));
    at = map.erase(at);
  }
  return out;
}

}  // namespace

Messages::Messages(Network& network, OnControl on_control)
    : network_(network),
      on_control_(std::move(on_control)),
      arriving_(static_cast<size_t>(network.size())),
      heard_(static_cast<size_t>(network.size())) {
  for (int peer = 0; peer < network.size(); ++peer) moved(peer);
}

void Messages::detach() {
  const std::lock_guard held(control_mutex_);
  on_control_ = nullptr;
}

void Messages::send(int peer, Control kind, std::string text) {
  const auto kept = std::make_shared<const std::string>(std::move(text));
  network_.send(peer, {.kind = static_cast<uint32_t>(kind), .bytes = kept->size()},
                std::as_bytes(std::span(kept->data(), kept->size())), kept);
}

void Messages::post(int peer, const device::MessageKey& key, std::span<const std::byte> bytes) {
  const auto kept = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  network_.send(peer, header_of(key, kept->size()), *kept, kept);
}

void Messages::push(int peer, const device::MessageKey& key, std::span<const std::byte> bytes,
                    std::shared_ptr<const void> keep) {
  network_.send(peer, header_of(key, bytes.size()), bytes, std::move(keep));
}

void Messages::post_kept(int peer, const device::MessageKey& key, std::span<const std::byte> bytes,
                         const std::shared_ptr<const void>& keep) {
  if (bytes.size() < kOfferedBytes) return push(peer, key, bytes, keep);
  {
    const std::lock_guard held(mutex_);
    offers_[{peer, key}] = {bytes, keep};
  }
  tell(peer, key, Control::kOffer);
}

void Messages::tell(int peer, const device::MessageKey& key, Control what) {
  network_.send(peer, header_of(key, 0, static_cast<uint32_t>(what)), {}, nullptr);
}

void Messages::expect(int peer, const device::MessageKey& key, std::span<std::byte> buffer,
                      std::function<void()> completion) {
  bool is_there = false;
  {
    const std::lock_guard held(mutex_);
    const auto found = early_.find({peer, key});
    if (found != early_.end()) {
      copy(buffer, found->second.bytes());
      early_.erase(found);
      is_there = true;
    } else {
      expected_[{peer, key}] = {buffer, std::move(completion)};
      if (offered_.erase({peer, key}) == 0) return;
    }
  }
  if (is_there) return completion();
  tell(peer, key, Control::kTake);
}

void Messages::offered(int peer, const device::MessageKey& key) {
  {
    const std::lock_guard held(mutex_);
    if (expected_.count({peer, key}) == 0) {
      if (!is_over(key.run)) offered_.insert({peer, key});
      return;
    }
  }
  tell(peer, key, Control::kTake);
}

void Messages::taken(int peer, const device::MessageKey& key) {
  Offer offer;
  {
    const std::lock_guard held(mutex_);
    const auto found = offers_.find({peer, key});
    if (found == offers_.end()) return;  // the run is over here, and will be there
    offer = std::move(found->second);
    offers_.erase(found);
  }
  core::keep_trying([&] { push(peer, key, offer.bytes, offer.keep); });  // nobody else has the offer any more
}

bool Messages::is_over(uint64_t run) const {
  return (run & ~kArgumentsAndResults) < first_live_ || over_.find(run) != over_.end();
}

void Messages::forget(uint64_t run) {
  // Nobody forgets it again: without memory the thread tries until there is some.
  core::keep_trying([&] {
    // Destroyed without the lock: they own buffers and runs.
    std::vector<Expected> dropped;
    std::vector<Offer> withdrawn;
    const std::lock_guard held(mutex_);
    withdrawn = take_of_run(offers_, run);
    dropped = take_of_run(expected_, run);
    std::erase_if(offered_, [&](const Address& address) { return address.second.run == run; });
    std::erase_if(early_, [&](const auto& entry) { return entry.first.second.run == run; });
    if (!is_over(run)) over_.insert(run);
  });
}

void Messages::ignore_before(uint64_t run) {
  const std::lock_guard held(mutex_);
  if (run <= first_live_) return;
  first_live_ = run;
  std::erase_if(over_, [&](uint64_t over) { return (over & ~kArgumentsAndResults) < run; });
  std::erase_if(early_, [&](const auto& entry) { return (entry.first.second.run & ~kArgumentsAndResults) < run; });
  std::erase_if(offered_, [&](const Address& address) { return address.second.run < run; });
}

void Messages::moved(int peer) {
  heard_[static_cast<size_t>(peer)] = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::chrono::nanoseconds Messages::silence(int peer) const {
  return std::chrono::steady_clock::now().time_since_epoch() -
         std::chrono::nanoseconds(heard_[static_cast<size_t>(peer)]);
}

size_t Messages::early_count() const {
  const std::lock_guard held(mutex_);
  return early_.size() + offered_.size();
}

std::span<std::byte> Messages::begin(int peer, const Header& header) {
  Arriving& arriving = arriving_[static_cast<size_t>(peer)];
  arriving = {};
  arriving.is_block = header.kind == kBlock;
  if (arriving.is_block) {
    const std::lock_guard held(mutex_);
    const auto found = expected_.find({peer, key_of(header)});
    if (found != expected_.end()) {
      arriving.expected = std::move(found->second);
      expected_.erase(found);
    }
  }
  if (arriving.expected) {
    if (arriving.expected->buffer.size() != header.bytes) {
      throw core::Error("internal", fmt::format("a block of rank {} has {} bytes, expected {}", peer, header.bytes,
                                                arriving.expected->buffer.size()));
    }
    return arriving.expected->buffer;
  }
  const auto memory = [&] { return std::make_unique_for_overwrite<std::byte[]>(header.bytes); };
  arriving.own = {core::keep_trying(memory), header.bytes};
  return arriving.own.bytes();
}

void Messages::end(int peer, const Header& header) {
  moved(peer);
  Arriving arriving = std::exchange(arriving_[static_cast<size_t>(peer)], {});
  if (!arriving.is_block) {
    const auto kind = static_cast<Control>(header.kind);
    if (kind == Control::kOffer) return core::keep_trying([&] { offered(peer, key_of(header)); });
    if (kind == Control::kTake) return taken(peer, key_of(header));
    const auto* text = reinterpret_cast<const char*>(arriving.own.data.get());
    const std::lock_guard held(control_mutex_);
    if (on_control_) on_control_(peer, kind, {text, arriving.own.size});
    return;
  }
  std::optional<Expected> ready = std::move(arriving.expected);
  if (!ready) {
    const Address address{peer, key_of(header)};
    const std::lock_guard held(mutex_);
    const auto found = expected_.find(address);
    if (found != expected_.end()) {
      // It is expected since it began to arrive.
      ready = std::move(found->second);
      expected_.erase(found);
      copy(ready->buffer, arriving.own.bytes());
    } else if (!is_over(header.run)) {
      core::keep_trying([&] { early_.try_emplace(address); });
      early_[address] = std::move(arriving.own);
    }
  }
  if (ready) ready->completion();
}

}  // namespace meshd::hosts
