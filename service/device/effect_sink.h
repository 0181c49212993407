// The interface through which the executor emits side effects (callbacks, infeed, outfeed), in order; a run waits for a
// reply where an effect has results. `effects` implements it, and so do tests.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "service/ir/program.h"
#include "service/tensor/shape.h"

namespace meshd::compile {
struct PlanEffect;
}

namespace meshd::device {

/// Orders effects as one thread would run the program: the visit path, outermost first (loop iteration or branch
/// number, and index in the block, alternating), then the shard.
struct EffectKey {
  std::vector<int64_t> path;
  int64_t shard = 0;
  friend auto operator<=>(const EffectKey&, const EffectKey&) = default;
};

/// An operand of an effect, in memory that is valid only during emit().
struct EffectValue {
  tensor::TensorType type;
  std::span<const std::byte> bytes;
};

struct EffectCall {
  int32_t program_point = 0;
  int64_t callback = 0;
  bool ordered = false;
  bool has_side_effect = true;
  bool every_device = false;
  int64_t shard = 0;   ///< 0 unless every_device: then the position in the flat device list
  int64_t device = 0;  ///< device id on which it happens
  int64_t visit = 0;   ///< number of earlier effects of this run; each shard of an effect counts
  const EffectKey* key = nullptr;
  const ir::Location* location = nullptr;
  std::string_view name;
  const compile::PlanEffect* effect = nullptr;  ///< its description in the plan
  std::span<const int64_t> devices;             ///< ids of all devices of the run, in flat order
  std::span<const EffectValue> operands;
  std::span<const tensor::TensorType> results;  ///< types of the reply
};

/// Done: one byte string for each result, row-major. Not done: the run suspends, releases its devices, and calls emit()
/// again with the same call once Run::resume() was called and the devices are free; resume() may be called before
/// emit() returns.
struct EffectResult {
  bool is_done = true;
  std::vector<std::vector<std::byte>> results;
  static EffectResult done(std::vector<std::vector<std::byte>> results = {}) { return {true, std::move(results)}; }
  static EffectResult pending() { return {false, {}}; }
};

/// Calls of one run come one at a time, in order; those of one point by ascending shard. A thrown core::Error ends the
/// run.
class EffectSink {
 public:
  virtual ~EffectSink() = default;
  virtual EffectResult emit(const EffectCall& call) = 0;
};

}  // namespace meshd::device
