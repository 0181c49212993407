// The recursive descent parser of StableHLO text. One class because all parts share the lexer and the names in scope;
// its parts have one file each: parser_types, parser_attributes, parser_dialect_attributes, parser_constants,
// parser_shardings, parser_factor_rules, parser_ops, parser_pretty, parser_pretty_ops, parser_pretty_regions,
// parser_async, parser_scalars, parser_functions, parser_module. Internal to service/program. One thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "service/core/hold_memory.h"
#include "service/ir/program.h"
#include "service/ops/op_def.h"
#include "service/program/limits.h"
#include "service/program/parse/lexer.h"

namespace meshd::program {

/// An op while it is read: the op, the types written behind it, and the names on its left side.
struct OperationState {
  ir::Op op;
  const ops::OpDef* def = nullptr;
  bool is_vhlo = false;
  std::vector<ir::Type> result_types;
  std::vector<std::pair<Token, int64_t>> result_names;  ///< token %x and the number of its results
};

/// An argument of a block, as written.
struct BlockArgument {
  Token name;
  ir::Type type;
};

class Parser {
 public:
  /// `hold` is told of the bytes of attributes, before each 1,024 of them.
  explicit Parser(std::string_view text, core::HoldMemory hold = {});

  /// Parses the text as a module.
  ir::Module parse();
  /// Parses the text as one attribute; a mesh that it names is one of `meshes`, which gets those that it writes out.
  ir::Attribute parse_attribute(std::vector<ir::NamedMesh>& meshes);
  /// Parses `{name = #sdy.mesh<...>, ...}`.
  std::vector<ir::NamedMesh> parse_meshes();

 private:
  // Tokens.
  void advance() { token_ = lexer_.next(); }
  Token take();
  [[nodiscard]] bool at(char c) const { return token_.is(c); }
  [[nodiscard]] bool at(std::string_view word) const { return token_.is(word); }
  bool accept(char c);
  bool accept(std::string_view word);
  Token expect(char c, std::string_view where);
  Token expect(TokenKind kind, std::string_view what);
  void expect_word(std::string_view word, std::string_view where);
  /// Throws program_syntax: "expected ..., got '...'" at the current token.
  [[noreturn]] void expected(std::string_view what) const;
  [[noreturn]] static void fail(core::ErrorCode code, const Token& where, const std::string& message);
  /// `key` and `=`.
  void expect_key(std::string_view key);
  /// Items between `open` and `close`, separated by commas.
  template <typename Item>
  void list(char open, char close, std::string_view where, Item&& item) {
    expect(open, where);
    if (accept(close)) return;
    do item();
    while (accept(','));
    expect(close, where);
  }
  /// Text from the current `<`, `(`, `[` or `{` to the one that closes it, both included, as written.
  std::string_view skip_balanced();
  int64_t integer(std::string_view what);
  int64_t signed_integer(std::string_view what);
  std::vector<int64_t> integer_list(std::string_view where);
  std::string symbol_name(const Token& token) const;

  // Types (parser_types.cpp).
  [[nodiscard]] bool at_type() const;
  ir::Type type();
  std::vector<ir::Type> type_list_in_parentheses();
  /// T, (T, U), ().
  std::vector<ir::Type> result_types();
  struct ElementType {
    tensor::DType dtype{};  ///< of a quantised type the storage type
    bool is_index = false;
    ir::QuantizationRef quantization = {};
  };
  /// Behind 'tensor'. `element` (null: not asked) is what its elements are.
  ir::Type tensor_body(ElementType* element);
  /// Behind the comma of a tensor type, where `start` is: the bounds of its dynamic dimensions (Type::bounds).
  tensor::Dims encoding(const tensor::Dims& dims, const Token& start);
  /// <8, ?> behind #stablehlo.bounds, <bounds = [8, ?]> behind #mhlo.type_extensions.
  tensor::Dims bounds(const tensor::Dims& dims, const Token& start);
  tensor::Dims older_bounds(const tensor::Dims& dims, const Token& start);
  tensor::Dims bound_list(char open, char close);
  tensor::Dims checked_bounds(tensor::Dims bounds, const tensor::Dims& dims, const Token& start);
  ElementType element_type();

  // Quantised types (parser_quantized.cpp).
  ir::QuantizationRef quantized_type();
  tensor::DType storage_type();
  void storage_range(ir::Quantization& out);
  void quantization_parameter(ir::Quantization& out);

