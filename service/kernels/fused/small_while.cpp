#include "service/kernels/fused/small_while.h"

#include <algorithm>
#include <cstring>

#include "service/core/checked_math.h"
#include "service/kernels/elementwise/lanes/lane_loop.h"
#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fused/fused_loop.h"
#include "service/kernels/fused/small_loop.h"
#include "service/kernels/fused/small_reduce.h"
#include "service/kernels/fused/while_code.h"

namespace meshd::kernels {
namespace {

constexpr size_t kMostRegisterBytes = 512 * 1024;

size_t register_bytes(int64_t element_bytes) { return static_cast<size_t>(element_bytes * kBlockLanes); }

}  // namespace

std::map<int, std::vector<const DynamicRow*>> written_rows(const SmallWhileLoop& loop) {
  std::map<int, std::vector<const DynamicRow*>> rows;
  for (const auto* steps : {&loop.condition, &loop.body}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      if (const DynamicRow* const row = step.row()) rows[step.operands[0]].push_back(row);
    }
  }
  std::erase_if(rows, [](const auto& array) {
    return std::none_of(array.second.begin(), array.second.end(), [](const auto* row) { return row->writes(); });
  });
  return rows;
}

namespace {

// Whether pieces may write their parts of an array's rows one after the other: no row is read, and no lane of one piece
// is where another piece writes, because rows do not overlap but as a whole.
bool can_be_cut(const std::vector<const DynamicRow*>& rows) {
  const int64_t lanes = rows.front()->lanes;
  return std::all_of(rows.begin(), rows.end(), [&](const DynamicRow* row) {
    const bool are_whole = std::all_of(row->indices.begin(), row->indices.end(), [&](const DynamicRow::Index& index) {
      return index.most == 0 || index.stride % lanes == 0;
    });
    return row->writes() && row->lanes == lanes && are_whole;
  });
}

}  // namespace

size_t SmallWhile::place(size_t bytes) {
  const size_t at = bytes_;
  bytes_ += static_cast<size_t>(core::round_up(static_cast<int64_t>(bytes), 64));
  return at;
}

// As a value with a home.
bool SmallWhile::has_elements(int value, int64_t element_bytes) const {
  const Value& given = values_[static_cast<size_t>(value)];
  return given.element_bytes == element_bytes && !given.is_array;
}

SmallWhile::Value::Part SmallWhile::Value::part(int64_t piece) const {
  if (lanes() <= kBlockLanes) return {0, lanes()};
  const int64_t first = piece * kBlockLanes;
  return {first, std::min(kBlockLanes, lanes() - first)};
}

// How many pieces there are, and the loops of one. False where lanes need each other: a step that reads one lane of a
// longer value, be it only for a scalar, finds it in one piece alone; and pieces take their iterations one after the
// other, so that what one writes into an array must not be what another one reads or writes.
bool SmallWhile::cut(const SmallWhileLoop& loop, Loops& loops) {
  const auto lanes_of = [&](int value) {
    const auto i = static_cast<size_t>(value);
    return loop.value_bytes[i] / tensor::size_bytes(loop.dtypes[i]);
  };
  const auto values = static_cast<int>(loop.value_bytes.size());
  const auto is_array = [&](int value) { return loop.is_array[static_cast<size_t>(value)] != 0; };
  int64_t most = 1;
  for (int value = 0; value < values; ++value) {
    if (!is_array(value)) most = std::max(most, lanes_of(value));
  }
  pieces_ = core::ceil_div(most, kBlockLanes);
  if (most > kMostWhileLanes) return false;
  for (int value = 0; value < values && pieces_ > 1; ++value) {
    if (!is_array(value) && lanes_of(value) != 1 && lanes_of(value) != most) return false;
  }
  const auto written = written_rows(loop);
  const bool can_cut =
      std::all_of(written.begin(), written.end(), [](const auto& array) { return can_be_cut(array.second); });
  if (pieces_ > 1 && !can_cut) return false;
  for (const auto* steps : {&loop.condition, &loop.body}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      if (pieces_ > 1 && step.small_step != nullptr && std::holds_alternative<Shuffle>(*step.small_step)) return false;
      if (step.kernel == nullptr) continue;
      const SmallLoop* const small = step.kernel->small();
      if (small == nullptr && pieces_ == 1) return false;
      std::optional<SmallLoop> piece = small != nullptr ? *small : SmallLoop::make_piece(step.kernel->loop());
      if (!piece) return false;
      for (const SmallLoop::Input& input : piece->inputs()) {
        const bool is_long = lanes_of(step.operands[static_cast<size_t>(input.operand)]) > 1;
        const bool is_lane_for_lane = is_long == (input.lanes > 1) && input.byte_offset == 0 && input.elements.empty();
        if (pieces_ > 1 && !is_lane_for_lane) return false;
      }
      loops.try_emplace(step.kernel.get(), *std::move(piece));
    }
  }
  return true;
}

