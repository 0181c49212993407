// A reducer of comparisons and selects decides by how its values and its indices compare, whatever they are. It is
// evaluated symbolically for each way in which they may compare, so its spelling does not matter.
#include <array>
#include <vector>

#include "service/kernels/fold/argmax_fold.h"
#include "service/kernels/tile/tile_program.h"

namespace meshd::kernels {
namespace {

// Inputs of the reducer.
constexpr int kValue = 0;
constexpr int kIndex = 1;
constexpr int kLaterValue = 2;
constexpr int kLaterIndex = 3;

/// One way in which two pairs may compare. Orders are below, equal to or above 0.
struct Comparison {
  int values = 0;
  int indices = 0;
  bool is_nan = false;
  bool is_later_nan = false;
};

bool holds(ScalarOp op, int order, bool is_unordered) {
  if (is_unordered) return op == ScalarOp::kCompareNe;
  switch (op) {
    case ScalarOp::kCompareEq:
      return order == 0;
    case ScalarOp::kCompareNe:
      return order != 0;
    case ScalarOp::kCompareLt:
      return order < 0;
    case ScalarOp::kCompareLe:
      return order <= 0;
    case ScalarOp::kCompareGt:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool is_comparison(ScalarOp op) { return op >= ScalarOp::kCompareEq && op <= ScalarOp::kCompareGe; }

/// What a register has: one of the four inputs, or a truth value.
struct SymbolicValue {
  std::optional<int> input;
  bool is_true = false;
};

/// Evaluates a reducer for one comparison, an instruction at a time.
class SymbolicEvaluator {
 public:
  SymbolicEvaluator(const TileProgram& reducer, const Comparison& comparison)
      : comparison_(comparison), registers_(reducer.registers.size()) {
    for (int input = 0; input <= kLaterIndex; ++input) registers_[static_cast<size_t>(input)].input = input;
  }

  /// False where the instruction computes with the inputs.
  bool evaluate(const TileInstruction& instruction) {
    if (instruction.kernel == nullptr) return false;
    const SymbolicValue& a = registers_[instruction.operands[0]];
    const SymbolicValue& b = registers_[instruction.operands[1]];
    SymbolicValue& result = registers_[instruction.result];
    if (is_comparison(instruction.op)) {
      if (!a.input || !b.input || *a.input % 2 != *b.input % 2) return false;
      result.is_true = compare(instruction.op, *a.input, *b.input);
      return true;
    }
    if (instruction.op == ScalarOp::kSelect) {
      if (a.input) return false;
      result = a.is_true ? b : registers_[instruction.operands[2]];
      return true;
    }
    if (a.input || b.input || (instruction.op != ScalarOp::kAnd && instruction.op != ScalarOp::kOr)) return false;
    result.is_true = instruction.op == ScalarOp::kAnd ? a.is_true && b.is_true : a.is_true || b.is_true;
    return true;
  }

  [[nodiscard]] std::optional<int> input_in(uint16_t reg) const { return registers_[reg].input; }

 private:
  [[nodiscard]] bool compare(ScalarOp op, int a, int b) const {
    const auto is_nan = [&](int input) {
      return (input == kValue && comparison_.is_nan) || (input == kLaterValue && comparison_.is_later_nan);
    };
    const int order = a % 2 == kIndex ? comparison_.indices : comparison_.values;
    return holds(op, a == b ? 0 : (a < b ? order : -order), is_nan(a) || is_nan(b));
  }

  const Comparison& comparison_;
  std::vector<SymbolicValue> registers_;
};

bool chooses(const TileProgram& reducer, const Comparison& comparison, ArgmaxOrder order) {
  SymbolicEvaluator evaluator(reducer, comparison);
  for (const TileInstruction& instruction : reducer.instructions) {
    if (!evaluator.evaluate(instruction)) return false;
  }
  const bool is_number = !comparison.is_nan && !comparison.is_later_nan;
  const int ahead = order == ArgmaxOrder::kGreatest ? comparison.values : -comparison.values;
  const bool keeps_value = comparison.is_nan || (is_number && ahead > 0);
  const bool is_tie = is_number && ahead == 0;
  const bool keeps_index = keeps_value || (is_tie && comparison.indices < 0);
  const bool is_same_index = is_tie && comparison.indices == 0;
  const std::optional<int> value = evaluator.input_in(reducer.outputs[0]);
  const std::optional<int> index = evaluator.input_in(reducer.outputs[1]);
  if (!value || !index) return false;
  return *value == (keeps_value ? kValue : kLaterValue) &&
         (*index == (keeps_index ? kIndex : kLaterIndex) || (is_same_index && *index % 2 == kIndex));
}

bool always_chooses(const TileProgram& reducer, ArgmaxOrder order) {
  for (int indices = -1; indices <= 1; ++indices) {
    for (int values = -1; values <= 1; ++values) {
      if (!chooses(reducer, {.values = values, .indices = indices}, order)) return false;
    }
    if (!tensor::is_float(reducer.registers[kValue])) continue;
    for (const bool is_nan : {false, true}) {
      const bool both = true;
      if (!chooses(reducer, {.indices = indices, .is_nan = is_nan, .is_later_nan = !is_nan}, order)) return false;
      if (is_nan && !chooses(reducer, {.indices = indices, .is_nan = both, .is_later_nan = both}, order)) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ArgmaxOrder> as_argmax_reducer(const TileProgram& reducer) {
  if (reducer.input_count != 4 || reducer.outputs.size() != 2 || !reducer.constants.empty()) return std::nullopt;
  const std::vector<tensor::DType>& types = reducer.registers;
  if (types[kValue] != types[kLaterValue] || tensor::is_complex(types[kValue])) return std::nullopt;
  if (types[kIndex] != tensor::DType::kInt32 || types[kLaterIndex] != tensor::DType::kInt32) return std::nullopt;
  for (const ArgmaxOrder order : {ArgmaxOrder::kGreatest, ArgmaxOrder::kLeast}) {
    if (always_chooses(reducer, order)) return order;
  }
  return std::nullopt;
}

}  // namespace meshd::kernels
