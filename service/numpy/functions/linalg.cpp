// Products of arrays and jnp.linalg. Factorisations are those of LAPACK, called as JAX calls it on CPU.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "service/numpy/functions/shared.h"
#include "service/numpy/trace/arithmetic.h"
#include "service/numpy/trace/indexing.h"
#include "service/ops/linalg/lapack_calls.h"

namespace meshd::numpy {
namespace {

// --- einsum

// An operand with a letter for each dimension.
struct Labelled {
  Array array;
  std::string labels;
};

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// A label that is there twice keeps the elements where both indices are equal.
Labelled without_repeats(Tracer& t, Labelled x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const size_t j = x.labels.find(x.labels[i], i + 1);
    if (j == std::string::npos) continue;
    if (x.array.dims()[i] != x.array.dims()[j])
      t.refuse(fmt::format("einsum: '{}' has sizes {} and {}", x.labels[i], x.array.dims()[i], x.array.dims()[j]));
    const tensor::TensorType type{DType::kInt32, x.array.dims()};
    const Array same = t.compare("EQ", t.iota(type, static_cast<int64_t>(i)), t.iota(type, static_cast<int64_t>(j)));
    x.array = sum_of(t, t.select(same, x.array, t.full_like(x.array, int64_t{0})), {static_cast<int64_t>(j)}, false);
    x.labels.erase(j, 1);
    --i;
  }
  return x;
}

// Sums over labels that nothing else has.
Labelled summed(Tracer& t, const Labelled& x, const std::string& kept) {
  std::vector<int64_t> axes;
  Labelled out;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (has(kept, x.labels[i])) {
      out.labels += x.labels[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  out.array = sum_of(t, x.array, axes, false);
  return out;
}

Labelled contracted(Tracer& t, Labelled a, Labelled b, const std::string& kept) {
  a = summed(t, a, kept + b.labels);
  b = summed(t, b, kept + a.labels);
  std::vector<int64_t> batch[2];
  std::vector<int64_t> contracting[2];
  Labelled out;
  std::string free;
  for (size_t i = 0; i < a.labels.size(); ++i) {
    const char label = a.labels[i];
    const size_t j = b.labels.find(label);
    if (j == std::string::npos) {
      free += label;
      continue;
    }
    if (a.array.dims()[i] != b.array.dims()[j])
      t.refuse(fmt::format("einsum: '{}' has sizes {} and {}", label, a.array.dims()[i], b.array.dims()[j]));
    auto& places = has(kept, label) ? batch : contracting;
    places[0].push_back(static_cast<int64_t>(i));
    places[1].push_back(static_cast<int64_t>(j));
    if (has(kept, label)) out.labels += label;
  }
  out.labels += free;
  for (const char label : b.labels) {
    if (!has(a.labels, label)) out.labels += label;
  }
  out.array = t.dot_general(a.array, b.array, contracting[0], contracting[1], batch[0], batch[1], a.array.dtype());
  return out;
}

Array ordered(Tracer& t, const Labelled& x, const std::string& labels) {
  std::vector<int64_t> order;
  for (const char label : labels) order.push_back(static_cast<int64_t>(x.labels.find(label)));
  return t.transpose(x.array, order);
}

// The labels of each operand and of the result; '...' becomes capital letters of its own, from behind.
struct Subscripts {
  std::vector<std::string> operands;
  std::string result;
};

Subscripts read_subscripts(Tracer& t, std::string text, const std::vector<Array>& operands) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const size_t arrow = text.find("->");
  Subscripts out;
  std::string inputs = text.substr(0, arrow);
  for (size_t comma = inputs.find(',');; comma = inputs.find(',')) {
    out.operands.push_back(inputs.substr(0, comma));
    if (comma == std::string::npos) break;
    inputs.erase(0, comma + 1);
  }
  if (out.operands.size() != operands.size())
    t.refuse(fmt::format("einsum has {} subscripts for {} arrays", out.operands.size(), operands.size()));
  static const std::string kDots = "\x01\x02\x03\x04\x05\x06\x07\x08";
  size_t most = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string& labels = out.operands[i];
    const auto rank = static_cast<size_t>(operands[i].rank());
    if (const size_t dots = labels.find("..."); dots != std::string::npos) {
      const size_t named = labels.size() - 3;
      if (named > rank || rank - named > kDots.size())
        t.refuse("einsum: '" + labels + "' does not fit " + describe(Value(operands[i])));
      labels.replace(dots, 3, kDots.substr(kDots.size() - (rank - named)));
      most = std::max(most, rank - named);
    }
    for (const char label : labels) {
      const bool is_letter =
          (label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z') || (label > 0 && label <= 8);
      if (!is_letter) t.refuse("einsum: subscripts are letters, got '" + std::string(1, label) + "'");
    }
    if (labels.size() != rank)
      t.refuse(
          fmt::format("einsum: '{}' names {} dimensions of {}", labels, labels.size(), describe(Value(operands[i]))));
  }
  const std::string shared = kDots.substr(kDots.size() - most);
  if (arrow != std::string::npos) {
    out.result = text.substr(arrow + 2);
    if (const size_t dots = out.result.find("..."); dots != std::string::npos) out.result.replace(dots, 3, shared);
  } else {
    std::map<char, int> count;
    for (const std::string& labels : out.operands) {
      for (const char label : labels) ++count[label];
    }
    out.result = shared;
    for (const auto& [label, times] : count) {
      if (times == 1 && !has(shared, label)) out.result += label;
    }
  }
  std::set<char> seen;
  for (const char label : out.result) {
    const bool known = std::any_of(out.operands.begin(), out.operands.end(),
                                   [&](const std::string& labels) { return has(labels, label); });
    if (!known) t.refuse("einsum: the result has '" + std::string(1, label) + "', which no array has");
    if (!seen.insert(label).second) t.refuse("einsum: the result has '" + std::string(1, label) + "' twice");
  }
  return out;
}

Array einsum(Tracer& t, const std::string& text, const std::vector<Value>& values) {
  if (values.empty()) t.refuse("einsum takes at least one array");
  std::vector<Array> arrays = t.promoted_arrays(values);
  const Subscripts subscripts = read_subscripts(t, text, arrays);
  // Dimensions of size one are broadcast with others of their label.
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < arrays.size(); ++i) {
    for (size_t d = 0; d < subscripts.operands[i].size(); ++d) {
      int64_t& size = sizes.try_emplace(subscripts.operands[i][d], 1).first->second;
      size = std::max(size, arrays[i].dims()[d]);
    }
  }
  std::vector<Labelled> left;
  for (size_t i = 0; i < arrays.size(); ++i) {
    tensor::Dims dims = arrays[i].dims();
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == 1) dims[d] = sizes[subscripts.operands[i][d]];
    }
    left.push_back(without_repeats(t, {t.broadcast_to(arrays[i], dims), subscripts.operands[i]}));
  }
  while (left.size() > 1) {
    std::string kept = subscripts.result;
    for (size_t i = 2; i < left.size(); ++i) kept += left[i].labels;
    left[1] = contracted(t, left[0], left[1], kept);
    left.erase(left.begin());
  }
  return ordered(t, summed(t, left[0], subscripts.result), subscripts.result);
}

