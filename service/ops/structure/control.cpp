// Rows of control flow: while, case, if, calls, returns and composites. The stages implement them; types are checked
// here.
#include <fmt/core.h>

#include <string>

#include "service/ops/checks.h"
#include "service/ops/families.h"
#include "service/ops/quantized.h"

namespace meshd::ops {
namespace {

using tensor::DType;

bool all_compatible(const std::vector<ir::Type>& a, const std::vector<ir::Type>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!compatible(a[i], b[i])) return false;
  }
  return true;
}

bool is_plain_scalar(const ir::Type& type, DType dtype) {
  return is_scalar(type) && type.dtype() == dtype && !type.is_quantized();
}

void expect_types(const OpView& view, std::string_view what, const std::vector<ir::Type>& expected,
                  const std::vector<ir::Type>& got) {
  if (all_compatible(expected, got)) return;
  reject(view, std::string(what) + " (expected " + types_text(expected) + ", got " + types_text(got) + ")");
}

std::vector<ir::Type> infer_while(const OpView& view) {
  const std::vector<ir::Type> carried(view.operands.begin(), view.operands.end());
  const ir::Region& cond = view.regions[0];
  const ir::Region& body = view.regions[1];
  expect_types(view, "while C1: cond must take the carried values", carried, argument_types(view, cond));
  const std::vector<ir::Type> verdict = returned_types(view, cond);
  if (verdict.size() != 1 || !is_plain_scalar(verdict[0], DType::kBool)) {
    reject(view, "while C1: cond must return tensor<i1>, got " + types_text(verdict));
  }
  expect_types(view, "while C2: body must take the carried values", carried, argument_types(view, body));
  expect_types(view, "while C2: body must return values of the carried types", carried, returned_types(view, body));
  return agree(view, "while C3", carried);
}

/// Branches take nothing and return values of one list of types, which are those of the op's results.
std::vector<ir::Type> infer_branches(const OpView& view, const std::string& op, std::string_view same_label,
                                     std::string_view result_label) {
  const std::vector<ir::Type> first = returned_types(view, view.regions[0]);
  for (size_t i = 0; i < view.regions.size(); ++i) {
    if (!view.regions[i].arguments.empty()) {
      reject(view, fmt::format("{}: branch {} must take nothing, takes {}", op, i,
                               types_text(argument_types(view, view.regions[i]))));
    }
    expect_types(view, fmt::format("{} {}: branch {} must return what branch 0 returns", op, same_label, i), first,
                 returned_types(view, view.regions[i]));
  }
  return agree(view, op + " " + std::string(result_label), first);
}

std::vector<ir::Type> infer_case(const OpView& view) {
  expect_operand_count(view, "case", 1);
  if (!is_plain_scalar(view.operands[0], DType::kInt32))
    reject(view, "case I1: index must be tensor<i32>, got " + operand_text(view, 0));
  if (view.regions.empty()) reject(view, "case C1: needs at least one branch");
  // checks: case C3: all branches return the same types
  // checks: case C4: the results have the types that the branches return
  return infer_branches(view, "case", "C3", "C4");
}

std::vector<ir::Type> infer_if(const OpView& view) {
  expect_operand_count(view, "if", 1);
  if (!is_plain_scalar(view.operands[0], DType::kBool))
    reject(view, "if I1: pred must be tensor<i1>, got " + operand_text(view, 0));
  // checks: if C2: both branches return the same types
  // checks: if C3: the results have the types that the branches return
  return infer_branches(view, "if", "C2", "C3");
}

/// A call declares its result types; whether they match the callee is checked by the verifier of modules.
std::vector<ir::Type> infer_as_declared(const OpView& view) { return {view.results.begin(), view.results.end()}; }

std::vector<ir::Type> infer_return(const OpView& view) { return agree(view, "return", {}); }

/// `ends_function`: JAX ends functions in stablehlo.return too, where they are comparators of ApproxTopK.
OpDef return_row(std::string_view name, std::string_view summary, std::string_view example, bool ends_function) {
  return {.name = name,
          .summary = summary,
          .example = example,
          .signature = {.operand_max = -1},
          .text = {.shape = TextShape::kReturn},
          .infer = infer_return,
          .quantized = kQuantizedHeld,
          .body = Structural::kReturn,
          .has_effect = true,
          .ends_function = ends_function};
}

}  // namespace

std::vector<OpDef> control_rows() {
  return {
      {.name = "stablehlo.while",
       .summary = "runs its body as long as its condition holds",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.while(%iterArg = %arg0) : tensor<i32>
    cond {
      %c = stablehlo.constant dense<10> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %1 = stablehlo.add %iterArg, %c : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }
    return %0 : tensor<i32>
  }
}
)",
       .signature = {.operand_max = -1, .region_count = 2},
       .text = {.shape = TextShape::kWhile},
       .infer = infer_while,
       .quantized = kQuantizedHeld,
       .body = Structural::kWhile},
      {.name = "stablehlo.case",
       .summary = "runs the branch that an index chooses, the last one when the index is outside",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<i32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.case"(%arg0) ({
      %1 = stablehlo.negate %arg1 : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      stablehlo.return %arg1 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .region_count = -1},
       .infer = infer_case,
       .quantized = kQuantizedHeld,
       .body = Structural::kCase},
      {.name = "stablehlo.if",
       .summary = "runs one of two branches",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.if"(%arg0) ({
      %1 = stablehlo.negate %arg1 : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      stablehlo.return %arg1 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_min = 1, .operand_max = 1, .region_count = 2},
       .infer = infer_if,
       .quantized = kQuantizedHeld,
       .body = Structural::kIf},
      {.name = "func.call",
       .summary = "runs another function of the module",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = call @twice(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_max = -1, .attributes = {{"callee", true, "the function"}}},
       .text = {.shape = TextShape::kCall},
       .infer = infer_as_declared,
       .quantized = kQuantizedHeld,
       .body = Structural::kCall},
      {.name = "stablehlo.composite",
       .summary = "a named group of ops, given by the function that it decomposes into",
       .example = R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.composite "my.twice" %arg0 {decomposition = @my.twice, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @my.twice(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
       .signature = {.operand_max = -1,
                     .attributes = {{"name", true, "what it is called"},
                                    {"decomposition", true, "the function that says what it does"},
                                    {"composite_attributes", false, "what the name's owner wants to know"},
                                    {"version", false, "of the composite"}}},
       .text = {.shape = TextShape::kComposite},
       .infer = infer_as_declared,
       .quantized = kQuantizedHeld,
       .body = Structural::kComposite},
      return_row("stablehlo.return", "ends a region and names its results", R"(module @jit_f {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.if"(%arg0) ({
      stablehlo.return %arg1 : tensor<4xf32>
    }, {
      %1 = stablehlo.negate %arg1 : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
                 true),
      return_row("func.return", "ends a function and names its results", R"(module @jit_f {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
}
)",
                 true),
      return_row("sdy.return", "ends the body of a manual or named computation", R"(module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg1: tensor<2xf32>) {
      sdy.return %arg1 : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)",
                 false),
  };
}

}  // namespace meshd::ops
