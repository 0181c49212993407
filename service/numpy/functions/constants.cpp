// Names that are no functions: numbers and dtypes.
#include <limits>
#include <numbers>

#include "service/numpy/functions/table.h"

namespace meshd::numpy {

std::vector<ConstantRow> constant_rows() {
  std::vector<ConstantRow> out{
      {"jnp.pi", std::numbers::pi},
      {"jnp.e", std::numbers::e},
      {"jnp.euler_gamma", std::numbers::egamma},
      {"jnp.inf", std::numeric_limits<double>::infinity()},
      {"jnp.nan", std::numeric_limits<double>::quiet_NaN()},
      {"jnp.newaxis", None{}},
      {"jnp.bool_", DType::kBool},
      {"jnp.int_", DType::kInt32},
      {"jnp.float_", DType::kFloat32},
      {"math.pi", std::numbers::pi},
      {"math.e", std::numbers::e},
      {"math.inf", std::numeric_limits<double>::infinity()},
      {"math.nan", std::numeric_limits<double>::quiet_NaN()},
      {"jnp.floating", std::string("floating")},
      {"jnp.integer", std::string("integer")},
      {"jnp.inexact", std::string("inexact")},
      {"jnp.complexfloating", std::string("complexfloating")},
  };
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) out.push_back({"jnp." + std::string(row.name), row.dtype});
  return out;
}

}  // namespace meshd::numpy
