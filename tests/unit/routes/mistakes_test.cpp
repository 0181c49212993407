// What a client reads after a slip: the nearest name, which arguments are too many or missing, what to bind.
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

using nlohmann::json;

constexpr std::string_view kTwo =
    "func.func @main(%a: tensor<3xf32>, %b: tensor<2xf32>) -> tensor<2xf32> { return %b : tensor<2xf32> }";
constexpr std::string_view kPlatforms =
    "func.func public @main(%p: tensor<i32> {jax.global_constant = \"_platform_index\"}, %x: tensor<3xf32> loc(\"x\"), "
    "%z: tensor<2xf32> loc(\"z\")) -> tensor<3xf32> { return %x : tensor<3xf32> }";
constexpr std::string_view kCallback =
    "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n"
    "  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {mhlo.backend_config = {index = 0 : ui64}, "
    "api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>\n"
    "  return %0 : tensor<2xf32>\n}";

class Mistakes : public ::testing::Test {
 protected:
  json refused(const std::string& path, const json& body) {
    const Answer answer = server_.ask("POST", path, body.dump(), {"Content-Type: application/json"});
    EXPECT_EQ(answer.status, 422) << answer.body;
    return answer.json();
  }
  json refused_run(std::string_view text, const json& arguments) {
    return refused("/v1/run", {{"program", {{"text", text}}}, {"arguments", arguments}});
  }
  /// The pointer and text of the only mistake.
  static std::string only(const json& document) {
    EXPECT_EQ(document.at("errors").size(), 1U) << document;
    return document.at("errors").at(0).at("pointer").get<std::string>() + " " +
           document.at("errors").at(0).at("detail").get<std::string>();
  }
  static bool says(const json& document, const std::string& text) {
    return document.at("detail").get<std::string>().find(text) != std::string::npos;
  }

  InProcess server_;
  const json three_ = {1, 2, 3}, two_ = {1, 2}, five_ = {1, 2, 3, 4, 5};
};

TEST_F(Mistakes, arguments_that_jit_dropped_are_named) {
  const json lists = refused_run(kTwo, {three_, five_, two_});
  EXPECT_EQ(lists.at("code"), "invalid_argument");
  EXPECT_EQ(only(lists), "/arguments/1 is not an argument of the program: leave it out");
  EXPECT_TRUE(says(lists, "takes 2 arguments, the request has 3")) << lists;
  EXPECT_TRUE(says(lists, "leave out number 1 (from 0)")) << lists;
  const json objects = refused_run(kTwo, {{{"dtype", "float32"}, {"shape", {3}}, {"data", three_}},
                                          {{"dtype", "int32"}, {"shape", {2}}, {"data", two_}},
                                          {{"dtype", "float32"}, {"shape", {2}}, {"data", two_}}});
  EXPECT_EQ(only(objects), "/arguments/1 is not an argument of the program: leave it out") << "types tell them apart";
  const json either = refused_run(kTwo, {three_, two_, two_});
  EXPECT_EQ(only(either), "/arguments expected 2 entries, (tensor<3xf32>, tensor<2xf32>)") << "two ways to fit";
  EXPECT_TRUE(says(either, "keep_unused=True")) << either;
}

TEST_F(Mistakes, a_slice_of_a_name_that_no_array_has_is_named) {
  const Answer answer = server_.ask("PUT", "/v1/arrays/by-name/w/data?slice=0:1&dtype=float32&shape=2", "12345678",
                                    {"Content-Type: application/octet-stream"});
  EXPECT_EQ(answer.problem(), "422 invalid_query");
  EXPECT_TRUE(says(answer.json(), "slice: no array is named 'w'")) << answer.body;
}

TEST_F(Mistakes, arguments_that_are_missing_are_named) {
  const json document = refused_run(kTwo, json::array({two_}));
  EXPECT_TRUE(says(document, "missing (from 0): 0 (tensor<3xf32>)")) << document;
  EXPECT_EQ(only(document), "/arguments expected 2 entries, (tensor<3xf32>, tensor<2xf32>)");
  EXPECT_EQ(refused_run(kTwo, json::array()).at("detail"), "the program takes 2 arguments, the request has 0");
}

