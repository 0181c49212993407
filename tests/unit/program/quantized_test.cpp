// Quantised types: read, printed, refused with the labels of the specification, and written as ordinary ops.
#include "service/ir/walk.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

constexpr std::string_view kByTensor = "!quant.uniform<i8:f32, 5.0e-01:3>";
constexpr std::string_view kByAxis = "!quant.uniform<i8<-127:127>:f32:1, {5.0e-01,2.5e-01:-7}>";

std::string of(std::string_view shape, std::string_view element) {
  return "tensor<" + std::string(shape) + "x" + std::string(element) + ">";
}

/// The program of one op from `operands` to `result`.
std::string program(const std::vector<std::string>& operands, const std::string& result, const std::string& op,
                    const std::string& attributes = "") {
  std::string arguments;
  std::string names;
  std::string types;
  for (size_t i = 0; i < operands.size(); ++i) {
    const std::string name = "%a" + std::to_string(i);
    const std::string comma = i == 0 ? "" : ", ";
    arguments += comma + name + ": " + operands[i];
    names += comma + name;
    types += comma + operands[i];
  }
  return "func.func @main(" + arguments + ") -> " + result + " {\n  %0 = \"" + op + "\"(" + names + ")" + attributes +
         " : (" + types + ") -> " + result + "\n  return %0 : " + result + "\n}\n";
}

std::string type_of_argument(const std::string& type) {
  return print(parse_unverified("func.func @main(%a: " + type + ") { return }").main().arguments.at(0).type);
}

TEST(Quantized, types_are_read_and_printed) {
  for (const std::string& type : {of("2x2", kByTensor), of("2x2", kByAxis), of("?", kByTensor),
                                  std::string("tensor<!quant.uniform<u4<1:14>:bf16, 1.0e+00:2>>")})
    EXPECT_EQ(type_of_argument(type), type);
  EXPECT_EQ(type_of_argument("tensor<2x!quant.uniform<i8<-128:127>:f32, 0.5:0>>"),
            "tensor<2x!quant.uniform<i8:f32, 5.0e-01>>");
  expect_round_trip("!q = " + std::string(kByTensor) + "\nfunc.func @main(%a: tensor<2x!q>) -> tensor<2x!q> {\n" +
                    "  %0 = stablehlo.add %a, %a : tensor<2x!q>\n  return %0 : tensor<2x!q>\n}\n");
}

TEST(Quantized, types_that_break_a_constraint_are_refused_with_its_label) {
  const auto message = [](const std::string& element) {
    const std::string text = refusal("func.func @main(%a: tensor<2x4x" + element + ">) { return }");
    return text.substr(0, text.find(':')) + text.substr(text.find(": ", text.find("column")));
  };
  EXPECT_EQ(message("!quant.uniform<i32:f16, 0.5>"),
            "invalid_program: quantized element type C1: the storage type has more bits than the expressed type (i32 "
            "and f16)");
  EXPECT_EQ(message("!quant.uniform<i8<-200:3>:f32, 0.5>"),
            "invalid_program: quantized element type C4: -200 to 3 is no range of i8, which goes from -128 to 127");
  EXPECT_EQ(message("!quant.uniform<i8:f32, 0.0>"),
            "invalid_program: quantized element type C6: a scale is positive and finite in f32, got 0.0");
  EXPECT_EQ(message("!quant.uniform<i8:f16, 1.0e-9>").substr(0, 43), "invalid_program: quantized element type C6:");
  EXPECT_EQ(message("!quant.uniform<i8<0:10>:f32, 0.5:-3>"),
            "invalid_program: quantized element type C8: the zero point is -3, but stored values go from 0 to 10");
  EXPECT_EQ(message("!quant.uniform<i8:f32:2, {0.5}>"),
            "invalid_program: quantized tensor type C12: the quantization dimension is 2, but the tensor has 2 "
            "dimensions");
  EXPECT_EQ(message("!quant.uniform<i8:f32:0, {0.5}>"),
            "invalid_program: quantized tensor type C13: there are 1 scales, but dimension 0 has 2 elements");
  EXPECT_EQ(message("!quant.uniform<i8:f32:{0:1, 1:2}, {{1.0,2.0}}>").substr(0, 53),
            "unsupported_type: quantization by blocks ('!quant.uni");
  EXPECT_EQ(message("!quant.uniform<i64:f64, 0.5>"),
            "unsupported_type: the storage type of a quantized type is an integer of 2, 4, 8, 16 or 32 bits, got "
            "'i64'");
  EXPECT_EQ(message("!quant.any<i8:f32>"), "unsupported_dtype: element type '!quant.any' is not supported");
}

