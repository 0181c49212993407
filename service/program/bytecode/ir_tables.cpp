#include "service/program/bytecode/ir_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "service/program/bytecode/dialect_encodings.h"
#include "service/program/bytecode/sharding_printer.h"
#include "service/program/limits.h"
#include "service/program/literals/float_literal.h"
#include "service/program/literals/hex.h"
#include "service/program/print.h"

namespace meshd::program {
namespace {

/// Constants of so many bytes are printed as values, larger ones in hex.
constexpr size_t kMaxPrintedBytes = 1024;

/// MLIR's mark of a dimension that is not known.
constexpr int64_t kDynamicSize = INT64_MIN;

using TypeKind = TypeNode::Kind;
using AttributeKind = AttributeNode::Kind;

void check_depth(int depth) {
  if (depth > kMaxAttributeDepth)
    throw core::Error("program_syntax", "types or attributes of the bytecode nest too deeply");
}

}  // namespace

IrTables::IrTables(const BytecodeFile& file, MemoryUse& memory) : file_(file), memory_(memory) {
  memory_.take((file.types().size() + file.attributes().size()) * sizeof(void*));
  types_.resize(file.types().size());
  attributes_.resize(file.attributes().size());
}

const TypeNode& IrTables::type(TypeIndex index) {
  std::unique_ptr<const TypeNode>& known = types_[index];
  if (known != nullptr) return *known;
  const EncodedEntry& entry = file_.types()[index];
  ByteReader reader = file_.reader(entry.bytes);
  memory_.take(sizeof(TypeNode) + 12 * entry.bytes.size());
  TypeNode node;
  const std::string_view dialect = file_.dialects()[entry.dialect];
  if (!entry.is_custom) {
    node.text = reader.null_terminated();
  } else if (dialect == "builtin") {
    node = read_builtin_type(reader, *this);
  } else if (dialect == "vhlo") {
    node = read_vhlo_type(reader, *this);
  } else if (dialect == "stablehlo") {
    node = read_stablehlo_type(reader, *this);
  } else {
    reader.fail("types of dialect '" + std::string(dialect) + "' are not read here", "unsupported_type");
  }
  if (!reader.empty()) reader.fail("bytes are left behind a type of dialect '" + std::string(dialect) + "'");
  known = std::make_unique<const TypeNode>(std::move(node));
  return *known;
}

const AttributeNode& IrTables::attribute(AttributeIndex index) {
  std::unique_ptr<const AttributeNode>& known = attributes_[index];
  if (known != nullptr) return *known;
  const EncodedEntry& entry = file_.attributes()[index];
  ByteReader reader = file_.reader(entry.bytes);
  AttributeNode node;
  const std::string_view dialect = file_.dialects()[entry.dialect];
  memory_.take(sizeof(AttributeNode));
  if (!entry.is_custom) {
    node.text = reader.null_terminated();
  } else if (dialect == "builtin") {
    node = read_builtin_attribute(reader, *this);
  } else if (dialect == "vhlo") {
    node = read_vhlo_attribute(reader, *this);
  } else if (dialect == "stablehlo") {
    node = read_stablehlo_attribute(reader, *this);
  } else if (dialect == "chlo") {
    node = read_chlo_attribute(reader, *this);
  } else if (dialect == "sdy") {
    node = read_sdy_attribute(reader, *this);
  } else {
    reader.fail("attributes of dialect '" + std::string(dialect) + "' are not read here", "unsupported_attribute");
  }
  if (!reader.empty()) reader.fail("bytes are left behind an attribute of dialect '" + std::string(dialect) + "'");
  memory_.take(node.children.size() * sizeof(AttributeIndex) + node.numbers.size() * sizeof(int64_t) +
               (node.owned == nullptr ? 0 : node.owned->size()));
  known = std::make_unique<const AttributeNode>(std::move(node));
  return *known;
}

std::optional<AttributeIndex> IrTables::read_optional_attribute(ByteReader& reader) const {
  const auto [number, is_present] = reader.flagged_varint();
  if (!is_present) return std::nullopt;
  if (number >= attributes_.size()) reader.fail(fmt::format("there is no attribute {}", number));
  return static_cast<AttributeIndex>(number);
}

uint64_t IrTables::read_number(ByteReader& reader, TypeIndex index) {
  const TypeNode& node = type(index);
  uint64_t width = 64;
  bool is_signed = true;
  if (node.kind == TypeKind::kInteger) {
    width = node.width;
    is_signed = node.text != "ui" && width != 1;
  } else if (node.text != "index") {
    const auto dtype = tensor::dtype_from_stablehlo(node.text);
    if (node.kind != TypeKind::kNamed || !dtype)
      reader.fail("a number needs an integer or floating type", "unsupported_dtype");
    width = static_cast<uint64_t>(tensor::row(*dtype).bits);
    is_signed = false;
  }
  if (width == 0 || width > 64)
    reader.fail(fmt::format("integers of {} bits are not supported", width), "unsupported_dtype");
  uint64_t bits = width <= 8 ? reader.byte() : static_cast<uint64_t>(reader.signed_varint());
  if (width == 64) return bits;
  bits &= (uint64_t{1} << width) - 1;
  if (is_signed && (bits >> (width - 1) & 1) != 0) bits |= UINT64_MAX << width;
  return bits;
}

void IrTables::print_type(TypeIndex index, TextWriter& out, int depth) {
  check_depth(depth);
  const TypeNode& node = type(index);
  const auto list = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      if (i != first) out << ", ";
      print_type(node.elements[i], out, depth + 1);
    }
  };
  switch (node.kind) {
    case TypeKind::kInteger:
      out << node.text << static_cast<int64_t>(node.width);
      return;
    case TypeKind::kNamed:
      out << node.text;
      return;
    case TypeKind::kNone:
      out << "none";
      return;
    case TypeKind::kComplex:
      out << "complex<";
      list(0, 1);
      out << ">";
      return;
    case TypeKind::kTensor:
      out << "tensor<";
      for (const int64_t size : node.dims) {
        if (size == kDynamicSize) {
          out << "?x";
        } else if (size < 0) {
          throw core::Error("program_syntax",
                            fmt::format("a tensor type of the bytecode has a dimension of size {}", size));
        } else {
          out << size << "x";
        }
      }
      list(0, 1);
      if (node.encoding) {
        out << ", ";
        print_attribute(*node.encoding, out, depth + 1);
      }
      out << ">";
      return;
    case TypeKind::kUnranked:
      out << "tensor<*x";
      list(0, 1);
      out << ">";
      return;
    case TypeKind::kTuple:
      out << "tuple<";
      list(0, node.elements.size());
      out << ">";
      return;
    case TypeKind::kFunction: {
      out << "(";
      list(0, node.input_count);
      out << ") -> ";
      const bool is_one = node.elements.size() - node.input_count == 1;
      if (!is_one) out << "(";
      list(node.input_count, node.elements.size());
      if (!is_one) out << ")";
      return;
    }
    case TypeKind::kQuantized:
      out << "!quant.uniform<" << node.text << static_cast<int64_t>(type(node.elements[0]).width) << node.storage_range
          << ":";
      list(1, 2);
      out << node.quantized << ">";
      return;
  }
}

