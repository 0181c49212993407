// What ranks say to each other over a network: blocks of runs (device::Transport) and control messages.
//
// A block that is expected when it arrives goes straight into its buffer. One that comes first waits in memory of its
// own until it is expected or its run is over. Large blocks of runs never do: they are offered, and sent once they are
// expected (a rendezvous, as MPI's large messages). So they are copied nowhere on their way, and the rank that is early
// holds up no other message and takes no memory of the one that is late. Ranks end a run at different times, so a block
// may come after its run: forget() remembers the run, until ignore_before() says that no rank has an earlier one.
#pragma once

#include <atomic>
#include <chrono>
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

#include "service/core/keep_trying.h"
#include "service/device/transport.h"
#include "service/hosts/network/network.h"
#include "service/hosts/protocol.h"

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
  kBecame,
  kRelease,
  kDrop,
  kLost,
  kDisk,
  kDiskDone,
  kOffer = 100,  ///< a block is there for who expects it: the header names it; within Messages
  kTake,         ///< the answer: it is expected
};

/// Runs whose key has this bit are the arguments and results of the run without it, which rank 0 sends and receives.
inline constexpr uint64_t kArgumentsAndResults = uint64_t{1} << 63;
/// With this bit it is no run, but an entry (residents.h), whose bytes rank 0 sends: they outlive the run that they
/// were first sent for.
inline constexpr uint64_t kEntries = uint64_t{1} << 62;

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
  /// The same where nobody would send it again: without memory the thread tries until there is some.
  template <typename T>
  void send_surely(int peer, Control kind, const T& message) {
    core::keep_trying([&] { send(peer, kind, encode(message)); });
  }

  void post(int peer, const device::MessageKey& key, std::span<const std::byte> bytes) override;
  void post_kept(int peer, const device::MessageKey& key, std::span<const std::byte> bytes,
                 const std::shared_ptr<const void>& keep) override;
  /// As post_kept(), and it is sent whether it is expected or not, before what is sent to that peer later.
  void push(int peer, const device::MessageKey& key, std::span<const std::byte> bytes,
            std::shared_ptr<const void> keep);
  void expect(int peer, const device::MessageKey& key, std::span<std::byte> buffer,
              std::function<void()> completion) override;
  void forget(uint64_t run) override;
  /// No rank has a run with a lower key any more.
  void ignore_before(uint64_t run);

  /// For how long nothing has shown that the peer lives. Parts of messages show it, too: on a slow network a large
  /// block holds up the answer to a ping for longer than a rank may be silent.
  [[nodiscard]] std::chrono::nanoseconds silence(int peer) const;
  [[nodiscard]] Network& network() { return network_; }
  /// Blocks that wait for their receiver: for tests.
  [[nodiscard]] size_t early_count() const;

  std::span<std::byte> begin(int peer, const Header& header) override;
  void end(int peer, const Header& header) override;
  void moved(int peer) override;

 private:
  using Address = std::pair<int, device::MessageKey>;
  // Bytes without a value until they are received.
  struct Block {
    std::unique_ptr<std::byte[]> data;
    size_t size = 0;
    [[nodiscard]] std::span<std::byte> bytes() const { return {data.get(), size}; }
  };
  struct Offer {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keep;
  };
  struct Expected {
    std::span<std::byte> buffer;
    std::function<void()> completion;
  };
  struct Arriving {
    std::optional<Expected> expected;  // else it goes into `own`
    Block own;
    bool is_block = false;
  };
  [[nodiscard]] bool is_over(uint64_t run) const;
  /// Something about a block, whose name is all of the message.
  void tell(int peer, const device::MessageKey& key, Control what);
  void offered(int peer, const device::MessageKey& key);
  void taken(int peer, const device::MessageKey& key);

  Network& network_;
  std::mutex control_mutex_;  // held while one is taken
  OnControl on_control_;
  std::vector<Arriving> arriving_;           // by peer; the network's thread alone
  std::vector<std::atomic<int64_t>> heard_;  // by peer: when it was last known to live, of the steady clock
  mutable std::mutex mutex_;                 // of what follows
  std::map<Address, Block> early_;
  std::map<Address, Expected> expected_;
  std::map<Address, Offer> offers_;  // that no peer has taken yet
  std::set<Address> offered_;        // by peers, and not expected yet
  std::set<uint64_t> over_;
  uint64_t first_live_ = 0;
};

}  // namespace meshd::hosts
