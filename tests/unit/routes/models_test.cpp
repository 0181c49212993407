// /v1/models and /v2 over real services: what is registered, served and refused.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <thread>

#include "api/codecs/model_codec.h"
#include "tests/support/fault_plan.h"
#include "tests/support/watched_vfs.h"
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

using Json = nlohmann::json;

class Models : public ::testing::Test {
 protected:
  static Json numpy_model(const std::string& text, const Json& arguments, int64_t most) {
    return {{"program", {{"format", "numpy"}, {"text", text}}}, {"arguments", arguments}, {"max_batch_size", most}};
  }
  static Json input(const std::string& name, const Json& shape) {
    return {{"input", name}, {"dtype", "float32"}, {"shape", shape}};
  }
  static Json twice(int64_t most = 8) {
    return numpy_model("def f(x): return x * 2", Json::array({input("x", {-1, 2})}), most);
  }
  Answer put(const std::string& name, const Json& document, const std::string& who = "ann") {
    return server_.ask("PUT", "/v1/models/" + name, document.dump(),
                       {"X-Principal: " + who, "Content-Type: application/json"});
  }
  Answer infer(const std::string& name, const Json& data, const Json& shape, const std::string& who = "ann",
               const Json& parameters = Json::object()) {
    const Json one = {{"name", "x"}, {"datatype", "FP32"}, {"shape", shape}, {"data", data}};
    const Json body = {{"inputs", Json::array({one})}, {"parameters", parameters}};
    return server_.ask("POST", "/v2/models/" + name + "/infer", body.dump(), {"X-Principal: " + who});
  }
  Json statistics(const std::string& name) {
    return server_.ask("GET", "/v2/models/" + name + "/stats").json().at("model_stats").back();
  }

  InProcess server_;
};

TEST_F(Models, are_registered_in_versions_and_served) {
  const Answer first = put("m", twice());
  ASSERT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(first.header("Location"), "/v1/models/m?version=1");
  EXPECT_EQ(first.json().at("state"), "READY");
  EXPECT_EQ(first.json().at("outputs"), Json::parse(R"([{"name": "output_0", "dtype": "float32", "shape": [-1, 2]}])"));
  EXPECT_EQ(put("m", twice()).status, 200) << "the same again is the same version";
  const Answer second = put("m", numpy_model("def f(x): return x * 3", Json::array({input("x", {-1, 2})}), 8));
  EXPECT_EQ(second.json().at("versions"), Json::parse("[1, 2]"));
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).json().at("outputs")[0].at("data"), Json::parse("[3.0, 6.0]"));
  EXPECT_EQ(infer("m/versions/1", {1, 2}, {1, 2}).json().at("outputs")[0].at("data"), Json::parse("[2.0, 4.0]"));
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m?version=2").status, 204);
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).json().at("model_version"), "1");
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m").status, 204);
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m").problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", "/v1/models").json().at("items").size(), 0U);
}

TEST_F(Models, an_empty_version_is_no_version) {
  ASSERT_EQ(put("m", twice()).status, 201);
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m?version=").problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", "/v1/models/m?version=").problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", "/v1/models/m").status, 200) << "no version was deleted";
}

TEST_F(Models, errors_are_problems_with_the_text_that_the_protocol_wants) {
  const Answer answer = server_.ask("GET", "/v2/models/nothing");
  EXPECT_EQ(answer.problem(), "404 not_found");
  EXPECT_EQ(answer.json().at("error"), "Request for unknown model: 'nothing' is not found");
  EXPECT_FALSE(server_.ask("GET", "/v1/models/nothing").json().contains("error"));
}