TEST(Quantized, ops_that_take_no_such_types_are_refused_by_name) {
  const std::string t = of("2x2", kByTensor);
  const std::string axis = of("2x2", kByAxis);
  const auto says = [](const std::string& text, const std::string& part) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says(program({t, t}, t, "stablehlo.and"), "unsupported_type: line 2, column 3: 'stablehlo.and' does not take");
  says(program({t}, t, "stablehlo.convert"), "'stablehlo.convert' does not take quantized types");
  says(program({t}, t, "chlo.erf"), "'chlo.erf' does not take quantized types");
  says(program({t}, t, "stablehlo.custom_call", " <{call_target_name = \"f\"}>"), "'stablehlo.custom_call' does not");
  says(program({axis}, axis, "stablehlo.tanh"), "tanh: its tensors are quantized per tensor");
  says(program({t, of("2x2", "f32")}, t, "stablehlo.multiply"), "all quantized, with one storage type");
  says(program({t, of("2x2", "!quant.uniform<i4:f32, 0.5>")}, t, "stablehlo.multiply"), "one storage type");
  says(program({t}, of("2x2", "i8"), "stablehlo.reverse", " <{dimensions = array<i64: 0>}>"), "quantized alike");
  says(program({t}, of("2x2", "!quant.uniform<i8:f32, 0.25>"), "stablehlo.reverse", " <{dimensions = array<i64: 0>}>"),
       "quantized alike");
  says(program({axis, axis}, t, "stablehlo.add"), "add C5");
  says(program({axis, of("2x2", "!quant.uniform<i8:f32:0, {0.5,0.5}>")}, axis, "stablehlo.add"), "add C7");
  says(program({axis}, axis, "stablehlo.transpose", " <{permutation = array<i64: 1, 0>}>"), "transpose C4");
  says(program({axis}, of("4x1", "!quant.uniform<i8<-127:127>:f32:1, {0.5}>"), "stablehlo.reshape"), "reshape C1");
  says(program({of("2", "f16")}, of("2", kByTensor), "stablehlo.uniform_quantize"), "uniform_quantize C2");
  says(program({of("2", "f32")}, of("2", "f32"), "stablehlo.uniform_quantize"), "uniform_quantize O1");
  says(program({of("2", kByTensor)}, of("2", "f16"), "stablehlo.uniform_dequantize"), "uniform_dequantize C2");
}

TEST(Quantized, products_are_held_to_their_constraints) {
  const std::string dot =
      " <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], "
      "rhs_contracting_dimensions = [0]>}>";
  const auto message = [&](std::string_view lhs, std::string_view rhs, std::string_view result) {
    return refusal(program({of("2x2", lhs), of("2x2", rhs)}, of("2x2", result), "stablehlo.dot_general", dot));
  };
  constexpr std::string_view kRhs = "!quant.uniform<i8:f32, 0.5>";
  EXPECT_EQ(message(kByTensor, kRhs, kByTensor), "none");
  EXPECT_EQ(message("f32", kRhs, "f32"), "none") << "hybrid";
  EXPECT_EQ(message(kByTensor, kRhs, "!quant.uniform<i32:f32, 0.25>"), "none");
  EXPECT_NE(message(kByTensor, kRhs, "f32").find("dot_general C14"), std::string::npos);
  EXPECT_NE(message(kByTensor, kByTensor, kByTensor).find("dot_general C15"), std::string::npos);
  EXPECT_NE(message(kByTensor, "!quant.uniform<i8:f32:0, {0.5,0.5}>", kByTensor).find("dot_general C16"),
            std::string::npos);
  EXPECT_NE(message(kByTensor, "!quant.uniform<i4:f32, 0.5>", kByTensor).find("dot_general C17"), std::string::npos);
  EXPECT_NE(message(kByTensor, kRhs, "!quant.uniform<i8:f32:1, {0.5,0.5}>").find("dot_general C19"), std::string::npos);
  EXPECT_NE(message("f16", kRhs, "f32").find("dot_general C20"), std::string::npos);
}

