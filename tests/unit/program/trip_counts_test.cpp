// How often loops run, where their text tells it.
#include "service/program/analysis/counted_loop.h"

#include "service/ir/walk.h"
#include "service/program/transform/inline_calls.h"
#include "service/program/transform/specialise.h"
#include "tests/unit/program/support.h"

namespace meshd::program {
namespace {

// Counts of all loops in the order of the text; -1: not known.
std::vector<int64_t> counts(const std::string& text) {
  const ir::Module module = specialise(inline_calls(*parse_stablehlo(text)));
  const auto found = trip_counts(module.main());
  std::vector<int64_t> out;
  ir::walk(module.main().body, [&](const ir::Op& op) {
    if (op.name != "stablehlo.while") return;
    const auto known = found.find(op.results[0]);
    out.push_back(known == found.end() ? -1 : known->second);
  });
  return out;
}

// while (i = start; i direction limit) {i = i + step; inner}
std::string loop(const std::string& start, const std::string& direction, const std::string& limit,
                 const std::string& step, const std::string& inner = "") {
  return "%r = stablehlo.while(%i = " + start + ") : tensor<i32> cond {\n%p = stablehlo.compare " + direction +
         ", %i, " + limit +
         ", SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %p : tensor<i1>\n} do {\n" + inner +
         "\n%j = stablehlo.add %i, " + step + " : tensor<i32>\nstablehlo.return %j : tensor<i32>\n}\n";
}

std::string program(const std::string& body) {
  return "func.func @main(%n: tensor<i32>) -> tensor<i32> {\n%zero = stablehlo.constant dense<0> : tensor<i32>\n"
         "%two = stablehlo.constant dense<2> : tensor<i32>\n%ten = stablehlo.constant dense<10> : tensor<i32>\n" +
         body + "return %r : tensor<i32>\n}";
}

TEST(TripCounts, loops_with_constant_bounds_are_counted) {
  EXPECT_EQ(counts(program(loop("%zero", "LT", "%ten", "%two"))), (std::vector<int64_t>{5}));
  EXPECT_EQ(counts(program(loop("%two", "LE", "%ten", "%two"))), (std::vector<int64_t>{5}));
  EXPECT_EQ(counts(program(loop("%ten", "LT", "%zero", "%two"))), (std::vector<int64_t>{0}));
}

TEST(TripCounts, loops_whose_bounds_are_data_are_not) {
  EXPECT_EQ(counts(program(loop("%zero", "LT", "%n", "%two"))), (std::vector<int64_t>{-1}));
  EXPECT_EQ(counts(program(loop("%n", "LT", "%ten", "%two"))), (std::vector<int64_t>{-1}));
  EXPECT_EQ(counts(program(loop("%zero", "LT", "%ten", "%n"))), (std::vector<int64_t>{-1}));
  EXPECT_EQ(counts(program(loop("%zero", "LT", "%ten", "%zero"))), (std::vector<int64_t>{-1})) << "it never ends";
}

// From 120 on in steps of 5: 125, -126, ..., which are below 127, too.
TEST(TripCounts, loops_whose_counters_wrap_around_are_not) {
  const auto of = [](const std::string& type, int64_t start, int64_t step) {
    std::string text = program(loop("%start", "LT", "%limit", "%step"));
    const std::string constants = "%start = stablehlo.constant dense<" + std::to_string(start) +
                                  "> : tensor<i32>\n%limit = stablehlo.constant dense<127> : tensor<i32>\n" +
                                  "%step = stablehlo.constant dense<" + std::to_string(step) + "> : tensor<i32>\n";
    text.replace(text.find("%zero"), 0, constants);
    if (type[0] == 'u') text.replace(text.find("SIGNED"), 0, "UN");
    for (size_t at = text.find("i32"); at != std::string::npos; at = text.find("i32")) text.replace(at, 3, type);
    return counts(text);
  };
  EXPECT_EQ(of("i8", 120, 5), (std::vector<int64_t>{-1}));
  EXPECT_EQ(of("i8", 120, 1), (std::vector<int64_t>{7}));
  EXPECT_EQ(of("ui8", 120, 5), (std::vector<int64_t>{2}));
  EXPECT_EQ(of("i16", 120, 5), (std::vector<int64_t>{2}));
}

TEST(TripCounts, program_without_loops_has_none) {
  EXPECT_TRUE(counts(program("%r = stablehlo.add %zero, %n : tensor<i32>\n")).empty());
}

}  // namespace
}  // namespace meshd::program