// --- products

Value dot(Tracer& t, const Value& a, const Value& b) {
  const std::vector<Array> both = t.promoted_arrays({a, b});
  const Array& x = both[0];
  const Array& y = both[1];
  if (x.rank() == 0 || y.rank() == 0) return elementwise(t, "stablehlo.multiply", x, y);
  const int64_t inner = y.rank() == 1 ? 0 : y.rank() - 2;
  if (x.dims().back() != y.dims()[static_cast<size_t>(inner)])
    t.refuse(fmt::format("dot of shapes {} and {}: sizes {} and {} differ", shape_text(x.dims()), shape_text(y.dims()),
                         x.dims().back(), y.dims()[static_cast<size_t>(inner)]));
  return t.dot_general(x, y, {x.rank() - 1}, {inner}, {}, {}, x.dtype());
}

Value tensordot(Tracer& t, const Arguments& a) {
  const std::vector<Array> both = t.promoted_arrays({a["a"], a["b"]});
  std::vector<int64_t> first;
  std::vector<int64_t> second;
  if (a["axes"].is<int64_t>()) {
    const int64_t count = t.to_int(a["axes"], "axes");
    if (count < 0 || count > std::min(both[0].rank(), both[1].rank()))
      t.refuse(fmt::format("tensordot over {} axes of {} and {}", count, describe(Value(both[0])),
                           describe(Value(both[1]))));
    for (int64_t i = 0; i < count; ++i) {
      first.push_back(both[0].rank() - count + i);
      second.push_back(i);
    }
  } else {
    const std::vector<Value> axes = t.to_items(a["axes"], "axes");
    if (axes.size() != 2) t.refuse("the axes of tensordot are a number or a pair");
    for (const int64_t axis : t.to_ints(axes[0], "axes")) first.push_back(t.axis_of(axis, both[0].rank()));
    for (const int64_t axis : t.to_ints(axes[1], "axes")) second.push_back(t.axis_of(axis, both[1].rank()));
  }
  bool fits = first.size() == second.size();
  for (size_t i = 0; fits && i < first.size(); ++i)
    fits = both[0].dims()[static_cast<size_t>(first[i])] == both[1].dims()[static_cast<size_t>(second[i])];
  if (!fits)
    t.refuse("the axes of tensordot have different sizes in " + describe(Value(both[0])) + " and " +
             describe(Value(both[1])));
  return t.dot_general(both[0], both[1], first, second, {}, {}, both[0].dtype());
}

