#include "tests/artifacts/canonical_text.h"

#include <algorithm>

#include "service/ir/walk.h"
#include "service/program/gspmd/import_shardy_strings.h"
#include "service/program/parse/parse.h"
#include "service/program/print.h"

namespace meshd::test {
namespace {

void sort_attributes(ir::AttributeList& list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

// Structs of a dialect without their empty lists, which printers leave out or write.
void drop_empty_lists(ir::AttributeList& list) {
  for (auto& [name, value] : list) {
    auto* dict = std::get_if<ir::DictAttr>(&value.value);
    if (dict == nullptr || dict->name.empty()) continue;
    std::erase_if(dict->entries, [](const ir::NamedAttribute& entry) {
      const auto* integers = entry.value.as<ir::IntArrayAttr>();
      return integers != nullptr && integers->values.empty();
    });
  }
}

// A constant of equal elements as one element, however it was written.
void shorten(ir::AttributeList& list) {
  for (auto& [name, value] : list) {
    auto* dense = std::get_if<ir::DenseAttr>(&value.value);
    if (dense == nullptr || dense->splat || dense->bytes->empty()) continue;
    const auto element = static_cast<size_t>(tensor::size_bytes(dense->type.dtype));
    const std::vector<std::byte>& bytes = *dense->bytes;
    if (!std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(element), bytes.end(), bytes.begin())) continue;
    dense->bytes = std::make_shared<const std::vector<std::byte>>(bytes.begin(),
                                                                  bytes.begin() + static_cast<std::ptrdiff_t>(element));
    dense->splat = true;
  }
}

}  // namespace

std::string canonical_text(std::string_view text) {
  ir::Module module = program::parse_unverified(text);
  if (program::has_shardy_strings(module)) program::import_shardy_strings(module);
  sort_attributes(module.attributes);
  for (ir::Function& function : module.functions) {
    sort_attributes(function.attributes);
    for (auto* parameters : {&function.arguments, &function.results}) {
      for (ir::Parameter& parameter : *parameters) sort_attributes(parameter.attributes);
    }
    ir::walk(function.body, [](ir::Op& op) {
      sort_attributes(op.attributes);
      shorten(op.attributes);
      drop_empty_lists(op.attributes);
    });
  }
  return program::print_generic(module);
}

}  // namespace meshd::test