TEST_F(Models, stablehlo_with_a_dynamic_batch_and_with_a_fixed_one) {
  const auto text = [](const std::string& n) {
    return "func.func @main(%w: tensor<2xf32>, %x: tensor<" + n + "x2xf32>) -> tensor<" + n +
           "x2xf32> { %c = stablehlo.add %x, %x : tensor<" + n + "x2xf32> return %c : tensor<" + n + "x2xf32> }";
  };
  const Json bound = {{"dtype", "float32"}, {"shape", {2}}, {"data", {1, 1}}};
  for (const char* n : {"?", "4"}) {
    const Answer made =
        put("s", {{"program", {{"text", text(n)}}}, {"arguments", {bound, {{"input", "x"}}}}, {"max_batch_size", 4}});
    ASSERT_EQ(made.status, 201) << made.body;
    EXPECT_EQ(made.json().at("inputs")[0].at("shape"), Json::parse("[-1, 2]"));
    for (int64_t rows = 1; rows <= 4; ++rows) {
      const Answer got = infer("s", std::vector<int>(static_cast<size_t>(rows) * 2, 3), {rows, 2});
      EXPECT_EQ(got.json().at("outputs")[0].at("data"), Json(std::vector<float>(static_cast<size_t>(rows) * 2, 6)))
          << got.body;
    }
  }
  EXPECT_EQ(
      put("s", {{"program", {{"text", text("4")}}}, {"arguments", {bound, {{"input", "x"}}}}, {"max_batch_size", 5}})
          .problem(),
      "422 invalid_request /max_batch_size");
}

TEST_F(Models, mistakes_of_a_model_are_named) {
  const Json x = input("x", {-1, 2});
  Json no_input = twice();
  no_input["arguments"] = Json::parse(R"([{"dtype": "float32", "shape": [2], "data": [1, 1]}])");
  EXPECT_EQ(put("m", no_input).problem(), "422 invalid_request /arguments");
  Json two = twice();
  two["arguments"] = {x, x};
  EXPECT_EQ(put("m", two).problem(), "422 invalid_request /arguments");
  Json untyped = twice();
  untyped["arguments"] = Json::parse(R"([{"input": "x"}])");
  EXPECT_EQ(put("m", untyped).problem(), "422 invalid_request /arguments/0/dtype /arguments/0/shape");
  Json both = twice();
  both["arguments"][0]["data"] = Json::array({1});
  EXPECT_EQ(put("m", both).problem(), "422 invalid_request /arguments/0");
  Json fixed = twice();
  fixed["arguments"][0]["shape"] = {3, 2};
  EXPECT_EQ(put("m", fixed).problem(), "422 invalid_request /arguments/0/shape/0 /max_batch_size");
  Json outputs = twice();
  outputs["outputs"] = {"a", "b"};
  EXPECT_EQ(put("m", outputs).problem(), "422 invalid_request /outputs");
  Json preferred = twice();
  preferred["batching"] = {{"preferred_batch_sizes", {4, 9}}};
  EXPECT_EQ(put("m", preferred).problem(), "422 invalid_request /batching/preferred_batch_sizes");
  Json many = twice(64);
  for (int size = 1; size <= 17; ++size) many["batching"]["preferred_batch_sizes"].push_back(size);
  EXPECT_EQ(put("m", many).problem(), "422 invalid_request /batching/preferred_batch_sizes");
  EXPECT_EQ(put("m", numpy_model("def f(x): return x.sum(axis=0)", Json::array({x}), 8)).problem(),
            "422 invalid_request /program");
  EXPECT_EQ(put("m", numpy_model("def f(x): return x +", Json::array({x}), 8)).problem(),
            "422 program_syntax /program/text");
  EXPECT_EQ(put("m", numpy_model("def f(x):\n  log('{}', x)\n  return x", Json::array({x}), 8)).problem(),
            "422 unsupported_effect");
  EXPECT_EQ(put("m", numpy_model("def f(x): return x + 1j", Json::array({x}), 8)).problem(), "422 unsupported_dtype");
  EXPECT_EQ(
      put("m", {{"program", {{"id", "prog_" + std::string(32, '0')}}}, {"arguments", Json::array({x})}}).problem(),
      "404 not_found /program/id");
  Json array = twice();
  array["arguments"] = Json::parse(R"([{"array": "arr_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41"}])");
  EXPECT_EQ(put("m", array).problem(), "404 not_found /arguments/0");
  EXPECT_EQ(put("stats", twice()).problem(), "422 invalid_request");
  EXPECT_EQ(put("a%20b", twice()).problem(), "422 invalid_request");
  EXPECT_EQ(server_.ask("GET", "/v1/models").json().at("items").size(), 0U);
}

