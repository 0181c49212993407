// Transforms against the sum that defines them, in extended precision: all kinds, lengths with small and large factors,
// short and long lines, one to three dimensions.
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

#include "service/kernels/fft/fft.h"
#include "service/kernels/fft/fft_stages.h"

namespace meshd::kernels {
namespace {

using Complex = std::complex<long double>;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};

/// Elements of scratch begin as NaN, so that what is not written shows.
template <class T>
std::vector<T> run(const Fft& fft, const std::vector<T>& in, size_t out_size, bool backwards = false) {
  std::vector<T> out(out_size, T{777});
  const auto memory_of = [](int64_t needed) {
    const auto bytes = static_cast<size_t>((needed + 127) / 64 * 64);
    std::unique_ptr<void, Freed> memory(std::aligned_alloc(64, bytes));
    std::memset(memory.get(), 0xFF, bytes);
    return memory;
  };
  const auto scratch = memory_of(fft.scratch_bytes());
  const auto workspace = memory_of(fft.workspace_bytes());
  const auto work_items = [&](int64_t begin, int64_t end) {
    fft.run({reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()),
             static_cast<std::byte*>(scratch.get()), static_cast<std::byte*>(workspace.get())},
            begin, end);
  };
  if (!backwards) {
    work_items(0, fft.work_count());
    return out;
  }
  // Between two barriers in any order.
  std::vector<int64_t> ends = fft.barriers();
  ends.push_back(fft.work_count());
  int64_t begin = 0;
  for (const int64_t end : ends) {
    for (int64_t work_item = end; work_item-- > begin;) work_items(work_item, work_item + 1);
    begin = end;
  }
  return out;
}

template <class T>
std::vector<T> noise(size_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> out(count);
  for (T& value : out) value = static_cast<T>(normal(random));
  return out;
}

int64_t product(const std::vector<int64_t>& lengths) {
  int64_t out = 1;
  for (const int64_t length : lengths) out *= length;
  return out;
}

/// The definition along one dimension of a row-major array.
void transform_dim(std::vector<Complex>& array, const std::vector<int64_t>& lengths, size_t dim, int sign) {
  const int64_t n = lengths[dim];
  int64_t inner = 1;
  for (size_t d = dim + 1; d < lengths.size(); ++d) inner *= lengths[d];
  std::vector<Complex> roots;
  for (int64_t k = 0; k < n; ++k) {
    roots.push_back(std::polar(
        1.0L, sign * 2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / static_cast<long double>(n)));
  }
  std::vector<Complex> line(static_cast<size_t>(n));
  for (int64_t first = 0; first < static_cast<int64_t>(array.size()); ++first) {
    if ((first / inner) % n != 0) continue;
    for (int64_t j = 0; j < n; ++j) line[static_cast<size_t>(j)] = array[static_cast<size_t>(first + j * inner)];
    for (int64_t k = 0; k < n; ++k) {
      Complex sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += line[static_cast<size_t>(j)] * roots[static_cast<size_t>(j * k % n)];
      array[static_cast<size_t>(first + k * inner)] = sum;
    }
  }
}

