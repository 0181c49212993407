// What ranks say to each other over a network: blocks of runs (device::Transport) and control messages.
//
// A block that is expected when it arrives goes straight into its buffer. One that comes first waits in memory of its
// own until it is expected or its run is over. Ranks end a run at different times, so a block may come after its run:
// forget() remembers the run, until ignore_before() says that no rank has an earlier one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "service/device/transport.h"
#include "service/hosts/network/network.h"

namespace meshd::hosts {

/// Header::kind of control messages.
enum class Control : uint32_t {
  kWelcome = 1,
  kReady,
  kPrepare,
  kPrepared,
  kDropPlan,
  kBegin,
  kCancel,
  kEffect,
  kReply,
  kEnded,
  kPing,
  kPong,
  kStop,
  kStopped,
};

/// Runs whose key has this bit are the arguments and results of the run without it, which rank 0 sends and receives.
inline constexpr uint64_t kArgumentsAndResults = uint64_t{1} << 63;

/// Any thread.
class Messages final : public device::Transport, public Receiver {
 public:
  /// `on_control` gets control messages on the network's thread, those of one peer in their order. `network` outlives
  /// it and is to be started with it.
  using OnControl = std::function<void(int peer, Control kind, std::string_view text)>;
  Messages(Network& network, OnControl on_control);

  /// Control messages are dropped from now on; none is being taken any more when it returns.
  void detach();

  /// A control message: `text` is encode()'s (protocol.h).
  void send(int peer, Control kind, std::string text);

  void post(int peer, const device::MessageKey& key, std::span<const std::byte> bytes) override;
  /// Without a copy: `keep` owns the bytes, which do not change until it is released.
  void post_kept(int peer, const device::MessageKey& key, std::span<const std::byte> bytes,
                 std::shared_ptr<const void> keep);
  void expect(int peer, const device::MessageKey& key, std::span<std::byte> buffer,
              std::function<void()> completion) override;
  void forget(uint64_t run) override;
  /// No rank has a run with a lower key any more.
  void ignore_before(uint64_t run);

  [[nodiscard]] Network& network() { return network_; }
  /// Blocks that wait for their receiver: for tests.
  [[nodiscard]] size_t early_count() const;

  std::span<std::byte> begin(int peer, const Header& header) override;
  void end(int peer, const Header& header) override;

 private:
  using Address = std::pair<int, device::MessageKey>;
  struct Expected {
    std::span<std::byte> buffer;
    std::function<void()> completion;
  };
  struct Arriving {
    std::optional<Expected> expected;  // else it goes into `bytes`
    std::vector<std::byte> bytes;
    bool is_block = false;
  };
  [[nodiscard]] bool is_over(uint64_t run) const;

  Network& network_;
  std::mutex control_mutex_;  // held while one is taken
  OnControl on_control_;
  std::vector<Arriving> arriving_;  // by peer; the network's thread alone
  mutable std::mutex mutex_;        // of what follows
  std::map<Address, std::vector<std::byte>> early_;
  std::map<Address, Expected> expected_;
  std::set<uint64_t> over_;
  uint64_t first_live_ = 0;
};

}  // namespace meshd::hosts
