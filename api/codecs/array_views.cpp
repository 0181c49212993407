#include "api/codecs/array_views.h"

#include <fmt/format.h>

#include "api/codecs/mesh_codec.h"

namespace meshd::api {

std::string array_text(const arrays::Array& array) {
  const tensor::TensorType& type = array.info().type;
  return fmt::format("{}[{}]", tensor::name(type.dtype), fmt::join(type.dims, ","));
}

std::string array_repr(const arrays::Array& array) {
  const arrays::ArrayInfo& info = array.info();
  std::string out = fmt::format("Array(shape=({}{}), dtype={}", fmt::join(info.type.dims, ", "),
                                info.type.rank() == 1 ? "," : "", tensor::name(info.type.dtype));
  if (info.committed) {
    out += fmt::format(", mesh={}, sharding={}", mesh::to_text(*info.sharding.mesh),
                       to_json(sharding_document(info.sharding, info.type.rank())));
  }
  return out + ")";
}

}  // namespace meshd::api
