#include "service/kernels/fft/fft_lines.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace meshd::kernels {
namespace {

/// Lines of at most this length are taken many at a time, as the rows of a matrix made of one would be shorter than a
/// vector; lines that are interleaved in memory, as long as that many of them fit into the second level cache.
constexpr int64_t kMaxShort = 32;
constexpr int64_t kMaxShortStrided = 4096;
/// Buffers of this size stay in the first level cache.
constexpr int64_t kCachedBytes = 32 * 1024;
/// Longer transforms keep their factors as products of two, so that the tables are small beside the data.
constexpr int64_t kMaxFullTable = 1 << 14;

template <class T>
int64_t whole_vectors(int64_t count) {
  return (count + kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>;
}

/// The divisor of `length` nearest to its square root, those that fill vectors first.
template <class T>
int64_t rows_of(int64_t length) {
  int64_t best = 1;
  double best_cost = std::numeric_limits<double>::infinity();
  const auto consider = [&](int64_t rows) {
    const int64_t columns = length / rows;
    const double waste = static_cast<double>(whole_vectors<T>(rows) * columns + whole_vectors<T>(columns) * rows) /
                         static_cast<double>(2 * length);
    const double skew = std::log2(static_cast<double>(rows) / static_cast<double>(columns));
    const double cost = waste * (1 + 0.03 * skew * skew);
    if (cost >= best_cost) return;
    best_cost = cost;
    best = rows;
  };
  for (int64_t divisor = 1; divisor * divisor <= length; ++divisor) {
    if (length % divisor != 0) continue;
    consider(divisor);
    consider(length / divisor);
  }
  return best;
}

/// The cheapest length of at least `least` for a convolution; a long one is a multiple of the square of a vector.
int64_t padded_length(int64_t least, int64_t multiple) {
  int64_t power = multiple;
  while (power < least) power *= 2;
  int64_t best = power;
  const auto cost = [](int64_t length, double per_element) {
    return static_cast<double>(length) * std::log2(static_cast<double>(length)) * per_element;
  };
  double best_cost = cost(power, 1);
  for (const int64_t odd : {3, 5, 9, 15, 25, 27, 45}) {
    int64_t length = odd * multiple;
    while (length < least) length *= 2;
    const double candidate = cost(length, 1.1);  // odd passes are a little slower
    if (candidate < best_cost) {
      best_cost = candidate;
      best = length;
    }
  }
  return best;
}

template <class T>
Planes<const T> read_only(Planes<T> planes) {
  return {planes.re, planes.im};
}
template <class T>
Planes<const T> planes_of(const std::vector<T> (&both)[2]) {
  return both[0].empty() ? Planes<const T>{} : Planes<const T>{both[0].data(), both[1].data()};
}
/// Transposes consecutive lines to interleaved ones, and back.
template <class T>
void load_turned(ComplexView<const T> from, int64_t rows, int64_t pitch, int64_t lane_pitch, int64_t count,
                 Planes<T> to) {
  constexpr int64_t kLanes = kFftLanes<T>;
  for (int64_t q = 0; q < kLanes; ++q) {
    const ComplexView<const T> line = from.at(q < count ? q * lane_pitch : 0);
    for (int64_t j = 0; j < rows; ++j) {
      to.re[j * kLanes + q] = q < count ? line.re[j * pitch * line.step] : 0;
      to.im[j * kLanes + q] = q < count ? line.im[j * pitch * line.step] : 0;
    }
  }
}
template <class T>
void store_turned(Planes<const T> from, int64_t rows, int64_t pitch, int64_t lane_pitch, int64_t count, T scale,
                  ComplexView<T> to) {
  for (int64_t q = 0; q < count; ++q) {
    const ComplexView<T> line = to.at(q * lane_pitch);
    for (int64_t j = 0; j < rows; ++j) {
      line.re[j * pitch * line.step] = from.re[j * kFftLanes<T> + q] * scale;
      line.im[j * pitch * line.step] = from.im[j * kFftLanes<T> + q] * scale;
    }
  }
}

}  // namespace

template <class T>
LanesFft<T>::LanesFft(int64_t length) {
  const auto fits = [](int64_t elements) {
    return 4 * elements * kFftLanes<T> * static_cast<int64_t>(sizeof(T)) <= kCachedBytes;
  };
  columns_ = length;
  if (!fits(length)) {
    // The divisor nearest to the square root.
    for (int64_t divisor = 2; divisor * divisor <= length; ++divisor) {
      if (length % divisor == 0) rows_ = divisor;
    }
    if (fits(length / rows_)) {
      columns_ = length / rows_;
    } else {
      rows_ = 1;
    }
  }
  second_ = make_passes<T>(columns_);
  if (rows_ == 1) return;
  first_ = make_passes<T>(rows_);
  for (int64_t j = 0; j < columns_; ++j) {
    for (int64_t k = 0; k < rows_; ++k) {
      const UnitRoot root = unit_root(j * k, length);
      factors_[0].push_back(static_cast<T>(root.re));
      factors_[1].push_back(static_cast<T>(root.im));
    }
  }
}

template <class T>
int64_t LanesFft<T>::scratch_elements() const {
  const int64_t cached = 4 * std::max(rows_, columns_) * kFftLanes<T>;
  return cached + (rows_ > 1 ? 2 * length() * kFftLanes<T> : 0);
}

template <class T>
void LanesFft<T>::run(const Lanes<ComplexView<const T>>& from, int64_t count, const Lanes<ComplexView<T>>& to, T scale,
                      T* scratch) const {
  const FftLoops<T>& loops = fft_loops<T>();
  constexpr int64_t kLanes = kFftLanes<T>;
  const int64_t plane = std::max(rows_, columns_) * kLanes;
  const Planes<T> x = {scratch, scratch + plane};
  const Planes<T> y = {scratch + 2 * plane, scratch + 3 * plane};
  if (rows_ == 1) {
    loops.load(from.view, columns_, from.pitch, count, kLanes, x);
    const Planes<T> result = loops.transform(second_, kLanes, x, y) ? y : x;
    return loops.store(read_only(result), columns_, to.pitch, count, kLanes, scale, to.view);
  }
  // Element (j, k) of the middle: row j * rows + k.
  const Planes<T> middle = {scratch + 4 * plane, scratch + 4 * plane + length() * kLanes};
  for (int64_t j = 0; j < columns_; ++j) {
    loops.load(from.view.at(j * from.pitch), rows_, columns_ * from.pitch, count, kLanes, x);
    const Planes<T> result = loops.transform(first_, kLanes, x, y) ? y : x;
    const int64_t row = j * rows_;
    loops.multiply_rows(read_only(result), {factors_[0].data() + row, factors_[1].data() + row}, rows_, kLanes,
                        {middle.re + row * kLanes, middle.im + row * kLanes});
  }
  for (int64_t k = 0; k < rows_; ++k) {
    loops.load({middle.re + k * kLanes, middle.im + k * kLanes, 1}, columns_, rows_ * kLanes, kLanes, kLanes, x);
    const Planes<T> result = loops.transform(second_, kLanes, x, y) ? y : x;
    loops.store(read_only(result), columns_, rows_ * to.pitch, count, kLanes, scale, to.view.at(k * to.pitch));
  }
}

template <class T>
LongFft<T>::LongFft(int64_t length) {
  const int64_t prime = largest_prime_factor(length);
  const bool is_direct = prime > kMaxShort && length / prime < kFftLanes<T>;
  rows_ = is_direct ? length / prime : rows_of<T>(length);
  columns_ = length / rows_;
  if (is_direct) direct_ = direct_table<T>(columns_);
  column_pitch_ = whole_vectors<T>(columns_);
  row_pitch_ = whole_vectors<T>(rows_);
  // Of a matrix that the caches do not hold, several cache lines of a row are read at a time.
  const int64_t least = length > kMaxFullTable ? 4 * kFftLanes<T> : kFftLanes<T>;
  const auto lanes_for = [least](int64_t rows, int64_t pitch) {
    const int64_t fit = kCachedBytes / (4 * static_cast<int64_t>(sizeof(T)) * rows) / kFftLanes<T> * kFftLanes<T>;
    return std::min(std::max(fit, least), pitch);
  };
  column_lanes_ = lanes_for(rows_, column_pitch_);
  row_lanes_ = lanes_for(columns_, row_pitch_);
  first_ = make_passes<T>(rows_);
  second_ = make_passes<T>(columns_);
  near_pitch_ = length <= kMaxFullTable ? column_pitch_ : kFftLanes<T>;
  const auto set = [](std::vector<T>(&both)[2], int64_t at, UnitRoot root) {
    both[0][static_cast<size_t>(at)] = static_cast<T>(root.re);
    both[1][static_cast<size_t>(at)] = static_cast<T>(root.im);
  };
  for (auto& part : near_) part.resize(static_cast<size_t>(rows_ * near_pitch_));
  for (int64_t k = 0; k < rows_; ++k) {
    for (int64_t j = 0; j < near_pitch_; ++j) set(near_, k * near_pitch_ + j, unit_root(k * j, length));
  }
  if (length == kFftLine64 && rows_ == columns_) square_ = fft_line64<T>();
  if (near_pitch_ == column_pitch_) return;
  far_pitch_ = column_pitch_ / near_pitch_;
  for (auto& part : far_) part.resize(static_cast<size_t>(rows_ * far_pitch_));
  for (int64_t k = 0; k < rows_; ++k) {
    for (int64_t j = 0; j < far_pitch_; ++j) set(far_, k * far_pitch_ + j, unit_root(k * j * near_pitch_, length));
  }
}

template <class T>
int64_t LongFft<T>::scratch_elements() const {
  const int64_t chunk = std::max({rows_ * column_lanes_, columns_ * row_lanes_});
  return 2 * column_pitch_ * row_pitch_ + 4 * whole_vectors<T>(chunk);
}

template <class T>
void LongFft<T>::run(ComplexView<const T> from, ComplexView<T> to, T scale, T* scratch,
                     core::Checkpoint* checkpoint) const {
  if (square_ != nullptr && from.step == 2 && to.step == 2)
    return square_(from, planes_of<T>(near_), near_pitch_, scale, to);
  const FftLoops<T>& loops = fft_loops<T>();
  const int64_t chunk = whole_vectors<T>(std::max(rows_ * column_lanes_, columns_ * row_lanes_));
  const int64_t whole = column_pitch_ * row_pitch_;
  const Planes<T> turned = {scratch, scratch + whole};
  const Planes<T> x = {scratch + 2 * whole, scratch + 2 * whole + chunk};
  const Planes<T> y = {scratch + 2 * whole + 2 * chunk, scratch + 2 * whole + 3 * chunk};
  const auto shift = [](Planes<const T> planes, int64_t by) {
    return planes.re == nullptr ? planes : Planes<const T>{planes.re + by, planes.im + by};
  };
  for (int64_t first = 0; first < column_pitch_; first += column_lanes_) {
    core::pass(checkpoint);
    const int64_t lanes = std::min(column_lanes_, column_pitch_ - first);
    loops.load(from.at(first), rows_, columns_, std::min(lanes, columns_ - first), lanes, x);
    const Planes<T> result = loops.transform(first_, lanes, x, y) ? y : x;
    const bool is_full = near_pitch_ == column_pitch_;
    // With two tables the near one begins anew at every vector.
    const int64_t near_pitch = near_pitch_;
    const Planes<const T> near = is_full ? shift(planes_of<T>(near_), first) : planes_of<T>(near_);
    const Planes<const T> far = shift(planes_of<T>(far_), first / kFftLanes<T>);
    loops.twiddle_transpose(read_only(result), rows_, lanes, near, near_pitch, far, far_pitch_,
                            {turned.re + first * row_pitch_, turned.im + first * row_pitch_}, row_pitch_);
  }
  if (!direct_.empty()) {
    for (int64_t row = 0; row < rows_; ++row) {
      const ComplexView<T> there = to.at(row);
      loops.direct({turned.re + row, turned.im + row, row_pitch_}, direct_.data(), columns_, scale,
                   {there.re, there.im, to.step * rows_});
    }
    return;
  }
  for (int64_t first = 0; first < row_pitch_; first += row_lanes_) {
    core::pass(checkpoint);
    const int64_t lanes = std::min(row_lanes_, row_pitch_ - first);
    Planes<T> source = turned;
    if (lanes != row_pitch_) {
      loops.load({turned.re + first, turned.im + first, 1}, columns_, row_pitch_, lanes, lanes, x);
      source = x;
    }
    const Planes<T> result = loops.transform(second_, lanes, source, y) ? y : source;
    loops.store(read_only(result), columns_, rows_, std::min(lanes, rows_ - first), lanes, scale, to.at(first));
  }
}

template <class T>
Chirp<T> make_chirp(int64_t length, int64_t padded) {
  Chirp<T> out;
  out.length = length;
  out.padded = padded;
  for (auto& part : out.factor) part.resize(static_cast<size_t>(length));
  std::vector<double> conjugate(static_cast<size_t>(2 * padded));
  int64_t square = 0;  // j^2 mod 2 length
  for (int64_t j = 0; j < length; ++j) {
    const UnitRoot root = unit_root(square, 2 * length);
    out.factor[0][static_cast<size_t>(j)] = static_cast<T>(root.re);
    out.factor[1][static_cast<size_t>(j)] = static_cast<T>(root.im);
    for (const int64_t at : {j, j == 0 ? 0 : padded - j}) {
      conjugate[static_cast<size_t>(2 * at)] = root.re;
      conjugate[static_cast<size_t>(2 * at + 1)] = -root.im;
    }
    square = (square + 2 * j + 1) % (2 * length);
  }
  const LineFft<double> transform(padded, false);
  std::vector<double> scratch(static_cast<size_t>(transform.scratch_elements() + 8));
  auto* aligned = reinterpret_cast<double*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  const ComplexView<const double> from = {conjugate.data(), conjugate.data() + 1, 2};
  const ComplexView<double> to = {conjugate.data(), conjugate.data() + 1, 2};
  const double scale = 1 / static_cast<double>(padded);
  if (transform.is_long()) {
    transform.run_line(from, to, scale, aligned);
  } else {
    transform.run_lanes({from, 1, 0}, 1, {to, 1, 0}, scale, aligned);
  }
  for (size_t part = 0; part < 2; ++part) {
    out.kernel[part].resize(static_cast<size_t>(padded));
    for (size_t j = 0; j < out.kernel[part].size(); ++j) out.kernel[part][j] = static_cast<T>(conjugate[2 * j + part]);
  }
  return out;
}

template <class T>
LineFft<T>::LineFft(int64_t length, bool is_strided) : length_(length) {
  const bool is_long = length > (is_strided ? kMaxShortStrided : kMaxShort);
  int64_t transformed = length;
  if (largest_prime_factor(length) > kFftMaxRadix) {
    chirp_ = make_chirp<T>(length, padded_length(2 * length - 1, is_long ? kFftLanes<T> * kFftLanes<T> : 1));
    transformed = chirp_->padded;
  }
  if (is_long) {
    long_.emplace(transformed);
  } else {
    lanes_ = LanesFft<T>(transformed);
  }
}

template <class T>
int64_t LineFft<T>::scratch_elements() const {
  if (!long_) return lanes_.scratch_elements() + 2 * lanes_.length() * kFftLanes<T>;
  return long_->scratch_elements() + (chirp_ ? 2 * whole_vectors<T>(chirp_->padded) : 0);
}

template <class T>
void LineFft<T>::run_line(ComplexView<const T> from, ComplexView<T> to, T scale, T* scratch,
                          core::Checkpoint* checkpoint) const {
  if (!chirp_) return long_->run(from, to, scale, scratch, checkpoint);
  const FftLoops<T>& loops = fft_loops<T>();
  const int64_t padded = chirp_->padded;
  const int64_t pitch = whole_vectors<T>(padded);
  T* const rest = scratch + 2 * pitch;
  // In place, so that the line and what a transform needs stay near.
  const ComplexView<T> x = {scratch, scratch + pitch, 1};
  const ComplexView<const T> now = {scratch, scratch + pitch, 1};
  loops.multiply(from, planes_of<T>(chirp_->factor), length_, x);
  for (T* plane : {x.re, x.im}) std::fill(plane + length_, plane + padded, T{0});
  long_->run(now, x, 1, rest, checkpoint);
  loops.multiply(now, planes_of<T>(chirp_->kernel), padded, x);
  long_->run(swapped(now), swapped(x), scale, rest, checkpoint);
  loops.multiply(now, planes_of<T>(chirp_->factor), length_, to);
}

template <class T>
void LineFft<T>::run_lanes(const Lanes<ComplexView<const T>>& from, int64_t count, const Lanes<ComplexView<T>>& to,
                           T scale, T* scratch) const {
  if (!chirp_ && from.lane_pitch == 1 && to.lane_pitch == 1) return lanes_.run(from, count, to, scale, scratch);
  const FftLoops<T>& loops = fft_loops<T>();
  constexpr int64_t kLanes = kFftLanes<T>;
  const int64_t plane = lanes_.length() * kLanes;
  const Planes<T> x = {scratch, scratch + plane};
  T* const rest = scratch + 2 * plane;
  if (from.lane_pitch == 1) {
    loops.load(from.view, length_, from.pitch, count, kLanes, x);
  } else {
    load_turned(from.view, length_, from.pitch, from.lane_pitch, count, x);
  }
  const auto transform = [&](Planes<T> planes) {
    lanes_.run({{planes.re, planes.im, 1}, kLanes, 1}, kLanes, {{planes.re, planes.im, 1}, kLanes, 1}, 1, rest);
  };
  if (!chirp_) {
    transform(x);
  } else {
    loops.multiply_rows(read_only(x), planes_of<T>(chirp_->factor), length_, kLanes, x);
    for (T* part : {x.re, x.im}) std::fill(part + length_ * kLanes, part + plane, T{0});
    transform(x);
    loops.multiply_rows(read_only(x), planes_of<T>(chirp_->kernel), lanes_.length(), kLanes, x);
    transform(swapped(x));
    loops.multiply_rows(read_only(x), planes_of<T>(chirp_->factor), length_, kLanes, x);
  }
  if (to.lane_pitch == 1) {
    loops.store(read_only(x), length_, to.pitch, count, kLanes, scale, to.view);
  } else {
    store_turned(read_only(x), length_, to.pitch, to.lane_pitch, count, scale, to.view);
  }
}

template class LongFft<float>;
template class LongFft<double>;
template class LineFft<float>;
template class LineFft<double>;
template Chirp<float> make_chirp<float>(int64_t, int64_t);
template Chirp<double> make_chirp<double>(int64_t, int64_t);

}  // namespace meshd::kernels
