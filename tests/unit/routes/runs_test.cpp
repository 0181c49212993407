// Runs as forms with files, results as files, and documents that come again.
#include <algorithm>
#include <atomic>
#include <thread>

#include "api/codecs/base64.h"
#include "tests/unit/routes/files.h"
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

using nlohmann::json;

constexpr std::string_view kSum =
    "func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
    "  %0 = stablehlo.add %a, %b : tensor<2x3xf32>\n"
    "  return %0 : tensor<2x3xf32>\n}\n";
const tensor::TensorType kType{tensor::DType::kFloat32, {2, 3}};

using Named = std::vector<std::pair<std::string, std::vector<float>>>;

std::string raw(const std::vector<float>& values) { return bytes_of(values); }
std::string npy(const std::vector<float>& values) { return npy_file(kType, raw(values)); }
std::vector<FileArray> arrays_of(const Named& named) {
  std::vector<FileArray> out;
  for (const auto& [name, values] : named) out.push_back({name, kType, raw(values)});
  return out;
}
std::string npz(const Named& members) { return npz_file(arrays_of(members)); }
std::string safetensors(const Named& tensors) { return safetensors_file(arrays_of(tensors)); }

const std::vector<float> kOnes(6, 1), kTens(6, 10), kCount{0, 1, 2, 3, 4, 5};

class Runs : public ::testing::Test {
 protected:
  Answer run_form(const json& document, const std::vector<File>& files, std::vector<std::string> fields = {},
                  const std::string& boundary = "b0undary") {
    fields.push_back("Content-Type: multipart/form-data; boundary=" + boundary);
    return server_.ask("POST", "/v1/run", form_of(document, files, boundary), fields);
  }
  static json document(const json& arguments) {
    return {{"program", {{"text", kSum}}}, {"arguments", arguments}, {"results", {{"encoding", "base64"}}}};
  }
  static std::vector<float> floats(const std::string& bytes) {
    std::vector<float> out(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), bytes.size(), reinterpret_cast<char*>(out.data()));
    return out;
  }
  static std::vector<float> first_result(const Answer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    const std::string text = answer.json()["results"][0]["base64"];
    std::string bytes(static_cast<size_t>(api::base64_size(text).value_or(0)), '\0');
    EXPECT_TRUE(api::base64_decode(text, std::as_writable_bytes(std::span(bytes))));
    return floats(bytes);
  }
  std::string stored(const std::vector<float>& values) {
    const Answer made = server_.ask("POST", "/v1/arrays?dtype=float32&shape=2,3&durability=memory", raw(values),
                                    {"Content-Type: application/octet-stream"});
    EXPECT_EQ(made.status, 201) << made.body;
    return made.json()["id"];
  }

  InProcess server_;
};

const std::vector<float> kElevens(6, 11);

TEST_F(Runs, arguments_come_from_files_of_each_form) {
  const json x = {{"part", "x"}};
  const std::vector<std::pair<json, File>> files = {
      {x, {"x", raw(kTens)}},
      {{{"part", "x"}, {"dtype", "float32"}, {"shape", {2, 3}}}, {"x", raw(kTens), "x.npy"}},
      {x, {"x", npy(kTens)}},
      {x, {"x", npz({{"only", kTens}})}},
      {{{"part", "x"}, {"member", "b"}}, {"x", npz({{"a", kCount}, {"b", kTens}})}},
      {{{"part", "x"}, {"member", "b"}}, {"x", safetensors({{"a", kCount}, {"b", kTens}}), "w.safetensors"}},
  };
  for (const auto& [argument, file] : files) {
    EXPECT_EQ(first_result(run_form(document({argument, {{"part", "ones"}}}), {file, {"ones", raw(kOnes)}})), kElevens)
        << argument;
  }
}

TEST_F(Runs, one_file_may_be_several_arguments) {
  const json a = {{"part", "w"}, {"member", "a"}}, b = {{"part", "w"}, {"member", "b"}};
  const File file{"w", npz({{"a", kTens}, {"b", kOnes}})};
  EXPECT_EQ(first_result(run_form(document({a, b}), {file})), kElevens);
  json donating = document({a, a});
  donating["donate"] = {0};
  EXPECT_EQ(first_result(run_form(donating, {file})), std::vector<float>(6, 20));
  EXPECT_EQ(first_result(run_form(document({{{"part", "x"}}, {{"part", "x"}}}), {{"x", raw(kTens)}})),
            std::vector<float>(6, 20));
}

