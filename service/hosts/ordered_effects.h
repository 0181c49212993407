// The effects of a run of several ranks in the order in which one process emits them. All ranks number effects alike
// (EffectCall::visit counts those of other ranks, too), and each is emitted by one rank: the next number says whose
// turn it is.
//
// Example: effect 0 happens on device 0, effect 1 on device 4, which rank 1 owns, effect 2 on device 0 again. Rank 1 is
// faster: effect 1 arrives first and waits for 0. The engine of rank 0 asks for 2 before 1 is emitted: pending, and it
// is resumed afterwards.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "service/device/effect_sink.h"
#include "service/hosts/protocol.h"

namespace meshd::hosts {

/// The sink of rank 0's own part. emit() is the engine's, pump() one thread's, the rest any thread's.
class OrderedEffects final : public device::EffectSink {
 public:
  /// They throw nothing.
  struct Hooks {
    std::function<void()> resume_own;                         ///< rank 0's run: it is its turn
    std::function<void()> pump_soon;                          ///< pump() has to be called
    std::function<void(int rank, const Reply& reply)> reply;  ///< to the rank of an effect
    std::function<void(core::Error reason)> fail;             ///< the sink refused the effect of another rank
  };
  /// `sink` and `plan` outlive it. `devices`: ids, in flat order.
  OrderedEffects(device::EffectSink& sink, const compile::Plan& plan, std::vector<int64_t> devices, Hooks hooks);

  device::EffectResult emit(const device::EffectCall& call) override;
  /// An effect of another rank.
  void take(int rank, Effect effect);
  /// Emits effects of other ranks whose turn it is.
  void pump();
  /// The sink was resumed: the effect that it had not answered is emitted again.
  void resume();
  /// Whether the sink has not taken all effects of other ranks: one that it refused stays.
  bool has_waiting();
  /// The sink gets nothing more. By the thread that pumps.
  void close();

 private:
  device::EffectResult emit_for(const Effect& effect);
  void next();

  device::EffectSink& sink_;
  const compile::Plan& plan_;
  const std::vector<int64_t> devices_;
  const Hooks hooks_;
  std::mutex mutex_;  // of what follows
  int64_t next_ = 0;
  bool own_waits_ = false;
  bool is_closed_ = false;
  std::map<int64_t, std::pair<int, Effect>> others_;  // by visit
};

}  // namespace meshd::hosts
