#include "service/tensor/dtype.h"

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

std::optional<DType> dtype_from_npy(std::string_view descr) { return find(&DTypeRow::npy, descr); }

}  // namespace meshd::tensor
