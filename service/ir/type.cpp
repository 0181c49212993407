#include "service/ir/type.h"

namespace meshd::ir {

std::string to_string(const Type& type) {
  switch (type.kind) {
    case TypeKind::kToken:
      return "!stablehlo.token";
    case TypeKind::kTensor:
      return "tensor<" + tensor::to_string(type.tensor) + ">";
    case TypeKind::kTuple:
      break;
  }
  std::string out = "tuple<";
  for (size_t i = 0; i < type.elements.size(); ++i) out += (i ? ", " : "") + to_string(type.elements[i]);
  return out + ">";
}

}  // namespace meshd::ir
