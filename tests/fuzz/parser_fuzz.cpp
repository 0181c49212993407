// libFuzzer target: any bytes as StableHLO text must parse, or be refused with core::Error; what parses must print and
// parse again. Build with clang and -DMESHD_FUZZ=ON; seeds are the texts under tests/conformance.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "service/core/error.h"
#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  meshd::ir::ModuleRef module;
  try {
    module = meshd::program::parse_stablehlo({reinterpret_cast<const char*>(data), size});
  } catch (const meshd::core::Error&) {
    return 0;
  }
  const std::string text = meshd::program::print_generic(*module);
  if (meshd::program::print_generic(*meshd::program::parse_stablehlo(text)) != text) std::abort();
  try {
    meshd::program::inline_calls(*module, 10'000);
  } catch (const meshd::core::Error&) {
  }
  return 0;
}
