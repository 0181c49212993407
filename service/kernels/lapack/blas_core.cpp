#include "service/kernels/lapack/blas_core.h"

#include <cblas.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

#include "service/kernels/cpu.h"

namespace meshd::kernels {
namespace {

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

// Loops that are older than what the processor has, or need more than it may use.
bool is_wrong(std::string_view core, CpuLevel level) {
  constexpr std::string_view kWithAvx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
  constexpr std::string_view kWithAvx2[] = {"Haswell", "Zen"};
  for (const std::string_view name : kWithAvx512) {
    if (core == name) return level != CpuLevel::kV4;
  }
  if (level == CpuLevel::kV4) return core != "Zen";  // OpenBLAS prefers AVX2 on processors with slow AVX-512
  for (const std::string_view name : kWithAvx2) {
    if (core == name) return level == CpuLevel::kBase;
  }
  return level == CpuLevel::kV3 && core != "Excavator";
}

// The two functions are exported by builds with loops for many processors, which Debian's is; others have nothing to
// choose.
void choose_again(const char* core) {
  using Function = void (*)();
  const auto quit = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit"));
  const auto init = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init"));
  if (quit == nullptr || init == nullptr) return;
  setenv(kCoreVariable, core, 1);
  quit();
  init();
  unsetenv(kCoreVariable);
}

}  // namespace

void prepare_openblas() {
  static const bool is_ready = [] {
    openblas_set_num_threads(1);
    const CpuLevel level = cpu_level();
    if (std::getenv(kCoreVariable) == nullptr && is_wrong(openblas_get_corename(), level)) {
      choose_again(level == CpuLevel::kV4 ? "SkylakeX" : level == CpuLevel::kV3 ? "Haswell" : "Nehalem");
    }
    return true;
  }();
  static_cast<void>(is_ready);
}

std::string openblas_core() { return openblas_get_corename(); }

}  // namespace meshd::kernels