/// Root of the mean square of the error, relative to that of the right answer.
template <class T>
double error_of(FftKind kind, const std::vector<int64_t>& lengths, int64_t batch) {
  const bool is_whole = kind == FftKind::kRealForwardWhole;
  const bool from_real = kind == FftKind::kRealForward || is_whole;
  const bool to_real = kind == FftKind::kRealInverse;
  const int64_t size = product(lengths);
  const int64_t last = lengths.back();
  const int64_t half = is_whole ? last : last / 2 + 1;
  const int64_t half_size = size / last * half;
  const int64_t in_size = from_real ? size : 2 * (to_real ? half_size : size);
  const int64_t out_size = to_real ? size : 2 * (from_real ? half_size : size);
  const std::vector<T> in = noise<T>(static_cast<size_t>(in_size * batch));
  const Fft fft({kind, sizeof(T) == 8, batch, lengths});
  const std::vector<T> out = run(fft, in, static_cast<size_t>(out_size * batch));
  EXPECT_EQ(out, run(fft, in, out.size(), true)) << "units in another order give other bits";
  const bool inverse = kind == FftKind::kInverse || to_real;
  long double wrong = 0;
  long double norm = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const T* const from = in.data() + b * in_size;
    const T* const to = out.data() + b * out_size;
    std::vector<Complex> array(static_cast<size_t>(to_real ? half_size : size));
    for (size_t i = 0; i < array.size(); ++i)
      array[i] = from_real ? Complex(from[i]) : Complex(from[2 * i], from[2 * i + 1]);
    std::vector<int64_t> dims = lengths;
    if (to_real) dims.back() = half;
    for (size_t d = 0; d + 1 < dims.size(); ++d) transform_dim(array, dims, d, inverse ? 1 : -1);
    if (to_real) {  // the other half is the mirrored one
      std::vector<Complex> whole(static_cast<size_t>(size));
      for (int64_t row = 0; row < size / last; ++row) {
        for (int64_t k = 0; k < last; ++k) {
          const Complex value = array[static_cast<size_t>(row * half + std::min(k, last - k))];
          const bool is_end = k == 0 || 2 * k == last;
          whole[static_cast<size_t>(row * last + k)] = is_end     ? Complex(value.real())
                                                       : k < half ? value
                                                                  : std::conj(value);
        }
      }
      array = whole;
    }
    transform_dim(array, lengths, lengths.size() - 1, inverse ? 1 : -1);
    const auto compare = [&](Complex got, Complex right) {
      if (inverse) right /= static_cast<long double>(size);
      wrong += std::norm(got - (to_real ? Complex(right.real()) : right));
      norm += std::norm(right);
    };
    for (int64_t row = 0; row < size / last; ++row) {
      for (int64_t k = 0; k < (from_real ? half : last); ++k) {
        const int64_t at = row * (from_real ? half : last) + k;
        compare(to_real ? Complex(to[at]) : Complex(to[2 * at], to[2 * at + 1]),
                array[static_cast<size_t>(row * last + k)]);
      }
    }
  }
  return static_cast<double>(std::sqrt(wrong / norm));
}

constexpr FftKind kKinds[] = {FftKind::kForward, FftKind::kInverse, FftKind::kRealForward, FftKind::kRealForwardWhole,
                              FftKind::kRealInverse};

void expect_right(const std::vector<int64_t>& lengths, int64_t batch) {
  for (const FftKind kind : kKinds) {
    // A random walk of rounding errors; Bluestein's convolution walks twice.
    EXPECT_LT(error_of<float>(kind, lengths, batch), 4e-7)
        << "kind " << static_cast<int>(kind) << " length " << lengths.back();
    EXPECT_LT(error_of<double>(kind, lengths, batch), 8e-16)
        << "kind " << static_cast<int>(kind) << " length " << lengths.back();
  }
}

TEST(Fft, short_lines_many_at_a_time) {
  for (const int64_t length : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 19, 20, 23, 24, 29, 30, 31, 32})
    expect_right({length}, 37);
}

TEST(Fft, long_lines) {
  for (const int64_t length :
       {36, 49, 64, 65, 96, 100, 121, 128, 143, 243, 256, 500, 512, 625, 1000, 1024, 1155, 2048, 3000}) {
    expect_right({length}, 2);
  }
}

TEST(Fft, lengths_with_large_prime_factors) {
  for (const int64_t length : {37, 41, 74, 82, 111, 257, 509, 1009, 1369, 2018}) expect_right({length}, 2);
}

TEST(Fft, lengths_with_primes_of_up_to_97_are_as_exact_as_others) {
  // Errors as of other lengths; those of a convolution are up to twice as large.
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{{61}, {97}, {194}, {970}, {97, 6}}) {
    for (const FftKind kind : kKinds) {
      constexpr double kLimit = 1.3;
      EXPECT_LT(error_of<float>(kind, lengths, 8), kLimit * std::numeric_limits<float>::epsilon())
          << static_cast<int>(kind) << " " << lengths[0];
      EXPECT_LT(error_of<double>(kind, lengths, 8), kLimit * std::numeric_limits<double>::epsilon())
          << static_cast<int>(kind) << " " << lengths[0];
    }
  }
}

TEST(Fft, several_dimensions) {
  for (const std::vector<int64_t>& lengths : std::vector<std::vector<int64_t>>{
           {1, 1}, {2, 3}, {20, 24}, {37, 5}, {5, 37}, {64, 33}, {3, 4, 5}, {17, 1, 2}, {8, 41, 10}, {1, 6, 128}}) {
    expect_right(lengths, 2);
  }
}