Array flat(Tracer& t, const Array& x) { return t.reshape(x, {tensor::element_count(x.type)}); }
Array conjugate(Tracer& t, const Array& x) {
  return tensor::is_complex(x.dtype()) ? t.complex(t.real(x), t.negate(t.imag(x))) : x;
}

Value kron(Tracer& t, const Arguments& a) {
  std::vector<Array> both = t.promoted_arrays({a["a"], a["b"]});
  const int64_t rank = std::max(both[0].rank(), both[1].rank());
  tensor::Dims out;
  tensor::Dims wide[2];
  for (size_t i = 0; i < 2; ++i) {
    tensor::Dims dims = both[i].dims();
    while (static_cast<int64_t>(dims.size()) < rank) dims.insert(dims.begin(), 1);
    for (const int64_t size : dims)
      wide[i].insert(wide[i].end(),
                     i == 0 ? std::initializer_list<int64_t>{size, 1} : std::initializer_list<int64_t>{1, size});
  }
  for (size_t d = 0; d < wide[0].size(); d += 2) out.push_back(wide[0][d] * wide[1][d + 1]);
  return t.reshape(elementwise(t, "stablehlo.multiply", t.reshape(both[0], wide[0]), t.reshape(both[1], wide[1])), out);
}

Value cross(Tracer& t, const Arguments& a) {
  const std::vector<Array> both = t.broadcast_arrays({a["a"], a["b"]});
  const int64_t last = both[0].rank() - 1;
  if (last < 0 || both[0].dims().back() != 3)
    t.unsupported("cross of vectors that have not 3 elements, in the last dimension");
  const auto part = [&](const Array& x, int64_t i) { return t.slice_dim(x, last, i, i + 1); };
  std::vector<Array> parts;
  for (int64_t i = 0; i < 3; ++i) {
    const int64_t j = (i + 1) % 3;
    const int64_t k = (i + 2) % 3;
    parts.push_back(
        t.subtract(t.multiply(part(both[0], j), part(both[1], k)), t.multiply(part(both[0], k), part(both[1], j))));
  }
  return t.concatenate(parts, last);
}

// --- factorisations

Array matrix_argument(Tracer& t, const Value& value, const char* what, bool square) {
  const Array x = t.inexact(value);
  if (x.rank() < 2) t.refuse(std::string(what) + " takes matrices, got " + describe(value));
  if (square && x.dims().back() != x.dims()[static_cast<size_t>(x.rank() - 2)])
    t.refuse(std::string(what) + " takes square matrices, got " + describe(value));
  if (tensor::row(tensor::part_of(x.dtype())).bits < 32)
    t.unsupported(std::string(what) + " of " + std::string(tensor::name(x.dtype())));
  return x;
}