// A program may look at the sizes of its arguments: what it gives for another batch than those that registering looks
// at may be less than rows are sent from.
TEST_F(Models, programs_whose_results_depend_on_the_batch_are_refused) {
  const Json x = input("x", {-1, 2});
  const char* kMoreThanThree[] = {
      "def f(x): return x[:3]",
      "def f(x):\n  if x.shape[0] > 3: return x\n  return x, x",
      "def f(x):\n  if x.shape[0] > 3: return x.astype('int8')\n  return x",
      "def f(x):\n  if x.shape[0] > 3: return x[:, :1]\n  return x",
      "def f(x):\n  if x.shape[0] > 3: return x, x, x\n  return x, x",
  };
  for (const char* text : kMoreThanThree) {
    Json document = numpy_model(text, Json::array({x}), 8);
    EXPECT_EQ(put("m", document).problem(), "422 invalid_request") << text;
    EXPECT_EQ(server_.ask("GET", "/v1/models/m").status, 404) << text;
    document["warm_up"] = false;
    ASSERT_EQ(put("cold", document).status, 201) << text;
    EXPECT_EQ(infer("cold", std::vector<int>(6, 1), {3, 2}).problem(), "422 invalid_request")
        << text << ": three rows are padded to four";
    EXPECT_EQ(infer("cold", std::vector<int>(8, 1), {4, 2}).problem(), "422 invalid_request") << text;
    EXPECT_EQ(infer("cold", std::vector<int>(4, 1), {2, 2}).status, 200) << text;
  }
  Json logs = numpy_model("def f(x):\n  if x.shape[0] > 3: log('{}', x)\n  return x", Json::array({x}), 8);
  EXPECT_EQ(put("m", logs).problem(), "422 unsupported_effect");
  // Without a batch a request has all of its sizes.
  const Json free = numpy_model("def f(x):\n  if x.shape[0] == 5: return x, x\n  return x", Json::array({x}), 0);
  ASSERT_EQ(put("free", free).status, 201);
  EXPECT_EQ(infer("free", std::vector<int>(12, 1), {6, 2}).status, 200);
  EXPECT_EQ(infer("free", std::vector<int>(10, 1), {5, 2}).problem(), "422 invalid_request");
}

TEST_F(Models, arrays_that_a_model_binds_stay_as_they_are) {
  const auto make = [&](const std::string& query) {
    const std::string value = R"({"dtype": "float32", "shape": [2], "data": [10, 20]})";
    return server_.ask("POST", "/v1/arrays" + query, value).json().at("id").get<std::string>();
  };
  const std::string array = make("");
  const auto model = [&](const std::string& id) {
    return numpy_model("def f(x, w): return x + w", {input("x", {-1, 2}), Json{{"array", id}}}, 8);
  };
  ASSERT_EQ(put("m", model(array)).status, 201);
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).json().at("outputs")[0].at("data"), Json::parse("[11.0, 22.0]"));
  EXPECT_EQ(server_.ask("DELETE", "/v1/arrays/" + array).problem(), "409 array_in_use");
  EXPECT_EQ(server_.ask("PUT", "/v1/arrays/" + array + "/data", "[1, 2]").problem(), "409 array_in_use");
  {
    const models::ModelRef of_a_request = server_.models().find_ready("m", {}, "ann");
    EXPECT_EQ(server_.ask("DELETE", "/v1/models/m").status, 204);
    EXPECT_EQ(server_.ask("DELETE", "/v1/arrays/" + array).problem(), "409 array_in_use") << "it is still to be read";
  }
  EXPECT_EQ(server_.ask("DELETE", "/v1/arrays/" + array).status, 204);
  EXPECT_EQ(put("m", model(make("?durability=memory"))).problem(), "422 invalid_request");
}

