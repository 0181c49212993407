#include "service/ir/quantization.h"

#include <fmt/core.h>

#include "service/ir/float_text.h"

namespace meshd::ir {
namespace {

std::string storage_text(tensor::DType storage) {
  const bool is_signed = tensor::is_signed_integer(storage);
  return fmt::format("{}{}", is_signed ? "i" : "u", tensor::row(storage).bits);
}

}  // namespace

std::string to_string(const Quantization& of) {
  std::string out = "!quant.uniform<" + storage_text(of.storage);
  if (of.storage_min != tensor::least_value(of.storage) ||
      of.storage_max != static_cast<int64_t>(tensor::largest_value(of.storage)))
    out += fmt::format("<{}:{}>", of.storage_min, of.storage_max);
  out += ":" + std::string(tensor::row(of.expressed).stablehlo);
  if (of.is_per_axis()) out += fmt::format(":{}", of.dimension);
  out += of.is_per_axis() ? ", {" : ", ";
  for (size_t i = 0; i < of.scales.size(); ++i) {
    out += (i == 0 ? "" : ",") + float_text(of.scales[i]);
    if (of.zero_points[i] != 0) out += fmt::format(":{}", of.zero_points[i]);
  }
  return out + (of.is_per_axis() ? "}>" : ">");
}

}  // namespace meshd::ir