void IrTables::print_types(const std::vector<TypeIndex>& types, TextWriter& out) {
  out << "(";
  for (size_t i = 0; i < types.size(); ++i) {
    if (i) out << ", ";
    print_type(types[i], out);
  }
  out << ")";
}

void IrTables::print_results(const std::vector<TypeIndex>& types, TextWriter& out) {
  types.size() == 1 ? print_type(types[0], out) : print_types(types, out);
}

void IrTables::print_entry(std::string_view name, AttributeIndex value, TextWriter& out) {
  out << attribute_name(name);
  if (attribute(value).kind == AttributeKind::kUnit) return;
  out << " = ";
  print_attribute(value, out);
}

void IrTables::print_attribute(AttributeIndex index, TextWriter& out, int depth) {
  check_depth(depth);
  const AttributeNode& node = attribute(index);
  const auto list = [&](std::string_view between) {
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i) out << between;
      print_attribute(node.children[i], out, depth + 1);
    }
  };
  switch (node.kind) {
    case AttributeKind::kText:
      out << node.text;
      list(", ");
      out << node.data;
      return;
    case AttributeKind::kString:
      out << quoted(node.text);
      return;
    case AttributeKind::kSymbol:
      for (size_t i = 0; i < node.children.size(); ++i) {
        const AttributeNode& part = attribute(node.children[i]);
        if (i) out << "::";
        part.kind == AttributeKind::kString ? out << symbol(part.text)
                                            : (print_attribute(node.children[i], out, depth + 1), out);
      }
      return;
    case AttributeKind::kUnit:
      out << "unit";
      return;
    case AttributeKind::kBool:
      out << (node.bits != 0 ? "true" : "false");
      return;
    case AttributeKind::kInteger: {
      const TypeNode& of = type(node.type);
      const std::string name = of.kind == TypeKind::kInteger ? fmt::format("{}{}", of.text, of.width) : "index";
      out << print(ir::Attribute{ir::IntegerAttr{static_cast<int64_t>(node.bits), name}});
      return;
    }
    case AttributeKind::kFloat: {
      const std::string_view name = type(node.type).text;
      const auto dtype = tensor::dtype_from_stablehlo(name);
      if (!dtype) throw core::Error("unsupported_dtype", "element type '" + std::string(name) + "' is not supported");
      out << print(ir::Attribute{ir::FloatAttr{float_value(*dtype, node.bits), std::string(name)}});
      return;
    }
    case AttributeKind::kArray:
      out << "[";
      list(", ");
      out << "]";
      return;
    case AttributeKind::kDict:
      out << "{";
      for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
        if (i) out << ", ";
        out << attribute_name(attribute(node.children[i]).text);
        if (attribute(node.children[i + 1]).kind == AttributeKind::kUnit) continue;
        out << " = ";
        print_attribute(node.children[i + 1], out, depth + 1);
      }
      out << "}";
      return;
    case AttributeKind::kType:
      print_type(node.type, out, depth + 1);
      return;
    case AttributeKind::kDense:
      print_dense(node, out, depth);
      return;
    case AttributeKind::kDenseArray:
      print_dense_array(node, out);
      return;
    case AttributeKind::kName:
    case AttributeKind::kPlace:
    case AttributeKind::kLocations:
      out << "loc(" << quoted(location_name(index)) << ")";
      return;
    case AttributeKind::kSharding:
      ShardingPrinter(*this, out).print(node);
      return;
  }
}