Array transposed(Tracer& t, const Array& x) { return *t.attribute(Value(x), "mT").array(); }

tensor::Dims batch_of(const Array& x) { return {x.dims().begin(), x.dims().end() - 2}; }
tensor::Dims with(tensor::Dims batch, std::initializer_list<int64_t> more) {
  batch.insert(batch.end(), more);
  return batch;
}

std::vector<Array> lapack(Tracer& t, const char* routine, const char* complex_routine,
                          const std::vector<Array>& operands, ir::AttributeList config,
                          const std::vector<tensor::TensorType>& results) {
  const DType dtype = operands[0].dtype();
  const char letter = dtype == DType::kFloat32     ? 's'
                      : dtype == DType::kFloat64   ? 'd'
                      : dtype == DType::kComplex64 ? 'c'
                                                   : 'z';
  const std::string stem = tensor::is_complex(dtype) ? complex_routine : routine;
  const int64_t batch_rank = operands[0].rank() - 2;
  std::vector<ir::Type> operand_types, result_types;
  for (const Array& operand : operands) operand_types.push_back(ir::Type::of({operand.dtype(), operand.dims()}));
  for (const tensor::TensorType& result : results) result_types.push_back(ir::Type::of(result));
  return t.ops("stablehlo.custom_call", operands,
               {{"call_target_name", {ir::StringAttr{"lapack_" + std::string(1, letter) + stem + "_ffi"}}},
                {"mhlo.backend_config", {ir::DictAttr{"", std::move(config)}}},
                {"operand_layouts", ops::lapack_layouts(operand_types, batch_rank)},
                {"result_layouts", ops::lapack_layouts(result_types, batch_rank)}},
               results, {});
}

ir::NamedAttribute byte_option(const char* name, char value) { return {name, {ir::IntegerAttr{value, "ui8"}}}; }

Array symmetrised(Tracer& t, const Array& x) {
  const Array both = t.add(x, conjugate(t, transposed(t, x)));
  return t.divide(both, t.with_number(both, int64_t{2}));
}

// Where LAPACK says that it failed, NaN.
Array checked(Tracer& t, const Array& x, const Array& info) {
  const Array good = t.compare("EQ", info, t.full_like(info, int64_t{0}));
  std::vector<int64_t> into;
  for (int64_t i = 0; i < info.rank(); ++i) into.push_back(i);
  return t.select(t.broadcast_in_dim(good, x.dims(), into), x,
                  t.full_like(x, std::numeric_limits<double>::quiet_NaN()));
}

Value triangle(Tracer& t, const char* name, const Array& x) {
  return t.call(*t.globals().find(name), std::vector<Value>{x});
}

Value cholesky(Tracer& t, const Arguments& a) {
  const Array x = matrix_argument(t, a["a"], "cholesky", true);
  const std::vector<Array> made = lapack(t, "potrf", "potrf", {symmetrised(t, x)}, {byte_option("uplo", 'L')},
                                         {x.type, {DType::kInt32, batch_of(x)}});
  const Value lower = triangle(t, "jnp.tril", checked(t, made[0], made[1]));
  return t.to_bool(a["upper"], "upper") ? Value(conjugate(t, transposed(t, *lower.array()))) : lower;
}

struct Factors {
  Array lu, pivots;  ///< pivots from 0
};

Factors lu_of(Tracer& t, const Array& x) {
  const int64_t n = std::min(x.dims().back(), x.dims()[static_cast<size_t>(x.rank() - 2)]);
  const std::vector<Array> made = lapack(
      t, "getrf", "getrf", {x}, {}, {x.type, {DType::kInt32, with(batch_of(x), {n})}, {DType::kInt32, batch_of(x)}});
  const Array good = t.compare("GE", made[2], t.full_like(made[2], int64_t{0}));
  std::vector<int64_t> into;
  for (int64_t i = 0; i < good.rank(); ++i) into.push_back(i);
  const Array lu = t.select(t.broadcast_in_dim(good, x.dims(), into), made[0],
                            t.full_like(made[0], std::numeric_limits<double>::quiet_NaN()));
  return {lu, t.subtract(made[1], t.full_like(made[1], int64_t{1}))};
}

