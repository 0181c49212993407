// What the interpreter of the tests cannot run, because it has one device, no client, and shapes as they are written. A
// program that it cannot run for any other reason fails its test, and so does an entry that it can run.
#pragma once

#include <string>
#include <string_view>

namespace meshd::test {

struct NotInterpreted {
  std::string_view what;     ///< part of the error's detail
  std::string_view witness;  ///< a program of tests/conformance/programs, or the op whose example it is
  std::string_view reason;
};

inline constexpr NotInterpreted kNotInterpreted[] = {
    {"'sdy.manual_computation' is not", "sdy.manual_computation", "each device runs the body on its own shard"},
    {"'stablehlo.all_reduce' is not", "stablehlo.cross-replica-sum", "combines what several devices have"},
    {"'stablehlo.infeed' is not", "stablehlo.infeed", "takes what a client feeds"},
    {"'stablehlo.outfeed' is not", "stablehlo.outfeed", "gives to a client"},
    {"'stablehlo.send' is not", "stablehlo.send", "gives to a client"},
    {"'stablehlo.recv' is not", "stablehlo.recv", "takes from a client"},
    {"'stablehlo.custom_call' @xla_ffi_python_cpu_callback is not", "logs_in_order", "calls a client back"},
    {"'stablehlo.custom_call' @xla_ffi_partitioned_python_cpu_callback is not", "partitioned_debug",
     "calls a client back"},
    {"the shape of what 'stablehlo.dot_general' gives", "exported_polymorphic",
     "shapes that follow from arguments are found when a program is specialised"},
};

/// Why the interpreter may fail with this detail; nothing: it may not.
inline std::string_view why_not_interpreted(std::string_view detail) {
  for (const NotInterpreted& entry : kNotInterpreted) {
    if (detail.find(entry.what) != std::string_view::npos) return entry.reason;
  }
  return {};
}

}  // namespace meshd::test