TEST_F(Runs, mistakes_in_files_name_the_argument) {
  const json x = {{"part", "x"}}, ones = {{"part", "ones"}};
  const auto problem = [&](const json& argument, const File& file) {
    return run_form(document({argument, ones}), {file, {"ones", raw(kOnes)}}).problem();
  };
  const std::string part = "422 invalid_request /arguments/0/part", member = "422 invalid_request /arguments/0/member";
  EXPECT_EQ(problem(x, {"y", raw(kOnes)}), part);
  EXPECT_EQ(problem(x, {"x", raw({1, 2})}), part);
  EXPECT_EQ(problem(x, {"x", npy(kOnes).substr(0, 140)}), part);
  EXPECT_EQ(problem(x, {"x", npy(kOnes) + "more"}), part);
  EXPECT_EQ(problem(x, {"x", npz({{"a", kOnes}}).substr(0, 150)}), part);
  EXPECT_EQ(problem(x, {"x", npz({{"a", kOnes}, {"b", kOnes}})}), member);
  EXPECT_EQ(problem({{"part", "x"}, {"member", "c"}}, {"x", npz({{"a", kOnes}})}), member);
  EXPECT_EQ(problem({{"part", "x"}, {"member", "c"}}, {"x", npy(kOnes)}), member);
  EXPECT_EQ(problem({{"part", "x"}, {"dtype", "float32"}}, {"x", raw(kOnes)}),
            "422 invalid_request /arguments/0/shape");
  EXPECT_EQ(problem({{"part", "x"}, {"data", {1}}}, {"x", raw(kOnes)}), "422 invalid_request /arguments/0/data");
  EXPECT_EQ(problem({{"member", "x"}, {"dtype", "float32"}, {"shape", {1}}, {"data", {1}}}, {"x", raw(kOnes)}),
            "422 invalid_request /arguments/0/member");
  EXPECT_EQ(server_.ask("POST", "/v1/run", document({x, ones}).dump()).problem(),
            "422 invalid_request /arguments/0/part /arguments/1/part");
  EXPECT_EQ(server_.ask("POST", "/v1/run", "--x\r\n\r\n", {"Content-Type: multipart/form-data; boundary=x"}).problem(),
            "400 malformed_body");
  EXPECT_EQ(server_
                .ask("POST", "/v1/run", form_of({}, {}, "y").replace(49, 7, "another"),
                     {"Content-Type: multipart/form-data; boundary=y"})
                .problem(),
            "400 malformed_body");
  EXPECT_EQ(server_.ask("POST", "/v1/run", "{}", {"Content-Type: text/plain"}).problem(), "415 unsupported_media_type");
}

TEST_F(Runs, repeated_form_is_known_whatever_its_boundary) {
  const json body = document({{{"part", "x"}}, {{"part", "x"}}});
  const Answer first = run_form(body, {{"x", raw(kTens)}}, {"Idempotency-Key: k"}, "one");
  EXPECT_EQ(first.status, 200) << first.body;
  const Answer again = run_form(body, {{"x", raw(kTens)}}, {"Idempotency-Key: k"}, "two");
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(run_form(body, {{"x", raw(kOnes)}}, {"Idempotency-Key: k"}).problem(), "422 idempotency_key_reused");
}

TEST_F(Runs, results_are_files_for_who_accepts_them) {
  const json body = {{"program", {{"text", kSum}}}, {"arguments", {{{"part", "x"}}, {{"part", "x"}}}}};
  const std::vector<File> files = {{"x", raw(kTens)}};
  const Answer array = run_form(body, files, {"Accept: application/x-npy"});
  EXPECT_EQ(array.header("Content-Type"), "application/x-npy");
  EXPECT_EQ(array.body, npy(std::vector<float>(6, 20)));
  EXPECT_EQ(json::parse(array.header("Meshd-Answer"))["results"],
            json::parse(R"([{"dtype": "float32", "shape": [2, 3]}])"));
  const Answer zip = run_form(body, files, {"Accept: application/x-npz"});
  EXPECT_EQ(zip.header("Content-Type"), "application/zip");
  EXPECT_EQ(zip.body, npz({{"0", std::vector<float>(6, 20)}}));
  EXPECT_EQ(run_form(body, files, {"Accept: application/x-safetensors"}).body,
            safetensors({{"0", std::vector<float>(6, 20)}}));
  EXPECT_EQ(run_form(body, files, {"Accept: */*"}).header("Content-Type"), "application/json");
  json stored_results = body;
  stored_results["results"] = {{"encoding", "array"}};
  EXPECT_EQ(run_form(stored_results, files, {"Accept: application/x-npy"}).problem(), "406 not_acceptable");
}

