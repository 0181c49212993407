// Builds the loop of one fused step: registers for values, inputs that read stored values through movement ops, masks.
#pragma once

#include <compare>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "service/compile/plan/plan_builder.h"
#include "service/kernels/fused/fused_loop.h"

namespace meshd::compile {

/// The class of an op in fusion.
enum class NodeKind : uint8_t {
  kOther,  ///< a step of its own
  kPoint,  ///< computes lane by lane
  kRead,   ///< an indexing map of its operand
  kIota,
  kReduce,  ///< reduces a fusion
};

struct Node {
  const LocalOp* op = nullptr;
  NodeKind kind = NodeKind::kOther;
  ops::IndexingMap read;      ///< kRead
  int64_t iota_dim = 0;       ///< kIota
  std::vector<int64_t> dims;  ///< kReduce
  int32_t group = -1;         ///< kPoint: which fusion
};

/// Which node of the block defines a value; -1: none (argument, constant, defined outside).
using Producers = OfValues<int32_t>;

/// Indexing map of an op: rank-preserving reshapes of size-one dims as a map; else that of the row.
ops::IndexingMap indexing_map_of(const ops::OpDef& def, const LocalView& local);

/// One loop in the making: members first, then finish(). One thread.
class FusedBuilder {
 public:
  /// `space`: a value whose dims, shards and sub-axes are the iteration space.
  FusedBuilder(PlanBuilder& builder, const std::vector<Node>& nodes, const Producers& producers, LocalId space);

  /// Adds a pointwise op; operands that were added before are lanes, others are read from memory, generated or
  /// constant.
  void add(const Node& node);
  /// Ends the fusion with a reduction; its operands are lanes or read.
  void reduce(const Node& node);
  /// The step; `outputs` are values that were added (the results of the reduction where there is one).
  BuilderStep finish(const std::vector<LocalId>& outputs);

  /// Stored values that the loop reads, in operand order.
  [[nodiscard]] const std::vector<LocalId>& operands() const { return operands_; }

 private:
  using Map = std::vector<ops::IndexingMap::Dim>;  // index of a value from the iteration index
  // Where a value's lanes come from.
  struct Source {
    enum class Kind : uint8_t { kInput, kConstant, kMember } kind = Kind::kInput;
    size_t number = 0;
  };
  struct Constant {
    tensor::DType dtype;
    std::vector<std::byte> element;
    friend auto operator<=>(const Constant&, const Constant&) = default;
  };
  struct MaskDim {
    Source index;
    Source size;
    tensor::DType dtype;
  };

  Source source(LocalId id);
  /// `composed`: movement ops that `map` goes through. 0: the value is read at any cost.
  std::optional<Source> read(LocalId id, const Map& map, int composed);
  std::optional<Source> read_stored(LocalId id, int64_t offset, const tensor::Dims& strides, bool at_any_cost);
  std::pair<int64_t, tensor::Dims> linear(LocalId id, const Map& map) const;
  std::optional<Source> iota(LocalId id, int64_t dim, const Map& map);
  Source iota_input(int dim, tensor::DType dtype);
  Source constant(tensor::DType dtype, std::span<const std::byte> element);
  uint16_t emit_mask(const Node& node, const std::vector<MaskDim>& dims);
  uint16_t reg(const Source& source);
  void note(const Node& node);
  void set_in_place(BuilderStep& step, const std::vector<LocalId>& outputs) const;
  void set_kernel(BuilderStep& step, size_t output_count);
  void set_names(BuilderStep& step) const;

  PlanBuilder& builder_;
  const std::vector<Node>& nodes_;
  const Producers& producers_;
  LocalId space_;
  kernels::FusedLoop loop_;
  std::vector<LocalId> operands_;
  std::vector<tensor::DType> input_dtypes_;
  std::vector<Constant> constants_;
  std::vector<uint16_t> constant_registers_;
  std::vector<const Node*> members_;
  std::vector<uint16_t> member_registers_;
  std::map<LocalId, Source> sources_;
  std::map<std::tuple<LocalId, int64_t, tensor::Dims>, size_t> reads_;
  std::map<std::pair<int, tensor::DType>, size_t> iotas_;
  std::map<const Node*, std::vector<MaskDim>> masks_;
  const Node* reduce_ = nullptr;
  bool uses_offsets_ = false;
};

}  // namespace meshd::compile