// The order of rows that exchanges i <-> pivots[i] give, one after the other.
Array permutation_of(Tracer& t, const Array& pivots, int64_t rows) {
  const int64_t last = pivots.rank() - 1;
  tensor::Dims dims = pivots.dims();
  dims.back() = rows;
  const Array places = t.iota({DType::kInt32, dims}, last);
  std::vector<int64_t> into;
  for (int64_t i = 0; i < last; ++i) into.push_back(i);
  const auto spread = [&](const Array& x) { return t.broadcast_in_dim(x, dims, into); };
  return *t.counted_loop(int64_t{0}, pivots.dims().back(), int64_t{1}, {places}, {"the permutation"},
                         [&](const Value& index, const std::vector<Value>& now) {
                           const Array& order = *now[0].array();
                           const Value at = tuple_of({Ellipsis{}, index});
                           const Array target = spread(index_array(t, pivots, at));
                           const Array here =
                               t.compare("EQ", places, t.broadcast_to(t.convert(t.array(index), DType::kInt32), dims));
                           const Array there = t.compare("EQ", places, target);
                           const Array zero = t.full_like(order, int64_t{0});
                           const Array mine = spread(sum_of(t, t.select(here, order, zero), {last}, false));
                           const Array other = spread(sum_of(t, t.select(there, order, zero), {last}, false));
                           return std::vector<Value>{t.select(here, other, t.select(there, mine, order))};
                         })[0]
              .array();
}

Array solve_triangle(Tracer& t, const Array& a, const Array& b, bool lower, bool unit) {
  return t.op("stablehlo.triangular_solve", {a, b},
              {{"left_side", {ir::IntegerAttr{1, "i1"}}},
               {"lower", {ir::IntegerAttr{lower ? 1 : 0, "i1"}}},
               {"unit_diagonal", {ir::IntegerAttr{unit ? 1 : 0, "i1"}}},
               {"transpose_a", {ir::EnumAttr{"transpose", "NO_TRANSPOSE"}}}});
}

Array solve(Tracer& t, const Array& a, const Array& b) {
  const Factors factors = lu_of(t, a);
  const int64_t rows = a.dims().back();
  const Array order = permutation_of(t, factors.pivots, rows);
  const Value wide = t.broadcast_to(t.expand_dims(order, {order.rank()}), b.dims());
  const Array permuted =
      *t.call(*t.globals().find("jnp.take_along_axis"), std::vector<Value>{b, wide, b.rank() - 2}).array();
  return solve_triangle(t, factors.lu, solve_triangle(t, factors.lu, permuted, true, true), false, false);
}

Value solve_row(Tracer& t, const Arguments& given) {
  std::vector<Array> both = {matrix_argument(t, given["a"], "solve", true), t.inexact(given["b"])};
  const auto joint = promoted(WeakType{both[0].dtype(), false}, WeakType{both[1].dtype(), false});
  if (!joint) t.refuse("the types have no common type");
  for (Array& each : both) each = t.convert(each, joint->dtype);
  const bool is_vector = both[1].rank() == 1;
  if (is_vector) both[1] = t.reshape(both[1], {both[1].dims()[0], 1});
  const Array& a = both[0];
  if (both[1].rank() < 2 || both[1].dims()[static_cast<size_t>(both[1].rank() - 2)] != a.dims().back())
    t.refuse("solve of shapes " + shape_text(a.dims()) + " and " + shape_text(t.dims_of(given["b"])) + ": rows differ");
  const tensor::Dims batch = t.broadcast_dims({batch_of(a), batch_of(both[1])});
  const Array x = solve(t, t.broadcast_to(a, with(batch, {a.dims().back(), a.dims().back()})),
                        t.broadcast_to(both[1], with(batch, {a.dims().back(), both[1].dims().back()})));
  if (!is_vector) return x;
  tensor::Dims dims = x.dims();
  dims.pop_back();
  return t.reshape(x, dims);
}