TEST(Quantized, no_later_stage_sees_them) {
  const std::string q = of("2x2", kByAxis);
  const std::string loop = "func.func @main(%a: " + q + ") -> " + q + " {\n  %0 = stablehlo.while(%x = %a) : " + q +
                           " cond {\n    %c = stablehlo.constant dense<false> : tensor<i1>\n    stablehlo.return %c : "
                           "tensor<i1>\n  } do {\n    %1 = stablehlo.add %x, %x : " +
                           q + "\n    stablehlo.return %1 : " + q + "\n  }\n  return %0 : " + q + "\n}\n";
  const ir::ModuleRef module = parse_stablehlo(loop);
  for (const ir::Value& value : module->main().values) EXPECT_FALSE(value.type.is_quantized()) << value.name;
  EXPECT_EQ(print(module->main().arguments[0].type), "tensor<2x2xi8>");
  EXPECT_EQ(module->main().arguments[0].quantized, kByAxis);
  EXPECT_EQ(print_generic(*module).find("quant"), std::string::npos);
  EXPECT_TRUE(ir::any_op(module->main().body, [](const ir::Op& op) { return op.name == "stablehlo.clamp"; }));
}

TEST(Quantized, constants_read_the_bits_of_unsigned_storage) {
  const ir::ModuleRef module = parse_stablehlo(
      "func.func @main() -> tensor<2x!quant.uniform<u4:f32, 0.5>> {\n  %0 = stablehlo.constant() <{value = dense<[-1, "
      "3]> : tensor<2xi4>}> : () -> tensor<2x!quant.uniform<u4:f32, 0.5>>\n  return %0 : "
      "tensor<2x!quant.uniform<u4:f32, "
      "0.5>>\n}\n");
  const auto* dense = ir::find(module->main().body.ops[0].attributes, "value")->as<ir::DenseAttr>();
  EXPECT_EQ(ir::dense_ints(*dense), (std::vector<int64_t>{15, 3}));
  EXPECT_NE(refusal("func.func @main() { %0 = stablehlo.constant dense<1> : tensor<2x!quant.uniform<i8:f32, 0.5>>\n"
                    "  return }")
                .find("integers of the storage type"),
            std::string::npos);
}

void expect_refused(const std::string& text, const std::string& part) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(part), std::string::npos) << message << "\n" << text;
}

TEST(Quantized, sums_with_booleans_are_refused) {
  const std::string q = of("2", kByTensor);
  const std::string i1 = "tensor<2xi1>";
  expect_refused(program({q, q}, i1, "stablehlo.add"), "add C1");
  expect_refused(program({q, i1}, q, "stablehlo.add"), "add C1");
  expect_refused(program({i1, i1}, q, "stablehlo.add"), "add C1");
}

TEST(Quantized, ops_that_lack_their_results_are_refused) {
  const auto refused = [](size_t operands, const std::string& op, const std::string& attributes = "") {
    std::string names = "%a";
    std::string types = "tensor<2x!q>";
    for (size_t i = 1; i < operands; ++i) names += ", %a", types += ", tensor<2x!q>";
    const std::string message =
        refusal("!q = " + std::string(kByTensor) + "\nfunc.func @main(%a: tensor<2x!q>) {\n  \"" + op + "\"(" + names +
                ")" + attributes + " : (" + types + ") -> ()\n  return\n}\n");
    EXPECT_NE(message, "none") << op;
  };
  refused(1, "stablehlo.concatenate", " <{dimension = 0 : i64}>");
  refused(2, "stablehlo.add");
  refused(2, "stablehlo.multiply");
  refused(1, "stablehlo.tanh");
  refused(1, "stablehlo.reshape");
  refused(2, "stablehlo.dynamic_reshape");
  refused(1, "stablehlo.transpose", " <{permutation = array<i64: 0>}>");
  refused(1, "stablehlo.broadcast_in_dim", " <{broadcast_dimensions = array<i64: 0>}>");
  refused(1, "stablehlo.reverse", " <{dimensions = array<i64: 0>}>");
  refused(2, "stablehlo.dot_general",
          " <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = "
          "[0]>}>");
  refused(2, "stablehlo.pad",
          " <{edge_padding_high = array<i64: 0>, edge_padding_low = array<i64: 0>, interior_padding = array<i64: 0>}>");
  refused(3, "stablehlo.select");
  refused(1, "stablehlo.uniform_quantize");
  refused(1, "stablehlo.uniform_dequantize");
}

