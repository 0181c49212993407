#include <algorithm>
#include <array>
#include <cstring>

#include "service/kernels/elementwise/lanes/repeat_elements.h"
#include "service/kernels/fold/accumulator.h"

namespace meshd::kernels {
namespace {

using Bytes = std::vector<std::byte>;

constexpr int64_t kValueBytes = 4;

class ArgmaxAccumulator final : public Accumulator {
 public:
  ArgmaxAccumulator(const ArgmaxFold& fold, tensor::DType element, int64_t lanes)
      : fold_(fold), element_bytes_(tensor::size_bytes(element)), sums_(lanes), partial_(lanes) {}

  void reset(int64_t lanes) override {
    lanes_ = lanes;
    is_empty_ = true;
  }

  void add_values(const ValueRows& values, int64_t lane, int64_t count) override {
    const std::byte* const from = widened(values[0], count);
    const int32_t index = first_index(values);
    if (!is_empty_) return fold_.add_lanes(from, index, count, sums_.value(lane), sums_.place(lane));
    std::memcpy(sums_.value(lane), from, static_cast<size_t>(count * kValueBytes));
    std::fill_n(sums_.place(lane), count, index);
  }

  void add_segments(const ValueRows& values, int64_t groups, int64_t items, int64_t lanes, int64_t lane) override {
    Pairs& to = is_empty_ ? sums_ : partial_;
    const int64_t at = is_empty_ ? lane : 0;
    fold_.segments(widened(values[0], groups * items * lanes), first_index(values), groups, items, lanes, to.value(at),
                   to.place(at));
    if (!is_empty_) combine(partial_, lane, groups * lanes);
  }

  void add_all_of(Accumulator& other, int64_t lane) override {
    auto& rest = static_cast<ArgmaxAccumulator&>(other);
    if (is_empty_) {
      std::memcpy(sums_.value(lane), rest.sums_.value(0), static_cast<size_t>(rest.lanes_ * kValueBytes));
      std::copy_n(rest.sums_.place(0), rest.lanes_, sums_.place(lane));
    } else {
      combine(rest.sums_, lane, rest.lanes_);
    }
    rest.is_empty_ = true;
  }

  void end_step() override { is_empty_ = false; }

  void store(std::byte* to) override {
    std::memcpy(to, sums_.value(0), static_cast<size_t>(lanes_ * kValueBytes));
    std::memcpy(to + lanes_ * kValueBytes, sums_.place(0), static_cast<size_t>(lanes_) * sizeof(int32_t));
    is_empty_ = true;
  }

  void add_stored(const std::byte* from) override {
    Pairs& to = is_empty_ ? sums_ : partial_;
    std::memcpy(to.value(0), from, static_cast<size_t>(lanes_ * kValueBytes));
    std::memcpy(to.place(0), from + lanes_ * kValueBytes, static_cast<size_t>(lanes_) * sizeof(int32_t));
    if (!is_empty_) combine(partial_, 0, lanes_);
  }

  void finish(const ValueRows& init, std::byte* const* results, int64_t start) override {
    alignas(kValueBytes) std::array<std::byte, kValueBytes> value{};
    std::memcpy(value.data(), widened(init[0], 1), value.size());
    repeat_element(value.data(), kValueBytes, partial_.value(0), lanes_);
    std::fill_n(partial_.place(0), lanes_, first_index(init));
    if (!is_empty_) fold_.combine(sums_.value(0), sums_.place(0), lanes_, partial_.value(0), partial_.place(0));
    const std::byte* const from = partial_.value(0);
    std::byte* const to = results[0] + start * element_bytes_;
    if (fold_.narrow != nullptr)
      fold_.narrow(&from, to, lanes_);
    else
      std::memcpy(to, from, static_cast<size_t>(lanes_ * kValueBytes));
    std::memcpy(results[1] + start * static_cast<int64_t>(sizeof(int32_t)), partial_.place(0),
                static_cast<size_t>(lanes_) * sizeof(int32_t));
  }

 private:
  struct Pairs {
    explicit Pairs(int64_t lanes)
        : values(static_cast<size_t>(lanes * kValueBytes)), places(static_cast<size_t>(lanes)) {}
    std::byte* value(int64_t lane) { return values.data() + lane * kValueBytes; }
    int32_t* place(int64_t lane) { return places.data() + lane; }

    Bytes values;
    std::vector<int32_t> places;
  };

  static int32_t first_index(const ValueRows& values) {
    int32_t index = 0;
    std::memcpy(&index, values[1], sizeof(index));
    return index;
  }

  const std::byte* widened(const std::byte* elements, int64_t count) {
    if (fold_.widen == nullptr) return elements;
    const auto needed = static_cast<size_t>(count * kValueBytes);
    if (widened_.size() < needed) widened_.resize(needed);
    fold_.widen(&elements, widened_.data(), count);
    return widened_.data();
  }

  void combine(Pairs& later, int64_t lane, int64_t count) {
    fold_.combine(later.value(0), later.place(0), count, sums_.value(lane), sums_.place(lane));
  }

  const ArgmaxFold& fold_;
  int64_t element_bytes_;
  int64_t lanes_ = 0;
  bool is_empty_ = true;
  Pairs sums_;
  Pairs partial_;
  Bytes widened_;
};

}  // namespace

std::unique_ptr<Accumulator> make_argmax_accumulator(const ArgmaxFold& fold, tensor::DType element, int64_t lanes) {
  return std::make_unique<ArgmaxAccumulator>(fold, element, lanes);
}

}  // namespace meshd::kernels
