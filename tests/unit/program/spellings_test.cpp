// One module as different printers write it: each text must be read as the same module.
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

/// The module without its name, as meshd prints it.
std::string read(const std::string& text) { return print_generic(*parse_stablehlo(text)); }

constexpr const char* kSharded = R"(module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x"}]>]>} : tensor<4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@m, [{"x"}]>] out_shardings=[<@m, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      %3 = stablehlo.sine %b : tensor<2xf32>
      sdy.return %3 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    %2 = sdy.reshard %1 <@m, [{}]> : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
})";

TEST(Spellings, shardings_in_generic_attributes) {
  EXPECT_EQ(read(R"(module {
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "m"}> : () -> ()
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
    %0 = "stablehlo.add"(%a, %a) {sdy.sharding = #sdy.sharding_per_value<[#sdy.sharding<@m, [{"x"}]>]>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = "sdy.manual_computation"(%0) <{in_shardings = #sdy.sharding_per_value<[#sdy.sharding<@m, [{"x"}]>]>, out_shardings = #sdy.sharding_per_value<[#sdy.sharding<@m, [{"x"}]>]>, manual_axes = #sdy<manual_axes{"x"}>}> ({
    ^bb0(%b: tensor<2xf32>):
      %3 = "stablehlo.sine"(%b) : (tensor<2xf32>) -> tensor<2xf32>
      "sdy.return"(%3) : (tensor<2xf32>) -> ()
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "sdy.reshard"(%1) <{sharding = #sdy.sharding<@m, [{}]>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
})"),
            read(kSharded));
}

TEST(Spellings, aliases_of_shardings) {
  EXPECT_EQ(read(R"(#s = #sdy.sharding<@m, [{"x"}]>
#each = #sdy.sharding_per_value<[#s]>
module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #s}) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a {sdy.sharding = #each} : tensor<4xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[#s] out_shardings=[#s] manual_axes={"x"} (%b: tensor<2xf32>) {
      %3 = stablehlo.sine %b : tensor<2xf32>
      sdy.return %3 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    %2 = sdy.reshard %1 <@m, [{}]> : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
})"),
            read(kSharded));
  EXPECT_EQ(refusal(R"(#each = #sdy.sharding_per_value<[<@m, [{"x"}]>]>
module {
  sdy.mesh @m = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding_per_value<[#each]>}) { return }
})"),
            "program_syntax: line 4, column 78: '#each' is not one sharding");
}

constexpr const char* kPlain = R"(func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %c = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0 = stablehlo.add %a, %c : tensor<4xf32>
  %1 = stablehlo.compare GT, %0, %a, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xi1>
})";

TEST(Spellings, aliases_of_types_and_constants) {
  EXPECT_EQ(read(R"(!t = tensor<4xf32>
!e = f32
!same = !t
#two = dense<2.0> : tensor<4x!e>
func.func @main(%a: !t) -> (!same, tensor<4xi1>) {
  %c = stablehlo.constant #two
  %0 = stablehlo.add %a, %c : !t
  %1 = stablehlo.compare GT, %0, %a, FLOAT : (!t, tensor<4x!e>) -> tensor<4xi1>
  %2 = chlo.erf %0 : !t -> !t
  return %2, %1 : !t, tensor<4xi1>
})"),
            read(kPlain));
  EXPECT_NE(refusal("!a = !b\n!b = !a\nfunc.func @main(%x: !a) { return }").find("types nest too deeply"),
            std::string::npos);
}