  // Attributes (parser_attributes.cpp, parser_dialect_attributes.cpp).
  ir::Attribute attribute();
  ir::Attribute attribute_inner();
  ir::Attribute number_attribute();
  ir::Attribute array_attribute();
  ir::Attribute list_attribute();
  ir::Attribute type_attribute();
  ir::AttributeList attribute_dict();
  ir::AttributeList optional_attribute_dict();
  ir::Attribute hash_attribute();
  ir::Attribute struct_attribute(const std::string& name);
  ir::Attribute struct_field();
  ir::Attribute enum_attribute(const std::string& dialect);
  ir::DictAttr convolution_dimensions();
  /// What `read` makes of the text that alias `use` stands for.
  template <typename Read>
  auto expand_alias(const Token& use, Read&& read) {
    if (++alias_depth_ > kMaxAttributeDepth) fail("program_syntax", use, "aliases nest too deeply");
    const std::pair saved(lexer_, token_);
    enter_alias(use);
    const char* begin = token_.text.data();
    auto out = read();
    alias_bytes_ += lexer_.cursor() - begin;
    std::tie(lexer_, token_) = saved;
    --alias_depth_;
    if (alias_bytes_ > max_alias_bytes(text_.size())) fail("program_syntax", use, "aliases stand for too much text");
    return out;
  }
  /// Goes to the text that the alias stands for.
  void enter_alias(const Token& use);

  // Constants (parser_constants.cpp).
  ir::DenseAttr dense_attribute();
  ir::DenseAttr dense_resource();
  ir::DenseAttr dense_type_of(const Token& start);

  // Shardings (parser_shardings.cpp).
  mesh::Mesh mesh_body();
  ir::Attribute sdy_attribute(const std::string& name);
  /// <@mesh, [...], ...>
  sharding::TensorSharding sharding_body();
  std::vector<sharding::TensorSharding> sharding_list();
  sharding::DimSharding dim_sharding(const mesh::Mesh& mesh);
  sharding::AxisRef axis_ref(const mesh::Mesh& mesh);
  std::vector<sharding::AxisRef> axis_list(const mesh::Mesh& mesh);
  ir::Attribute manual_axes();
  /// Lists of axes without a mesh around them, behind their kind: axis_ref_list, list_of_axis_ref_lists,
  /// all_to_all_param_list.
  ir::Attribute axis_lists(std::string_view kind);
  sharding::FactorRule factor_rule();
  std::vector<sharding::TensorFactors> factor_mappings();
  std::vector<int> factor_names();
  std::string lift_mesh(mesh::Mesh mesh, const Token& where);
  void add_mesh(std::string name, mesh::Mesh mesh, const Token& where);

  // Ops (parser_ops.cpp).
  void op();
  void generic_op(OperationState& state);
  void finish_op(OperationState& state, const Token& where);
  /// Gives the op's results, from `first` on, the names on its left side.
  void name_results(const OperationState& state, const Token& where, ir::ValueId first, size_t result_count);
  void set_op(OperationState& state, const Token& where, std::string name);
  void check_operands(const OperationState& state, const std::vector<ir::Type>& types);
  ir::ValueId value_use();
  std::vector<ir::ValueId> operands_in_parentheses();
  void define(const Token& name, ir::ValueId first, int64_t count);
  ir::Region region(const std::vector<BlockArgument>& arguments);
  std::vector<BlockArgument> block_arguments();
  /// Optional `loc(...)`; the name in it, or the alias behind the mark kAlias, resolved at the end.
  std::string optional_location();
  std::string location_body();

  // Pretty forms (parser_pretty.cpp, parser_pretty_regions.cpp).
  void pretty_op(OperationState& state);
  void fields_op(OperationState& state);
  void field(OperationState& state, const ops::TextField& field);
  /// What ends most ops: more attributes, where there are some, and the types.
  void attributes_and_types(OperationState& state);
  void types_behind_colon(OperationState& state);
  void pretty_constant(OperationState& state);
  void pretty_return(OperationState& state);
  void pretty_call(OperationState& state);
  void pretty_compare(OperationState& state);
  void pretty_slice(OperationState& state);
  void pretty_get_tuple_element(OperationState& state);
  void pretty_trace(OperationState& state);
  void pretty_convolution(OperationState& state);
  void pretty_top_k(OperationState& state);
  void pretty_composite(OperationState& state);
  void pretty_while(OperationState& state);
  void pretty_reduce(OperationState& state);
  void pretty_scan(OperationState& state);
  void pretty_sharding_constraint(OperationState& state);
  void pretty_sdy_collective(OperationState& state);
  void pretty_data_flow_edge(OperationState& state);
  void pretty_sharding_group(OperationState& state);
  void pretty_propagation_barrier(OperationState& state);
  void pretty_manual_computation(OperationState& state);
  void pretty_named_computation(OperationState& state);
  void window(OperationState& state);

