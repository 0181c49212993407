// Windows for tests: written as attributes, and looked up element by element as the specification defines them, without
// the code under test.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "service/tensor/shape.h"

namespace meshd::test {

inline std::string tensor_text(const tensor::Dims& dims, const std::string& element) {
  std::string out = "tensor<";
  for (const int64_t dim : dims) out += std::to_string(dim) + "x";
  return out + element + ">";
}

struct WindowText {
  struct Dim {
    int64_t size = 1;
    int64_t window = 1;
    int64_t stride = 1;
    int64_t window_dilation = 1;
    int64_t base_dilation = 1;
    int64_t pad_low = 0;
    int64_t pad_high = 0;

    [[nodiscard]] int64_t count() const {
      const int64_t padded = pad_low + (size == 0 ? 0 : (size - 1) * base_dilation + 1) + pad_high;
      const int64_t span = (window - 1) * window_dilation + 1;
      return padded < span || stride == 0 ? 0 : (padded - span) / stride + 1;
    }
  };
  std::vector<Dim> dims;

  WindowText() = default;
  explicit WindowText(const tensor::Dims& sizes) {
    for (const int64_t size : sizes) dims.push_back({.size = size});
  }

  /// Up to three dimensions, most of them with windows, now and then large ones.
  static WindowText random(std::mt19937& random, bool with_dilations) {
    const auto below = [&](uint32_t end) { return static_cast<int64_t>(random() % end); };
    WindowText out;
    for (int64_t d = below(3) + 1; d > 0; --d) {
      Dim dim;
      dim.size = below(3) == 0 ? below(40) + 1 : below(7) + 1;
      if (below(4) != 0) {
        dim.window = below(3) == 0 ? below(20) + 1 : below(4) + 1;
        dim.stride = below(3) + 1;
        if (with_dilations && below(3) == 0) dim.window_dilation = below(3) + 1;
        if (with_dilations && below(3) == 0) dim.base_dilation = below(3) + 1;
        dim.pad_low = below(3) == 0 ? below(24) - 3 : 0;
        dim.pad_high = below(3) == 0 ? below(24) - 3 : 0;
      } else if (below(3) == 0) {
        dim.size = below(90) + 1;
      }
      out.dims.push_back(dim);
    }
    return out;
  }

  [[nodiscard]] tensor::Dims sizes() const {
    tensor::Dims out;
    for (const Dim& dim : dims) out.push_back(dim.size);
    return out;
  }
  [[nodiscard]] tensor::Dims windows() const {
    tensor::Dims out;
    for (const Dim& dim : dims) out.push_back(dim.window);
    return out;
  }
  [[nodiscard]] tensor::Dims counts() const {
    tensor::Dims out;
    for (const Dim& dim : dims) out.push_back(dim.count());
    return out;
  }

  /// Row-major position of the element of window `at` at `offset`; nothing for padding and holes.
  [[nodiscard]] std::optional<int64_t> element(const tensor::Dims& at, const tensor::Dims& offset) const {
    int64_t out = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t place = at[d] * dims[d].stride + offset[d] * dims[d].window_dilation - dims[d].pad_low;
      if (place < 0 || place % dims[d].base_dilation != 0 || place / dims[d].base_dilation >= dims[d].size) return {};
      out = out * dims[d].size + place / dims[d].base_dilation;
    }
    return out;
  }

  /// Attributes of reduce_window; of select_and_scatter without dilations.
  [[nodiscard]] std::string attributes(bool with_dilations = true) const {
    const auto list = [&](int64_t Dim::*field) {
      std::string out = "array<i64";
      for (size_t d = 0; d < dims.size(); ++d) out += (d == 0 ? ": " : ", ") + std::to_string(dims[d].*field);
      return out + ">";
    };
    std::string padding;
    for (const Dim& dim : dims) {
      padding +=
          (padding.empty() ? "[" : ", [") + std::to_string(dim.pad_low) + ", " + std::to_string(dim.pad_high) + "]";
    }
    std::string out = "window_dimensions = " + list(&Dim::window) + ", window_strides = " + list(&Dim::stride) +
                      ", padding = dense<[" + padding + "]> : tensor<" + std::to_string(dims.size()) + "x2xi64>";
    if (!with_dilations) return out;
    return out + ", base_dilations = " + list(&Dim::base_dilation) +
           ", window_dilations = " + list(&Dim::window_dilation);
  }
};

}  // namespace meshd::test