TEST(Fft, several_dimensions_of_large_arrays) {
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{128, 130}, {131, 127}, {26, 27, 25}, {40, 2, 211}}) {
    EXPECT_EQ(Fft({FftKind::kForward, false, 1, lengths}).barriers().size(), lengths.size() - 1);
    expect_right(lengths, 2);
  }
}

TEST(Fft, a_large_array_has_the_same_bits_among_others) {
  // Alone it is split into lines; in company it is a work item. Its values include infinities and NaN.
  for (const FftKind kind : kKinds) {
    const std::vector<int64_t> lengths = {128, 130};
    const bool from_real = kind == FftKind::kRealForward || kind == FftKind::kRealForwardWhole;
    const int64_t in_size = 2 * 128 * (kind == FftKind::kRealInverse ? 66 : 130) / (from_real ? 2 : 1);
    const int64_t out_size =
        2 * 128 * (kind == FftKind::kRealForward ? 66 : 130) / (kind == FftKind::kRealInverse ? 2 : 1);
    for (const bool is_finite : {true, false}) {
      std::vector<float> one = noise<float>(static_cast<size_t>(in_size), 5);
      one[77] = -0.0F;
      one[78] = std::numeric_limits<float>::denorm_min();
      if (!is_finite) one[1000] = std::numeric_limits<float>::infinity();
      const Fft split({kind, false, 1, lengths});
      const std::vector<float> alone = run(split, one, static_cast<size_t>(out_size));
      EXPECT_EQ(split.barriers().size(), kind == FftKind::kRealForwardWhole ? 2U : 1U);
      constexpr int64_t kBatch = 16;
      std::vector<float> in = noise<float>(static_cast<size_t>(in_size * kBatch), 9);
      std::copy(one.begin(), one.end(), in.begin() + (kBatch - 2) * in_size);
      const Fft whole({kind, false, kBatch, lengths});
      EXPECT_TRUE(whole.barriers().empty());
      const std::vector<float> out = run(whole, in, static_cast<size_t>(out_size * kBatch));
      EXPECT_EQ(std::memcmp(alone.data(), out.data() + (kBatch - 2) * out_size, alone.size() * sizeof(float)), 0)
          << static_cast<int>(kind) << (is_finite ? " finite" : " not finite");
    }
  }
}

TEST(Fft, a_long_dimension_before_others) {
  // Longer than lines are taken side by side: through a line of its own. Too long for the definition; there and back
  // instead.
  for (const int64_t length : {4099, 8192}) {
    const std::vector<int64_t> lengths = {length, 7};
    std::vector<double> in = noise<double>(static_cast<size_t>(2 * length * 7));
    const std::vector<double> there = run(Fft({FftKind::kForward, true, 1, lengths}), in, in.size());
    const std::vector<double> back = run(Fft({FftKind::kInverse, true, 1, lengths}), there, in.size());
    for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(back[i], in[i], 1e-12);
    // The first value is the sum of all.
    double sum = 0;
    for (size_t i = 0; i < in.size(); i += 2) sum += in[i];
    EXPECT_NEAR(there[0], sum, 1e-9);
    // Of reals, without their imaginary parts of zero.
    std::vector<double> reals;
    for (size_t i = 0; i < in.size(); i += 2) {
      reals.push_back(in[i]);
      in[i + 1] = 0;
    }
    const std::vector<double> right = run(Fft({FftKind::kForward, true, 1, lengths}), in, in.size());
    const std::vector<double> whole = run(Fft({FftKind::kRealForwardWhole, true, 1, lengths}), reals, in.size());
    for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(whole[i], right[i], 1e-9) << i;
  }
}