TEST(Quantized, a_scalar_of_a_tensor_that_is_quantized_per_axis_is_not) {
  const std::string axis = "!quant.uniform<i8:f32:0, {0.5,0.25}>";
  const auto reduce = [&](const std::string& applied) {
    return "!q = " + axis + "\nfunc.func @main(%a: tensor<2x!q>, %b: tensor<i8>) -> tensor<i8> {\n" +
           "  %0 = stablehlo.reduce(%a init: %b) applies " + applied +
           " across dimensions = [0] : (tensor<2x!q>, tensor<i8>) -> tensor<i8>\n  return %0 : tensor<i8>\n}\n";
  };
  EXPECT_NE(refusal(reduce("stablehlo.dynamic_reshape")), "none");
  expect_refused(reduce("stablehlo.add"), "reduce: its tensors are quantized per tensor");
}

TEST(Quantized, only_the_value_of_a_constant_is_read_as_storage) {
  const ir::ModuleRef module = parse_stablehlo(
      "!q = !quant.uniform<u4:f32, 0.5>\nfunc.func @main() -> tensor<2x!q> {\n"
      "  %0 = stablehlo.constant() <{value = dense<[-1, 3]> : tensor<2xi4>}> {foo = dense<1> : tensor<i8>, "
      "bar = dense<-1> : tensor<2xi4>} : () -> tensor<2x!q>\n  return %0 : tensor<2x!q>\n}\n");
  const ir::AttributeList& attributes = module->main().body.ops[0].attributes;
  const auto dtype = [&](std::string_view name) { return ir::find(attributes, name)->as<ir::DenseAttr>()->type.dtype; };
  EXPECT_EQ(dtype("value"), tensor::DType::kUint4);
  EXPECT_EQ(dtype("foo"), tensor::DType::kInt8);
  EXPECT_EQ(dtype("bar"), tensor::DType::kInt4);
  EXPECT_NE(print_generic(*module).find("foo = dense<1> : tensor<i8>"), std::string::npos);
}

constexpr std::string_view kOther = "!quant.uniform<i8:f32, 2.5e-01>";

/// The body of a main that takes %q, quantised, %o, quantised otherwise, and %i, their plain integers.
std::string in_main_of(const std::string& shape, const std::string& result, const std::string& body) {
  const std::string prefix = shape.empty() ? "tensor<" : "tensor<" + shape + "x";
  return "!q = " + std::string(kByTensor) + "\n!o = " + std::string(kOther) + "\nfunc.func @main(%q: " + prefix +
         "!q>, %o: " + prefix + "!o>, %i: " + prefix + "i8>, %p: tensor<i1>, %n: tensor<i32>) -> " + result + " {\n" +
         body + "\n  return %0 : " + result + "\n}\n";
}