bool SmallWhile::are_alike(int a, int b) const {
  const Value& left = values_[static_cast<size_t>(a)];
  const Value& right = values_[static_cast<size_t>(b)];
  return left.bytes == right.bytes && left.element_bytes == right.element_bytes && !left.is_array && !right.is_array;
}

bool SmallWhile::fits(const SmallWhileLoop::Step& step, const SmallLoop& small) const {
  for (const SmallLoop::Input& input : small.inputs()) {
    if (!has_elements(step.operands[static_cast<size_t>(input.operand)], input.element_bytes)) return false;
  }
  for (size_t k = 0; k < step.results.size(); ++k) {
    const SmallLoop::Output& output = small.outputs()[k];
    const Value& value = values_[static_cast<size_t>(step.results[k])];
    const bool is_same = !value.is_array && value.element_bytes == output.element_bytes &&
                         value.part(0).count * value.element_bytes == static_cast<int64_t>(output.bytes);
    if (!is_same) return false;
  }
  return true;
}

bool SmallWhile::fits(const SmallWhileLoop::Step& step) const {
  const auto has = [&](int value, tensor::DType dtype, int64_t lanes) {
    return has_elements(value, tensor::size_bytes(dtype)) && values_[static_cast<size_t>(value)].lanes() == lanes;
  };
  if (const auto* const fill = std::get_if<Fill>(step.small_step.get()))
    return has(step.results[0], fill->dtype, fill->lanes);
  if (const auto* const shuffle = std::get_if<Shuffle>(step.small_step.get())) {
    return has(step.results[0], shuffle->dtype, static_cast<int64_t>(shuffle->lanes.size())) &&
           std::all_of(step.operands.begin(), step.operands.end(),
                       [&](int operand) { return has_elements(operand, tensor::size_bytes(shuffle->dtype)); });
  }
  const DynamicRow& row = std::get<DynamicRow>(*step.small_step);
  const Value& array = values_[static_cast<size_t>(step.operands[0])];
  if (!array.is_array || array.element_bytes != tensor::size_bytes(row.dtype)) return false;
  for (const DynamicRow::Index& index : row.indices) {
    const int value = step.operands[static_cast<size_t>(index.operand)];
    const bool is_there = has_elements(value, tensor::size_bytes(row.index_dtype)) &&
                          index.element < values_[static_cast<size_t>(value)].part(0).count;
    if (!is_there) return false;
  }
  if (!row.writes()) return has(step.results[0], row.dtype, row.lanes);
  return has(step.operands[static_cast<size_t>(row.written)], row.dtype, row.lanes) &&
         step.results[0] == step.operands[0];
}

