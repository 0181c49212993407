#include "service/partition/lower/builder/local_ops.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "service/core/error.h"
#include "service/ir/op_builder.h"
#include "service/ops/op_def.h"

namespace meshd::partition {
namespace {

/// Region of a reducer with one binary op, in the builder's function.
ir::Region reducer(Builder& builder, kernels::ScalarOp op, tensor::DType dtype) {
  // Looks up the pointwise rows by scalar operation instead of by name.
  const std::span<const ops::OpDef> rows = ops::all_ops();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const ops::OpDef& candidate) {
    const auto* math = std::get_if<ops::ScalarMath>(&candidate.body);
    return math != nullptr && math->op == op && math->op_of == nullptr;
  });
  if (row == rows.end()) throw core::Error("internal", "no row for a reducer");
  return ir::OpBuilder(builder.function(), ops::code_of).reducer(row->name, ir::Type::of({dtype, {}}));
}

}  // namespace

LocalId add_scalar(Builder& builder, tensor::DType dtype, const std::vector<std::byte>& element, int view,
                   const ir::Location& location) {
  LocalOp op;
  op.kind = LocalKind::kConstant;
  op.name = "stablehlo.constant";
  op.attributes = {{"value", {ir::splat_attr({dtype, {}}, element)}}};
  op.location = location;
  const LocalId made = builder.add_value({dtype, {}}, replicated(0, view), 0);
  op.results = {made};
  builder.sources().rematerialise_by(made, op);
  builder.append(std::move(op));
  return made;
}

const ir::DenseAttr* constant_of(const Builder& builder, LocalId id) {
  const LocalOp* found = builder.sources().rematerialisation(id);
  if (found == nullptr) return nullptr;
  const LocalOp& op = *found;
  if (op.kind == LocalKind::kConstant) {
    const ir::Attribute* value = ir::find(op.attributes, "value");
    return value == nullptr ? nullptr : value->as<ir::DenseAttr>();
  }
  const bool repeats = op.kind == LocalKind::kOp && op.def != nullptr && op.def->fuse.read != nullptr &&
                       op.operands.size() == 1 && builder.type(op.operands[0]).rank() == 0;
  return repeats ? constant_of(builder, op.operands[0]) : nullptr;
}

LocalId mask_padding(Builder& builder, LocalId id, const std::vector<std::byte>& element, const ir::Location& location,
                     const std::string& reason) {
  const LocalValue masked = builder.value(id);
  const ShardedType& type = masked.type;
  if (!type.is_padded(builder.view(type.layout.view))) return id;
  const LocalId fill = add_scalar(builder, type.local.dtype, element, type.layout.view, location);
  const LocalId made = builder.add_value(type.logical(), type.layout, type.outer(), masked.name);
  LocalOp op;
  op.kind = LocalKind::kMask;
  op.name = "mask";
  op.operands = {id, fill};
  op.results = {made};
  op.location = location;
  op.reason = reason;
  builder.append(std::move(op));
  return made;
}

void append_view(Builder& builder, LocalId from, LocalId to, const ir::Location& location) {
  LocalOp op;
  op.kind = LocalKind::kView;
  op.name = "view";
  op.operands = {from};
  op.results = {to};
  op.location = location;
  builder.append(std::move(op));
}

LocalId alias(Builder& builder, LocalId id, const ir::Location& location) {
  const LocalValue like = builder.value(id);
  const LocalId made = builder.add_value(like.type.logical(), like.type.layout, like.type.outer(), like.name);
  append_view(builder, id, made, location);
  return made;
}

LocalId all_reduce(Builder& builder, LocalId id, AllReduce how) {
  const ShardedType from = builder.type(id);
  const LocalId made = builder.add_value(from.logical(), from.layout, from.outer() & ~how.reduced, std::move(how.name));
  LocalOp op;
  op.kind = LocalKind::kReduceShards;
  op.name = "all_reduce";
  op.operands = {id};
  op.results = {made};
  op.regions.push_back(reducer(builder, how.op, how.dtype));
  op.reduced = how.reduced;
  op.location = how.location;
  op.reason = std::move(how.reason);
  builder.append(std::move(op));
  return made;
}

}  // namespace meshd::partition
