#include "service/kernels/elementwise/vector_functions.h"

#include <array>
#include <string_view>

#include "service/kernels/elementwise/vector_math.h"

// Set by kernels/CMakeLists.txt where the compiler's options make loops call vector functions.
#if defined(MESHD_LOOPS_CALL_VECTOR_FUNCTIONS) && defined(__x86_64__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define MESHD_HAS_VECTOR_FUNCTIONS 1
#endif
#endif

#if defined(MESHD_HAS_VECTOR_FUNCTIONS)
// NOLINTBEGIN(bugprone-reserved-identifier)
// Names of the x86 vector function ABI: d is AVX2 and e AVX-512, N takes no mask, then the lanes and a v for each
// operand.
extern "C" {
void _ZGVdN8v_expf();
void _ZGVeN16v_expf();
void _ZGVdN8v_expm1f();
void _ZGVeN16v_expm1f();
void _ZGVdN8v_logf();
void _ZGVeN16v_logf();
void _ZGVdN8v_log1pf();
void _ZGVeN16v_log1pf();
void _ZGVdN8v_cbrtf();
void _ZGVeN16v_cbrtf();
void _ZGVdN8v_sinf();
void _ZGVeN16v_sinf();
void _ZGVdN8v_cosf();
void _ZGVeN16v_cosf();
void _ZGVdN8v_tanf();
void _ZGVeN16v_tanf();
void _ZGVdN8v_tanhf();
void _ZGVeN16v_tanhf();
void _ZGVdN8v_erff();
void _ZGVeN16v_erff();
void _ZGVdN8v_erfcf();
void _ZGVeN16v_erfcf();
void _ZGVdN8v_asinf();
void _ZGVeN16v_asinf();
void _ZGVdN8v_acosf();
void _ZGVeN16v_acosf();
void _ZGVdN8v_atanf();
void _ZGVeN16v_atanf();
void _ZGVdN8v_sinhf();
void _ZGVeN16v_sinhf();
void _ZGVdN8v_coshf();
void _ZGVeN16v_coshf();
void _ZGVdN8v_asinhf();
void _ZGVeN16v_asinhf();
void _ZGVdN8v_acoshf();
void _ZGVeN16v_acoshf();
void _ZGVdN8v_atanhf();
void _ZGVeN16v_atanhf();
void _ZGVdN8vv_powf();
void _ZGVeN16vv_powf();
void _ZGVdN8vv_atan2f();
void _ZGVeN16vv_atan2f();
}
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace meshd::kernels {

#if defined(MESHD_HAS_VECTOR_FUNCTIONS)
namespace {

struct VectorFunction {
  std::string_view op;
  void (*v3)();
  void (*v4)();
};

const std::array<VectorFunction, 21> kVectorFunctions = {{
    {"exponential", _ZGVdN8v_expf, _ZGVeN16v_expf}, {"exponential_minus_one", _ZGVdN8v_expm1f, _ZGVeN16v_expm1f},
    {"log", _ZGVdN8v_logf, _ZGVeN16v_logf},         {"log_plus_one", _ZGVdN8v_log1pf, _ZGVeN16v_log1pf},
    {"cbrt", _ZGVdN8v_cbrtf, _ZGVeN16v_cbrtf},      {"sine", _ZGVdN8v_sinf, _ZGVeN16v_sinf},
    {"cosine", _ZGVdN8v_cosf, _ZGVeN16v_cosf},      {"tan", _ZGVdN8v_tanf, _ZGVeN16v_tanf},
    {"tanh", _ZGVdN8v_tanhf, _ZGVeN16v_tanhf},      {"erf", _ZGVdN8v_erff, _ZGVeN16v_erff},
    {"erfc", _ZGVdN8v_erfcf, _ZGVeN16v_erfcf},      {"asin", _ZGVdN8v_asinf, _ZGVeN16v_asinf},
    {"acos", _ZGVdN8v_acosf, _ZGVeN16v_acosf},      {"atan", _ZGVdN8v_atanf, _ZGVeN16v_atanf},
    {"sinh", _ZGVdN8v_sinhf, _ZGVeN16v_sinhf},      {"cosh", _ZGVdN8v_coshf, _ZGVeN16v_coshf},
    {"asinh", _ZGVdN8v_asinhf, _ZGVeN16v_asinhf},   {"acosh", _ZGVdN8v_acoshf, _ZGVeN16v_acoshf},
    {"atanh", _ZGVdN8v_atanhf, _ZGVeN16v_atanhf},   {"power", _ZGVdN8vv_powf, _ZGVeN16vv_powf},
    {"atan2", _ZGVdN8vv_atan2f, _ZGVeN16vv_atan2f},
}};

}  // namespace

const void* vector_function(ScalarOp op, CpuLevel level) {
  if (level == CpuLevel::kBase) return nullptr;
  for (const VectorFunction& function : kVectorFunctions) {
    if (function.op != name(op)) continue;
    return reinterpret_cast<const void*>(level == CpuLevel::kV4 ? function.v4 : function.v3);
  }
  return nullptr;
}
#else
const void* vector_function(ScalarOp /*op*/, CpuLevel /*level*/) { return nullptr; }
#endif

}  // namespace meshd::kernels