// False where a step reads elements of another width than a value has, or writes another value than it is.
bool SmallWhile::add_values(const SmallWhileLoop& loop, const Loops& loops) {
  for (size_t i = 0; i < loop.value_bytes.size(); ++i) {
    Value value{.home = 0,
                .bytes = loop.value_bytes[i],
                .element_bytes = tensor::size_bytes(loop.dtypes[i]),
                .is_stored = loop.is_stored[i] != 0,
                .is_array = loop.is_array[i] != 0};
    if (value.bytes <= 0 || value.bytes % value.element_bytes != 0) return false;
    if (!value.is_array) value.home = place(register_bytes(value.element_bytes));
    values_.push_back(value);
  }
  for (const auto* steps : {&loop.condition, &loop.body}) {
    for (const SmallWhileLoop::Step& step : *steps) {
      const bool is_fit = step.kernel != nullptr       ? fits(step, loops.at(step.kernel.get()))
                          : step.small_step != nullptr ? fits(step)
                                                       : are_alike(step.operands[0], step.results[0]);
      if (!is_fit) return false;
    }
  }
  return has_elements(loop.predicate, 1) &&
         std::all_of(loop.exchanges.begin(), loop.exchanges.end(),
                     [&](const auto& pair) { return are_alike(pair.first, pair.second); });
}

// Steps that are no loops.
void SmallWhile::add_small_step(const SmallWhileLoop::Step& step, std::vector<BlockInstruction>& to) {
  const auto home = [&](int value) { return values_[static_cast<size_t>(value)].home; };
  BlockInstruction made;
  made.result = home(step.results[0]);
  made.element_bytes = values_[static_cast<size_t>(step.results[0])].element_bytes;
  if (step.small_step == nullptr) {
    made.operands[0] = home(step.operands[0]);
    made.lanes = kBlockLanes;
  } else if (const auto* const fill = std::get_if<Fill>(step.small_step.get())) {
    std::vector<std::byte> all(register_bytes(made.element_bytes));
    repeat_element(fill->element.data(), made.element_bytes, all.data(), kBlockLanes);
    made.operands[0] = place(all.size());
    made.lanes = kBlockLanes;
    constants_.emplace_back(made.operands[0], std::move(all));
  } else if (const auto* const shuffle = std::get_if<Shuffle>(step.small_step.get())) {
    made.kind = BlockInstruction::Kind::kShuffle;
    made.lanes = static_cast<int64_t>(shuffle->lanes.size());
    for (const Shuffle::Lane& lane : shuffle->lanes) {
      made.elements.push_back(home(step.operands[static_cast<size_t>(lane.operand)]) +
                              static_cast<size_t>(lane.element * made.element_bytes));
    }
  } else {
    const DynamicRow& row = std::get<DynamicRow>(*step.small_step);
    made.kind = row.writes() ? BlockInstruction::Kind::kWriteRow : BlockInstruction::Kind::kReadRow;
    if (row.writes()) made.operands[0] = home(step.operands[static_cast<size_t>(row.written)]);
    made.skips = row.skips;
    made.lanes = row.lanes;
    made.array = static_cast<size_t>(step.operands[0]);
    made.index_dtype = row.index_dtype;
    for (const DynamicRow::Index& index : row.indices) {
      const auto at = static_cast<size_t>(index.element * tensor::size_bytes(row.index_dtype));
      made.indices.push_back({home(step.operands[static_cast<size_t>(index.operand)]) + at, index.most,
                              index.stride * made.element_bytes});
    }
  }
  to.push_back(std::move(made));
}