Value inverse(Tracer& t, const Arguments& given) {
  const Array a = matrix_argument(t, given["a"], "inv", true);
  const Array one =
      *t.call(*t.globals().find("jnp.eye"), CallArguments{{a.dims().back()}, {{"dtype", a.dtype()}}}).array();
  return solve(t, a, t.broadcast_to(one, a.dims()));
}

// The diagonal of LU, and -1 or 1 for the exchanges.
std::pair<Array, Array> diagonal_and_sign(Tracer& t, const Array& a) {
  const Factors factors = lu_of(t, a);
  const Array diagonal = *t.call(*t.globals().find("jnp.diagonal"),
                                 CallArguments{{factors.lu}, {{"axis1", int64_t{-2}}, {"axis2", int64_t{-1}}}})
                              .array();
  const Array places = t.iota(factors.pivots.type, factors.pivots.rank() - 1);
  const Array moved = t.convert(t.compare("NE", factors.pivots, places), DType::kInt32);
  const Array parity =
      t.logical_and(sum_of(t, moved, {moved.rank() - 1}, false), t.full({DType::kInt32, batch_of(a)}, int64_t{1}));
  const Array sign = t.subtract(t.full_like(parity, int64_t{1}), t.multiply(parity, t.full_like(parity, int64_t{2})));
  return {diagonal, t.convert(sign, a.dtype())};
}

Value determinant(Tracer& t, const Arguments& given) {
  const auto [diagonal, sign] = diagonal_and_sign(t, matrix_argument(t, given["a"], "det", true));
  return t.multiply(sign, t.reduce("stablehlo.multiply", diagonal, {diagonal.rank() - 1}, int64_t{1}));
}

Value log_determinant(Tracer& t, const Arguments& given) {
  const auto [diagonal, sign] = diagonal_and_sign(t, matrix_argument(t, given["a"], "slogdet", true));
  if (tensor::is_complex(diagonal.dtype())) t.unsupported("slogdet of complex matrices");
  const std::vector<int64_t> last{diagonal.rank() - 1};
  const Array signs = t.reduce("stablehlo.multiply", t.op("stablehlo.sign", {diagonal}), last, int64_t{1});
  return tuple_of({t.multiply(sign, signs), sum_of(t, t.op("stablehlo.log", {abs_of(t, diagonal)}), last, false)});
}

Value qr(Tracer& t, const Arguments& given) {
  const Array a = matrix_argument(t, given["a"], "qr", false);
  const std::string mode = t.to_text(given["mode"], "mode");
  if (mode != "reduced" && mode != "r") t.unsupported("qr with mode '" + mode + "'");
  const int64_t m = a.dims()[static_cast<size_t>(a.rank() - 2)];
  const int64_t n = a.dims().back();
  const int64_t k = std::min(m, n);
  const std::vector<Array> made = lapack(t, "geqrf", "geqrf", {a}, {}, {a.type, {a.dtype(), with(batch_of(a), {k})}});
  const Value r = triangle(t, "jnp.triu", t.slice_dim(made[0], a.rank() - 2, 0, k));
  if (mode == "r") return r;
  const Array reflectors = t.slice_dim(made[0], a.rank() - 1, 0, k);
  const Array q = lapack(t, "orgqr", "ungqr", {reflectors, made[1]}, {}, {reflectors.type})[0];
  return tuple_of({q, r});
}

std::vector<Array> eigh(Tracer& t, const Value& value, bool vectors) {
  const Array a = matrix_argument(t, value, "eigh", true);
  const std::vector<Array> made = lapack(
      t, "syevd", "heevd", {symmetrised(t, a)}, {byte_option("mode", vectors ? 'V' : 'N'), byte_option("uplo", 'L')},
      {a.type, {tensor::part_of(a.dtype()), with(batch_of(a), {a.dims().back()})}, {DType::kInt32, batch_of(a)}});
  return {checked(t, made[1], made[2]), checked(t, made[0], made[2])};
}

