#include "service/compile/plan/fused_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "service/core/error.h"
#include "service/kernels/elementwise/scalar_op.h"
#include "service/kernels/tile/tile_program.h"
#include "service/ops/fused_call.h"
#include "service/ops/kernel_interface.h"

namespace meshd::compile {
namespace {

using ops::IndexingMap;
using tensor::DType;

constexpr int64_t kMostGathered = 4096;  // elements up to which any strides are read in the loop
constexpr int64_t kMostInnerStride = 8;  // elements: a line of eight f64 is read for each lane at worst
constexpr int64_t kOftenRead = 16;       // an element that is read so often is worth a copy where it lies well
constexpr int kMostComposed = 256;       // movement ops in a row that are read through: of more some are stored

std::vector<int> without_ones(const sharding::MeshView& view, const std::vector<int>& sub_axes) {
  std::vector<int> out;
  for (const int sub_axis : sub_axes) {
    if (view.sub_axis_sizes[static_cast<size_t>(sub_axis)] != 1) out.push_back(sub_axis);
  }
  return out;
}

}  // namespace

IndexingMap indexing_map_of(const ops::OpDef& def, const LocalView& local) {
  IndexingMap map = def.fuse.read(local.view);
  if (!map.same_bytes) return map;
  // A reshape that only adds or drops dims of size one is an index map, through which more can be read.
  const tensor::Dims& from = local.operands[0].dims();
  const tensor::Dims& to = local.results[0].dims();
  IndexingMap exact;
  size_t next = 0;
  for (const int64_t size : from) {
    if (size == 1) {
      exact.dims.push_back({-1, 0, 1});
      continue;
    }
    while (next < to.size() && to[next] == 1) ++next;
    if (next == to.size() || to[next] != size) return map;
    exact.dims.push_back({static_cast<int>(next++), 0, 1});
  }
  while (next < to.size() && to[next] == 1) ++next;
  return next == to.size() ? exact : map;
}

FusedBuilder::FusedBuilder(PlanBuilder& builder, const std::vector<Node>& nodes, const Producers& producers,
                           LocalId space)
    : builder_(builder), nodes_(nodes), producers_(producers), space_(space) {
  loop_.dims = builder.value(space).type.local.dims;
}

void FusedBuilder::note(const Node& node) {
  sources_[node.op->results[0]] = {Source::Kind::kMember, members_.size()};
  members_.push_back(&node);
}

void FusedBuilder::add(const Node& node) {
  for (const LocalId id : node.op->operands) source(id);
  if (node.op->kind == partition::LocalKind::kMask) {
    const partition::ShardedType& type = builder_.value(node.op->results[0]).type;
    const sharding::MeshView& view = builder_.tables.view(type.layout.view);
    std::vector<MaskDim> dims;
    for (size_t d = 0; d < type.rank(); ++d) {
      if (type.even_size(view, d) == type.logical_dims[d]) continue;
      const bool fits = type.even_size(view, d) <= std::numeric_limits<int32_t>::max();
      const DType dtype = fits ? DType::kInt32 : DType::kInt64;
      std::vector<std::byte> size(fits ? 4 : 8);
      const auto narrow = static_cast<int32_t>(type.logical_dims[d]);
      std::memcpy(size.data(), fits ? static_cast<const void*>(&narrow) : &type.logical_dims[d], size.size());
      dims.push_back({iota_input(static_cast<int>(d), dtype), constant(dtype, size), dtype});
    }
    masks_[&node] = std::move(dims);
  }
  note(node);
}

void FusedBuilder::reduce(const Node& node) {
  const size_t count = node.op->operands.size() / 2;
  for (size_t i = 0; i < count; ++i) source(node.op->operands[i]);
  reduce_ = &node;
}

FusedBuilder::Source FusedBuilder::source(LocalId id) {
  if (const auto found = sources_.find(id); found != sources_.end()) return found->second;
  Map map;
  const tensor::Dims& dims = builder_.value(id).type.local.dims;
  if (dims.size() == loop_.dims.size()) {
    for (size_t d = 0; d < dims.size(); ++d) map.push_back({static_cast<int>(d), 0, 1});
  }
  const Source made = *read(id, map, 0);
  sources_[id] = made;
  return made;
}

std::pair<int64_t, tensor::Dims> FusedBuilder::linear(LocalId id, const Map& map) const {
  const tensor::Dims rows = tensor::row_major_strides(builder_.value(id).type.local.dims);
  int64_t offset = 0;
  tensor::Dims strides(loop_.dims.size(), 0);
  for (size_t d = 0; d < map.size(); ++d) {
    offset += rows[d] * map[d].start;
    if (map[d].result_dim >= 0) strides[static_cast<size_t>(map[d].result_dim)] += rows[d] * map[d].step;
  }
  for (size_t d = 0; d < strides.size(); ++d) {
    if (loop_.dims[d] == 1) strides[d] = 0;
  }
  return {offset, std::move(strides)};
}

std::optional<FusedBuilder::Source> FusedBuilder::read(LocalId id, const Map& map, int composed) {
  if (const ir::DenseAttr* splat = splat_of(builder_, builder_.memory_of(id))) {
    return constant(splat->type.dtype, *splat->bytes);
  }
  const int32_t producer = producers_(id);
  if (producer >= 0) {
    const Node& node = nodes_[static_cast<size_t>(producer)];
    if (node.kind == NodeKind::kIota) {
      if (const auto made = iota(id, node.iota_dim, map)) return made;
    }
    if (node.kind == NodeKind::kRead && composed < kMostComposed) {
      const LocalId operand = node.op->operands[0];
      std::optional<Source> made;
      if (node.read.same_bytes) {
        const auto [offset, strides] = linear(id, map);
        made = splat_of(builder_, builder_.memory_of(operand)) != nullptr
                   ? read(operand, {}, composed + 1)
                   : read_stored(operand, offset, strides, false);
      } else {
        Map deeper;
        for (const IndexingMap::Dim& dim : node.read.dims) {
          if (dim.result_dim < 0) {
            deeper.push_back({-1, dim.start, 1});
            continue;
          }
          const IndexingMap::Dim& outer = map.at(static_cast<size_t>(dim.result_dim));
          deeper.push_back({outer.result_dim, dim.start + dim.step * outer.start, dim.step * outer.step});
        }
        made = read(operand, deeper, composed + 1);
      }
      if (made) return made;
    }
  }
  const auto [offset, strides] = linear(id, map);
  return read_stored(id, offset, strides, composed == 0);
}

std::optional<FusedBuilder::Source> FusedBuilder::read_stored(LocalId id, int64_t offset, const tensor::Dims& strides,
                                                              bool at_any_cost) {
  if (!at_any_cost && core::checked_product(loop_.dims) > kMostGathered) {
    // The innermost loop decides how much of each line that comes in is used.
    for (size_t d = strides.size(); d-- > 0;) {
      if (loop_.dims[d] == 1) continue;
      if (std::abs(strides[d]) > kMostInnerStride) return std::nullopt;
      const int64_t elements = tensor::element_count(builder_.value(id).type.local.dims);
      if (std::abs(strides[d]) > 1 && tensor::element_count(loop_.dims) / kOftenRead >= elements) return std::nullopt;
      break;
    }
  }
  const auto [found, is_new] = reads_.try_emplace({id, offset, strides}, loop_.inputs.size());
  if (is_new) {
    const auto operand = std::find(operands_.begin(), operands_.end(), id);
    kernels::FusedInput input;
    input.operand = static_cast<int>(operand - operands_.begin());
    input.offset = offset;
    input.strides = strides;
    if (operand == operands_.end()) operands_.push_back(id);
    loop_.inputs.push_back(std::move(input));
    input_dtypes_.push_back(builder_.value(id).type.local.dtype);
  }
  return Source{Source::Kind::kInput, found->second};
}

std::optional<FusedBuilder::Source> FusedBuilder::iota(LocalId id, int64_t dim, const Map& map) {
  const IndexingMap::Dim& read = map.at(static_cast<size_t>(dim));
  if (read.result_dim < 0 || read.start != 0 || read.step != 1) return std::nullopt;
  const partition::ShardedType& type = builder_.value(id).type;
  const partition::ShardLayout& space = builder_.value(space_).type.layout;
  const std::vector<int>& mine = type.sub_axes(static_cast<size_t>(dim));
  const std::vector<int>& loops = space.dims[static_cast<size_t>(read.result_dim)];
  if (type.layout.view != space.view && !(mine.empty() && loops.empty())) return std::nullopt;
  // Both must begin at the same place on every shard.
  if (without_ones(builder_.tables.view(type.layout.view), mine) !=
      without_ones(builder_.tables.view(space.view), loops))
    return std::nullopt;
  return iota_input(read.result_dim, type.local.dtype);
}

FusedBuilder::Source FusedBuilder::iota_input(int dim, DType dtype) {
  const auto [found, is_new] = iotas_.try_emplace({dim, dtype}, loop_.inputs.size());
  if (is_new) {
    kernels::FusedInput input;
    input.kind = kernels::FusedInput::Kind::kIota;
    input.iota_dim = dim;
    input.strides.assign(loop_.dims.size(), 0);
    loop_.inputs.push_back(std::move(input));
    input_dtypes_.push_back(dtype);
    uses_offsets_ = true;
  }
  return {Source::Kind::kInput, found->second};
}

FusedBuilder::Source FusedBuilder::constant(DType dtype, std::span<const std::byte> element) {
  element = element.first(static_cast<size_t>(tensor::size_bytes(dtype)));
  const Constant wanted{dtype, {element.begin(), element.end()}};
  const auto found = std::find(constants_.begin(), constants_.end(), wanted);
  const auto number = static_cast<size_t>(found - constants_.begin());
  if (found == constants_.end()) constants_.push_back(wanted);
  return {Source::Kind::kConstant, number};
}

uint16_t FusedBuilder::reg(const Source& source) {
  switch (source.kind) {
    case Source::Kind::kInput:
      return static_cast<uint16_t>(source.number);
    case Source::Kind::kConstant:
      return constant_registers_[source.number];
    case Source::Kind::kMember:
      return member_registers_[source.number];
  }
  return 0;
}

uint16_t FusedBuilder::emit_mask(const Node& node, const std::vector<MaskDim>& dims) {
  using kernels::ScalarOp;
  const uint16_t value = reg(sources_.at(node.op->operands[0]));
  const uint16_t fill = reg(sources_.at(node.op->operands[1]));
  const DType dtype = builder_.value(node.op->results[0]).type.local.dtype;
  if (dims.empty()) return value;
  std::optional<uint16_t> inside;
  for (const MaskDim& dim : dims) {
    const uint16_t here = loop_.program.emit(ScalarOp::kCompareLt, {reg(dim.index), reg(dim.size)}, DType::kBool);
    inside = inside ? loop_.program.emit(ScalarOp::kAnd, {*inside, here}, DType::kBool) : here;
  }
  return loop_.program.emit(ScalarOp::kSelect, {*inside, value, fill}, dtype);
}

BuilderStep FusedBuilder::finish(const std::vector<LocalId>& outputs) {
  kernels::TileProgram& program = loop_.program;
  for (const DType dtype : input_dtypes_) program.add_register(dtype);
  program.input_count = static_cast<int>(input_dtypes_.size());
  for (const Constant& made : constants_)
    constant_registers_.push_back(program.constant(made.dtype, made.element.data()));
  for (const Node* node : members_) {
    try {
      if (node->op->kind == partition::LocalKind::kMask) {
        member_registers_.push_back(emit_mask(*node, masks_.at(node)));
        continue;
      }
      const LocalView local(*builder_.program, *node->op);
      std::vector<uint16_t> operands;
      for (const LocalId id : node->op->operands) operands.push_back(reg(sources_.at(id)));
      const ops::Body body = ops::body_of(*node->op->def, local.view);
      member_registers_.push_back(ops::emit_scalar(std::get<ops::ScalarMath>(body), local.view, program, operands));
    } catch (const core::Error& error) {
      if (!error.diagnostics().empty()) throw;
      throw core::Error(error.code(),
                        fmt::format("line {}: '{}': {}", node->op->location.line, node->op->name, error.detail()),
                        {{.pointer = {},
                          .detail = error.detail(),
                          .line = node->op->location.line,
                          .column = node->op->location.column}});
    }
  }

  BuilderStep step;
  step.op = reduce_ != nullptr ? reduce_->op : members_.empty() ? nullptr : members_.back()->op;
  step.results = outputs;
  step.table = builder_.value(outputs[0]).table;
  if (reduce_ != nullptr) {
    const LocalOp& op = *reduce_->op;
    const size_t count = op.operands.size() / 2;
    kernels::FusedReduce tail;
    for (const int64_t dim : reduce_->dims) tail.dims.push_back(static_cast<int>(dim));
    tail.reducer = ops::compile_scalar_region(*builder_.program->function, op.regions.at(0));
    for (size_t i = 0; i < count; ++i) {
      program.outputs.push_back(reg(sources_.at(op.operands[i])));
      const LocalId init = op.operands[count + i];
      const auto found = std::find(operands_.begin(), operands_.end(), init);
      tail.init_operands.push_back(static_cast<int>(found - operands_.begin()));
      if (found == operands_.end()) operands_.push_back(init);
    }
    loop_.reduce = std::move(tail);
  } else {
    for (const LocalId id : outputs) program.outputs.push_back(reg(sources_.at(id)));
  }
  step.operands = operands_;
  for (const Constant& made : constants_) step.constants |= kernels::find_nonfinite(made.dtype, made.element.data(), 1);
  if (uses_offsets_) set_offsets(builder_, step, space_);
  set_names(step);
  if (reduce_ == nullptr) set_in_place(step, outputs);
  set_kernel(step, outputs.size());
  return step;
}

void FusedBuilder::set_names(BuilderStep& step) const {
  std::vector<const LocalOp*> all;
  for (const Node* node : members_) all.push_back(node->op);
  if (reduce_ != nullptr) all.push_back(reduce_->op);
  if (all.empty()) return;
  std::vector<int32_t> lines;
  for (const LocalOp* op : all) {
    if (op->location.line > 0) lines.push_back(op->location.line);
  }
  add_lines(step, lines);
  step.location = all.back()->location;
  step.reason = all.back()->reason;
  step.name = all.back()->name;
  if (all.size() > 1) {
    step.name = fmt::format("fused {}{}{} ({} ops)", without_dialect(all.front()->name), all.size() > 2 ? " .. " : " ",
                            without_dialect(all.back()->name), all.size());
  }
}

// An output may take the place of an input that is read lane for lane and not read again after the output's
// instruction.
void FusedBuilder::set_in_place(BuilderStep& step, const std::vector<LocalId>& outputs) const {
  const tensor::Dims dense = [&] {
    tensor::Dims strides = tensor::row_major_strides(loop_.dims);
    for (size_t d = 0; d < strides.size(); ++d) {
      if (loop_.dims[d] == 1) strides[d] = 0;
    }
    return strides;
  }();
  std::map<uint16_t, size_t> last_use;
  for (size_t i = 0; i < loop_.program.instructions.size(); ++i) {
    const kernels::TileInstruction& instruction = loop_.program.instructions[i];
    const int count = kernels::used_operands(instruction);
    for (int k = 0; k < count; ++k) last_use[instruction.operands[static_cast<size_t>(k)]] = i;
  }
  for (size_t operand = 0; operand < operands_.size(); ++operand) {
    int reads = 0;
    uint16_t input = 0;
    bool lane_for_lane = true;
    for (size_t i = 0; i < loop_.inputs.size(); ++i) {
      const kernels::FusedInput& read = loop_.inputs[i];
      if (read.kind != kernels::FusedInput::Kind::kTensor || read.operand != static_cast<int>(operand)) continue;
      ++reads;
      input = static_cast<uint16_t>(i);
      lane_for_lane = lane_for_lane && read.offset == 0 && read.strides == dense;
    }
    if (reads != 1 || !lane_for_lane || builder_.value(operands_[operand]).bytes == 0) continue;
    for (size_t result = 0; result < outputs.size(); ++result) {
      const uint16_t reg = loop_.program.outputs[result];
      const auto writes =
          std::find_if(loop_.program.instructions.begin(), loop_.program.instructions.end(),
                       [&](const kernels::TileInstruction& instruction) { return instruction.result == reg; });
      if (writes == loop_.program.instructions.end()) continue;
      const auto at = static_cast<size_t>(writes - loop_.program.instructions.begin());
      const bool same_size = builder_.value(operands_[operand]).bytes == builder_.value(outputs[result]).bytes;
      if (same_size && last_use[input] <= at)
        step.kernel.in_place.emplace_back(static_cast<int>(operand), static_cast<int>(result));
    }
  }
}

void FusedBuilder::set_kernel(BuilderStep& step, size_t output_count) {
  double work = 1;
  for (const kernels::TileInstruction& instruction : loop_.program.instructions)
    work += kernels::cost_of(instruction.op);
  if (loop_.reduce) {
    for (const kernels::TileInstruction& instruction : loop_.reduce->reducer.instructions)
      work += kernels::cost_of(instruction.op);
  }
  double bytes = 0;
  for (const LocalId id : operands_) bytes += static_cast<double>(builder_.value(id).bytes);
  for (size_t i = 0; i < output_count; ++i) bytes += static_cast<double>(builder_.value(step.results[i]).bytes);
  step.kernel.flops = work * static_cast<double>(core::checked_product(loop_.dims));
  step.kernel.bytes = bytes;
  step.kernel.uses_offsets = uses_offsets_;
  loop_.copies = builder_.tables[step.table].count();
  loop_.code_after = builder_.code_after;
  auto kernel = std::make_shared<const kernels::FusedKernel>(std::move(loop_));
  step.kernel.work_count = kernel->work_count();
  step.kernel.passes_checkpoints = true;
  step.kernel.code_bytes = kernel->code_bytes();
  step.kernel.workspace_bytes = kernel->workspace_bytes();
  if (kernel->barrier() > 0) step.kernel.barriers = {kernel->barrier()};
  step.kernel.fused = kernel;
  step.kernel.run = [kernel](const ops::KernelCall& call) { kernel->run(ops::fused_call(call)); };
}

}  // namespace meshd::compile
