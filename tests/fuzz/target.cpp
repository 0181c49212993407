// libFuzzer's entry: an input goes to the format that FUZZ_FORMAT names, which reads it or refuses it with core::Error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

#include "service/core/error.h"
#include "tests/fuzz/format.h"

namespace {

const meshd::fuzz::Format& chosen() {
  const char* name = std::getenv("FUZZ_FORMAT");
  const auto formats = meshd::fuzz::formats();
  const auto found =
      std::ranges::find(formats, std::string_view(name == nullptr ? "" : name), &meshd::fuzz::Format::name);
  if (found != formats.end()) return *found;
  std::cerr << "FUZZ_FORMAT must be one of:";
  for (const meshd::fuzz::Format& format : formats) std::cerr << ' ' << format.name;
  std::cerr << '\n';
  std::exit(2);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const meshd::fuzz::Format& format = chosen();  // the environment does not change
  try {
    format.read({reinterpret_cast<const char*>(data), size});
  } catch (const meshd::core::Error& error) {
    if (error.code() == meshd::core::ErrorCode("internal"))
      throw;  // no input is to make one: it says that we are wrong
  }
  return 0;
}