void IrTables::print_dense(const AttributeNode& node, TextWriter& out, int depth) {
  const TypeNode& of = type(node.type);
  if (of.kind != TypeKind::kTensor || of.encoding)
    throw core::Error("unsupported_type", "a constant of the bytecode must have a tensor type without an encoding");
  const TypeNode& element = type(of.elements[0]);
  std::string element_name(element.text);
  if (element.kind == TypeKind::kInteger) element_name += std::to_string(element.width);
  const bool is_index = element_name == "index";
  const auto dtype = tensor::dtype_from_stablehlo(is_index ? "i64" : element_name);
  const bool is_known =
      dtype && static_cast<int64_t>(of.dims.size()) <= kMaxRank &&
      std::all_of(of.dims.begin(), of.dims.end(), [](int64_t size) { return size >= 0 && size <= INT32_MAX; });
  if (is_known && !node.data.empty() && node.data.size() <= kMaxPrintedBytes) {
    ir::DenseAttr dense;
    dense.type = {*dtype, tensor::Dims(of.dims.begin(), of.dims.end())};
    dense.is_index = is_index;
    int64_t count = 1;
    for (const int64_t size : of.dims) {
      if (__builtin_mul_overflow(count, size, &count)) count = -1;
      if (count < 0) break;
    }
    const auto* begin = reinterpret_cast<const std::byte*>(node.data.data());
    std::vector<std::byte> bytes(begin, begin + node.data.size());
    if (count > 0) {
      dense.splat = adopt_stored_bytes(dense.type, count, bytes) || count == 1;
      const int64_t stored = tensor::size_bytes(*dtype) * (dense.splat ? 1 : count);
      if (static_cast<int64_t>(bytes.size()) == stored) {
        dense.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
        out << print(ir::Attribute{std::move(dense)});
        return;
      }
    }
  }
  // The parser says what is wrong with it, if something is.
  out << "dense<";
  if (!node.data.empty()) {
    out << "\"";
    out.hex(node.data);
    out << "\"";
  }
  out << "> : ";
  print_type(node.type, out, depth + 1);
}

