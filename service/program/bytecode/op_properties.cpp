// Of the dialects' op definitions as of StableHLO 1.17 (jaxlib 0.10.2): VHLO's ops are VhloOps.td's, all of whose
// attributes are there.
#include "service/program/bytecode/op_properties.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace meshd::program {
namespace {

constexpr OpProperties kBuiltinProperties[] = {
    {"module", "sym_name? sym_visibility?"},
};

constexpr OpProperties kFuncProperties[] = {
    {"call", "arg_attrs? callee no_inline? res_attrs?"},
    {"call_indirect", "arg_attrs? res_attrs?"},
    {"constant", "value"},
    {"func", "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?"},
};

constexpr OpProperties kStablehloProperties[] = {
    {"all_gather", "all_gather_dim channel_handle? replica_groups use_global_device_ids?"},
    {"all_reduce", "channel_handle? replica_groups use_global_device_ids?"},
    {"all_to_all", "channel_handle? concat_dimension replica_groups split_count split_dimension"},
    {"batch_norm_grad", "epsilon feature_index"},
    {"batch_norm_inference", "epsilon feature_index"},
    {"batch_norm_training", "epsilon feature_index"},
    {"broadcast", "broadcast_sizes"},
    {"broadcast_in_dim", "broadcast_dimensions"},
    {"cbrt", "result_accuracy?"},
    {"cholesky", "lower?"},
    {"collective_broadcast", "channel_handle? replica_groups"},
    {"collective_permute", "channel_handle? source_target_pairs"},
    {"compare", "compare_type? comparison_direction"},
    {"composite", "composite_attributes? decomposition name version?"},
    {"concatenate", "dimension"},
    {"constant", "value"},
    {"convolution",
     "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? "
     "precision_config? rhs_dilation? window_reversal? window_strides?"},
    {"cosine", "result_accuracy?"},
    {"cross-replica-sum", "replica_groups"},
    {"custom_call",
     "api_version? backend_config? call_target_name called_computations? has_side_effect? "
     "operand_layouts? output_operand_aliases? result_layouts?"},
    {"dot", "precision_config?"},
    {"dot_general", "algorithm? dot_dimension_numbers precision_config?"},
    {"dynamic_broadcast_in_dim", "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?"},
    {"dynamic_conv",
     "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? "
     "rhs_dilation? window_reversal? window_strides?"},
    {"dynamic_gather", "dimension_numbers indices_are_sorted?"},
    {"dynamic_iota", "iota_dimension"},
    {"dynamic_slice", "slice_sizes"},
    {"einsum", "einsum_config"},
    {"exponential", "result_accuracy?"},
    {"exponential_minus_one", "result_accuracy?"},
    {"fft", "fft_length fft_type"},
    {"gather", "dimension_numbers indices_are_sorted? slice_sizes"},
    {"get_dimension_size", "dimension"},
    {"get_tuple_element", "index"},
    {"infeed", "infeed_config? layout?"},
    {"iota", "iota_dimension"},
    {"log", "result_accuracy?"},
    {"log_plus_one", "result_accuracy?"},
    {"logistic", "result_accuracy?"},
    {"map", "dimensions"},
    {"outfeed", "outfeed_config?"},
    {"pad", "edge_padding_high edge_padding_low interior_padding"},
    {"recv", "channel_handle is_host_transfer? source_target_pairs?"},
    {"reduce", "dimensions"},
    {"reduce_precision", "exponent_bits mantissa_bits"},
    {"reduce_scatter", "channel_handle? replica_groups scatter_dimension use_global_device_ids?"},
    {"reduce_window", "base_dilations? padding? window_dilations? window_dimensions window_strides?"},
    {"reverse", "dimensions"},
    {"rng", "rng_distribution"},
    {"rng_bit_generator", "rng_algorithm"},
    {"rsqrt", "result_accuracy?"},
    {"scatter", "indices_are_sorted? scatter_dimension_numbers unique_indices?"},
    {"select_and_scatter", "padding? window_dimensions? window_strides?"},
    {"send", "channel_handle is_host_transfer? source_target_pairs?"},
    {"set_dimension_size", "dimension"},
    {"sine", "result_accuracy?"},
    {"slice", "limit_indices start_indices strides"},
    {"sort", "dimension? is_stable?"},
    {"sqrt", "result_accuracy?"},
    {"tan", "result_accuracy?"},
    {"tanh", "result_accuracy?"},
    {"torch_index_select", "batch_dims dim"},
    {"transpose", "permutation"},
    {"triangular_solve", "left_side lower transpose_a unit_diagonal"},
    {"unary_einsum", "einsum_config"},
};

constexpr OpProperties kChloProperties[] = {
    {"broadcast_add", "broadcast_dimensions?"},
    {"broadcast_and", "broadcast_dimensions?"},
    {"broadcast_atan2", "broadcast_dimensions?"},
    {"broadcast_compare", "broadcast_dimensions? compare_type? comparison_direction"},
    {"broadcast_complex", "broadcast_dimensions?"},
    {"broadcast_divide", "broadcast_dimensions?"},
    {"broadcast_maximum", "broadcast_dimensions?"},
    {"broadcast_minimum", "broadcast_dimensions?"},
    {"broadcast_multiply", "broadcast_dimensions?"},
    {"broadcast_next_after", "broadcast_dimensions?"},
    {"broadcast_or", "broadcast_dimensions?"},
    {"broadcast_polygamma", "broadcast_dimensions?"},
    {"broadcast_power", "broadcast_dimensions?"},
    {"broadcast_remainder", "broadcast_dimensions?"},
    {"broadcast_shift_left", "broadcast_dimensions?"},
    {"broadcast_shift_right_arithmetic", "broadcast_dimensions?"},
    {"broadcast_shift_right_logical", "broadcast_dimensions?"},
    {"broadcast_subtract", "broadcast_dimensions?"},
    {"broadcast_xor", "broadcast_dimensions?"},
    {"broadcast_zeta", "broadcast_dimensions?"},
    {"constant", "value"},
    {"constant_like", "value"},
    {"ragged_dot", "precision_config? ragged_dot_dimension_numbers"},
    {"scan", "dimension is_associative? is_reverse? scan_dim_size?", true},
    {"top_k", "k"},
};

constexpr OpProperties kSdyProperties[] = {
    {"all_gather", "gathering_axes out_sharding"},
    {"all_reduce", "out_sharding reduction_axes"},
    {"all_slice", "out_sharding slicing_axes"},
    {"all_to_all", "out_sharding params"},
    {"collective_permute", "out_sharding"},
    {"constant", "value"},
    {"data_flow_edge", "sharding?"},
    {"manual_computation", "in_shardings manual_axes out_shardings"},
    {"mesh", "mesh sym_name"},
    {"named_computation", "in_shardings? name out_shardings?"},
    {"propagation_barrier", "allowed_direction"},
    {"reduce_scatter", "out_sharding reduce_scatter_axes"},
    {"replicated_to_unreduced", "axes out_sharding"},
    {"reshard", "sharding"},
    {"sharded_to_unreduced", "axes out_sharding"},
    {"sharding_constraint", "sharding"},
    {"sharding_group", "group_id"},
};

constexpr OpProperties kVhloProperties[] = {
    {"all_gather_v1", "all_gather_dim channel_id replica_groups use_global_device_ids"},
    {"all_gather_v2", "all_gather_dim channel_id replica_groups use_global_device_ids"},
    {"all_reduce_v1", "channel_id replica_groups use_global_device_ids"},
    {"all_reduce_v2", "channel_id replica_groups use_global_device_ids"},
    {"all_to_all_v1", "channel_id concat_dimension replica_groups split_count split_dimension"},
    {"all_to_all_v2", "channel_id concat_dimension replica_groups split_count split_dimension"},
    {"batch_norm_grad_v1", "epsilon feature_index"},
    {"batch_norm_inference_v1", "epsilon feature_index"},
    {"batch_norm_training_v1", "epsilon feature_index"},
    {"broadcast_in_dim_v1", "broadcast_dimensions"},
    {"broadcast_v1", "broadcast_sizes"},
    {"call_v1", "callee"},
    {"cbrt_v2", "result_accuracy"},
    {"cholesky_v1", "lower"},
    {"collective_broadcast_v1", "channel_id replica_groups"},
    {"collective_permute_v1", "channel_id source_target_pairs"},
    {"compare_v1", "compare_type comparison_direction"},
    {"composite_v1", "composite_attributes decomposition name version"},
    {"composite_v2", "composite_attributes decomposition name version"},
    {"concatenate_v1", "dimension"},
    {"constant_v1", "value"},
    {"convolution_v1",
     "batch_group_count feature_group_count input_batch_dimension input_feature_dimension "
     "input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension "
     "kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension "
     "output_spatial_dimensions padding precision_config rhs_dilation window_reversal "
     "window_strides"},
    {"cosine_v2", "result_accuracy"},
    {"cross-replica-sum_v1", "replica_groups"},
    {"custom_call_v1",
     "api_version backend_config call_target_name called_computations has_side_effect "
     "operand_layouts output_operand_aliases result_layouts"},
    {"dot_general_v1",
     "lhs_batching_dimensions lhs_contracting_dimensions precision_config "
     "rhs_batching_dimensions rhs_contracting_dimensions"},
    {"dot_general_v2",
     "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions "
     "lhs_component_count lhs_contracting_dimensions lhs_precision_type "
     "num_primitive_operations precision_config rhs_batching_dimensions rhs_component_count "
     "rhs_contracting_dimensions rhs_precision_type"},
    {"dot_v1", "precision_config"},
    {"dynamic_broadcast_in_dim_v1", "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"},
    {"dynamic_conv_v1",
     "batch_group_count feature_group_count input_batch_dimension input_feature_dimension "
     "input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension "
     "kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension "
     "output_spatial_dimensions padding precision_config rhs_dilation window_reversal "
     "window_strides"},
    {"dynamic_conv_v2",
     "batch_group_count feature_group_count input_batch_dimension input_feature_dimension "
     "input_spatial_dimensions kernel_input_feature_dimension kernel_output_feature_dimension "
     "kernel_spatial_dimensions lhs_dilation output_batch_dimension output_feature_dimension "
     "output_spatial_dimensions precision_config rhs_dilation window_reversal window_strides"},
    {"dynamic_gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"},
    {"dynamic_gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims start_index_map start_indices_batching_dims"},
    {"dynamic_iota_v1", "iota_dimension"},
    {"dynamic_slice_v1", "slice_sizes"},
    {"einsum_v1", "einsum_config"},
    {"exponential_minus_one_v2", "result_accuracy"},
    {"exponential_v2", "result_accuracy"},
    {"fft_v1", "fft_length fft_type"},
    {"func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"},
    {"gather_v1",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes "
     "start_index_map"},
    {"gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims slice_sizes start_index_map start_indices_batching_dims"},
    {"get_dimension_size_v1", "dimension"},
    {"get_tuple_element_v1", "index"},
    {"infeed_v1", "infeed_config layout"},
    {"iota_v1", "iota_dimension"},
    {"log_plus_one_v2", "result_accuracy"},
    {"log_v2", "result_accuracy"},
    {"logistic_v2", "result_accuracy"},
    {"map_v1", "dimensions"},
    {"outfeed_v1", "outfeed_config"},
    {"pad_v1", "edge_padding_high edge_padding_low interior_padding"},
    {"recv_v1", "channel_id channel_type is_host_transfer"},
    {"recv_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
    {"reduce_precision_v1", "exponent_bits mantissa_bits"},
    {"reduce_scatter_v1", "channel_id replica_groups scatter_dimension use_global_device_ids"},
    {"reduce_v1", "dimensions"},
    {"reduce_window_v1", "base_dilations padding window_dilations window_dimensions window_strides"},
    {"reverse_v1", "dimensions"},
    {"rng_bit_generator_v1", "rng_algorithm"},
    {"rng_v1", "rng_distribution"},
    {"rsqrt_v2", "result_accuracy"},
    {"scatter_v1",
     "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims "
     "unique_indices update_window_dims"},
    {"scatter_v2",
     "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims "
     "scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices "
     "update_window_dims"},
    {"select_and_scatter_v1", "padding window_dimensions window_strides"},
    {"send_v1", "channel_id channel_type is_host_transfer"},
    {"send_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
    {"set_dimension_size_v1", "dimension"},
    {"sine_v2", "result_accuracy"},
    {"slice_v1", "limit_indices start_indices strides"},
    {"sort_v1", "dimension is_stable"},
    {"sqrt_v2", "result_accuracy"},
    {"tan_v2", "result_accuracy"},
    {"tanh_v2", "result_accuracy"},
    {"torch_index_select_v1", "batch_dims dim"},
    {"transpose_v1", "permutation"},
    {"triangular_solve_v1", "left_side lower transpose_a unit_diagonal"},
    {"unary_einsum_v1", "einsum_config"},
};

struct DialectProperties {
  std::string_view dialect;
  std::span<const OpProperties> ops;
};
constexpr DialectProperties kDialects[] = {
    {"builtin", kBuiltinProperties}, {"func", kFuncProperties}, {"stablehlo", kStablehloProperties},
    {"chlo", kChloProperties},       {"sdy", kSdyProperties},   {"vhlo", kVhloProperties}};

}  // namespace

const OpProperties* find_properties(std::string_view op) {
  const size_t dot = op.find('.');
  for (const DialectProperties& each : kDialects) {
    if (dot == std::string_view::npos || each.dialect != op.substr(0, dot)) continue;
    const std::string_view name = op.substr(dot + 1);
    const auto found =
        std::find_if(each.ops.begin(), each.ops.end(), [&](const OpProperties& row) { return row.op == name; });
    return found == each.ops.end() ? nullptr : &*found;
  }
  return nullptr;
}

std::string_view next_property(std::string_view& attributes, bool& is_optional) {
  const size_t end = std::min(attributes.find(' '), attributes.size());
  std::string_view out = attributes.substr(0, end);
  attributes.remove_prefix(std::min(end + 1, attributes.size()));
  is_optional = out.ends_with('?');
  if (is_optional) out.remove_suffix(1);
  return out;
}

}  // namespace meshd::program
