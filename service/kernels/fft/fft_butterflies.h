// Transforms of 2, 4 and 8 values that are vectors: each lane is a transform of its own. Inlined into loops of any
// instruction level; private to the transforms.
#pragma once

#include <numbers>

// Vectors wider than the processor's are passed by reference only; nothing depends on how they would be passed.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace meshd::kernels {

template <class V>
struct Complex {
  V re;
  V im;
};

template <class V>
[[gnu::always_inline]] inline void add_sub(const Complex<V>& a, const Complex<V>& b, Complex<V>& sum,
                                           Complex<V>& difference) {
  const Complex<V> x = a;
  const Complex<V> y = b;
  sum = {x.re + y.re, x.im + y.im};
  difference = {x.re - y.re, x.im - y.im};
}

/// a times -i.
template <class V>
[[gnu::always_inline]] inline void turn(Complex<V>& a) {
  a = {a.im, -a.re};
}

template <class V>
[[gnu::always_inline]] inline void transform4(Complex<V>& a0, Complex<V>& a1, Complex<V>& a2, Complex<V>& a3) {
  add_sub(a0, a2, a0, a2);
  add_sub(a1, a3, a1, a3);
  turn(a3);
  add_sub(a0, a1, a0, a1);
  add_sub(a2, a3, a2, a3);
  // a0, a2, a1, a3 hold values 0, 1, 2, 3.
  const Complex<V> second = a2;
  a2 = a1;
  a1 = second;
}

/// Transforms of 2, 4 and 8 in registers.
template <int kRadix, class T, class V>
[[gnu::always_inline]] inline void transform_even(Complex<V>* a) {
  if constexpr (kRadix == 2) {
    add_sub(a[0], a[1], a[0], a[1]);
  } else if constexpr (kRadix == 4) {
    transform4(a[0], a[1], a[2], a[3]);
  } else {
    transform4(a[0], a[2], a[4], a[6]);
    transform4(a[1], a[3], a[5], a[7]);
    constexpr T kHalfRoot = static_cast<T>(1 / std::numbers::sqrt2);
    const Complex<V> third = a[3];
    const Complex<V> last = a[7];
    a[3] = {(third.re + third.im) * kHalfRoot, (third.im - third.re) * kHalfRoot};
    turn(a[5]);
    a[7] = {(last.im - last.re) * kHalfRoot, (last.re + last.im) * -kHalfRoot};
    Complex<V> out[8];
    for (int k = 0; k < 4; ++k) add_sub(a[2 * k], a[2 * k + 1], out[k], out[k + 4]);
    for (int k = 0; k < 8; ++k) a[k] = out[k];
  }
}

}  // namespace meshd::kernels
