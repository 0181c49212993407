// What the symmetry of a real array's transform saves: value -k is the conjugate of value k, so lines of half the
// length are transformed, and half of the columns.
#pragma once

#include <cstdint>
#include <vector>

#include "service/kernels/fft/fft_stages.h"

namespace meshd::kernels {

/// The two halves of a real line of even length, as real and imaginary parts of one complex line, separated again and
/// together. Immutable; any thread.
template <class T>
class RealHalves {
 public:
  /// `half`: of the real line's length.
  explicit RealHalves(int64_t half);

  /// half complex values z, interleaved, to half + 1 values x; other memory.
  void split(const T* z, T* x) const;
  /// half + 1 values x, whose ends count as real, to half values z; other memory.
  void join(const T* x, T* z) const;

 private:
  int64_t half_;
  std::vector<T> root_[2];  ///< e^(-2 pi i k/(2 half)) for k in [0, half]
};

/// Values n/2 + 1 to n - 1 of a line of n complex ones, of those of the line that it mirrors, which may be itself.
template <class T>
void mirror_line(const T* from, T* line, int64_t length);

}  // namespace meshd::kernels