TEST(ModelsOnAFullDisk, an_array_is_not_in_use_once_its_model_was_refused) {
  FaultPlan faults;
  const WatchedVfs vfs(faults);
  InProcess server(4LL << 20, {}, 0, vfs.name());
  const std::string array =
      server.ask("POST", "/v1/arrays", R"({"dtype": "float32", "shape": [2], "data": [10, 20]})").json().at("id");
  const Json program = {{"format", "numpy"}, {"text", "def f(x, w): return x + w"}};
  const std::string id = server.ask("POST", "/v1/programs", program.dump()).json().at("id");
  const Json x = {{"input", "x"}, {"dtype", "float32"}, {"shape", {-1, 2}}};
  const Json model = {{"program", {{"id", id}}}, {"arguments", {x, {{"array", array}}}}, {"max_batch_size", 2}};
  faults.arm(1, FaultReach::kOnce, FaultKind::kNoSpace, "sql_write");
  EXPECT_EQ(server.ask("PUT", "/v1/models/m", model.dump()).problem(), "507 disk_full");
  EXPECT_TRUE(faults.fired());
  EXPECT_EQ(server.ask("GET", "/v1/models/m").problem(), "404 not_found");
  ASSERT_EQ(server.ask("PUT", "/v1/models/m", model.dump()).status, 201);
  EXPECT_EQ(server.ask("DELETE", "/v1/arrays/" + array).problem(), "409 array_in_use");
  EXPECT_EQ(server.ask("DELETE", "/v1/models/m").status, 204);
  EXPECT_EQ(server.ask("DELETE", "/v1/arrays/" + array).status, 204);
}

TEST_F(Models, are_their_principals_own_unless_they_are_shared) {
  put("own", twice());
  Json shared = twice();
  shared["shared"] = true;
  put("shared", shared);
  EXPECT_EQ(infer("own", {1, 2}, {1, 2}, "bob").problem(), "404 not_found");
  EXPECT_EQ(infer("shared", {1, 2}, {1, 2}, "bob").status, 200);
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/shared", "", {"X-Principal: bob"}).problem(), "403 forbidden");
  EXPECT_EQ(server_.ask("POST", "/v2/repository/models/shared/unload", "", {"X-Principal: bob"}).problem(),
            "403 forbidden");
  EXPECT_EQ(put("shared", shared, "bob").problem(), "409 name_taken");
  // A name of one's own comes before a shared one.
  ASSERT_EQ(put("shared", numpy_model("def f(x): return x * 5", Json::array({input("x", {-1, 2})}), 8), "bob").status,
            201);
  EXPECT_EQ(infer("shared", {1, 2}, {1, 2}, "bob").json().at("outputs")[0].at("data"), Json::parse("[5.0, 10.0]"));
  EXPECT_EQ(infer("shared", {1, 2}, {1, 2}, "cid").json().at("outputs")[0].at("data"), Json::parse("[2.0, 4.0]"));
  const Json index = server_.ask("POST", "/v2/repository/index", "", {"X-Principal: cid"}).json();
  ASSERT_EQ(index.size(), 1U);
  EXPECT_EQ(index[0].at("name"), "shared");
}

// Each version is shared, or is not.
TEST_F(Models, other_principals_see_shared_versions_alone) {
  const auto times = [&](int factor, bool is_shared) {
    Json out = numpy_model("def f(x): return x * " + std::to_string(factor), Json::array({input("x", {-1, 2})}), 8);
    out["shared"] = is_shared;
    return out;
  };
  const auto versions_for = [&](const std::string& name, const std::string& who) {
    const Answer answer = server_.ask("GET", "/v2/models/" + name, "", {"X-Principal: " + who});
    return answer.status == 200 ? answer.json().at("versions") : Json(answer.status);
  };
  ASSERT_EQ(put("m", times(2, false)).status, 201);
  ASSERT_EQ(put("m", times(3, true)).status, 201);
  EXPECT_EQ(versions_for("m", "bob"), Json::parse(R"(["2"])")) << "the first version is private";
  EXPECT_EQ(infer("m/versions/1", {1, 2}, {1, 2}, "bob").problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", "/v1/models/m?version=1", "", {"X-Principal: bob"}).problem(), "404 not_found");
  ASSERT_EQ(put("m", times(4, false)).status, 201);
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}, "bob").json().at("outputs")[0].at("data"), Json::parse("[3.0, 6.0]"))
      << "the latest version is private";
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).json().at("outputs")[0].at("data"), Json::parse("[4.0, 8.0]"));
  EXPECT_EQ(versions_for("m", "ann"), Json::parse(R"(["1", "2", "3"])"));
  const Json index = server_.ask("POST", "/v2/repository/index", "", {"X-Principal: bob"}).json();
  ASSERT_EQ(index.size(), 1U);
  EXPECT_EQ(index[0].at("version"), "2");
  const Json all = server_.ask("GET", "/v2/models/stats", "", {"X-Principal: bob"}).json().at("model_stats");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].at("version"), "2");
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m?version=2", "", {"X-Principal: bob"}).problem(), "403 forbidden");
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m?version=1", "", {"X-Principal: bob"}).problem(), "404 not_found");
  // The name is free again once no version is shared.
  EXPECT_EQ(put("m", times(5, true), "bob").problem(), "409 name_taken");
  EXPECT_EQ(server_.ask("DELETE", "/v1/models/m?version=2").status, 204);
  EXPECT_EQ(versions_for("m", "cid"), 404);
  ASSERT_EQ(put("m", times(5, true), "bob").status, 201);
  EXPECT_EQ(versions_for("m", "cid"), Json::parse(R"(["1"])"));
  EXPECT_EQ(versions_for("m", "ann"), Json::parse(R"(["1", "3"])"));
}