TEST_F(Mistakes, missing_platform_index_of_an_export_is_named) {
  const json document = refused_run(kPlatforms, {three_, two_});
  EXPECT_EQ(document.at("errors").at(0).at("pointer"), "/arguments/0");
  EXPECT_TRUE(says(document, "platform index")) << document;
  const Answer right =
      server_.ask("POST", "/v1/run", json{{"program", {{"text", kPlatforms}}}, {"arguments", {0, three_, two_}}}.dump(),
                  {"Content-Type: application/json"});
  EXPECT_EQ(right.status, 200) << right.body;
  EXPECT_TRUE(says(refused_run(kPlatforms, {0, two_}), "missing (from 0): 1 (tensor<3xf32> 'x')"));
}

TEST_F(Mistakes, callback_without_answers_says_how_to_bind_it) {
  const json document = refused_run(kCallback, json::array({two_}));
  EXPECT_EQ(document.at("errors").at(0).at("pointer"), "/callbacks/0");
  EXPECT_TRUE(says(document, "line 2")) << document;
  EXPECT_TRUE(says(document, R"("callbacks": {"0": {"effect": "callback", "answers": [[VALUE, ...], ...]}})"))
      << document;
  std::string misspelt(kCallback);
  misspelt.replace(misspelt.find("python"), 6, "pyton");
  EXPECT_TRUE(says(refused_run(misspelt, json::array({two_})), "did you mean 'xla_ffi_python_cpu_callback'?"));
}

TEST_F(Mistakes, dtypes_have_the_nearest_name_everywhere) {
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "flaot32"}, {"shape", {2}}, {"data", two_}})),
            R"(/dtype "flaot32" is no dtype; did you mean "float32"?)");
  EXPECT_EQ(only(refused_run(kTwo, {three_, {{"dtype", "torch.float32"}, {"shape", {2}}, {"data", two_}}})),
            R"(/arguments/1/dtype "torch.float32" is no dtype; did you mean "float32"?)");
  EXPECT_TRUE(says(refused("/v1/arrays?dtype=double&shape=2", two_), "did you mean 'float64'?"));
  EXPECT_TRUE(says(refused_run("func.func @main(%a: tensor<2xfloat32>) { return }", json::array({two_})),
                   "did you mean 'f32'?"));
  const json traced =
      refused("/v1/run",
              {{"program", {{"format", "numpy"}, {"text", "def f(x): return x.astype('half')"}}}, {"arguments", {1}}});
  EXPECT_TRUE(says(traced, "did you mean 'float16'?")) << traced;
}

TEST_F(Mistakes, misspelt_names_are_one_mistake) {
  EXPECT_EQ(only(refused("/v1/run", {{"program", {{"text", kTwo}}}, {"argumnts", json::array()}})),
            R"(/argumnts is not a field that is known here; did you mean "arguments"?)");
  EXPECT_EQ(only(refused_run(kTwo, {three_, {{"dtyp", "float32"}, {"shape", {2}}, {"data", two_}}})),
            R"(/arguments/1/dtyp is not a field that is known here; did you mean "dtype"?)");
  EXPECT_EQ(only(refused_run(kTwo, {three_, {{"dtype", "float32"}, {"shape", {2}}, {"dta", two_}}})),
            R"(/arguments/1/dta is not a field that is known here; did you mean "data"?)");
  const json encoding = refused(
      "/v1/run", {{"program", {{"text", kTwo}}}, {"arguments", {three_, two_}}, {"results", {{"encoding", "jsn"}}}});
  EXPECT_EQ(only(encoding),
            R"(/results/encoding expected one of "json", "base64", "array", "none", got "jsn"; did you mean "json"?)");
  EXPECT_TRUE(says(refused("/v1/run", {{"program", {{"text", kTwo}, {"format", "stablhlo"}}}, {"arguments", {1}}}),
                   "did you mean 'stablehlo'?"));
}

TEST_F(Mistakes, values_that_do_not_fit_are_shown) {
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "int32"}, {"shape", {2}}, {"data", {1.5, 2}}})),
            "/data/0 expected a whole number from -2147483648 to 2147483647 (int32), got 1.5, which is float");
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "int4"}, {"shape", json::array()}, {"data", 8}})),
            "/data expected a whole number from -8 to 7 (int4), got 8");
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "float32"}, {"shape", {2}}, {"base64", "!!!!"}})),
            "/base64 expected base64 of 8 bytes, got 4 characters for 3");
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "uint8"}, {"shape", {3}}, {"base64", "!!!!"}})),
            "/base64 expected base64 of 3 bytes, got characters that are none of it");
}