Value svd(Tracer& t, const Arguments& given) {
  const Array a = matrix_argument(t, given["a"], "svd", false);
  const bool full = t.to_bool(given["full_matrices"], "full_matrices");
  const bool vectors = t.to_bool(given["compute_uv"], "compute_uv");
  const int64_t m = a.dims()[static_cast<size_t>(a.rank() - 2)];
  const int64_t n = a.dims().back();
  const int64_t k = std::min(m, n);
  const tensor::Dims batch = batch_of(a);
  const std::vector<Array> made = lapack(t, "gesdd", "gesdd", {a},
                                         {byte_option("mode", !vectors ? 'N'
                                                              : full   ? 'A'
                                                                       : 'S')},
                                         {a.type,
                                          {tensor::part_of(a.dtype()), with(batch, {k})},
                                          {a.dtype(), with(batch, {m, full ? m : k})},
                                          {a.dtype(), with(batch, {full ? n : k, n})},
                                          {DType::kInt32, batch}});
  const Array s = checked(t, made[1], made[4]);
  if (!vectors) return s;
  return tuple_of({checked(t, made[2], made[4]), s, checked(t, made[3], made[4])});
}

// --- norms and powers

Array power_sum(Tracer& t, const Array& x, double p, const std::vector<int64_t>& axes, bool keep) {
  const Array sum = sum_of(t, t.op("stablehlo.power", {x, t.with_number(x, p)}), axes, keep);
  return t.op("stablehlo.power", {sum, t.with_number(sum, 1 / p)});
}

Value norm(Tracer& t, const Arguments& a) {
  Array x = t.inexact(a["x"]);
  const bool keep = t.to_bool(a["keepdims"], "keepdims");
  const Value& order = a["ord"];
  const auto frobenius = [&](const std::vector<int64_t>& axes) {
    const Array squares = tensor::is_complex(x.dtype())
                              ? t.add(t.multiply(t.real(x), t.real(x)), t.multiply(t.imag(x), t.imag(x)))
                              : t.multiply(x, x);
    return t.op("stablehlo.sqrt", {sum_of(t, squares, axes, keep)});
  };
  const auto* name = order.as<std::string>();
  std::vector<int64_t> axes = t.to_axes(a["axis"], x.rank());
  if (order.is_none() || (name != nullptr && *name == "fro" && axes.size() == 2)) return frobenius(axes);
  if (name != nullptr) t.unsupported("norm with ord '" + *name + "'");
  const double p = t.to_float(order, "ord");
  if (axes.size() == 1) {
    if (p == 2) return frobenius(axes);
    const Array size = abs_of(t, x);
    if (std::isinf(p)) return p > 0 ? max_of(t, size, axes, keep) : min_of(t, size, axes, keep);
    if (p == 0) return sum_of(t, t.convert(t.convert(x, DType::kBool), size.dtype()), axes, keep);
    if (p == 1) return sum_of(t, size, axes, keep);
    return power_sum(t, size, p, axes, keep);
  }
  if (axes.size() == 2 && (std::abs(p) == 1 || std::isinf(p))) {
    if (!a["axis"].is_none())
      axes = {t.axis_of(t.to_ints(a["axis"], "axis")[0], x.rank()),
              t.axis_of(t.to_ints(a["axis"], "axis")[1], x.rank())};
    const bool columns = std::abs(p) == 1;
    const Array sums = sum_of(t, abs_of(t, x), {columns ? axes[0] : axes[1]}, true);
    const std::vector<int64_t> rest{columns ? axes[1] : axes[0]};
    const Array kept = p > 0 ? max_of(t, sums, rest, true) : min_of(t, sums, rest, true);
    return keep ? kept
                : t.call(*t.globals().find("jnp.squeeze"), std::vector<Value>{kept, tuple_of({axes[0], axes[1]})});
  }
  t.unsupported(fmt::format("norm with this ord over {} axes", axes.size()));
}

