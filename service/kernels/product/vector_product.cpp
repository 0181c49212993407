#include "service/kernels/product/vector_product.h"

#include <algorithm>

#include "service/kernels/cpu.h"
#include "service/kernels/product/lanes.h"

namespace meshd::kernels {
namespace {

using tensor::DType;

// Terms of a dot product that are added in a vector's lanes before they become one number. Their sums are added in
// double.
constexpr int64_t kDotTerms = 4096;
constexpr int64_t kShortTerms = 256;            // of a row: what follows a total takes longer than its terms
constexpr int64_t kDotTermsAtOnce = 16 * 1024;  // of a row, before a checkpoint is passed
constexpr int64_t kDotRows = 4;                 // at once: the vector is read once for them
constexpr int64_t kWeightedTerms = 1024;        // of a part of the sum of weighted rows
constexpr int64_t kWeightedAtOnce = 8;          // rows: the sums are read and written once for them
constexpr int64_t kWeightedBytes = 4096;        // of sums: they stay in the first level cache while rows pass by

template <typename T>
using Long = std::conditional_t<std::is_same_v<T, float>, double, T>;

// Terms of some rows, a vector at least and kDotTerms at most, in the lanes of one vector for each row. Even and odd
// vectors are added apart, so that sums need not wait for each other; what is left of a row is added as its last
// vector, without the lanes that were there before.
template <class V, int kRows, typename T = typename V::Element>
[[gnu::always_inline]] inline void dot_lanes(const T* rows, int64_t pitch, const T* x, int64_t terms,
                                             typename V::Vector* sums) {
  using Vector = typename V::Vector;
  Vector even[kRows];
  Vector odd[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) even[i] = odd[i] = Vector{};
  int64_t p = 0;
  for (; p + 2 * V::kCount <= terms; p += 2 * V::kCount) {
    const Vector first = V::at(x + p);
    const Vector second = V::at(x + p + V::kCount);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      even[i] += V::at(rows + i * pitch + p) * first;
      odd[i] += V::at(rows + i * pitch + p + V::kCount) * second;
    }
  }
  if (p + V::kCount <= terms) {
    const Vector first = V::at(x + p);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) even[i] += V::at(rows + i * pitch + p) * first;
    p += V::kCount;
  }
  if (p < terms) {
    const Vector last = V::at(x + terms - V::kCount);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      Vector product = V::at(rows + i * pitch + terms - V::kCount) * last;
      V::keep_last(product, terms - p);
      odd[i] += product;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sums[i] = even[i] + odd[i];
}

// At most kDotTerms terms of some rows.
template <class V, int kRows, typename T = typename V::Element>
[[gnu::always_inline]] inline void dot_terms(const T* rows, int64_t pitch, const T* x, int64_t terms,
                                             T (&sums)[kRows]) {
  if (terms < V::kCount) {
    for (int i = 0; i < kRows; ++i) {
      sums[i] = T{};
      for (int64_t p = 0; p < terms; ++p) sums[i] = V::add_product(sums[i], rows[i * pitch + p], x[p]);
    }
    return;
  }
  typename V::Vector lanes[kRows];
  dot_lanes<V, kRows>(rows, pitch, x, terms, lanes);
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) sums[i] = V::total(lanes[i]);
}

// As many rows as a vector has lanes, of fewer terms than that: a lane for each row, term by term.
template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void dot_few_terms(const T* rows, int64_t pitch, const T* x, int64_t terms, T* y) {
  typename V::Vector sums{};
  for (int64_t p = 0; p < terms; ++p) {
    typename V::Vector values{};
#pragma GCC unroll 16
    for (int64_t i = 0; i < V::kCount; ++i) values[i] = rows[i * pitch + p];
    sums += values * x[p];
  }
  V::at(y) = sums;
}

// As many rows as a vector has lanes, kDotRows at a time: their totals are made together.
template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void dot_short_rows(const T* rows, int64_t pitch, const T* x, int64_t terms, T* y) {
  typename V::Vector lanes[V::kCount];
#pragma GCC unroll 4
  for (int64_t i = 0; i < V::kCount; i += kDotRows)
    dot_lanes<V, kDotRows>(rows + i * pitch, pitch, x, terms, lanes + i);
  V::totals(lanes, V::at(y));
}