TEST_F(Models, a_shared_version_that_is_refused_shares_nothing) {
  ASSERT_EQ(put("m", twice()).status, 201);
  Json broken = numpy_model("def f(x): return x[:3]", Json::array({input("x", {-1, 2})}), 8);
  broken["shared"] = true;
  EXPECT_EQ(put("m", broken).problem(), "422 invalid_request");
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}, "bob").problem(), "404 not_found");
  EXPECT_EQ(server_.ask("POST", "/v2/repository/index", "", {"X-Principal: bob"}).json(), Json::array());
  Json shared = twice();
  shared["shared"] = true;
  EXPECT_EQ(put("m", shared, "bob").status, 201) << "the name is nobody's";
}

TEST_F(Models, bodies_are_of_the_protocols_types) {
  put("m", twice());
  for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"})
    EXPECT_EQ(server_.ask("POST", "/v2/models/m/infer", "{}", {std::string("Content-Type: ") + type}).status, 415)
        << type;
  const float rows[] = {1, 2};
  const std::string raw(reinterpret_cast<const char*>(rows), sizeof rows);
  const Answer got = server_.ask("POST", "/v2/models/m/infer", raw,
                                 {"Content-Type: application/octet-stream", "Inference-Header-Content-Length: 0"});
  ASSERT_EQ(got.status, 200) << got.body;
  const size_t head = std::stoul(got.header("Inference-Header-Content-Length"));
  ASSERT_EQ(got.body.size(), head + 8);
  float out[2];
  std::memcpy(out, got.body.data() + head, sizeof out);
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(server_.ask("POST", "/v2/models/m/infer", raw, {"Inference-Header-Content-Length: x"}).problem(),
            "400 malformed_request");
}

// They are no array bytes, which come in several requests and are limited by a quota alone.
TEST_F(Models, bodies_of_the_protocol_are_no_uploads) {
  ASSERT_EQ(put("m", twice()).status, 201);
  for (const char* path : {"/v2/logging", "/v2/trace/setting", "/v2/systemsharedmemory/status", "/v2/models/m/infer",
                           "/v2/models/m/versions/1/infer", "/v2/repository/index", "/v2/repository/models/m/load"}) {
    const Answer options = server_.ask("OPTIONS", path);
    EXPECT_EQ(options.status, 204) << path;
    EXPECT_EQ(options.header("Accept-Patch"), "") << path;
    EXPECT_EQ(options.header("Upload-Limit"), "") << path;
    EXPECT_EQ(server_.ask("POST", path, "", {"Content-Length: 268435457"}).problem(), "413 body_too_large") << path;
  }
  EXPECT_EQ(server_.ask("POST", "/v2/logging", "{}", {"Upload-Complete: ?0"}).problem(), "422 unsupported_extension");
  EXPECT_EQ(server_.ask("POST", "/v2/logging", "a=1", {"Content-Type: text/plain"}).problem(),
            "415 unsupported_media_type");
  const std::string large = R"({"ready": )" + std::string(5 << 20, ' ') + "true}";
  EXPECT_EQ(server_.ask("POST", "/v2/repository/index", large).problem(), "413 body_too_large");
}