// Registers that hold a value's elements lane for lane are the value's home; a result is computed there where nothing
// that comes later in the step reads what the value held before.
void SmallWhile::add_loop(const SmallWhileLoop::Step& step, const SmallLoop& small, std::vector<BlockInstruction>& to) {
  using Kind = BlockInstruction::Kind;
  const size_t base = place(small.bytes());
  if (!small.constants().empty()) constants_.emplace_back(base, small.constants());
  std::vector<std::pair<size_t, size_t>> homes;  // a register of the step, the value's home that stands for it
  for (const SmallLoop::Input& input : small.inputs()) {
    const Value& value = values_[static_cast<size_t>(step.operands[static_cast<size_t>(input.operand)])];
    // One that is a result as it is stays apart: the step may exchange two values.
    const bool is_result = std::any_of(small.outputs().begin(), small.outputs().end(),
                                       [&](const SmallLoop::Output& output) { return output.home == input.home; });
    const bool is_as_it_is = input.byte_offset == 0 && input.elements.empty() && input.lanes == value.part(0).count;
    if (!is_result && is_as_it_is) {
      homes.emplace_back(input.home, value.home);
      continue;
    }
    BlockInstruction read;
    read.operands[0] = value.home + static_cast<size_t>(input.byte_offset);
    read.result = base + input.home;
    read.lanes = input.lanes;
    read.element_bytes = input.element_bytes;
    if (!input.elements.empty()) read.kind = Kind::kShuffle;
    for (const int64_t element : input.elements)
      read.elements.push_back(read.operands[0] + static_cast<size_t>(element * input.element_bytes));
    to.push_back(std::move(read));
  }
  const auto at = [&](size_t home) {
    const auto found = std::find_if(homes.begin(), homes.end(), [&](const auto& pair) { return pair.first == home; });
    return found == homes.end() ? base + home : found->second;
  };
  const std::vector<SmallLoop::Instruction>& instructions = small.instructions();
  const auto is_read_after = [&](size_t place, size_t number) {
    for (size_t i = number + 1; i < instructions.size(); ++i) {
      const auto& operands = instructions[i].operands;
      if (std::any_of(operands.begin(), operands.end(), [&](size_t operand) { return at(operand) == place; }))
        return true;
    }
    return std::any_of(small.outputs().begin(), small.outputs().end(),
                       [&](const SmallLoop::Output& output) { return at(output.home) == place; });
  };
  const size_t reads = to.size();
  for (const SmallLoop::Instruction& from : instructions) {
    to.push_back({Kind::kKernel,
                  from.kernel,
                  {at(from.operands[0]), at(from.operands[1]), at(from.operands[2])},
                  base + from.result,
                  from.lanes,
                  from.element_bytes});
  }
  if (const auto& reduction = small.reduction()) {
    BlockInstruction made{.kind = Kind::kReduce,
                          .operands = {at(reduction->values), at(reduction->init)},
                          .result = base + reduction->result,
                          .lanes = reduction->reduce->results(),
                          .element_bytes = tensor::size_bytes(reduction->reduce->dtype),
                          .reduce = reduction->reduce};
    to.push_back(std::move(made));
  }
  for (size_t k = 0; k < small.outputs().size(); ++k) {
    const SmallLoop::Output& output = small.outputs()[k];
    const size_t home = values_[static_cast<size_t>(step.results[k])].home;
    const auto writes = std::find_if(instructions.begin(), instructions.end(),
                                     [&](const SmallLoop::Instruction& made) { return made.result == output.home; });
    const auto number = static_cast<size_t>(writes - instructions.begin());
    const bool is_taken =
        std::any_of(homes.begin(), homes.end(), [&](const auto& pair) { return pair.first == output.home; });
    if (writes == instructions.end() || is_taken || is_read_after(home, number)) {
      to.push_back({Kind::kCopy, nullptr, {at(output.home)}, home, kBlockLanes, output.element_bytes});
      continue;
    }
    // Computed in place: whoever reads the register reads the value.
    for (size_t i = reads; i < to.size(); ++i) {
      for (size_t& operand : to[i].operands) {
        if (operand == base + output.home) operand = home;
      }
    }
    to[reads + number].result = home;
    homes.emplace_back(output.home, home);
  }
}