TEST_F(Runs, document_that_comes_again_means_what_it_names_now) {
  const std::string x = stored(kTens);
  const std::string text =
      document({{{"array", x}}, {{"dtype", "float32"}, {"shape", {2, 3}}, {"data", {{1, 1, 1}, {1, 1, 1}}}}}).dump();
  for (int i = 0; i < 3; ++i) {
    const Answer answer = server_.ask("POST", "/v1/run", text);
    EXPECT_EQ(first_result(answer), kElevens);
    EXPECT_EQ(answer.was_brief, i > 0);
  }
  const Answer put =
      server_.ask("PUT", "/v1/arrays/" + x + "/data", raw(kCount), {"Content-Type: application/octet-stream"});
  ASSERT_LT(put.status, 300) << put.body;
  EXPECT_EQ(first_result(server_.ask("POST", "/v1/run", text)), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(server_.ask("POST", "/v1/run", text, {"X-Principal: bob"}).problem(), "404 not_found /arguments/0");
  ASSERT_EQ(server_.ask("DELETE", "/v1/arrays/" + x).status, 204);
  EXPECT_EQ(server_.ask("POST", "/v1/run", text).problem(), "404 not_found /arguments/0");
}

TEST_F(Runs, values_of_a_document_that_comes_again_are_not_what_a_run_left_there) {
  json body = document({{{"dtype", "float32"}, {"shape", {2, 3}}, {"data", {{9, 9, 9}, {9, 9, 9}}}},
                        {{"dtype", "float32"}, {"shape", {2, 3}}, {"data", {{2, 2, 2}, {2, 2, 2}}}}});
  body["donate"] = {0};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(first_result(server_.ask("POST", "/v1/run", body.dump())), kElevens);
}

TEST_F(Runs, array_that_a_job_donates_while_it_is_read_is_there_or_donated) {
  for (int round = 0; round < 50; ++round) {
    const std::string id =
        server_
            .ask("POST", "/v1/arrays?dtype=float32&shape=2,3", raw(kOnes), {"Content-Type: application/octet-stream"})
            .json()["id"];
    std::atomic<bool> is_over{false};
    std::jthread reads([&] {
      while (!is_over) {
        const int status = server_.ask("GET", "/v1/arrays/" + id + "/data").status;
        EXPECT_TRUE(status == 200 || status == 410 || status == 409) << status;
      }
    });
    std::jthread collects([&] {
      while (!is_over) server_.blob_count();
    });
    json body =
        document({{{"array", id}}, {{"dtype", "float32"}, {"shape", {2, 3}}, {"data", {{9, 9, 9}, {9, 9, 9}}}}});
    body["donate"] = {0};
    EXPECT_EQ(server_.ask("POST", "/v1/run", body.dump()).status, 200);
    is_over = true;
  }
}

TEST_F(Runs, deleted_program_is_gone_for_documents_that_came_before) {
  const std::string id =
      server_.ask("POST", "/v1/programs", std::string(kSum), {"Content-Type: text/plain"}).json()["id"];
  json body = document({{{"part", "x"}}, {{"part", "x"}}});
  body["program"] = {{"id", id}};
  for (const auto& values : {kOnes, kTens}) {
    std::vector<float> twice = values;
    for (float& value : twice) value *= 2;
    EXPECT_EQ(first_result(run_form(body, {{"x", raw(values)}})), twice);
  }
  ASSERT_EQ(server_.ask("DELETE", "/v1/programs/" + id).status, 204);
  EXPECT_EQ(run_form(body, {{"x", raw(kOnes)}}).problem(), "404 not_found");
  // The compiler's cache gives it up (16 programs); another one puts it back.
  for (int i = 1; i < 40; ++i) {
    const std::string type = "tensor<" + std::to_string(i) + "xf32>";
    server_.ask("POST", "/v1/programs",
                "func.func @main(%a: " + type + ") -> " + type + " { return %a : " + type + " }",
                {"Content-Type: text/plain"});
  }
  ASSERT_LT(server_.ask("POST", "/v1/programs", std::string(kSum), {"Content-Type: text/plain"}).status, 300);
  EXPECT_EQ(first_result(run_form(body, {{"x", raw(kTens)}})), std::vector<float>(6, 20));
}

TEST_F(Runs, a_long_program_that_comes_again_is_not_parsed_again) {
  const auto parse_hits = [&] { return server_.compile_counters().parse_hits; };
  const std::string arrays[] = {stored(kOnes), stored(kTens)};
  const auto body_of = [](const json& argument, const std::string& comment) {
    json body = document({argument, argument});
    body["program"]["text"] = body["program"]["text"].get<std::string>() + "// " + comment + std::string(20'000, '.');
    return body.dump();
  };
  const std::string first = body_of({{"array", arrays[0]}}, "a");
  const auto answer_of = [&](const std::string& body) { return first_result(server_.ask("POST", "/v1/run", body)); };
  ASSERT_EQ(answer_of(first), std::vector<float>(6, 2));
  const int64_t hits = parse_hits();
  EXPECT_EQ(answer_of(first), std::vector<float>(6, 2));
  EXPECT_EQ(parse_hits(), hits) << "nobody asked the compiler for the text";
  // As long, and the same where its key has samples of it.
  std::string other = first;
  other[other.size() / 256 * 128 + 16] = '!';
  for (const std::string& body :
       {other, first, body_of({{"array", arrays[1]}}, "a"), body_of({{"array", arrays[0]}}, "b")}) {
    const float sum = body.find(arrays[1]) == std::string::npos ? 2.0F : 20.0F;
    EXPECT_EQ(answer_of(body), std::vector<float>(6, sum));
  }
  // What is long for other things than its program is not kept.
  std::string padded = document({{{"array", arrays[1]}}, {{"array", arrays[1]}}}).dump();
  padded.insert(padded.size() - 1, std::string(20'000, ' '));
  for (int i = 0; i < 3; ++i) {
    const int64_t before = parse_hits();
    EXPECT_EQ(answer_of(padded), std::vector<float>(6, 20));
    EXPECT_EQ(parse_hits(), before + (i == 0 ? 0 : 1));
  }
}

TEST_F(Runs, only_short_runs_that_wait_for_nothing_are_brief) {
  const std::string x = stored(kTens);
  const json argument = {{"array", x}};
  const auto is_brief = [&](const std::string& text, const std::vector<std::string>& fields = {}) {
    server_.ask("POST", "/v1/run", text, fields);
    const Answer second = server_.ask("POST", "/v1/run", text, fields);
    EXPECT_EQ(second.status, 200) << second.body;
    return second.was_brief;
  };
  json body = document({argument, argument});
  EXPECT_TRUE(is_brief(body.dump()));
  EXPECT_TRUE(server_.ask("POST", "/v1/run", body.dump()).was_brief);
  for (int i = 1; i < 40; ++i) {  // the compiler's cache gives the plan up (16 entries)
    const std::string type = "tensor<" + std::to_string(i) + "xf32>";
    const json other = {{"program",
                         {{"text", "func.func @main() -> " + type + " { %0 = stablehlo.constant dense<1.0> : " + type +
                                       " return %0 : " + type + " }"}}},
                        {"arguments", json::array()}};
    ASSERT_EQ(server_.ask("POST", "/v1/run", other.dump()).status, 200);
  }
  EXPECT_FALSE(server_.ask("POST", "/v1/run", body.dump()).was_brief) << "it is to be compiled again";
  EXPECT_TRUE(server_.ask("POST", "/v1/run", body.dump()).was_brief);
  EXPECT_FALSE(is_brief(body.dump(), {"Idempotency-Key: k2"}));
  body["results"]["encoding"] = "array";
  EXPECT_FALSE(is_brief(body.dump()));
  const std::string session = server_.ask("POST", "/v1/sessions", "{}").json()["id"];
  json in_session = document({argument, argument});
  in_session["session"] = session;
  EXPECT_FALSE(is_brief(in_session.dump()));
  json loop = document(json::array({argument}));
  loop["program"]["text"] =
      "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {\n"
      "  %0 = stablehlo.while(%i = %a) : tensor<2x3xf32>\n"
      "  cond {\n    %c = stablehlo.constant dense<100.0> : tensor<2x3xf32>\n"
      "    %l = stablehlo.compare LT, %i, %c : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>\n"
      "    %t = stablehlo.constant dense<true> : tensor<i1>\n"
      "    %r = stablehlo.reduce(%l init: %t) applies stablehlo.and across dimensions = [0, 1] : (tensor<2x3xi1>, "
      "tensor<i1>) -> tensor<i1>\n    stablehlo.return %r : tensor<i1>\n"
      "  } do {\n    %n = stablehlo.add %i, %i : tensor<2x3xf32>\n    stablehlo.return %n : tensor<2x3xf32>\n  }\n"
      "  return %0 : tensor<2x3xf32>\n}\n";
  EXPECT_FALSE(is_brief(loop.dump()));
}

}  // namespace
}  // namespace meshd::testing