TEST_F(Models, batches_of_any_size_give_what_single_requests_give) {
  const Json document = numpy_model("def f(x): return jnp.exp(x) / (1 + x * x)", Json::array({input("x", {-1, 3})}), 7);
  ASSERT_EQ(put("m", document).status, 201);
  std::vector<float> rows;
  for (int i = 0; i < 21; ++i) rows.push_back(0.37F * static_cast<float>(i));
  std::vector<Json> single;
  for (int i = 0; i < 7; ++i) {
    const Json data = std::vector<float>(rows.begin() + i * 3, rows.begin() + i * 3 + 3);
    const Json values = infer("m", data, {1, 3}).json().at("outputs")[0].at("data");
    single.insert(single.end(), values.begin(), values.end());
  }
  for (int64_t count = 1; count <= 7; ++count) {
    const Json data = std::vector<float>(rows.begin(), rows.begin() + count * 3);
    const Json expected = std::vector<Json>(single.begin(), single.begin() + count * 3);
    EXPECT_EQ(infer("m", data, {count, 3}).json().at("outputs")[0].at("data"), expected) << count;
  }
  EXPECT_EQ(infer("m", Json::array(), {0, 3}).problem(), "422 invalid_argument /inputs/0/shape/0");
  EXPECT_EQ(infer("m", std::vector<float>(24, 1), {8, 3}).problem(), "422 invalid_argument /inputs/0/shape/0");
}

TEST_F(Models, buffers_of_batches_count_as_requests) {
  const auto wide = [](int64_t width, int64_t most) {
    return numpy_model("def f(x): return x[:, :1]", Json::array({input("x", {-1, width})}), most);
  };
  // A row of a GiB is more than all requests may have.
  EXPECT_EQ(put("m", wide(int64_t{1} << 28, 1)).problem(), "413 body_too_large");
  constexpr int64_t kRow = int64_t{1} << 20;
  Json document = wide(kRow / 4, 4);
  document["warm_up"] = false;
  ASSERT_EQ(put("m", document).status, 201);
  const auto before = server_.memory(core::MemoryAccount::kRequests);
  EXPECT_LT(before.peak_bytes, 4 * kRow);
  const Answer got = server_.ask("POST", "/v2/models/m/infer", std::string(3 * kRow, '\0'),
                                 {"Content-Type: application/octet-stream", "Inference-Header-Content-Length: 0"});
  ASSERT_EQ(got.status, 200) << got.body;
  const auto after = server_.memory(core::MemoryAccount::kRequests);
  EXPECT_GE(after.peak_bytes, 4 * kRow) << "three rows are padded to four";
  EXPECT_EQ(after.held_bytes, before.held_bytes);
}

TEST_F(Models, requests_at_once_run_together_and_are_counted) {
  Json document = twice(4);
  document["batching"] = {{"max_queue_delay_microseconds", 10'000'000}, {"preferred_batch_sizes", Json::array({4})}};
  ASSERT_EQ(put("m", document).status, 201);
  std::vector<std::thread> clients;
  std::vector<Answer> answers(4);
  for (size_t i = 0; i < answers.size(); ++i) clients.emplace_back([&, i] { answers[i] = infer("m", {i, i}, {1, 2}); });
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_EQ(answers[i].status, 200) << answers[i].body;
    EXPECT_EQ(answers[i].json().at("outputs")[0].at("data"), Json(std::vector<size_t>{2 * i, 2 * i}));
  }
  const Json counted = statistics("m");
  EXPECT_EQ(counted.at("inference_count"), 4);
  EXPECT_EQ(counted.at("execution_count"), 1);
  EXPECT_EQ(counted.at("inference_stats").at("success").at("count"), 4);
  EXPECT_EQ(counted.at("batch_stats")[0].at("batch_size"), 4);
  EXPECT_EQ(counted.at("batch_stats")[0].at("compute_infer").at("count"), 1);
}