Value matrix_power(Tracer& t, const Arguments& given) {
  Value a = t.array(given["a"]);
  int64_t n = t.to_int(given["n"], "n");
  const tensor::Dims dims = a.array()->dims();
  if (dims.size() < 2 || dims.back() != dims[dims.size() - 2])
    t.refuse("matrix_power takes square matrices, got " + describe(a));
  if (n == 0) {
    const Value one =
        t.call(*t.globals().find("jnp.eye"), CallArguments{{dims.back()}, {{"dtype", a.array()->dtype()}}});
    return t.broadcast_to(*one.array(), dims);
  }
  if (n < 0) {
    a = t.call(*t.globals().find("jnp.linalg.inv"), std::vector<Value>{a});
    n = -n;
  }
  std::optional<Value> out;
  for (Value square = a; n > 0; n >>= 1) {
    if ((n & 1) != 0) out = out ? Value(matmul(t, *out, square)) : square;
    if (n > 1) square = matmul(t, square, square);
  }
  return *out;
}

FunctionRow product_row(std::string path, std::function<Value(Tracer&, const Value&, const Value&)> run) {
  return {std::move(path), "a, b",
          [run = std::move(run)](Tracer& t, const Arguments& a) { return run(t, a["a"], a["b"]); }};
}

}  // namespace

std::vector<FunctionRow> linalg_functions() {
  return {
      product_row("jnp.matmul", [](Tracer& t, const Value& a, const Value& b) -> Value { return matmul(t, a, b); }),
      product_row("jnp.dot", dot),
      product_row("jnp.vdot",
                  [](Tracer& t, const Value& a, const Value& b) {
                    const std::vector<Array> both = t.promoted_arrays({a, b});
                    return dot(t, flat(t, conjugate(t, both[0])), flat(t, both[1]));
                  }),
      product_row("jnp.inner",
                  [](Tracer& t, const Value& a, const Value& b) -> Value {
                    const std::vector<Array> both = t.promoted_arrays({a, b});
                    if (both[0].rank() == 0 || both[1].rank() == 0) return elementwise(t, "stablehlo.multiply", a, b);
                    if (both[0].dims().back() != both[1].dims().back())
                      t.refuse("inner of shapes " + shape_text(both[0].dims()) + " and " + shape_text(both[1].dims()) +
                               ": last dimensions differ");
                    return t.dot_general(both[0], both[1], {both[0].rank() - 1}, {both[1].rank() - 1}, {}, {},
                                         both[0].dtype());
                  }),
      product_row("jnp.outer",
                  [](Tracer& t, const Value& a, const Value& b) -> Value {
                    const std::vector<Array> both = t.promoted_arrays({a, b});
                    const Array x = flat(t, both[0]);
                    const Array y = flat(t, both[1]);
                    return elementwise(t, "stablehlo.multiply", t.reshape(x, {x.dims()[0], 1}), y);
                  }),
      {"jnp.tensordot", "a, b, axes=2", tensordot},
      // How the product is ordered and how exact it may be are hints; it is in the type of its operands and exact.
      {"jnp.einsum", "subscripts, *operands, optimize=True, precision=None",
       [](Tracer& t, const Arguments& a) -> Value {
         return einsum(t, t.to_text(a["subscripts"], "the subscripts"), a.all("operands"));
       }},
      {"jnp.kron", "a, b", kron},
      {"jnp.cross", "a, b", cross},
      {"jnp.linalg.norm", "x, ord=None, axis=None, keepdims=False", norm},
      {"jnp.linalg.cholesky", "a, upper=False", cholesky},
      {"jnp.linalg.solve", "a, b", solve_row},
      {"jnp.linalg.inv", "a", inverse},
      {"jnp.linalg._det_by_lu", "a", determinant},
      {"jnp.linalg.slogdet", "a", log_determinant},
      {"jnp.linalg.qr", "a, mode='reduced'", qr},
      {"jnp.linalg.eigh", "a",
       [](Tracer& t, const Arguments& a) {
         const std::vector<Array> made = eigh(t, a["a"], true);
         return tuple_of({made[0], made[1]});
       }},
      {"jnp.linalg.eigvalsh", "a", [](Tracer& t, const Arguments& a) -> Value { return eigh(t, a["a"], false)[0]; }},
      {"jnp.linalg.svd", "a, full_matrices=True, compute_uv=True", svd},
      {"jnp.linalg.matrix_power", "a, n", matrix_power},
  };
}

}  // namespace meshd::numpy
