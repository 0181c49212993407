#include "service/kernels/fft/fft_symmetry.h"

#include "service/kernels/cpu.h"
#include "service/kernels/fft/fft_vectors.h"

namespace meshd::kernels {
namespace {

/// Of z = even + i odd, transformed: the transforms of both halves are sums and differences of z_k and the conjugate of
/// z_-k, and x_k = even_k + root_k odd_k. V is a number, or a vector of some k.
template <class T, class V>
[[gnu::always_inline]] inline void split_pair(const V& a_re, const V& a_im, const V& b_re, const V& b_im, const V& c,
                                              const V& s, V* low, V* high) {
  const T h = T{1} / 2;
  const V even_re = (a_re + b_re) * h;
  const V even_im = (a_im - b_im) * h;
  const V odd_re = (a_im + b_im) * h;
  const V odd_im = (b_re - a_re) * h;
  const V re = c * odd_re - s * odd_im;
  const V im = c * odd_im + s * odd_re;
  low[0] = even_re + re;
  low[1] = even_im + im;
  high[0] = even_re - re;
  high[1] = im - even_im;
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void split_line(const T* z, int64_t half, Planes<const T> roots, T* x) {
  using Both = Pairs<T, kBytes>;
  using V = typename Both::V;
  using Loose = typename Both::Loose;
  constexpr int64_t kCount = Both::kCount;
  const T first = z[0];
  const T second = z[1];
  int64_t k = 1;
  for (; k + kCount - 1 <= half / 2; k += kCount) {
    const int64_t mirrored = half - k - kCount + 1;
    V a[2];
    V b[2];
    V low[2];
    V high[2];
    Both::load(z + 2 * k, a[0], a[1], Both::kLanes);
    Both::load_reversed(z + 2 * mirrored, b[0], b[1], Both::kLanes);
    const V c = *reinterpret_cast<const Loose*>(roots.re + k);
    const V s = *reinterpret_cast<const Loose*>(roots.im + k);
    split_pair<T>(a[0], a[1], b[0], b[1], c, s, low, high);
    Both::store(low[0], low[1], x + 2 * k, Both::kLanes);
    Both::store_reversed(high[0], high[1], x + 2 * mirrored, Both::kLanes);
  }
  for (; k <= half / 2; ++k) {
    const T* const b = z + 2 * (half - k);
    T low[2];
    T high[2];
    split_pair<T>(z[2 * k], z[2 * k + 1], b[0], b[1], roots.re[k], roots.im[k], low, high);
    for (int part = 0; part < 2; ++part) {
      x[2 * k + part] = low[part];
      x[2 * (half - k) + part] = high[part];
    }
  }
  x[0] = first + second;
  x[2 * half] = first - second;
  x[1] = x[2 * half + 1] = 0;
}

template <int64_t kBytes, class T>
[[gnu::always_inline]] inline void mirror_values(const T* from, T* line, int64_t length) {
  using Both = Pairs<T, kBytes>;
  using V = typename Both::V;
  constexpr int64_t kCount = Both::kCount;
  const int64_t end = (length + 1) / 2;  // the first value that mirrors no earlier one
  int64_t k = 1;
  for (; k + kCount <= end; k += kCount) {
    V re;
    V im;
    Both::load(from + 2 * k, re, im, Both::kLanes);
    Both::store_reversed(re, -im, line + 2 * (length - k - kCount + 1), Both::kLanes);
  }
  for (; k < end; ++k) {
    line[2 * (length - k)] = from[2 * k];
    line[2 * (length - k) + 1] = -from[2 * k + 1];
  }
}

template <class T>
struct Loops {
  void (*split)(const T* z, int64_t half, Planes<const T> roots, T* x);
  void (*mirror_line)(const T* from, T* line, int64_t length);
};

/// One set of loops for each instruction level.
template <class T>
struct Base {
  static void split(const T* z, int64_t half, Planes<const T> roots, T* x) { split_line<16>(z, half, roots, x); }
  static void mirror_line(const T* from, T* line, int64_t length) { mirror_values<16>(from, line, length); }
};

#if defined(__x86_64__)
template <class T>
struct V3 {
  [[gnu::target("arch=x86-64-v3")]] static void split(const T* z, int64_t half, Planes<const T> roots, T* x) {
    split_line<32>(z, half, roots, x);
  }
  [[gnu::target("arch=x86-64-v3")]] static void mirror_line(const T* from, T* line, int64_t length) {
    mirror_values<32>(from, line, length);
  }
};

template <class T>
struct V4 {
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void split(const T* z, int64_t half,
                                                                              Planes<const T> roots, T* x) {
    split_line<64>(z, half, roots, x);
  }
  [[gnu::target("arch=x86-64-v4,prefer-vector-width=512")]] static void mirror_line(const T* from, T* line,
                                                                                    int64_t length) {
    mirror_values<64>(from, line, length);
  }
};
#endif

template <class T, template <class> class Level>
constexpr Loops<T> loops_of() {
  return {Level<T>::split, Level<T>::mirror_line};
}

template <class T>
Loops<T> choose_loops() {
#if defined(__x86_64__)
  if (cpu_level() == CpuLevel::kV4) return loops_of<T, V4>();
  if (cpu_level() == CpuLevel::kV3) return loops_of<T, V3>();
#endif
  return loops_of<T, Base>();
}

template <class T>
const Loops<T>& loops() {
  static const Loops<T> kLoops = choose_loops<T>();
  return kLoops;
}

}  // namespace

template <class T>
RealHalves<T>::RealHalves(int64_t half) : half_(half) {
  for (int64_t k = 0; k <= half; ++k) {
    const UnitRoot root = unit_root(k, 2 * half);
    root_[0].push_back(static_cast<T>(root.re));
    root_[1].push_back(static_cast<T>(root.im));
  }
}

template <class T>
void RealHalves<T>::split(const T* z, T* x) const {
  loops<T>().split(z, half_, {root_[0].data(), root_[1].data()}, x);
}

template <class T>
void RealHalves<T>::join(const T* x, T* z) const {
  const T h = T{1} / 2;
  for (int64_t k = 0; k < half_; ++k) {
    const int64_t b = half_ - k;
    const T a_im = k == 0 ? 0 : x[2 * k + 1];
    const T b_im = k == 0 ? 0 : x[2 * b + 1];
    const T even_re = (x[2 * k] + x[2 * b]) * h;
    const T even_im = (a_im - b_im) * h;
    const T re = (x[2 * k] - x[2 * b]) * h;
    const T im = (a_im + b_im) * h;
    const T c = root_[0][static_cast<size_t>(k)];
    const T s = -root_[1][static_cast<size_t>(k)];
    const T odd_re = re * c - im * s;
    const T odd_im = re * s + im * c;
    z[2 * k] = even_re - odd_im;
    z[2 * k + 1] = even_im + odd_re;
  }
}

template <class T>
void mirror_line(const T* from, T* line, int64_t length) {
  loops<T>().mirror_line(from, line, length);
}

template class RealHalves<float>;
template class RealHalves<double>;
template void mirror_line<float>(const float*, float*, int64_t);
template void mirror_line<double>(const double*, double*, int64_t);

}  // namespace meshd::kernels
