// What stands behind the callbacks of one run: takes each effect as it leaves the devices, in order, and keeps it until
// the job commits. Nothing is shown from here: the log shows what is durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "service/compile/plan.h"
#include "service/core/locked.h"
#include "service/device/effect_sink.h"
#include "service/effects/effect_kinds.h"
#include "service/tensor/shape.h"

namespace meshd::effects {

/// A dense value that owns its bytes, row-major.
struct OwnedValue {
  tensor::TensorType type;
  std::vector<std::byte> bytes;
};

/// What a client binds to a callback by its index in the text.
struct Binding {
  const EffectKind* kind = nullptr;
  std::string name;
  /// For kinds that answer: the n-th call gets the n-th list, calls beyond the last get the last.
  std::vector<std::vector<OwnedValue>> answers;
};
using Bindings = std::map<int64_t, Binding>;

/// One effect that happened.
struct RecordedEffect {
  const EffectKind* kind = nullptr;
  std::string name;
  bool ordered = false;
  int64_t shard_index = 0;
  int64_t point = 0;   ///< number of the call in the text's order (behaviour E15)
  int64_t device = 0;  ///< on which it happened
  std::vector<OwnedValue> values;
};

/// Fills in what is not bound (a callback that returns nothing is a `log` named callback_<n>) and checks the rest
/// against the plan: throws invalid_request with pointers into the body for bindings without a callback, callbacks that
/// need answers and have none, answers of another type; effects_not_supported for kinds that cannot be lowered, ordered
/// effects of kinds that are not shardable on several devices, and kinds that may not stand in control flow and do.
Bindings check_bindings(Bindings given, const compile::Plan& plan);

/// The sink of one run. emit() comes from one thread at a time; the rest after the run is over, but for count().
class Recorder final : public device::EffectSink {
 public:
  explicit Recorder(Bindings bindings) : bindings_(std::move(bindings)) {}
  device::EffectResult emit(const device::EffectCall& call) override;
  /// Effects so far. Any thread.
  [[nodiscard]] int64_t count() const {
    return effects_.with([](const std::vector<RecordedEffect>& list) { return static_cast<int64_t>(list.size()); });
  }
  /// All of them, in order. Once, when the run is over.
  std::vector<RecordedEffect> take();

 private:
  const Bindings bindings_;
  core::Locked<std::vector<RecordedEffect>> effects_;
  std::map<int64_t, size_t> calls_;
};

}  // namespace meshd::effects