TEST(Spellings, locations_of_every_kind_and_attributes_of_tensorflow) {
  const ir::Module module = *parse_stablehlo(R"(#loc = loc(unknown)
#loc1 = loc("a.py":3:1)
#loc2 = loc("f"(#loc1))
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc(fused<"meta">[#loc1, #loc3])
#loc5 = loc("a.py":3:1 to 5:4)
module attributes {tf.versions = {bad_consumers = [], producer = 1286 : i32}, tf_saved_model.semantics} {
  func.func @main(%a: tensor<4xf32> {tf_saved_model.index_path = ["x"]} loc("x")) -> (tensor<4xf32>, tensor<4xi1>) attributes {tf.entry_function = {control_outputs = "", inputs = "x"}} {
    %c = stablehlo.constant dense<2.0> : tensor<4xf32> loc(fused[callsite("g"("b.py":1:2) at fused<{a = 1}>["h", #loc5])])
    %0 = stablehlo.add %a, %c : tensor<4xf32> loc(#loc4)
    %1 = stablehlo.compare GT, %0, %a, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1> loc(#loc3)
    %2 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32> loc(#loc)
    return %2, %1 : tensor<4xf32>, tensor<4xi1> loc(#loc)
  } loc(#loc)
} loc(#loc)
)");
  std::vector<std::string> names;
  for (const ir::Op& op : module.main().body.ops) names.push_back(op.location.name);
  EXPECT_EQ(names, (std::vector<std::string>{"g", "meta", "f", "", ""}));
}

TEST(Spellings, aliases_of_themselves_are_refused) {
  // As an element type and as an attribute: neither nests types or attributes.
  for (const char* use : {"func.func @main(%x: tensor<4x!a>) { return }", "module attributes {b = !a} {}"}) {
    EXPECT_NE(refusal("!a = !a\n" + std::string(use)).find("aliases nest too deeply"), std::string::npos) << use;
    EXPECT_NE(refusal("!a = !b\n!b = !a\n" + std::string(use)).find("aliases nest too deeply"), std::string::npos)
        << use;
  }
}

TEST(Spellings, ops_of_other_dialects) {
  EXPECT_EQ(read(R"(func.func @main(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi1>) {
  %c = arith.constant dense<2.0> : tensor<4xf32>
  %0 = mhlo.add %a, %c : tensor<4xf32>
  %1 = "mhlo.compare"(%0, %a) {
    comparison_direction = #mhlo<comparison_direction GT>,
    compare_type = #mhlo<comparison_type FLOAT>,
  } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = "mhlo.erf"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %1 : tensor<4xf32>, tensor<4xi1>
})"),
            read(kPlain));
  EXPECT_EQ(refusal("func.func @main(%a: tensor<4xf32>) { %0 = mhlo.fusion %a : tensor<4xf32> return }").substr(0, 68),
            "unsupported_op: line 1, column 43: op 'mhlo.fusion' is not supported");
}

TEST(Spellings, indices_are_64_bit_integers) {
  EXPECT_EQ(read(R"(func.func @main(%a: tensor<2xindex>) -> tensor<2xindex> {
  %c = "stablehlo.constant"() {value = dense<[1, 2]> : tensor<2xindex>} : () -> tensor<2xindex>
  %0 = stablehlo.add %a, %c : tensor<2xindex>
  return %0 : tensor<2xindex>
})"),
            read(R"(func.func @main(%a: tensor<2xi64>) -> tensor<2xi64> {
  %c = stablehlo.constant dense<[1, 2]> : tensor<2xi64>
  %0 = stablehlo.add %a, %c : tensor<2xi64>
  return %0 : tensor<2xi64>
})"));
}

TEST(Spellings, the_one_public_function_is_the_program) {
  const auto with_names = [](const std::string& entry, const std::string& inner) {
    return "module {\n  func.func " + entry + "(%a: tensor<f32>) -> tensor<f32> {\n    %0 = call @" + inner +
           "(%a) : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>\n  }\n  func.func private @" + inner +
           "(%a: tensor<f32>) -> tensor<f32> {\n    return %a : tensor<f32>\n  }\n}\n";
  };
  EXPECT_EQ(read(with_names("@forward", "g")), read(with_names("@main", "g")));
  EXPECT_EQ(refusal("func.func @f() { return }\nfunc.func @g() { return }"),
            "invalid_program: line 1, column 1: the module has no function @main, and several that are public: @f, @g; "
            "name the one to run @main");
  EXPECT_EQ(refusal("func.func private @f() { return }"),
            "invalid_program: line 1, column 1: the module has no function @main, and none that is public; name the "
            "one to run @main");
}

TEST(Spellings, asynchronous_ops_are_what_they_wait_for) {
  const std::string direct = read(R"(func.func @main(%a: tensor<4xf32>) -> tensor<2xf32> {
  %0 = sdy.named_computation<"async">(%a) (%x: tensor<4xf32>) {
    %1 = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  } : (tensor<4xf32>) -> tensor<2xf32>
  %2 = stablehlo.tuple %0 : tuple<tensor<2xf32>>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<2xf32>>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
})");
  EXPECT_EQ(read(R"(func.func @main(%a: tensor<4xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.async_start"(%a) ({
  ^bb0(%x: tensor<4xf32>):
    %1 = stablehlo.slice %x [0:2] : (tensor<4xf32>) -> tensor<2xf32>
    stablehlo.return %1 : tensor<2xf32>
  }) : (tensor<4xf32>) -> !stablehlo.future<tensor<2xf32>>
  %3 = "stablehlo.async_done"(%0) : (!stablehlo.future<tensor<2xf32>>) -> tensor<2xf32>
  return %3 : tensor<2xf32>
})"),
            direct);
  constexpr const char* kCallee = R"(func.func private @w(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
)";
  EXPECT_EQ(read(kCallee + std::string(R"(func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "mhlo.async_start"(%a) <{called_computation = @w, execution_thread = "main"}> : (tensor<4xf32>) -> !mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>
  %1 = "mhlo.async_update"(%0) : (!mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>) -> !mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>
  %2 = "mhlo.async_done"(%1) : (!mhlo.async_bundle<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
})")),
            read(kCallee + std::string(R"(func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @w(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.tuple %0 : tuple<tensor<4xf32>>
  %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<4xf32>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
})")));
  EXPECT_NE(refusal(R"(func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.async_done"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
})")
                .find("needs the type of an asynchronous op, got tensor<4xf32>"),
            std::string::npos);
}

}  // namespace
}  // namespace meshd::program