  // VHLO (parser_vhlo.cpp).
  [[nodiscard]] bool at_vhlo_type() const;
  /// StableHLO's name of a scalar type, "i1" of "!vhlo.bool_v1"; of other types the name without dialect and version.
  static std::string_view vhlo_scalar(std::string_view name);
  ir::Type vhlo_type();
  /// (T) -> U, V, where (()) is a function without arguments.
  ir::TypeAttr vhlo_function_type();
  /// Behind the body of a pretty function: what its arguments and results carry.
  void vhlo_function(ir::Function& function, const Token& where);
  /// Behind `start`, #vhlo or #vhlo.NAME.
  ir::Attribute vhlo_attribute(const Token& start);
  /// The properties of a VHLO op as StableHLO has them.
  static ir::AttributeList from_vhlo(ir::AttributeList given);

  // Asynchronous ops (parser_async.cpp).
  static constexpr std::string_view kFuture = "!stablehlo.future";
  static constexpr std::string_view kBundle = "!mhlo.async_bundle";
  static bool is_async(std::string_view name);
  /// At kFuture or kBundle: the tuple that it becomes.
  ir::Type future_type();
  void async_op(OperationState& state, const Token& where, const std::string& name);
  /// Appends an op that the text does not have to the region; its first result, all of them are numbered in order.
  ir::ValueId append(std::string_view name, const ir::Location& location, std::vector<ir::ValueId> operands,
                     std::vector<ir::Type> results, ir::AttributeList attributes, std::vector<ir::Region> regions);

  // Scalars of other dialects (parser_scalars.cpp).
  struct ScalarOp;
  static bool is_scalar_op(std::string_view name);
  void scalar_op(OperationState& state, const Token& where, const std::string& name, bool is_generic);
  /// Behind the name of the op: its operands, attributes and types.
  void pretty_scalar(OperationState& state, ScalarOp& op);
  /// i64 as a tensor without dimensions, or any other type.
  ir::Type scalar_or_tensor();

  ir::Region applied_region(const OperationState& state, const Token& where, const std::string& op_name,
                            const ir::Type& type);

  // Functions and the module (parser_functions.cpp, parser_module.cpp).
  ir::Module file();
  void alias_definition();
  void module_op();
  void module_body();
  void set_module_attributes(ir::AttributeList attributes);
  void pretty_mesh();
  void generic_module_op(const Token& start);
  void pretty_function(const Token& start);
  void generic_function(ir::Function& function);
  void parameter_attributes(ir::Parameter& parameter, ir::AttributeList attributes, const Token& where);
  void begin_function(ir::Function& function);
  void end_function(ir::Function function);
  void file_metadata();
  void resolve_resources();
  void resolve_locations();
  /// The one public function is the program's, whatever its name: it becomes @main.
  void name_entry();

  struct Definition {
    ir::ValueId first = 0;
    int64_t count = 1;
  };
  struct Resource {
    Token where;
    tensor::TensorType type;
    std::shared_ptr<std::vector<std::byte>> bytes;
    std::string name;
  };

  std::string_view text_;
  Lexer lexer_;
  Token token_;
  ir::Module module_;
  ir::Function* function_ = nullptr;
  ir::Region* region_ = nullptr;
  std::unordered_map<std::string_view, Definition> names_;
  std::vector<std::string_view> defined_;  ///< names in order of definition; a region's end takes its own out again
  std::unordered_map<ir::ValueId, int64_t> known_scalars_;  ///< of the function: those of arith.constant
  int attribute_depth_ = 0;
  int region_depth_ = 0;
  int function_depth_ = 0;  ///< region_depth_ in the body of the function
  int alias_depth_ = 0;
  int64_t alias_bytes_ = 0;
  int64_t attribute_count_ = 0;
  core::HoldMemory hold_;                                                  ///< may be empty
  std::unordered_map<std::string_view, std::pair<Lexer, Token>> aliases_;  ///< by name with its # or !
  std::unordered_map<std::string_view, std::string> location_aliases_;
  std::vector<Resource> resources_;
  std::map<std::string, std::string_view, std::less<>> resource_blobs_;
};

/// Begins a location name that is an alias still to be looked up.
inline constexpr char kAlias = '\x01';

}  // namespace meshd::program
