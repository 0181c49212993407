// How VHLO's ops differ from StableHLO's, as tables: names with versions, structs taken apart, values that are always
// written. `vhlo_ops` reads them for artifacts, `parse/parser_vhlo` for VHLO as text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshd::program {

/// "stablehlo.add" of "vhlo.add_v1"; functions, calls and the return of a function are those of the func dialect. Names
/// of other dialects stay.
std::string todays_op_name(std::string_view name, bool ends_function);

/// The name without its version: "string" of "string_v1".
std::string_view without_version(std::string_view name);

/// A struct of StableHLO whose fields are attributes of their own in VHLO.
struct VhloStruct {
  std::string_view name;                   ///< of the attribute
  std::string_view kind;                   ///< of the struct
  std::string_view before;                 ///< a word in front of its fields
  bool writes_empty;                       ///< empty lists and zeros are written
  std::array<std::string_view, 9> fields;  ///< an op that has the first has the struct
};
inline constexpr std::array<VhloStruct, 4> kVhloStructs = {{
    {"dot_dimension_numbers",
     "dot",
     "",
     false,
     {"lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
      "rhs_contracting_dimensions"}},
    {"dimension_numbers",
     "conv",
     "raw ",
     true,
     {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "kernel_input_feature_dimension",
      "kernel_output_feature_dimension", "kernel_spatial_dimensions", "output_batch_dimension",
      "output_feature_dimension", "output_spatial_dimensions"}},
    {"dimension_numbers",
     "gather",
     "",
     false,
     {"offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims", "start_index_map",
      "index_vector_dim"}},
    {"scatter_dimension_numbers",
     "scatter",
     "",
     false,
     {"update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims",
      "scatter_dims_to_operand_dims", "index_vector_dim"}},
}};

/// Attributes that StableHLO keeps as tensors; all other tensors of integers among the attributes are arrays.
inline constexpr std::array<std::string_view, 4> kVhloTensors = {"value", "padding", "replica_groups",
                                                                 "source_target_pairs"};

/// Attributes that are strings in VHLO and symbols in StableHLO.
inline constexpr std::array<std::string_view, 3> kVhloSymbols = {"callee", "decomposition", "called_computations"};

/// Attributes of a dot's algorithm; the type of its left side is `none` where there is no algorithm.
inline constexpr std::array<std::string_view, 7> kVhloAlgorithm = {
    "lhs_precision_type",  "rhs_precision_type",       "accumulation_type",           "lhs_component_count",
    "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"};

/// What an attribute means by its absence.
enum class VhloDefault : uint8_t { kFalse, kEmpty, kNumber, kAll, kText };
struct VhloDefaultValue {
  std::string_view name;
  VhloDefault kind;
  int64_t number = 0;          ///< kNumber, and kAll of a tensor
  std::string_view text = {};  ///< kText, and kAll of a list
};
inline constexpr VhloDefaultValue kVhloDefaults[] = {
    {"use_global_device_ids", VhloDefault::kFalse},
    {"has_side_effect", VhloDefault::kFalse},
    {"indices_are_sorted", VhloDefault::kFalse},
    {"unique_indices", VhloDefault::kFalse},
    {"is_host_transfer", VhloDefault::kFalse},
    {"is_stable", VhloDefault::kFalse},
    {"backend_config", VhloDefault::kEmpty},
    {"called_computations", VhloDefault::kEmpty},
    {"output_operand_aliases", VhloDefault::kEmpty},
    {"infeed_config", VhloDefault::kEmpty},
    {"outfeed_config", VhloDefault::kEmpty},
    {"layout", VhloDefault::kEmpty},
    {"composite_attributes", VhloDefault::kEmpty},
    {"known_expanding_dimensions", VhloDefault::kEmpty},
    {"known_nonexpanding_dimensions", VhloDefault::kEmpty},
    {"version", VhloDefault::kNumber, 0},
    {"window_strides", VhloDefault::kAll, 1},
    {"base_dilations", VhloDefault::kAll, 1},
    {"window_dilations", VhloDefault::kAll, 1},
    {"lhs_dilation", VhloDefault::kAll, 1},
    {"rhs_dilation", VhloDefault::kAll, 1},
    {"padding", VhloDefault::kAll, 0},
    {"window_reversal", VhloDefault::kAll, 0},
    {"precision_config", VhloDefault::kAll, 0, "#stablehlo<precision DEFAULT>"},
    {"compare_type", VhloDefault::kText, 0, "#stablehlo<comparison_type NOTYPE>"},
    {"api_version", VhloDefault::kText, 0, "1 : i32"},
};

}  // namespace meshd::program