template <class V, int kRows, typename T = typename V::Element>
[[gnu::always_inline]] inline void dot_rows(const T* rows, int64_t pitch, const T* x, int64_t terms, T* y) {
  T sums[kRows];
  dot_terms<V, kRows>(rows, pitch, x, std::min(kDotTerms, terms), sums);
  if (terms > kDotTerms) {
    Long<T> totals[kRows];
    for (int i = 0; i < kRows; ++i) totals[i] = sums[i];
    for (int64_t p = kDotTerms; p < terms; p += kDotTerms) {
      dot_terms<V, kRows>(rows + p, pitch, x + p, std::min(kDotTerms, terms - p), sums);
      for (int i = 0; i < kRows; ++i) totals[i] += sums[i];
    }
    for (int i = 0; i < kRows; ++i) sums[i] = static_cast<T>(totals[i]);
  }
  for (int i = 0; i < kRows; ++i) y[i] = sums[i];
}

template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void dots(const VectorShape& shape, const T* matrix, const T* x, T* y,
                                        core::Checkpoint* checkpoint) {
  const int64_t rows_at_once = std::max<int64_t>(1, kDotTermsAtOnce / std::max<int64_t>(1, shape.terms)) * kDotRows;
  int64_t row = 0;
  while (row + kDotRows <= shape.results) {
    const int64_t end = std::min(row + rows_at_once, shape.results);
    for (; shape.terms < V::kCount && row + V::kCount <= end; row += V::kCount)
      dot_few_terms<V>(matrix + row * shape.pitch, shape.pitch, x, shape.terms, y + row);
    if constexpr (V::kCount % kDotRows == 0) {
      const bool is_short = shape.terms >= V::kCount && shape.terms <= kShortTerms;
      for (; is_short && row + V::kCount <= end; row += V::kCount)
        dot_short_rows<V>(matrix + row * shape.pitch, shape.pitch, x, shape.terms, y + row);
    }
    for (; row + kDotRows <= end; row += kDotRows)
      dot_rows<V, kDotRows>(matrix + row * shape.pitch, shape.pitch, x, shape.terms, y + row);
    core::pass(checkpoint);
  }
  for (; row < shape.results; ++row) dot_rows<V, 1>(matrix + row * shape.pitch, shape.pitch, x, shape.terms, y + row);
}

// Some rows are added up, and then to the sums.
template <class V, int kRows, typename T = typename V::Element>
[[gnu::always_inline]] inline void add_rows(const T* rows, int64_t pitch, const T* x, int64_t step, T* sums,
                                            int64_t columns) {
  using Vector = typename V::Vector;
  T factors[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) factors[i] = x[i * step];
  int64_t j = 0;
  for (; j + V::kCount <= columns; j += V::kCount) {
    Vector sum{};
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum += factors[i] * V::at(rows + i * pitch + j);
    V::at(sums + j) += sum;
  }
  for (; j < columns; ++j) {
    T sum{};
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sum = V::add_product(sum, factors[i], rows[i * pitch + j]);
    sums[j] += sum;
  }
}

template <class V, typename T = typename V::Element>
[[gnu::always_inline]] inline void weighted_rows(const VectorShape& shape, const T* matrix, const T* x, T* y,
                                                 core::Checkpoint* checkpoint) {
  constexpr int64_t kColumns = kWeightedBytes / static_cast<int64_t>(sizeof(T));
  alignas(64) T sums[kColumns];
  for (int64_t column = 0; column < shape.results; column += kColumns) {
    const int64_t columns = std::min(kColumns, shape.results - column);
    for (int64_t part = 0; part < shape.terms; part += kWeightedTerms) {
      const int64_t end = std::min(part + kWeightedTerms, shape.terms);
      const T* rows = matrix + column + part * shape.pitch;
      std::fill(sums, sums + columns, T{});
      int64_t p = part;
      for (; p + kWeightedAtOnce <= end; p += kWeightedAtOnce, rows += kWeightedAtOnce * shape.pitch)
        add_rows<V, kWeightedAtOnce>(rows, shape.pitch, x + p * shape.step, shape.step, sums, columns);
      for (; p < end; ++p, rows += shape.pitch)
        add_rows<V, 1>(rows, shape.pitch, x + p * shape.step, shape.step, sums, columns);
      T* const to = y + column;
      for (int64_t j = 0; j < columns; ++j) to[j] = part == 0 ? sums[j] : to[j] + sums[j];
      core::pass(checkpoint);
    }
  }
}

