// Discrete Fourier transforms of one to three dimensions, of any length: Stockham passes of mixed radix where the prime
// factors are small, Bluestein's convolution where they are not, so no length costs more than n log n. Lines, not
// elements, are vectorised: a short length takes many lines at once, a long line is split into a matrix whose columns
// are the lines (four-step).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "service/core/checkpoint.h"

namespace meshd::kernels {

enum class FftKind : uint8_t {
  kForward,           ///< complex to complex, e^(-2 pi i jk/n)
  kInverse,           ///< complex to complex, e^(+2 pi i jk/n) / n
  kRealForward,       ///< real of length n to the first n/2 + 1 complex values
  kRealForwardWhole,  ///< real of length n to all n complex values
  kRealInverse,  ///< the inverse; the imaginary parts of the first value, and of the last where n is even, are ignored
};

/// What is transformed: `batch` arrays of shape `lengths` (1 to 3 of them, those of the real side), row-major, with
/// nothing between. Real kinds halve the last length on their complex side.
struct FftSpec {
  FftKind kind = FftKind::kForward;
  bool is_double = false;  ///< f64 and complex128 instead of f32 and complex64
  int64_t batch = 0;
  std::vector<int64_t> lengths;
};

/// A transform made ready: factors, twiddles. Immutable; any thread. Bits of an array depend on its own values and on
/// `lengths` alone.
///
/// A large array of several dimensions is transformed dimension by dimension, each in work items of whole lines, with a
/// barrier between two dimensions. Small arrays, and arrays of one dimension, are work items themselves.
///
/// Example: one array of 1024 x 1024, forward: 128 work items of 8 rows, a barrier, 64 work items of 16 columns.
class Fft {
 public:
  explicit Fft(FftSpec spec);

  /// Arrays, small groups of them, or groups of lines of one that can be computed apart.
  [[nodiscard]] int64_t work_count() const;
  /// Work items from each of these on need the results of all before it.
  [[nodiscard]] const std::vector<int64_t>& barriers() const;
  /// Bytes of scratch, aligned to 64, that each concurrent run() needs.
  [[nodiscard]] int64_t scratch_bytes() const;
  /// Bytes, aligned to 64, that all calls of one execution share.
  [[nodiscard]] int64_t workspace_bytes() const;
  /// Floating operations of all work items, as they are counted for transforms: 5 n log2 n, half of it for real ones.
  [[nodiscard]] double flops() const;
  /// Memory of a call. Input and output do not overlap.
  struct Memory {
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::byte* scratch = nullptr;
    std::byte* workspace = nullptr;
  };
  /// Work items [begin, end).
  void run(const Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint = nullptr) const;

  struct Impl {
    virtual ~Impl() = default;
    virtual void run(const Memory& memory, int64_t begin, int64_t end, core::Checkpoint* checkpoint) const = 0;
    int64_t work_count = 0;
    std::vector<int64_t> barriers;
    int64_t scratch_bytes = 0;
    int64_t workspace_bytes = 0;
    double flops = 0;
  };

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace meshd::kernels