TEST_F(Models, requests_that_wait_too_long_or_are_too_many_are_refused) {
  Json document = twice(4);
  document["batching"] = {
      {"max_queue_delay_microseconds", 10'000'000}, {"max_queue_size", 1}, {"preferred_batch_sizes", Json::array({2})}};
  document["shared"] = true;
  ASSERT_EQ(put("m", document).status, 201);
  const Answer late = infer("m", {1, 2}, {1, 2}, "ann", {{"timeout", 2000}});
  EXPECT_EQ(late.problem(), "503 queue_timeout");
  EXPECT_EQ(late.header("Retry-After"), "1");
  Answer first;
  std::thread waits([&] {
    do {
      first = infer("m", {1, 2}, {1, 2}, "ann", {{"timeout", 1'000'000}});
    } while (first.status == 429);  // the other one was there before it
  });
  Answer second;
  do {
    second = infer("m", std::vector<int>(6, 1), {3, 2}, "ann", {{"timeout", 1000}});
  } while (second.status == 503);
  EXPECT_EQ(second.problem(), "429 queue_full");
  EXPECT_EQ(second.header("Retry-After"), "1");
  // The queue is full for ann alone. Bob's rows are a batch of two, and hers is in no batch with them.
  EXPECT_EQ(infer("m", {1, 2, 3, 4}, {2, 2}, "bob").status, 200);
  waits.join();
  EXPECT_EQ(first.problem(), "503 queue_timeout");
}

TEST_F(Models, a_client_that_has_left_does_not_wait_for_its_turn) {
  Json document = twice(4);
  document["batching"] = {{"max_queue_delay_microseconds", 10'000'000}};
  ASSERT_EQ(put("m", document).status, 201);
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  waiter->abandon();
  const Json body = Json::parse(R"({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]})");
  EXPECT_EQ(server_.ask("POST", "/v2/models/m/infer", body.dump(), {}, waiter).problem(), "409 cancelled");
}

TEST_F(Models, loading_and_unloading) {
  put("m", twice());
  EXPECT_EQ(
      server_.ask("POST", "/v2/repository/models/m/unload", R"({"parameters": {"unload_dependents": false}})").status,
      200);
  EXPECT_EQ(infer("m", {1, 2}, {1, 2}).problem(), "409 model_not_loaded");
  EXPECT_EQ(server_.ask("GET", "/v2/models/m/ready").status, 409);
  EXPECT_EQ(server_.ask("POST", "/v2/repository/index", R"({"ready": true})").json(), Json::array());
  EXPECT_EQ(server_.ask("POST", "/v2/repository/models/m/load").status, 200);
  EXPECT_EQ(server_.ask("GET", "/v2/models/m/ready").status, 200);
  EXPECT_EQ(server_.ask("POST", "/v2/repository/models/m/load", R"({"parameters": {"config": "{}"}})").problem(),
            "422 unsupported_extension /parameters/config");
}

// A spec that cannot be made again, for whatever reason, ends neither the start nor the claim on a shared name.
TEST_F(Models, what_cannot_be_recovered_is_unavailable_and_keeps_its_name) {
  Json shared = twice();
  shared["shared"] = true;
  ASSERT_EQ(put("m", shared).status, 201);
  ASSERT_EQ(put("own", twice()).status, 201);
  shared["batching"]["nothing"] = 1;  // as a document of an older server may have it
  EXPECT_TRUE(api::is_shared_model(shared.dump()));
  EXPECT_FALSE(api::is_shared_model(twice().dump()));
  EXPECT_FALSE(api::is_shared_model("{"));
  InProcess::Recovered after(server_);
  after.models().recover({[](const storage::ModelRow& row) -> models::ModelSpec {
                            if (row.name == "own") throw core::Error("not_found", "there is no such program");
                            throw std::length_error("vector::reserve");
                          },
                          [](const storage::ModelRow& row) { return api::is_shared_model(row.document); }});
  const models::ModelRef model = after.models().find("m", std::nullopt, "bob");
  EXPECT_EQ(model->status().state, models::ModelState::kUnavailable);
  EXPECT_EQ(model->status().reason, "it could not be loaded on our side");
  EXPECT_EQ(model->spec().version, 1);
  EXPECT_EQ(model->spec().program_id.substr(0, 5), "prog_");
  EXPECT_EQ(after.models().find("own", 1, "ann")->status().reason, "there is no such program");
  EXPECT_THROW(after.models().find("own", std::nullopt, "bob"), core::Error);
  models::ModelSpec taken = model->spec();
  taken.principal = "bob";
  EXPECT_EQ(error_word([&] { after.models().put(taken, std::make_shared<core::ThreadWaiter>()); }), "name_taken");
}

}  // namespace
}  // namespace meshd::testing