TEST_F(Mistakes, parameters_of_the_query_in_a_body_are_named) {
  EXPECT_EQ(only(refused("/v1/arrays", {{"dtype", "float32"}, {"shape", {1}}, {"data", {1}}, {"name", "x"}})),
            "/name is a parameter of the query here: ?name=...");
}

TEST_F(Mistakes, json_has_a_line_and_a_column) {
  const auto mistake = [&](const std::string& text) {
    const Answer answer = server_.ask("POST", "/v1/run", text, {"Content-Type: application/json"});
    EXPECT_EQ(answer.json().at("code"), "malformed_json");
    return answer.json().at("errors").at(0);
  };
  const json comma = mistake("{\"program\":\n {\"text\": \"\",}}");
  EXPECT_EQ(comma.at("line"), 2);
  EXPECT_EQ(comma.at("column"), 14) << comma;
  const json large = mistake(R"({"arguments": [1e400]})");
  EXPECT_TRUE(says(large, "\"Infinity\"")) << large;
  EXPECT_FALSE(says(large, "json.exception")) << large;
  EXPECT_TRUE(says(mistake(R"({"arguments": [NaN]})"), "\"NaN\"")) << "as Python prints it";
}

TEST_F(Mistakes, specs_that_are_bare_lists_are_shown_their_form) {
  const json document = refused("/v1/run", {{"program", {{"text", kTwo}}},
                                            {"arguments", {three_, two_}},
                                            {"in_shardings", json::array({json::array({"x"}), nullptr})}});
  EXPECT_EQ(only(document), R"(/in_shardings/0 expected null or an object such as {"spec": ["x", null]}, got a list)");
}

TEST_F(Mistakes, arguments_of_numpy_syntax_are_trees_or_values) {
  const auto run = [&](std::string_view text, const json& arguments) {
    return json{{"program", {{"format", "numpy"}, {"text", text}}}, {"arguments", arguments}};
  };
  const auto data_of = [&](const json& body) {
    const Answer answer = server_.ask("POST", "/v1/run", body.dump(), {"Content-Type: application/json"});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().at("results").at(0).at("data");
  };
  const json w = {{"dtype", "float32"}, {"data", {1}}}, b = {{"dtype", "float32"}, {"data", {2}}};
  EXPECT_EQ(data_of(run("def f(p): return p[1][0] - p[0][1]",
                        json::array({json::array({json::array({w, b}), json::array({w, b})})}))),
            json::array({-1.0}))
      << "layers of weights and biases";
  const json batch = {{"data", {1.5, 2}}, {"label", {1, 0}}};
  EXPECT_EQ(data_of(run("def f(p): return p['data'] + p['label']", json::array({batch}))), json({2.5, 2.0}));
  const json misspelt = {{"dtype", "float32"}, {"data", {1, 2, 3, 4}}, {"shpae", {2, 2}}};
  EXPECT_EQ(only(refused("/v1/run", run("def f(p): return p", json::array({misspelt})))),
            R"(/arguments/0/shpae is not a field that is known here; did you mean "shape"?)");
  EXPECT_EQ(only(refused("/v1/run", run("def f(x): return x", {{"x", 1}}))),
            R"(/arguments expected a list, got an object; arguments by name go under "keywords")");
}

TEST_F(Mistakes, an_array_by_its_name_is_told_where_names_are) {
  const Answer answer = server_.ask("GET", "/v1/arrays/eight");
  EXPECT_EQ(answer.problem(), "404 not_found");
  EXPECT_TRUE(says(answer.json(), "/v1/arrays/by-name/NAME")) << answer.body;
}

TEST_F(Mistakes, paths_and_parameters_have_the_nearest_name) {
  const auto detail = [&](const std::string& path) {
    return server_.ask("GET", path).json().at("detail").get<std::string>();
  };
  EXPECT_EQ(detail("/v1/runs"), "there is nothing at this path; did you mean '/v1/run' (POST)?");
  EXPECT_NE(detail("/v1/programs/prog_7:explian").find("'/v1/programs/{id}:explain' (POST)"), std::string::npos);
  EXPECT_NE(detail("/v1/arrays?limt=3").find("did you mean 'limit'?"), std::string::npos);
}

}  // namespace
}  // namespace meshd::testing