TEST(Fft, large_lines_there_and_back) {
  for (const int64_t length : {int64_t{1} << 17, int64_t{3} << 15, int64_t{100003}}) {
    const std::vector<float> in = noise<float>(static_cast<size_t>(2 * length));
    const std::vector<float> there = run(Fft({FftKind::kForward, false, 1, {length}}), in, in.size());
    const std::vector<float> back = run(Fft({FftKind::kInverse, false, 1, {length}}), there, in.size());
    for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(back[i], in[i], 1e-5);
    // One value by the definition.
    const int64_t k = length / 3 + 1;
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < length; ++j) {
      const UnitRoot root = unit_root(j * k % length, length);
      sum += std::complex<double>(in[static_cast<size_t>(2 * j)], in[static_cast<size_t>(2 * j + 1)]) *
             std::complex<double>(root.re, root.im);
    }
    EXPECT_NEAR(there[static_cast<size_t>(2 * k)], sum.real(), 1e-5 * std::sqrt(static_cast<double>(length)) * 10);
    EXPECT_NEAR(there[static_cast<size_t>(2 * k + 1)], sum.imag(), 1e-5 * std::sqrt(static_cast<double>(length)) * 10);
  }
}

TEST(Fft, an_array_has_the_same_bits_wherever_it_stands) {
  for (const int64_t length : {24, 41, 96}) {
    const std::vector<float> one = noise<float>(static_cast<size_t>(2 * length), 5);
    const std::vector<float> alone = run(Fft({FftKind::kForward, false, 1, {length}}), one, one.size());
    for (const int64_t batch : {3, 17, 40}) {
      std::vector<float> in = noise<float>(static_cast<size_t>(2 * length * batch), 9);
      const int64_t place = batch - 2;
      std::copy(one.begin(), one.end(), in.begin() + place * 2 * length);
      const std::vector<float> out = run(Fft({FftKind::kForward, false, batch, {length}}), in, in.size());
      const auto begin = out.begin() + place * 2 * length;
      EXPECT_EQ(alone, std::vector<float>(begin, begin + 2 * length)) << length << " in " << batch;
    }
  }
}

TEST(Fft, transforms_of_reals_mirror_themselves_exactly) {
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{24}, {35}, {20, 24}, {128, 130}, {26, 27, 25}}) {
    const int64_t size = product(lengths);
    const std::vector<float> in = noise<float>(static_cast<size_t>(size), 3);
    const std::vector<float> out =
        run(Fft({FftKind::kRealForwardWhole, false, 1, lengths}), in, static_cast<size_t>(2 * size));
    for (int64_t at = 0; at < size; ++at) {
      int64_t mirrored = 0;
      int64_t stride = 1;
      int64_t left = at;
      for (size_t d = lengths.size(); d-- > 0; left /= lengths[d], stride *= lengths[d])
        mirrored += (lengths[d] - left % lengths[d]) % lengths[d] * stride;
      // Lines that mirror themselves in the last dimension are transformed as others are.
      if (at % lengths.back() == 0 || 2 * (at % lengths.back()) == lengths.back()) continue;
      EXPECT_EQ(out[static_cast<size_t>(2 * at)], out[static_cast<size_t>(2 * mirrored)]) << at;
      EXPECT_EQ(out[static_cast<size_t>(2 * at + 1)], -out[static_cast<size_t>(2 * mirrored + 1)]) << at;
    }
  }
}

TEST(Fft, nothing_to_transform) {
  EXPECT_EQ(Fft({FftKind::kForward, false, 0, {8}}).work_count(), 0);
  EXPECT_EQ(Fft({FftKind::kRealForward, false, 3, {4, 0}}).work_count(), 0);
}

TEST(Fft, roots_are_exact_where_they_can_be) {
  for (const int64_t n : {4, 8, 12, 100}) {
    EXPECT_EQ(unit_root(0, n).re, 1);
    EXPECT_EQ(unit_root(n / 4, n).re, 0);
    EXPECT_EQ(unit_root(n / 4, n).im, -1);
    EXPECT_EQ(unit_root(n / 2, n).re, -1);
    EXPECT_EQ(unit_root(3 * n / 4, n).im, 1);
  }
  for (const int64_t k : {1, 5, 17, 33, 49, 66, 83, 99}) {
    const long double angle = -2 * std::numbers::pi_v<long double> * static_cast<long double>(k) / 100;
    EXPECT_NEAR(unit_root(k, 100).re, static_cast<double>(std::cos(angle)), 1.2e-16);
    EXPECT_NEAR(unit_root(k, 100).im, static_cast<double>(std::sin(angle)), 1.2e-16);
  }
}

}  // namespace
}  // namespace meshd::kernels
