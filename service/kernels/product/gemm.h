// Matrix product (GEMM): row-major c (m x n) = a (m x k) times b (k x n), by what is fastest for the element type:
// loops of our own for floats of up to 32 bits and for integers, for bf16 and int8 by AMX, too; oneDNN for bf16 and
// int8 where the processor has other instructions for them, OpenBLAS for f64, complex numbers and matrix times vector.
// A product runs on the calling thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "service/core/checkpoint.h"
#include "service/kernels/product/packed_operand.h"
#include "service/tensor/dtype.h"

namespace meshd::kernels {

/// Tells the libraries to use the calling thread only. Products and convolutions call it each time that they are made
/// or run, because OpenMP keeps its thread count for each thread. Cheap; any thread.
void prepare_thread();

/// Layout of a matrix whose element (i, j) is at i * row_stride + j * column_stride. Libraries take matrices with one
/// stride of 1 and the other at least as large as the dimension that it skips.
struct MatrixLayout {
  int64_t row_stride = 1;
  int64_t column_stride = 1;
};

/// What is multiplied. Strides and sizes in elements.
struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  tensor::DType in = tensor::DType::kFloat32;   ///< of a and b
  tensor::DType out = tensor::DType::kFloat32;  ///< of c: equal to `in`, f32 for bf16 and f16, or 32 bits for integers
  MatrixLayout a;
  MatrixLayout b;
  int64_t c_stride = 0;  ///< between rows of c, where c is a block of a wider matrix; 0: n
  bool adds = false;     ///< c += a b, where gemm_adds() is true
  [[nodiscard]] int64_t c_row_stride() const { return c_stride > 0 ? c_stride : n; }
};

/// True when products of these types are made without converting all of an operand first: f32, f64, complex, integers
/// of 64 bits into the same type; bf16 and f16 into f32, integers of 8 to 32 bits into 32 bits; bf16 into bf16 where
/// the processor has instructions for them.
bool gemm_takes(tensor::DType in, tensor::DType out);

/// False for products (m x k times k x n) that are over before a library has begun them, or leave tiles empty: narrow
/// floats are better multiplied as f32 then.
bool gemm_is_worth_it(tensor::DType in, int64_t m, int64_t n, int64_t k);

/// What multiplies it: "packed", "vector", "amx" and "integers" (loops of our own), "onednn", "openblas".
std::string_view gemm_choice(const GemmSpec& spec);

/// True when the bits of an element of c do not depend on the block of c that is computed with it.
bool gemm_takes_blocks(const GemmSpec& spec);

/// Operations a nanosecond that one core may be expected to do, for estimates.
double gemm_flops_per_ns(const GemmSpec& spec);

/// True when a product can be added to c while it is made (GemmSpec::adds), with the bits of one that is made apart and
/// then added.
bool gemm_adds(const GemmSpec& spec);

/// True when a product of this type can read a rows x columns matrix in this layout. Integers of 64 bits need
/// contiguous columns of b.
bool gemm_takes_a(tensor::DType in, int64_t rows, int64_t columns, MatrixLayout layout);
bool gemm_takes_b(tensor::DType in, int64_t rows, int64_t columns, MatrixLayout layout);

/// A product made ready. Immutable; any thread. The same spec gives the same bits on the same processor, whoever calls.
class Gemm {
 public:
  /// Throws unsupported_dtype when gemm_takes() is false.
  explicit Gemm(const GemmSpec& spec);

  /// Bytes of scratch, aligned to 64, that each concurrent run() needs.
  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  /// True when run() can leave b packed in the scratch, and use it there.
  [[nodiscard]] bool keeps_packed() const { return keeps_packed_; }
  /// c is overwritten, or added to. Sums are made in f32 for narrower floats, and wrap around for integers. Products
  /// that take long are made in parts, with a checkpoint behind each. `kept` says what is in the scratch, and is told
  /// of what stays there: b has not changed since, and the products on the scratch differ at most in m and in n, those
  /// that differ in n also in where b is. null: nothing stays.
  void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch,
           core::Checkpoint* checkpoint = nullptr, PackedOperand* kept = nullptr) const;

  /// A prepared product in its library's form.
  struct Plan {
    virtual ~Plan() = default;
    virtual void run(const std::byte* a, const std::byte* b, std::byte* c, std::byte* scratch,
                     core::Checkpoint* checkpoint, PackedOperand* kept) const = 0;
  };

 private:
  std::shared_ptr<const Plan> plan_;
  int64_t scratch_bytes_ = 0;
  int64_t rows_ = 0;
  int64_t row_bytes_ = 0;
  int64_t c_row_bytes_ = 0;
  bool is_empty_sum_ = false;
  bool uses_library_ = false;
  bool keeps_packed_ = false;
  std::string_view choice_;
};

}  // namespace meshd::kernels
