#include "service/tensor/dtype.h"

#include <algorithm>

namespace meshd::tensor {
namespace {

std::optional<DType> find(std::string_view DTypeRow::*column, std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const DTypeRow& candidate : kDTypeTable) {
    if (candidate.*column == text) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace

std::optional<DType> dtype_from_name(std::string_view name) { return find(&DTypeRow::name, name); }

std::optional<DType> dtype_from_stablehlo(std::string_view text) { return find(&DTypeRow::stablehlo, text); }

std::optional<DType> dtype_from_npy(std::string_view descr) {
  const auto found = find(&DTypeRow::npy, descr);
  const auto has_it = [&](const DTypeRow& candidate) { return candidate.npy == descr; };
  return found && std::count_if(std::begin(kDTypeTable), std::end(kDTypeTable), has_it) == 1 ? found : std::nullopt;
}

}  // namespace meshd::tensor