std::optional<SmallWhile> SmallWhile::make(const SmallWhileLoop& loop) {
  SmallWhile made;
  Loops loops;
  if (!made.cut(loop, loops) || !made.add_values(loop, loops)) return std::nullopt;
  const auto add = [&](const SmallWhileLoop::Step& step, std::vector<BlockInstruction>& to) {
    if (step.kernel != nullptr)
      made.add_loop(step, loops.at(step.kernel.get()), to);
    else
      made.add_small_step(step, to);
  };
  for (const SmallWhileLoop::Step& step : loop.condition) add(step, made.condition_);
  for (const SmallWhileLoop::Step& step : loop.body) add(step, made.body_);
  if (made.bytes_ > kMostRegisterBytes) return std::nullopt;
  made.predicate_ = made.values_[static_cast<size_t>(loop.predicate)].home;
  made.exchanges_ = loop.exchanges;
  std::vector<size_t> homes;
  for (const Value& value : made.values_) homes.push_back(value.home);
  const auto code_of = [&](int64_t piece) {
    std::vector<int64_t> lanes;
    for (const Value& value : made.values_) lanes.push_back(value.is_array ? 1 : value.part(piece).count);
    int64_t most = *std::max_element(lanes.begin(), lanes.end());
    // A loop may have more lanes than what it reads and gives, if it reduces them. Pieces of loops have those of
    // values.
    for (const auto& [kernel, small] : loops) most = made.pieces_ == 1 ? std::max(most, small.lanes()) : most;
    return WhileCode::make(loop, loops, homes, lanes, most);
  };
  made.code_ = code_of(0);
  made.last_code_ = made.pieces_ == 1 || made.code_ == nullptr ? made.code_ : code_of(made.pieces_ - 1);
  return made;
}

int64_t SmallWhile::code_bytes() const {
  if (code_ == nullptr) return 0;
  return code_->bytes() + (last_code_ == nullptr || last_code_ == code_ ? 0 : last_code_->bytes());
}

void SmallWhile::load(std::byte* block, int64_t piece, const std::byte* const* values) const {
  for (const auto& [place, registers] : constants_) std::memcpy(block + place, registers.data(), registers.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (value.is_array) continue;
    const auto [first, count] = value.part(piece);
    std::memcpy(block + value.home, values[i] + first * value.element_bytes,
                static_cast<size_t>(count * value.element_bytes));
    pad_block(block + value.home, value.element_bytes, count);
  }
}

void SmallWhile::store(const std::byte* block, int64_t piece, std::byte* const* values) const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (!value.is_stored || value.is_array) continue;
    const auto [first, count] = value.part(piece);
    std::memcpy(values[i] + first * value.element_bytes, block + value.home,
                static_cast<size_t>(count * value.element_bytes));
  }
}

SmallWhile::Outcome SmallWhile::run(std::byte* block, int64_t piece, std::byte* const* values, int64_t most) const {
  const BoundInstructions condition(condition_, block, piece, values);
  const bool is_last = piece == pieces_ - 1;
  const WhileCode* const lazy = is_last ? last_code_.get() : code_.get();
  const TileCode* const code = lazy == nullptr || most < 1 ? nullptr : lazy->get(most);
  if (code != nullptr) {
    condition.execute();
    if (block[predicate_] == std::byte{0}) return {0, true};
    const int64_t iterations = lazy->run(*code, block, values, piece * kBlockLanes, most);
    return {iterations, block[predicate_] == std::byte{0}};
  }
  const BoundInstructions body(body_, block, piece, values);
  for (int64_t i = 0; i < most; ++i) {
    condition.execute();
    if (block[predicate_] == std::byte{0}) return {i, true};
    body.execute();
    for (const auto& [a, b] : exchanges_) {
      std::byte* const left = block + values_[static_cast<size_t>(a)].home;
      const size_t bytes = register_bytes(values_[static_cast<size_t>(a)].element_bytes);
      std::swap_ranges(left, left + bytes, block + values_[static_cast<size_t>(b)].home);
    }
  }
  return {most, false};
}

}  // namespace meshd::kernels
