#include "service/program/parse_stablehlo.h"

#include <memory>
#include <utility>

#include "service/program/gspmd/import_gspmd.h"
#include "service/program/gspmd/import_shardy_strings.h"
#include "service/program/parse/other_languages.h"
#include "service/program/parse/parse.h"
#include "service/program/transform/legalize_quantized.h"
#include "service/program/transform/unpack_tuples.h"
#include "service/program/verify/verify.h"

namespace meshd::program {

ir::ModuleRef parse_stablehlo(std::string_view text, const core::HoldMemory& hold) {
  refuse_other_languages(text);
  auto module = std::make_shared<ir::Module>(parse_unverified(text, hold));
  if (has_shardy_strings(*module)) import_shardy_strings(*module);
  *module = unpack_tuples(std::move(*module));
  if (uses_gspmd(*module)) *module = import_gspmd(std::move(*module));
  verify(*module);
  if (has_quantized_types(*module)) *module = legalize_quantized(std::move(*module));
  return module;
}

}  // namespace meshd::program
