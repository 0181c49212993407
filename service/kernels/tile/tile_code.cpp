#include "service/kernels/tile/tile_code.h"

#include <algorithm>

#include "service/kernels/tile/tile_generator.h"
#include "service/kernels/tile/tile_recipes.h"
#include "service/kernels/tile/tile_steps.h"

namespace meshd::kernels {
namespace {

/// Fewer steps gain nothing, and so many are lost with each call of a vector function or of a kernel. (Measured: a
/// function with two steps takes 0.8 to 1.1 of the interpreter's time, two steps alone take 0.6.)
constexpr int kFewSteps = 2;
constexpr int kStepsOfFunction = 2;
constexpr int kStepsOfKernelCall = 4;
constexpr size_t kMostInstructions = 2048;
constexpr size_t kMostCodeBytes = size_t{256} * 1024;
// Of the machine code of an instruction: of one that is a machine instruction for each vector, of others, of rounding.
constexpr int64_t kShortStepBytes = 192;
constexpr int64_t kLongStepBytes = 640;
constexpr int64_t kFoldItemBytes = 512;  // values of four vectors, and their places
constexpr int64_t kRoundingBytes = 768;
constexpr int64_t kFormBytes = 768;  // around the block, with the sums of one
constexpr int64_t kPageBytes = 4096;
constexpr size_t kMostWalkedBesideCalls = 4;  // registers that calls keep

bool can_be_code(const TileProgram& program, CpuLevel level) {
  return level != CpuLevel::kBase && !program.instructions.empty() &&
         program.instructions.size() <= kMostInstructions &&
         std::none_of(program.instructions.begin(), program.instructions.end(), [](const TileInstruction& instruction) {
           const bool is_operation = instruction.permute < 0 && instruction.row < 0 && instruction.fold < 0;
           return is_operation && (instruction.kernel == nullptr || instruction.is_lane_by_lane);
         });
}

}  // namespace

#if defined(__x86_64__)
std::unique_ptr<const TileCode> TileCode::make(const TileProgram& program, CpuLevel level, const Options& options) {
  if (!can_be_code(program, level)) return nullptr;
  constexpr size_t kAlignment = 64;
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(kMostCodeBytes + kAlignment);
  std::byte* const begin = memory.get() + -reinterpret_cast<uintptr_t>(memory.get()) % kAlignment;
  try {
    TileGenerator generator(program, level, options, begin, kMostCodeBytes);
    if (!generator.generate()) return nullptr;
    // A shorter row has no other form.
    const bool needs_walking = options.row_lanes > 0 && options.row_lanes < kBlockLanes;
    if (needs_walking && generator.walking_begin() == 0) return nullptr;
    std::unique_ptr<TileCode> made(new TileCode);
    made->memory_ = CodeMemory::make({begin, generator.size()});
    if (made->memory_ == nullptr) return nullptr;
    std::byte* const code = const_cast<std::byte*>(made->memory_->begin());
    made->plain_ = reinterpret_cast<Function>(code);
    made->reads_elements_ = generator.reads_elements();
    made->needs_no_registers_ = !generator.calls_kernels();
    if (generator.streaming_begin() != 0)
      made->streaming_ = reinterpret_cast<Function>(code + generator.streaming_begin());
    if (generator.walking_begin() != 0)
      made->walking_ = reinterpret_cast<RowsFunction>(code + generator.walking_begin());
    if (generator.summing_begin() != 0)
      made->summing_ = reinterpret_cast<RowsFunction>(code + generator.summing_begin());
    return made;
  } catch (const Xbyak::Error&) {  // too much code
    return nullptr;
  }
}
#else
std::unique_ptr<const TileCode> TileCode::make(const TileProgram& /*program*/, CpuLevel /*level*/,
                                               const Options& /*options*/) {
  return nullptr;
}
#endif

const TileCode* LazyTileCode::get(const TileProgram& program, const TileCode::Options& options, int64_t lanes) const {
  State state = state_.load(std::memory_order_acquire);
  if (state == State::kReady) return code_.get();
  if (state != State::kCounting) return nullptr;
  if (lanes_.fetch_add(lanes, std::memory_order_relaxed) + lanes < after_) return nullptr;
  if (!state_.compare_exchange_strong(state, State::kMaking, std::memory_order_acq_rel)) return nullptr;
  if (options.repeats_while || gains_by_code(program, options)) code_ = TileCode::make(program, cpu_level(), options);
  state_.store(code_ == nullptr ? State::kNone : State::kReady, std::memory_order_release);
  return code_.get();
}

bool gains_by_code(const TileProgram& program, const TileCode::Options& options) {
  if (!can_be_code(program, cpu_level())) return false;
  int own = 0;
  int functions = 0;
  int kernels = 0;
  for (const TileStep& step : tile_steps(program, cpu_level())) {
    if (step.kind == StepKind::kKernel)
      ++kernels;
    else if (step.kind == StepKind::kFunction)
      ++functions;
    else if (step.kind == StepKind::kRecipe || step.kind == StepKind::kQuotient || step.kind == StepKind::kRemainder)
      own += kFewSteps;
    else
      ++own;
  }
  if (own < kernels * kStepsOfKernelCall) return false;
  const bool sums = options.sums > 0 && functions + kernels == 0;  // TileGenerator::can_sum
  const bool spares_pass = options.streams || sums || !options.elements.empty() || !options.row_inputs.empty();
  return spares_pass ? own + functions > 0 : own >= kFewSteps + functions * kStepsOfFunction;
}

bool can_walk_by_code(const TileProgram& program, size_t moved) {
  if (!can_be_code(program, cpu_level())) return false;
  bool calls = false;
  for (const TileStep& step : tile_steps(program, cpu_level())) {
    if (step.kind == StepKind::kKernel) return false;
    calls = calls || step.kind == StepKind::kFunction;
  }
  return moved <= (calls ? kMostWalkedBesideCalls : kMostWalked);
}

int64_t lanes_of_vector() { return cpu_level() == CpuLevel::kV4 ? 16 : 8; }

int64_t code_bytes(const TileProgram& program, const TileCode::Options& options) {
  int64_t bytes = kFormBytes;
  for (const TileStep& step : expand_recipes(program, cpu_level()).steps) {
    const bool is_short = (step.kind >= StepKind::kAdd && step.kind <= StepKind::kDivide) ||
                          (step.kind >= StepKind::kMultiplyAdd && step.kind <= StepKind::kChooseNegative);
    bytes += (is_short ? kShortStepBytes : kLongStepBytes) + (step.rounds ? kRoundingBytes : 0);
  }
  for (const TileFold& fold : program.folds) bytes += static_cast<int64_t>(fold.items.size()) * kFoldItemBytes;
  // Those that go through rows have the block several times: for the end of a row, too.
  const int forms = 1 + (options.streams ? 1 : 0) + (options.row_lanes > 0 ? 3 : 0) + (options.sums > 0 ? 2 : 0);
  return (forms * bytes + 2 * kPageBytes - 1) / kPageBytes * kPageBytes;
}

}  // namespace meshd::kernels