TEST(Quantized, what_is_moved_together_has_the_same_parameters) {
  const auto scatter = [](const std::string& updates, const std::string& type, const std::string& returned) {
    return in_main_of("2", "tensor<2x!q>",
                      "  %c = stablehlo.constant dense<0> : tensor<2x1xi32>\n"
                      "  %0 = \"stablehlo.scatter\"(%q, %c, " +
                          updates +
                          ") <{scatter_dimension_numbers = "
                          "#stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                          "index_vector_dim = 1>}> ({\n  ^bb0(%x: tensor<!q>, %y: tensor<!q>):\n" +
                          returned + "  }) : (tensor<2x!q>, tensor<2x1xi32>, tensor<2x" + type + ">) -> tensor<2x!q>");
  };
  const std::string same = "    stablehlo.return %y : tensor<!q>\n";
  EXPECT_EQ(refusal(scatter("%q", "!q", same)), "none");
  expect_refused(scatter("%o", "!o", same), "scatter: tensors whose elements are moved");
  expect_refused(scatter("%i", "i8", same), "scatter: tensors whose elements are moved");

  const auto select_and_scatter = [](const std::string& init, const std::string& type) {
    return in_main_of(
        "", "tensor<2x!q>",
        "  %a = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<!q>) -> tensor<2x!q>\n"
        "  %0 = \"stablehlo.select_and_scatter\"(%a, %a, " +
            init +
            ") <{window_dimensions = array<i64: "
            "1>}> ({\n  ^bb0(%x: tensor<!q>, %y: tensor<!q>):\n    stablehlo.return %p : tensor<i1>\n  }, {\n"
            "  ^bb0(%x: tensor<!q>, %y: tensor<!q>):\n    stablehlo.return %x : tensor<!q>\n"
            "  }) : (tensor<2x!q>, tensor<2x!q>, tensor<" +
            type + ">) -> tensor<2x!q>");
  };
  EXPECT_EQ(refusal(select_and_scatter("%q", "!q")), "none");
  expect_refused(select_and_scatter("%i", "i8"), "select_and_scatter: tensors whose elements are moved");

  // Operand 0 and result 0 have the parameters of %q, operand 1 and result 1 those of %o; regions must keep to them.
  const auto reduce = [](const std::string& arguments, const std::string& returned) {
    return in_main_of("", "tensor<!q>",
                      "  %a = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<!q>) -> tensor<2x!q>\n"
                      "  %b = stablehlo.broadcast_in_dim %o, dims = [] : (tensor<!o>) -> tensor<2x!o>\n"
                      "  %0, %1 = \"stablehlo.reduce\"(%a, %b, %q, %o) <{dimensions = array<i64: 0>}> ({\n  ^bb0(" +
                          arguments + "):\n    stablehlo.return " + returned +
                          "\n  }) : (tensor<2x!q>, tensor<2x!o>, tensor<!q>, tensor<!o>) -> (tensor<!q>, tensor<!o>)");
  };
  const std::string q = "tensor<!q>";
  const std::string o = "tensor<!o>";
  const std::string right = "%w: " + q + ", %x: " + o + ", %y: " + q + ", %z: " + o;
  EXPECT_EQ(refusal(reduce(right, "%w, %x : " + q + ", " + o)), "none");
  expect_refused(reduce("%w: " + q + ", %x: " + o + ", %y: tensor<i1>, %z: " + o, "%w, %x : " + q + ", " + o),
                 "reduce: argument 2 of its region");
  expect_refused(reduce(right, "%x, %w : " + o + ", " + q), "reduce: value 0 that its region returns");
  expect_refused(reduce(right, "%w, %i : " + q + ", tensor<i8>"), "reduce: value 1 that its region returns");
  expect_refused(reduce("%w: " + o + ", %x: " + q + ", %y: " + q + ", %z: " + o, "%x, %w : " + q + ", " + o),
                 "reduce: argument 0 of its region");
  const auto plain = [](const std::string& op, const std::string& operands, const std::string& attributes) {
    return in_main_of("", "tensor<2xi8>",
                      "  %a = stablehlo.constant dense<1> : tensor<2xi8>\n  %0 = \"" + op + "\"(" + operands + ") <{" +
                          attributes +
                          "}> ({\n  ^bb0(%x: tensor<!q>, %y: tensor<!q>):\n    %1 = stablehlo.add %x, %y : "
                          "tensor<!q>\n    stablehlo.return %1 : tensor<!q>\n  }) : (tensor<2xi8>, " +
                          (operands == "%a, %a" ? "tensor<2xi8>" : "tensor<i8>") + ") -> tensor<2xi8>");
  };
  expect_refused(plain("stablehlo.reduce_window", "%a, %i", "window_dimensions = array<i64: 1>"),
                 "reduce_window: argument 0 of its region");
  expect_refused(plain("stablehlo.map", "%a, %a", "dimensions = array<i64: 0>"),
                 "'stablehlo.map' does not take quantized types");
}

TEST(Quantized, indices_and_shapes_are_plain_integers) {
  const std::string index = "!quant.uniform<i32:f32, 0.5>";
  const auto refused = [&](const std::vector<std::string>& operands, const std::string& result, const std::string& op,
                           const std::string& attributes = "") {
    expect_refused(program(operands, result, op, attributes), "is an index or a shape");
  };
  const std::string q = of("2", index);
  const std::string scalar = "tensor<" + index + ">";
  const std::string one = of("1", index);
  refused({q, scalar}, one, "stablehlo.dynamic_slice", " <{slice_sizes = array<i64: 1>}>");
  refused({q, one, scalar}, q, "stablehlo.dynamic_update_slice");
  refused({q, one}, q, "stablehlo.dynamic_reshape");
  refused({q, scalar, one, one, one}, q, "stablehlo.dynamic_pad");
}

TEST(Quantized, held_values_keep_their_parameters) {
  // Each op declares or returns %o's parameters, or plain integers, where %q's are held.
  for (const auto& [given, type] : {std::pair("%o", "!o"), std::pair("%i", "i8")}) {
    const std::string other = "tensor<4x" + std::string(type) + ">";
    const std::string q = "tensor<4x!q>";
    const auto refused = [&](const std::string& part, const std::string& result, const std::string& body) {
      expect_refused("sdy.mesh @mesh = <[\"x\"=2]>\n" + in_main_of("4", result, body), part);
    };
    const std::string other_name = given;
    refused("optimization_barrier C1", other,
            "  %0 = \"stablehlo.optimization_barrier\"(%q) : (" + q + ") -> " + other);
    refused("sharding_constraint", other,
            "  %0 = \"sdy.sharding_constraint\"(%q) <{sharding = #sdy.sharding<@mesh, [{\"x\"}]>}> : (" + q + ") -> " +
                other);
    refused("reshard", other,
            "  %0 = \"sdy.reshard\"(%q) <{sharding = #sdy.sharding<@mesh, [{\"x\"}]>}> : (" + q + ") -> " + other);
    refused("if C2", q,
            "  %0 = \"stablehlo.if\"(%p) ({ stablehlo.return %q : " + q + " }, { stablehlo.return " + other_name +
                " : " + other + " }) : (tensor<i1>) -> " + q);
    refused("if C3", other,
            "  %0 = \"stablehlo.if\"(%p) ({ stablehlo.return %q : " + q + " }, { stablehlo.return %q : " + q +
                " }) : (tensor<i1>) -> " + other);
    refused("case C3", q,
            "  %0 = \"stablehlo.case\"(%n) ({ stablehlo.return %q : " + q + " }, { stablehlo.return " + other_name +
                " : " + other + " }) : (tensor<i32>) -> " + q);
    refused("while C2", q,
            "  %0 = stablehlo.while(%x = %q) : " + q +
                " cond { stablehlo.return %p : tensor<i1> } do { stablehlo.return " + other_name + " : " + other +
                " }");
    refused("while C1", q,
            "  %0 = \"stablehlo.while\"(%q) ({\n  ^bb0(%x: " + other +
                "):\n    stablehlo.return %p : tensor<i1>\n  }, {\n"
                "  ^bb0(%x: " +
                q + "):\n    stablehlo.return %x : " + q + "\n  }) : (" + q + ") -> " + q);
    refused("while C3", other,
            "  %0 = \"stablehlo.while\"(%q) ({\n  ^bb0(%x: " + q +
                "):\n    stablehlo.return %p : tensor<i1>\n  }, {\n"
                "  ^bb0(%x: " +
                q + "):\n    stablehlo.return %x : " + q + "\n  }) : (" + q + ") -> " + other);
    refused("manual_computation", q,
            "  %0 = sdy.manual_computation(%q) in_shardings=[<@mesh, [{\"x\"}]>] out_shardings=[<@mesh, [{\"x\"}]>] "
            "manual_axes={\"x\"} (%x: tensor<2x" +
                std::string(type) +
                ">) {\n    %1 = stablehlo.constant() <{value = dense<1> : "
                "tensor<2xi8>}> : () -> tensor<2x!q>\n    sdy.return %1 : tensor<2x!q>\n  } : (" +
                q + ") -> " + q);
  }
  expect_refused(
      "func.func @main(%n: tensor<!quant.uniform<i32:f32, 0.5>>) -> tensor<f32> {\n"
      "  %c = stablehlo.constant dense<1.0> : tensor<f32>\n"
      "  %0 = \"stablehlo.case\"(%n) ({ stablehlo.return %c : tensor<f32> }) : "
      "(tensor<!quant.uniform<i32:f32, 0.5>>) -> tensor<f32>\n  return %0 : tensor<f32>\n}\n",
      "case I1");
}

TEST(Quantized, regions_of_collectives_are_on_quantized_scalars) {
  const auto all_reduce = [](const std::string& element) {
    return in_main_of("2", "tensor<2x!q>",
                      "  %0 = \"stablehlo.all_reduce\"(%q) <{channel_handle = #stablehlo.channel_handle<handle = 1, "
                      "type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({\n"
                      "  ^bb0(%x: tensor<" +
                          element + ">, %y: tensor<" + element +
                          ">):\n"
                          "    %1 = stablehlo.add %x, %y : tensor<" +
                          element +
                          ">\n"
                          "    stablehlo.return %1 : tensor<" +
                          element + ">\n  }) : (tensor<2x!q>) -> tensor<2x!q>");
  };
  EXPECT_EQ(refusal(all_reduce("!q")), "none");
  expect_refused(all_reduce("!o"), "all_reduce: argument 0 of its region");
  expect_refused(all_reduce("i8"), "all_reduce: argument 0 of its region");
}

}  // namespace
}  // namespace meshd::program
