// Programs as long as a test wants them.
#pragma once

#include <string>

namespace meshd::testing {

/// f32[2] -> f32[2] by so many additions, as StableHLO text.
inline std::string adding(int count) {
  std::string text =
      "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.add %a, %a : tensor<2xf32>\n";
  for (int i = 1; i < count; ++i) {
    text += "  %" + std::to_string(i) + " = stablehlo.add %" + std::to_string(i - 1) + ", %a : tensor<2xf32>\n";
  }
  return text + "  return %" + std::to_string(count - 1) + " : tensor<2xf32>\n}";
}

}  // namespace meshd::testing
