// Any bytes as StableHLO text parse, or are refused with core::Error; what parses prints, and parses again to the same
// text. Seeds are the texts under tests/conformance.
#include <cstdlib>
#include <string>
#include <string_view>

#include "service/program/parse_stablehlo.h"
#include "service/program/print.h"
#include "service/program/transform/inline_calls.h"
#include "tests/fuzz/format.h"

namespace meshd::fuzz {
namespace {

void read_stablehlo(std::string_view bytes) {
  const ir::ModuleRef module = program::parse_stablehlo(bytes);
  const std::string text = program::print_generic(*module);
  // What we print is no input of anybody: a refusal of it is a defect, as other text is.
  const auto printed_again = [&]() noexcept { return program::print_generic(*program::parse_stablehlo(text)); };
  if (printed_again() != text) std::abort();
  program::inline_calls(*module, 10'000);
}

constexpr Format kFormats[] = {{"stablehlo", read_stablehlo}};

}  // namespace

std::span<const Format> formats() { return kFormats; }

}  // namespace meshd::fuzz
