// StableHLO's and CHLO's own attributes, as text that the parser reads.
#include <fmt/core.h>

#include <array>
#include <bit>

#include "service/program/bytecode/dialect_encodings.h"
#include "service/program/print.h"

namespace meshd::program {
namespace {

/// An element type, by its name.
std::string_view named_type(ByteReader& reader, IrTables& tables) {
  const TypeNode& type = tables.type(tables.read_type(reader));
  if (type.kind != TypeNode::Kind::kNamed) reader.fail("an algorithm's types are those of floats");
  return type.text;
}

AttributeNode of_text(std::string text) {
  AttributeNode out;
  out.own(std::move(text));
  return out;
}

AttributeNode convolution_node(ByteReader& reader) {
  StructText out("conv", "raw ");
  for (const std::string_view name :
       {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
        "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
        "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}) {
    name.ends_with("spatial_dimensions") ? out.any_list(name, read_integers(reader))
                                         : out.number(name, reader.signed_varint());
  }
  return of_text(std::move(out).text());
}

/// Lists under these names, then `index_vector_dim`.
AttributeNode indexing_node(ByteReader& reader, std::string_view kind, std::initializer_list<std::string_view> lists) {
  StructText out(kind);
  for (const std::string_view name : lists) out.list(name, read_integers(reader));
  out.unless_zero("index_vector_dim", reader.signed_varint());
  return of_text(std::move(out).text());
}

AttributeNode algorithm_node(ByteReader& reader, IrTables& tables) {
  StructText out("dot_algorithm");
  for (const std::string_view name : {"lhs_precision_type", "rhs_precision_type", "accumulation_type"})
    out.field(name, named_type(reader, tables));
  for (const std::string_view name : {"lhs_component_count", "rhs_component_count", "num_primitive_operations"})
    out.number(name, reader.signed_varint());
  out.field("allow_imprecise_accumulation", reader.byte() != 0 ? "true" : "false");
  return of_text(std::move(out).text());
}

}  // namespace

AttributeNode accuracy_node(ByteReader& reader, const IrTables& tables) {
  std::string text = "#stablehlo.result_accuracy<";
  for (const std::string_view name : {"atol", "rtol"}) {
    const double value = std::bit_cast<double>(static_cast<uint64_t>(reader.signed_varint()));
    if (value != 0) text += std::string(name) + " = " + print(ir::Attribute{ir::FloatAttr{value, "f64"}}) + ", ";
  }
  if (const int64_t ulps = reader.signed_varint(); ulps != 0) text += fmt::format("ulps = {}, ", ulps);
  AttributeNode out = of_text(text + "mode = ");
  out.children = {tables.read_attribute(reader)};
  out.data = ">";
  return out;
}

AttributeNode accuracy_mode_node(ByteReader& reader) {
  constexpr std::array<std::string_view, 3> kModes = {"DEFAULT", "HIGHEST", "TOLERANCE"};
  const std::string_view mode = kModes[reader.index(kModes.size(), "accuracy mode")];
  return of_text("#stablehlo.result_accuracy_mode<" + std::string(mode) + ">");
}

AttributeNode bounds_node(ByteReader& reader) {
  std::string out = "#stablehlo.bounds<";
  const std::vector<int64_t> bounds = read_integers(reader);
  for (size_t i = 0; i < bounds.size(); ++i)
    out += (i ? ", " : "") + (bounds[i] < 0 ? std::string("?") : std::to_string(bounds[i]));
  return of_text(out + ">");
}

AttributeNode alias_node(ByteReader& reader) {
  StructText out("output_operand_alias");
  out.any_list("output_tuple_indices", read_integers(reader));
  out.number("operand_index", reader.signed_varint());
  out.any_list("operand_tuple_indices", read_integers(reader));
  return of_text(std::move(out).text());
}

TypeNode read_stablehlo_type(ByteReader& reader, const IrTables& tables) {
  TypeNode out;
  const uint64_t code = reader.varint();
  if (code == 1) {
    // A future is the tuple of what it gives, as the parser has it.
    out.kind = TypeNode::Kind::kTuple;
    out.elements = read_types(reader, tables);
    return out;
  }
  if (code != 0) reader.fail(fmt::format("StableHLO type of kind {} is not read here", code), "unsupported_type");
  out.text = "!stablehlo.token";
  return out;
}

AttributeNode read_stablehlo_attribute(ByteReader& reader, IrTables& tables) {
  const uint64_t code = reader.varint();
  switch (code) {
    case 1: {
      StructText out("channel_handle");
      out.number("handle", reader.signed_varint());
      out.number("type", reader.signed_varint());
      return of_text(std::move(out).text());
    }
    case 2:
      return enum_node(reader, "stablehlo", "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"});
    case 3:
      return enum_node(reader, "stablehlo", "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
    case 4:
      return convolution_node(reader);
    case 5: {
      StructText out("dot");
      for (const std::string_view name : {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                          "lhs_contracting_dimensions", "rhs_contracting_dimensions"})
        out.list(name, read_integers(reader));
      return of_text(std::move(out).text());
    }
    case 6:
      return enum_node(reader, "stablehlo", "fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"});
    case 7:
      return indexing_node(reader, "gather",
                           {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                            "start_indices_batching_dims", "start_index_map"});
    case 8:
      return enum_node(reader, "stablehlo", "precision", {"DEFAULT", "HIGH", "HIGHEST"});
    case 9:
      return enum_node(reader, "stablehlo", "rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"});
    case 10:
      return enum_node(reader, "stablehlo", "rng_distribution", {"", "UNIFORM", "NORMAL"});
    case 11:
      return indexing_node(reader, "scatter",
                           {"update_window_dims", "inserted_window_dims", "input_batching_dims",
                            "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"});
    case 12:
      return enum_node(reader, "stablehlo", "transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
    case 13:
      return bounds_node(reader);
    case 14:
      return alias_node(reader);
    case 15:
      return algorithm_node(reader, tables);
    case 16:
      return accuracy_mode_node(reader);
    case 17:
      return accuracy_node(reader, tables);
    case 18:
      reader.fail("replica groups by the axes of a mesh (#stablehlo.replica_group_mesh_axes) are not supported",
                  "unsupported_attribute");
    default:
      fail_unknown_code(reader, "StableHLO attribute", code);
  }
}

AttributeNode read_chlo_attribute(ByteReader& reader, IrTables&) {
  const uint64_t code = reader.varint();
  if (code == 0) return enum_node(reader, "chlo", "comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"});
  if (code == 1)
    return enum_node(reader, "chlo", "comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"});
  fail_unknown_code(reader, "CHLO attribute", code);
}

}  // namespace meshd::program