void IrTables::print_dense_array(const AttributeNode& node, TextWriter& out) {
  const TypeNode& of = type(node.type);
  const uint64_t size = of.width == 1 ? 1 : of.width / 8;
  if (of.kind != TypeKind::kInteger || !std::has_single_bit(size) || size > 8 || node.data.size() / size != node.bits ||
      node.data.size() % size != 0) {
    throw core::Error("unsupported_attribute",
                      fmt::format("an array of {} elements of the bytecode is not one of integers", node.bits));
  }
  ir::IntArrayAttr array;
  array.element_type = fmt::format("{}{}", of.text, of.width);
  for (size_t at = 0; at < node.data.size(); at += size) {
    uint64_t value = 0;
    std::memcpy(&value, node.data.data() + at, size);
    if (size < 8 && of.width != 1 && (value >> (8 * size - 1) & 1) != 0) value |= UINT64_MAX << (8 * size);
    array.values.push_back(static_cast<int64_t>(value));
  }
  out << print(ir::Attribute{std::move(array)});
}

std::optional<std::vector<int64_t>> IrTables::dense_integers(AttributeIndex index) {
  const AttributeNode& node = attribute(index);
  if (node.kind != AttributeKind::kDense) return std::nullopt;
  const TypeNode& of = type(node.type);
  if (of.kind != TypeKind::kTensor) return std::nullopt;
  const TypeNode& element = type(of.elements[0]);
  const bool is_bool = element.kind == TypeKind::kInteger && element.width == 1;
  const bool is_word = element.kind == TypeKind::kInteger && element.width == 64;
  if (!is_bool && !is_word) return std::nullopt;
  // A list that is an attribute has at most two elements for each dimension. What is longer is not looked at, because
  // any number of ops may have it.
  constexpr int64_t kMaxListed = 4 * kMaxRank;
  int64_t count = 1;
  for (const int64_t size : of.dims) {
    if (size < 0 || size > kMaxListed || (count *= size) > kMaxListed) return std::nullopt;
  }
  const auto* begin = reinterpret_cast<const std::byte*>(node.data.data());
  std::vector<std::byte> bytes(begin, begin + node.data.size());
  ir::DenseAttr dense;
  dense.type = {is_bool ? tensor::DType::kBool : tensor::DType::kInt64, tensor::Dims(of.dims.begin(), of.dims.end())};
  if (count == 0) return std::vector<int64_t>();
  dense.splat = adopt_stored_bytes(dense.type, count, bytes) || count == 1;
  if (static_cast<int64_t>(bytes.size()) != tensor::size_bytes(dense.type.dtype) * (dense.splat ? 1 : count))
    return std::nullopt;
  dense.bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  if (!is_bool) return ir::dense_ints(dense);
  std::vector<int64_t> out;
  for (const std::byte value : *dense.bytes) out.push_back(std::to_integer<int64_t>(value));
  if (dense.splat) out.assign(static_cast<size_t>(count), out[0]);
  return out;
}

std::string IrTables::location_name(AttributeIndex index, int depth) {
  // Places of calls can be shared by many ops and lead nowhere: whoever looks gives up after so many steps.
  constexpr int64_t kMaxVisited = 50'000'000;
  if (depth > kMaxAttributeDepth || ++locations_visited_ > kMaxVisited) return {};
  const AttributeNode& node = attribute(index);
  if (node.kind == AttributeKind::kName) return std::string(attribute(node.children[0]).text);
  if (node.kind == AttributeKind::kPlace) return fmt::format("{}:{}", attribute(node.children[0]).text, node.bits);
  if (node.kind != AttributeKind::kLocations) return {};
  for (const AttributeIndex child : node.children) {
    if (std::string name = location_name(child, depth + 1); !name.empty()) return name;
  }
  return {};
}

}  // namespace meshd::program
