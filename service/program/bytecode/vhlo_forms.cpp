#include "service/program/bytecode/vhlo_forms.h"

namespace meshd::program {

std::string_view without_version(std::string_view name) {
  const size_t version = name.rfind("_v");
  const bool has_version = version != std::string_view::npos && version + 2 < name.size() &&
                           name.find_first_not_of("0123456789", version + 2) == std::string_view::npos;
  return has_version ? name.substr(0, version) : name;
}

std::string todays_op_name(std::string_view name, bool ends_function) {
  constexpr std::string_view kVhlo = "vhlo.";
  if (!name.starts_with(kVhlo)) return std::string(name);
  const std::string_view op = without_version(name.substr(kVhlo.size()));
  const bool is_of_functions = op == "func" || op == "call" || (op == "return" && ends_function);
  return std::string(is_of_functions ? "func." : "stablehlo.").append(op);
}

}  // namespace meshd::program