template <class V, VectorOrder kOrder>
[[gnu::always_inline]] inline void multiply(const VectorShape& shape, const std::byte* matrix, const std::byte* vector,
                                            std::byte* result, core::Checkpoint* checkpoint) {
  using T = typename V::Element;
  const T* const from = reinterpret_cast<const T*>(matrix);
  const T* const x = reinterpret_cast<const T*>(vector);
  T* const to = reinterpret_cast<T*>(result);
  if constexpr (kOrder == VectorOrder::kDots) {
    dots<V>(shape, from, x, to, checkpoint);
  } else {
    weighted_rows<V>(shape, from, x, to, checkpoint);
  }
}

template <typename T, VectorOrder kOrder>
void multiply_base(const VectorShape& shape, const std::byte* matrix, const std::byte* vector, std::byte* result,
                   core::Checkpoint* checkpoint) {
  multiply<Lanes<T, 16>, kOrder>(shape, matrix, vector, result, checkpoint);
}
#if defined(__x86_64__)
template <typename T, VectorOrder kOrder>
[[gnu::target("arch=x86-64-v3")]] void multiply_v3(const VectorShape& shape, const std::byte* matrix,
                                                   const std::byte* vector, std::byte* result,
                                                   core::Checkpoint* checkpoint) {
  multiply<Lanes<T, 32>, kOrder>(shape, matrix, vector, result, checkpoint);
}
template <typename T, VectorOrder kOrder>
[[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] void multiply_v4(const VectorShape& shape,
                                                                           const std::byte* matrix,
                                                                           const std::byte* vector, std::byte* result,
                                                                           core::Checkpoint* checkpoint) {
  multiply<Lanes<T, 64>, kOrder>(shape, matrix, vector, result, checkpoint);
}
#endif

template <typename T, VectorOrder kOrder>
VectorLoop for_this_cpu() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return multiply_v4<T, kOrder>;
  if (cpu_level() == CpuLevel::kV3) return multiply_v3<T, kOrder>;
#endif
  return multiply_base<T, kOrder>;
}

template <VectorOrder kOrder>
VectorLoop loop_of(DType dtype) {
  if (dtype == DType::kFloat32) return for_this_cpu<float, kOrder>();
  return dtype == DType::kFloat64 ? for_this_cpu<double, kOrder>() : nullptr;
}

}  // namespace

VectorLoop vector_loop(DType dtype, VectorOrder order) {
  return order == VectorOrder::kDots ? loop_of<VectorOrder::kDots>(dtype) : loop_of<VectorOrder::kWeightedRows>(dtype);
}

std::optional<VectorForm> vector_form(const GemmSpec& spec) {
  if (spec.m != 1 && spec.n != 1) return std::nullopt;
  VectorForm form;
  form.matrix_is_b = spec.n != 1;
  // As a matrix of `results` rows: that of c = b' a' where the matrix is b.
  const MatrixLayout by_results = form.matrix_is_b ? MatrixLayout{spec.b.column_stride, spec.b.row_stride} : spec.a;
  form.shape.results = form.matrix_is_b ? spec.n : spec.m;
  form.shape.terms = spec.k;
  form.shape.step = spec.k == 1 ? 1 : form.matrix_is_b ? spec.a.column_stride : spec.b.row_stride;
  if ((by_results.column_stride == 1 || spec.k == 1) && form.shape.step == 1) {
    form.order = VectorOrder::kDots;
    form.shape.pitch = by_results.row_stride;
    // Sums of one term have no use for lanes across terms, where results can have them.
    if (spec.k > 1 || form.shape.results == 1 || by_results.row_stride != 1) return form;
  }
  if (by_results.row_stride != 1 && form.shape.results != 1) return std::nullopt;
  form.order = VectorOrder::kWeightedRows;
  form.shape.pitch = by_results.column_stride;
  return form;
}

}  // namespace meshd::kernels
