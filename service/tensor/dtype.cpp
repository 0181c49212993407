#include "service/tensor/dtype.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "service/core/ascii.h"
#include "service/core/near_names.h"

namespace meshd::tensor {
namespace {

constexpr std::string_view DTypeRow::*kColumns[] = {&DTypeRow::name, &DTypeRow::stablehlo, &DTypeRow::npy,
                                                    &DTypeRow::oip,  &DTypeRow::zarr3,     &DTypeRow::safetensors};

/// Names of C, NumPy, PyTorch and HLO that no surface of ours has.
constexpr std::pair<std::string_view, DType> kForeign[] = {
    {"pred", DType::kBool},         {"boolean", DType::kBool},       {"bool_", DType::kBool},
    {"byte", DType::kUint8},        {"char", DType::kInt8},          {"short", DType::kInt16},
    {"int", DType::kInt32},         {"long", DType::kInt64},         {"longlong", DType::kInt64},
    {"uint", DType::kUint32},       {"half", DType::kFloat16},       {"float", DType::kFloat32},
    {"single", DType::kFloat32},    {"double", DType::kFloat64},     {"float_", DType::kFloat64},
    {"complex", DType::kComplex64}, {"csingle", DType::kComplex64},  {"cfloat", DType::kComplex64},
    {"c64", DType::kComplex64},     {"cdouble", DType::kComplex128}, {"c128", DType::kComplex128},
    {"s8", DType::kInt8},           {"s16", DType::kInt16},          {"s32", DType::kInt32},
    {"s64", DType::kInt64},         {"brain", DType::kBfloat16},     {"bfloat", DType::kBfloat16},
};

std::optional<DType> find(std::string_view DTypeRow::*column, std::string_view text) {
  if (text.empty()) return std::nullopt;
  for (const DTypeRow& candidate : kDTypeTable) {
    if (candidate.*column == text) return candidate.dtype;
  }
  return std::nullopt;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), core::to_lower);
  return out;
}

/// The type that some surface or library calls so, in letters of either case.
std::optional<DType> foreign_dtype(const std::string& lower) {
  for (const auto column : kColumns) {
    for (const DTypeRow& candidate : kDTypeTable) {
      const bool is_shared = column == &DTypeRow::npy && !dtype_from_npy(candidate.npy);
      if (!is_shared && !(candidate.*column).empty() && lower_case(candidate.*column) == lower) return candidate.dtype;
    }
  }
  for (const auto& [name, dtype] : kForeign) {
    if (name == lower) return dtype;
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

std::optional<DType> dtype_meant(std::string_view name) {
  constexpr size_t kLongest = 64;
  // A digit more or less is another type: short names have to be nearer, and the shortest are near nothing.
  constexpr size_t kShort = 4;
  constexpr size_t kMiddle = 6;
  if (name.size() > kLongest) return std::nullopt;
  std::string lower = lower_case(name.substr(name.rfind('.') + 1));
  if (const auto found = foreign_dtype(lower)) return found;
  if (lower.size() <= kShort) return std::nullopt;
  std::vector<std::string_view> known;
  for (const DTypeRow& candidate : kDTypeTable) known.push_back(candidate.name);
  return dtype_from_name(core::nearest_name(lower, known, lower.size() <= kMiddle ? 2 : 3));
}

std::string dtype_advice(std::string_view name, char quote) {
  if (const auto meant = dtype_meant(name)) return core::did_you_mean(row(*meant).name, quote);
  return "; known are bool, int8, ..., float32, bfloat16, complex64 and so on";
}

}  // namespace meshd::tensor
