#include "service/numpy/trace/promotion.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <vector>

namespace meshd::numpy {
namespace {

using tensor::DType;

// Nodes of the lattice: dtypes by their number, then the weak types.
constexpr int kDTypes = static_cast<int>(std::size(tensor::kDTypeTable));
constexpr int kWeakInt = kDTypes;
constexpr int kWeakFloat = kDTypes + 1;
constexpr int kWeakComplex = kDTypes + 2;
constexpr int kNodes = kDTypes + 3;

constexpr int node(DType dtype) { return static_cast<int>(dtype); }

struct Edge {
  int from, to;
};

// Each type and those directly above it, without what lattice_edges() adds.
constexpr Edge kEdges[] = {
    {node(DType::kBool), kWeakInt},
    {node(DType::kUint8), node(DType::kInt16)},
    {node(DType::kUint8), node(DType::kUint16)},
    {node(DType::kUint16), node(DType::kInt32)},
    {node(DType::kUint16), node(DType::kUint32)},
    {node(DType::kUint32), node(DType::kInt32)},
    {node(DType::kUint32), node(DType::kUint64)},
    {node(DType::kUint64), kWeakFloat},
    {node(DType::kInt8), node(DType::kInt16)},
    {node(DType::kInt16), node(DType::kInt32)},
    {node(DType::kInt32), node(DType::kInt64)},
    {node(DType::kInt64), kWeakFloat},
    {kWeakFloat, kWeakComplex},
    {node(DType::kBfloat16), node(DType::kFloat32)},
    {node(DType::kFloat16), node(DType::kFloat32)},
    {node(DType::kFloat32), node(DType::kFloat64)},
    {node(DType::kFloat32), node(DType::kComplex64)},
    {node(DType::kFloat64), node(DType::kComplex128)},
    {kWeakComplex, node(DType::kComplex64)},
    {node(DType::kComplex64), node(DType::kComplex128)},
};

// With the narrow types above the weak ones: integers of up to 8 bits, floats narrower than float32.
std::vector<Edge> lattice_edges() {
  std::vector<Edge> out(std::begin(kEdges), std::end(kEdges));
  for (int i = 0; i < kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (tensor::is_integer(dtype) && tensor::row(dtype).bits <= 8) out.push_back({kWeakInt, i});
    if (tensor::is_float(dtype) && tensor::row(dtype).bits < 32) out.push_back({kWeakFloat, i});
  }
  return out;
}

// For each node a bit for it and for each node above it.
const std::array<uint64_t, kNodes>& bounds() {
  static const std::array<uint64_t, kNodes> kBounds = [] {
    std::array<uint64_t, kNodes> out{};
    for (int i = 0; i < kNodes; ++i) out[static_cast<size_t>(i)] = uint64_t{1} << i;
    const std::vector<Edge> all = lattice_edges();
    for (bool changed = true; changed;) {
      changed = false;
      for (const Edge& edge : all) {
        uint64_t& from = out[static_cast<size_t>(edge.from)];
        const uint64_t with = from | out[static_cast<size_t>(edge.to)];
        changed = changed || with != from;
        from = with;
      }
    }
    return out;
  }();
  return kBounds;
}

int node_of(WeakType type) {
  if (!type.weak) return node(type.dtype);
  if (tensor::is_complex(type.dtype)) return kWeakComplex;
  if (tensor::is_float(type.dtype)) return kWeakFloat;
  return type.dtype == DType::kBool ? node(DType::kBool) : kWeakInt;
}

WeakType type_of(int of) {
  if (of == kWeakInt) return {DType::kInt32, true};
  if (of == kWeakFloat) return {DType::kFloat32, true};
  if (of == kWeakComplex) return {DType::kComplex64, true};
  return {static_cast<DType>(of), false};
}

}  // namespace

std::optional<WeakType> promoted(WeakType a, WeakType b) {
  const WeakType both[] = {a, b};
  return promoted(both);
}

std::optional<WeakType> promoted(std::span<const WeakType> types) {
  if (types.empty()) return WeakType{};
  bool same = true;
  bool weak = true;
  for (const WeakType& type : types) {
    same = same && type.dtype == types[0].dtype;
    weak = weak && type.weak;
  }
  if (same) return WeakType{types[0].dtype, weak && types[0].dtype != DType::kBool};
  const auto& above = bounds();
  uint64_t common = ~uint64_t{0};
  uint64_t given = 0;
  for (const WeakType& type : types) {
    // Where all give way, the bound is that of the types themselves: a weak int8 and a bool are a weak int8.
    const int at = weak ? node(type.dtype) : node_of(type);
    common &= above[static_cast<size_t>(at)];
    given |= uint64_t{1} << at;
  }
  // One of the operands where it is a bound, else the one whose own bounds are all of the common ones.
  const uint64_t own = common & given;
  for (int i = 0; i < kNodes; ++i) {
    const bool is_least =
        own != 0 ? own == uint64_t{1} << i : (common >> i & 1) != 0 && (common & ~above[static_cast<size_t>(i)]) == 0;
    if (!is_least) continue;
    WeakType out = type_of(i);
    out.weak = (weak || i >= kDTypes) && out.dtype != DType::kBool;
    return out;
  }
  return std::nullopt;
}

WeakType inexact_of(WeakType type) {
  if (tensor::is_float(type.dtype) || tensor::is_complex(type.dtype)) return type;
  return {DType::kFloat32, type.weak};
}

}  // namespace meshd::numpy
