// What every resource does alike: paths and methods that there are not, bodies at fault, ids of others, pages,
// idempotency keys, conditions, and requests that wait.
#include <map>
#include <set>

#include "tests/support/eventually.h"
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

const std::string kMesh = R"({"axis_names": ["x"], "devices": [0, 1]})";
const std::string kDouble =
    "func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %a : tensor<2xf32> "
    "return %0 : tensor<2xf32> }";
// Waits until its session is fed.
const std::string kWaits =
    "func.func @main(%t: !stablehlo.token) -> tensor<f32> { %0:2 = \\\"stablehlo.infeed\\\"(%t) <{infeed_config = "
    "\\\"q\\\"}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token) return %0#0 : tensor<f32> }";

// Logs its argument, in the order of its session.
const std::string kLogs =
    "func.func @main(%t: !stablehlo.token {jax.token = true}, %n: tensor<i32>) -> (!stablehlo.token {jax.token = "
    "true}, tensor<i32>) { %u = stablehlo.custom_call @xla_ffi_python_cpu_callback(%t, %n) {backend_config = "
    "\\\"\\\", has_side_effect = true, mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<i32>) -> "
    "!stablehlo.token return %u, %n : !stablehlo.token, tensor<i32> }";

// Asks its client for the result, in no order with other effects.
const std::string kAsks =
    "func.func @main(%n: tensor<i32>) -> tensor<i32> { %r = stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) "
    "{backend_config = \\\"\\\", mhlo.backend_config = {index = 0 : ui64}} : (tensor<i32>) -> tensor<i32> return %r : "
    "tensor<i32> }";

std::string run_of(const std::string& text, const std::string& arguments) {
  return R"({"program": {"text": ")" + text + R"("}, "arguments": )" + arguments + "}";
}

class Routes : public ::testing::Test {
 protected:
  std::string made(const std::string& target, const std::string& body = {},
                   const std::vector<std::string>& fields = {}) {
    const Answer answer = server_.ask("POST", target, body, fields);
    EXPECT_TRUE(answer.status == 201 || answer.status == 202) << target << ": " << answer.status << " " << answer.body;
    return answer.json().value("id", "");
  }

  InProcess server_;
};

/// A path of the template with made-up ids.
std::string path_of(const std::string& path_template) {
  std::string out;
  for (size_t at = 0; at < path_template.size(); ++at) {
    if (path_template[at] != '{') {
      out += path_template[at];
      continue;
    }
    at = path_template.find('}', at);
    out += "7";
  }
  return out;
}

TEST_F(Routes, mistake_in_a_program_has_its_place_in_the_request_and_in_the_text) {
  const std::string text =
      R"(func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.addd %a, %a : tensor<2xf32>\n})";
  const auto entry = [&](const std::string& path, const std::string& body, const std::string& type) {
    const auto document = server_.ask("POST", path, body, {"Content-Type: " + type}).json();
    EXPECT_EQ(document.at("code"), "unsupported_op") << document;
    EXPECT_FALSE(document.at("hint").get<std::string>().empty());
    return document.at("errors").at(0);
  };
  const auto run =
      entry("/v1/run", R"({"program": {"text": ")" + text + R"("}, "arguments": [[1, 2]]})", "application/json");
  EXPECT_EQ(run.at("pointer"), "/program/text");
  EXPECT_EQ(run.at("line"), 2);
  EXPECT_EQ(run.at("detail"), "op 'stablehlo.addd' is not supported; did you mean 'stablehlo.add'?");
  EXPECT_EQ(run.at("excerpt"), "  %0 = stablehlo.addd %a, %a : tensor<2xf32>\n       ^");
  EXPECT_EQ(entry("/v1/programs", R"({"text": ")" + text + R"("})", "application/json").at("pointer"), "/text");
  EXPECT_EQ(entry("/v1/programs", "func.func @main() { stablehlo.addd }", "text/plain").at("pointer"), "");
}

TEST_F(Routes, path_that_there_is_not_is_a_problem_document) {
  const Answer answer = server_.ask("GET", "/v1/nothing", {}, {"X-Request-Id: r-1"});
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  const auto document = answer.json();
  EXPECT_EQ(document.at("type"), "/docs/errors#not_found");
  EXPECT_EQ(document.at("status"), 404);
  EXPECT_EQ(document.at("code"), "not_found");
  EXPECT_EQ(document.at("instance"), "r-1");
  EXPECT_FALSE(document.at("title").get<std::string>().empty());
  EXPECT_EQ(document.at("detail"), "there is nothing at this path");
}

TEST_F(Routes, every_path_allows_the_methods_of_its_rows_and_no_others) {
  std::map<std::string, std::set<std::string>> methods;
  for (const auto& route : server_.router().routes()) {
    auto& known = methods[route->path];
    known.insert(route->method);
    known.insert("OPTIONS");
    if (route->method == "GET") known.insert("HEAD");
  }
  ASSERT_GT(methods.size(), 30U);
  for (const auto& [path, known] : methods) {
    const Answer options = server_.ask("OPTIONS", path_of(path));
    EXPECT_EQ(options.status, 204) << path;
    std::set<std::string> allowed;
    std::istringstream words(options.header("Allow"));
    for (std::string word; words >> word;) allowed.insert(word.substr(0, word.find(',')));
    EXPECT_EQ(allowed, known) << path;
    for (const std::string method : {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"}) {
      if (known.contains(method)) continue;
      const Answer refused = server_.ask(method, path_of(path));
      EXPECT_EQ(refused.problem(), method == "HEAD" ? "405" : "405 method_not_allowed") << method << " " << path;
      EXPECT_EQ(refused.header("Allow"), options.header("Allow")) << method << " " << path;
    }
  }
}

struct Wrong {
  std::string name, method, target, body, problem;
  std::string type = "application/json";
};

std::ostream& operator<<(std::ostream& out, const Wrong& one) { return out << one.method << " " << one.target; }

class WrongRequests : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongRequests, are_refused_with_their_code_and_every_field) {
  static InProcess server(200);
  const Wrong& wrong = GetParam();
  const Answer answer = server.ask(wrong.method, wrong.target, wrong.body, {"Content-Type: " + wrong.type});
  EXPECT_EQ(answer.problem(), wrong.problem) << answer.body;
}

INSTANTIATE_TEST_SUITE_P(
    Routes, WrongRequests,
    ::testing::Values(
        Wrong{"broken_json", "POST", "/v1/meshes", R"({"axis_names": )", "400 malformed_json "},
        Wrong{"no_json", "POST", "/v1/meshes", "a,b", "415 unsupported_media_type", "text/csv"},
        Wrong{"body_over_the_limit", "POST", "/v1/meshes", std::string(201, ' '), "413 body_too_large"},
        Wrong{"body_where_none_is_taken", "DELETE", "/v1/meshes/mesh_1", "{}", "400 malformed_request"},
        Wrong{"two_fields_at_once", "POST", "/v1/meshes", R"({"axis_names": ["x"], "devices": [99, 0, 98]})",
              "422 invalid_mesh /devices/0 /devices/2"},
        Wrong{"field_unknown", "POST", "/v1/sessions", R"({"nam": "a"})", "422 invalid_request /nam"},
        Wrong{"callback_answers_no_list", "POST", "/v1/run",
              R"({"program": {"text": "func.func @main() { return }"}, "arguments": [], "callbacks": {"0": {"effect": )"
              R"("log", "answers": {"a": 1}}, "1": {"effect": "log", "answers": [4]}}})",
              "422 invalid_request /callbacks/0/answers /callbacks/1/answers/0"},
        Wrong{"field_of_another_type", "POST", "/v1/sessions", R"({"name": 1})", "422 invalid_request /name"},
        Wrong{"query_unknown", "GET", "/v1/meshes?limt=1", "", "422 invalid_query "},
        Wrong{"query_beyond_its_range", "GET", "/v1/meshes?limit=0", "", "422 invalid_query"},
        Wrong{"cursor_of_no_list", "GET", "/v1/arrays?cursor=a%20b", "", "422 invalid_query"},
        Wrong{"program_at_fault", "POST", "/v1/programs", "func.func @main(", "422 invalid_program ", "text/plain"},
        Wrong{"program_missing", "POST", "/v1/run", R"({"arguments": []})", "422 invalid_request /program"},
        Wrong{"arguments_missing", "POST", "/v1/run", run_of(kDouble, "[]"), "422 invalid_argument /arguments"},
        // A field of another type is one mistake: it is neither taken as given nor as missing.
        Wrong{"platform_of_another_type", "POST", "/v1/run",
              R"({"platform": 5, "nope": 1, )" + run_of(kDouble, "[[1, 2]]").substr(1),
              "422 invalid_request /platform /nope"},
        Wrong{"program_id_of_another_type", "POST", "/v1/run", R"({"program": {"id": 5}, "arguments": [[1, 2]]})",
              "422 invalid_request /program/id"},
        Wrong{"program_format_of_another_type", "POST", "/v1/run",
              R"({"program": {"format": 5, "text": ")" + kDouble + R"("}, "arguments": [[1, 2]], "nope": 1})",
              "422 invalid_request /nope /program/format"},
        Wrong{"dtype_unknown", "POST", "/v1/arrays", R"({"dtype": "float31", "shape": [1], "data": [1]})",
              "422 invalid_array /dtype"},
        Wrong{"shape_negative", "POST", "/v1/arrays", R"({"dtype": "int8", "shape": [-1], "data": [1]})",
              "422 invalid_array /shape/0"},
        Wrong{"axis_name_of_another_type", "POST", "/v1/meshes", R"({"axes": [{"name": 5, "size": 2}]})",
              "422 invalid_mesh /axes/0/name"},
        Wrong{"axis_names_of_another_type", "POST", "/v1/meshes", R"({"axis_names": [5], "devices": [0]})",
              "422 invalid_mesh /axis_names/0"},
        Wrong{"mesh_shape_of_another_type", "POST", "/v1/meshes", R"({"axis_names": ["x"], "shape": "2"})",
              "422 invalid_mesh /shape"},
        Wrong{"is_abstract_of_another_type", "POST", "/v1/meshes",
              R"({"axes": [{"name": "x", "size": 2}], "is_abstract": "no"})", "422 invalid_mesh /is_abstract"},
        Wrong{"pulling_session_of_another_type", "POST", "/v1/arrays:assemble",
              R"({"shape": [2], "mesh": "mesh_1", "dtype": "int8", "pull": "each", "session": 5})",
              "422 invalid_array /session"},
        Wrong{"sharding_mesh_of_another_type", "POST", "/v1/shardings:resolve",
              R"({"shape": [2], "mesh": 5, "spec": [["x"]]})", "422 invalid_spec /mesh"},
        Wrong{"sharding_parts_of_another_type", "POST", "/v1/shardings:resolve",
              R"({"local_shape": [2], "parts": 5, "local_parts": [1]})", "422 invalid_spec /parts"}),
    [](const ::testing::TestParamInfo<Wrong>& one) { return one.param.name; });

TEST_F(Routes, session_of_another_type_is_not_another_session) {
  const std::string body = R"({"session": 5, )" + run_of(kDouble, "[[1, 2]]").substr(1);
  EXPECT_EQ(server_.ask("POST", "/v1/sessions/" + made("/v1/sessions") + "/jobs", body).problem(),
            "422 invalid_request /session");
}

TEST_F(Routes, ids_of_others_are_answered_like_ids_of_nothing) {
  const std::string session = made("/v1/sessions");
  const std::map<std::string, std::string> ids = {
      {"/v1/meshes/", made("/v1/meshes", kMesh)},
      {"/v1/arrays/", made("/v1/arrays", R"({"dtype": "float32", "shape": [2], "data": [1, 2]})")},
      {"/v1/programs/", made("/v1/programs", kDouble, {"Content-Type: text/plain"})},
      {"/v1/sessions/", session},
      {"/v1/jobs/", made("/v1/sessions/" + session + "/jobs", run_of(kDouble, "[[1, 2]]"), {"Prefer: respond-async"})}};
  for (const auto& [path, id] : ids) {
    std::string nobodys = id;
    nobodys.back() = nobodys.back() == '0' ? '1' : '0';
    EXPECT_EQ(server_.ask("GET", path + id).status, 200) << path;
    for (const std::string method : {"GET", "DELETE"}) {
      const auto answered = [&](const std::string& asked) {
        Answer answer = server_.ask(method, path + asked, {}, {"X-Principal: bob", "X-Request-Id: same"});
        for (size_t at; (at = answer.body.find(asked)) != std::string::npos;)
          answer.body.replace(at, asked.size(), "ID");
        return std::to_string(answer.status) + answer.body;
      };
      EXPECT_EQ(answered(id), answered(nobodys)) << method << " " << path;
      EXPECT_TRUE(answered(id).starts_with("404")) << answered(id);
    }
    EXPECT_EQ(server_.ask("GET", path + id).status, 200) << path << ": bob's DELETE did nothing";
  }
}

TEST_F(Routes, pages_follow_their_links_to_the_end) {
  std::set<std::string> made_ids;
  for (int devices = 1; devices <= 5; ++devices) {
    std::string list;
    for (int i = 0; i < devices; ++i) list += (i ? ", " : "") + std::to_string(i);
    // Its abstract form is stored beside it.
    const Answer answer = server_.ask("POST", "/v1/meshes", R"({"axis_names": ["x"], "devices": [)" + list + "]}");
    made_ids.insert(answer.json().at("id"));
    made_ids.insert(answer.json().at("abstract"));
  }
  ASSERT_EQ(made_ids.size(), 10U);
  std::set<std::string> seen;
  std::string target = "/v1/meshes?limit=4";
  std::vector<size_t> sizes;
  while (!target.empty()) {
    const Answer page = server_.ask("GET", target);
    ASSERT_EQ(page.status, 200) << page.body;
    const auto document = page.json();
    sizes.push_back(document.at("items").size());
    for (const auto& item : document.at("items")) EXPECT_TRUE(seen.insert(item.at("id")).second) << "twice";
    const std::string link = page.header("Link");
    EXPECT_EQ(document.at("next").is_null(), link.empty());
    target = link.empty() ? "" : link.substr(1, link.find('>') - 1);
    if (!link.empty()) {
      EXPECT_TRUE(link.ends_with(">; rel=\"next\"")) << link;
      EXPECT_NE(target.find("limit=4"), std::string::npos) << "a link keeps the other parameters";
    }
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 4, 2}));
  EXPECT_EQ(seen, made_ids);
  EXPECT_TRUE(server_.ask("GET", "/v1/meshes", {}, {"X-Principal: bob"}).json().at("items").empty());
}

TEST_F(Routes, same_idempotency_key_runs_once_and_replays_the_answer) {
  const std::string request = run_of(kDouble, "[[1, 2]]");
  const Answer first = server_.ask("POST", "/v1/run", request, {"Idempotency-Key: k1"});
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.json().at("results")[0].at("data"), nlohmann::json({2.0, 4.0}));
  EXPECT_EQ(first.header("Idempotency-Replayed"), "");
  const Answer again = server_.ask("POST", "/v1/run", request, {"Idempotency-Key: k1"});
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.header("Location"), first.header("Location"));
  EXPECT_EQ(server_.ask("GET", "/v1/jobs").json().at("items").size(), 1U);

  const Answer other = server_.ask("POST", "/v1/run", run_of(kDouble, "[[1, 3]]"), {"Idempotency-Key: k1"});
  EXPECT_EQ(other.problem(), "422 idempotency_key_reused");
  const Answer bobs =
      server_.ask("POST", "/v1/run", run_of(kDouble, "[[1, 3]]"), {"Idempotency-Key: k1", "X-Principal: bob"});
  EXPECT_EQ(bobs.status, 200) << "keys are each principal's own";
  EXPECT_EQ(bobs.header("Idempotency-Replayed"), "");
  EXPECT_EQ(server_.ask("POST", "/v1/run", request, {"Idempotency-Key: " + std::string(256, 'k')}).problem(),
            "422 invalid_request");
}

TEST_F(Routes, more_than_one_idempotency_key_is_refused) {
  const std::string run = run_of(kDouble, "[[1, 2]]");
  for (const std::string& target :
       {std::string("/v1/run"), "/v1/sessions/" + made("/v1/sessions") + "/jobs", std::string("/v1/sessions"),
        std::string("/v1/arrays:upload?dtype=uint8&shape=2")}) {
    for (const char* second : {"Idempotency-Key: two", "idempotency-key: one"}) {
      const Answer refused = server_.ask("POST", target, run, {"Idempotency-Key: one", second});
      EXPECT_EQ(refused.problem(), "400 malformed_request") << target;
      EXPECT_EQ(refused.json().value("detail", ""), "Idempotency-Key is given more than once") << target;
    }
  }
  const std::vector<std::string> begins = {"Idempotency-Key: one", "Idempotency-Key: two", "Upload-Complete: ?0",
                                           "Content-Type: application/octet-stream"};
  EXPECT_EQ(server_.ask("POST", "/v1/arrays:upload?dtype=uint8&shape=2", "a", begins).problem(),
            "400 malformed_request")
      << "before its bytes have come";
  EXPECT_TRUE(server_.ask("GET", "/v1/jobs").json().at("items").empty());
}

TEST_F(Routes, key_of_a_job_that_still_runs_is_a_conflict_that_names_it) {
  const std::string jobs = "/v1/sessions/" + made("/v1/sessions") + "/jobs";
  const std::string request = run_of(kWaits, "[]");
  const std::string id = made(jobs, request, {"Idempotency-Key: k1", "Prefer: respond-async"});
  const Answer again = server_.ask("POST", jobs, request, {"Idempotency-Key: k1", "Prefer: respond-async"});
  EXPECT_EQ(again.problem(), "409 idempotency_in_progress");
  EXPECT_EQ(again.header("Location"), "/v1/jobs/" + id);
  EXPECT_EQ(server_.ask("DELETE", "/v1/jobs/" + id).status, 202);
  server_.ask("GET", "/v1/jobs/" + id + "?wait=60");
  const Answer replayed = server_.ask("POST", jobs, request, {"Idempotency-Key: k1", "Prefer: respond-async"});
  EXPECT_EQ(replayed.header("Idempotency-Replayed"), "true") << replayed.status << replayed.body;
  EXPECT_EQ(replayed.json().value("code", ""), "cancelled");
}

TEST_F(Routes, finished_job_is_deleted_and_its_key_and_log_say_so) {
  const std::string session = made("/v1/sessions");
  const std::string jobs = "/v1/sessions/" + session + "/jobs";
  auto request = nlohmann::json::parse(run_of(kLogs, "[3]"));
  request["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  const Answer done = server_.ask("POST", jobs, request.dump(), {"Idempotency-Key: k1"});
  const std::string job = done.header("Location");
  EXPECT_EQ(server_.ask("DELETE", job, {}, {"If-Match: \"another\""}).problem(), "412 precondition_failed");
  EXPECT_EQ(server_.ask("DELETE", job, {}, {"X-Principal: bob"}).problem(), "404 not_found");
  const Answer gone = server_.ask("DELETE", job);
  EXPECT_EQ(gone.status, 204) << gone.body;
  EXPECT_EQ(gone.body, "");
  EXPECT_EQ(server_.ask("GET", job).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("DELETE", job).problem(), "404 not_found");
  EXPECT_TRUE(server_.ask("GET", jobs).json().at("items").empty());
  const Answer again = server_.ask("POST", jobs, request.dump(), {"Idempotency-Key: k1"});
  EXPECT_EQ(again.problem(), "404 not_found") << "never twice with one key";
  EXPECT_EQ(again.json().at("detail"),
            "the job of this Idempotency-Key, '" + job.substr(9) + "', was deleted; use a new key for a new request");
  const auto log = server_.ask("GET", "/v1/sessions/" + session + "/effects").json().at("items");
  ASSERT_EQ(log.size(), 1U);
  EXPECT_EQ(log[0].at("job"), job.substr(9));
}

TEST_F(Routes, job_shows_the_environment_that_computed_it_where_that_is_known) {
  const std::string job = "/v1/jobs/" + made("/v1/run", run_of(kDouble, "[[1, 2]]"), {"Prefer: respond-async"});
  const std::string environment = server_.ask("GET", job + "?wait=60").json().value("environment", "");
  EXPECT_TRUE(environment.starts_with("meshd ")) << environment;
  EXPECT_NE(environment.find("; products "), std::string::npos) << environment;
  EXPECT_FALSE(server_.ask("GET", "/v1/jobs").json().at("items").at(0).contains("environment"));
  const storage::JobRow old = job_row("job_00000000-0000-7000-8000-000000000001");
  server_.catalog().write([&](storage::Transaction& t) { t.insert_job(old); });
  const Answer shown = server_.ask("GET", "/v1/jobs/" + old.id);
  EXPECT_EQ(shown.status, 200) << shown.body;
  EXPECT_FALSE(shown.json().contains("environment")) << "a build that did not say accepted it";
}

TEST_F(Routes, id_of_a_deleted_job_is_free_unless_the_log_has_its_effects) {
  const std::string session = made("/v1/sessions");
  const std::string job = "/v1/jobs/job_00000000-0000-7000-8000-000000000001";
  const auto put = [&](nlohmann::json request) {
    request["session"] = session;
    return server_.ask("PUT", job, request.dump(), {"If-None-Match: *", "Prefer: wait=20"});
  };
  EXPECT_EQ(put(nlohmann::json::parse(run_of(kDouble, "[[1, 2]]"))).status, 201);
  EXPECT_EQ(server_.ask("DELETE", job).status, 204);
  auto logs = nlohmann::json::parse(run_of(kLogs, "[3]"));
  logs["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  EXPECT_EQ(put(logs).status, 201);
  EXPECT_EQ(server_.ask("DELETE", job).status, 204);
  EXPECT_EQ(put(logs).problem(), "412 precondition_failed") << "it would be taken for the first one's effect";
}

TEST_F(Routes, conditions_are_held_to_the_entity_tag) {
  const std::string path = "/v1/meshes/" + made("/v1/meshes", kMesh);
  const std::string tag = server_.ask("GET", path).header("ETag");
  ASSERT_FALSE(tag.empty());
  EXPECT_EQ(server_.ask("GET", path, {}, {"If-None-Match: " + tag}).status, 304);
  EXPECT_EQ(server_.ask("GET", path, {}, {"If-None-Match: \"another\""}).status, 200);
  EXPECT_EQ(server_.ask("DELETE", path, {}, {"If-Match: \"another\""}).problem(), "412 precondition_failed");
  EXPECT_EQ(server_.ask("DELETE", path, {}, {"If-Match: " + tag}).status, 204);
  EXPECT_EQ(server_.ask("GET", path).problem(), "404 not_found");
}

TEST_F(Routes, head_is_get_without_the_body) {
  const std::string path = "/v1/meshes/" + made("/v1/meshes", kMesh);
  const Answer get = server_.ask("GET", path), head = server_.ask("HEAD", path);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.header("ETag"), get.header("ETag"));
  EXPECT_EQ(head.header("Content-Type"), get.header("Content-Type"));
}

TEST_F(Routes, wait_ends_when_the_job_does) {
  const std::string session = made("/v1/sessions");
  const std::string id = made("/v1/sessions/" + session + "/jobs", run_of(kWaits, "[]"), {"Prefer: respond-async"});
  std::string state;
  std::thread waits([&] { state = server_.ask("GET", "/v1/jobs/" + id + "?wait=60").json().value("state", ""); });
  const Answer fed = server_.ask("POST", "/v1/sessions/" + session + "/infeed",
                                 R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})");
  EXPECT_LT(fed.status, 300) << fed.body;
  waits.join();
  EXPECT_EQ(state, "done");
  EXPECT_EQ(server_.ask("GET", "/v1/jobs/" + id).json().at("answer").at("results")[0].at("data"), 4.0);
}

TEST_F(Routes, job_that_fails_between_its_blobs_and_its_commit_leaves_no_blob) {
  const std::string jobs = "/v1/sessions/" + made("/v1/sessions") + "/jobs";
  const std::string first = made(jobs, run_of(kWaits, "[]"), {"Prefer: respond-async"});
  auto request = nlohmann::json::parse(run_of(kLogs, "[3]"));
  request["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  request["results"] = {{"encoding", "array"}};
  request["deadline"] = 0.3;
  // It has stored its result when its time is up, but the job before it still has the turn.
  EXPECT_EQ(server_.ask("POST", jobs, request.dump()).problem(), "422 deadline_exceeded");
  EXPECT_EQ(server_.blob_count(), 0U);
  EXPECT_EQ(server_.ask("DELETE", "/v1/jobs/" + first).status, 202);
  server_.ask("GET", "/v1/jobs/" + first + "?wait=60");
  request.erase("deadline");
  EXPECT_EQ(server_.ask("POST", jobs, request.dump()).status, 200);
  EXPECT_EQ(server_.blob_count(), 1U);
}

TEST_F(Routes, job_does_not_commit_once_its_cancellation_is_durable) {
  const std::string session = "/v1/sessions/" + made("/v1/sessions");
  auto request = nlohmann::json::parse(run_of(kWaits, "[]"));
  request["results"] = {{"encoding", "array"}};
  const std::string id = made(session + "/jobs", request.dump(), {"Prefer: respond-async"});
  // Between the transaction of DELETE and the moment when the job is told.
  server_.catalog().write([&](storage::Transaction& transaction) { transaction.request_cancel(id, "ann"); });
  server_.ask("POST", session + "/infeed",
              R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})");
  const auto seen = server_.ask("GET", "/v1/jobs/" + id + "?wait=60").json();
  EXPECT_EQ(seen.at("state"), "cancelled");
  EXPECT_EQ(seen.at("error").at("code"), "cancelled");
  EXPECT_EQ(server_.blob_count(), 0U);
  EXPECT_EQ(server_.ask("DELETE", "/v1/jobs/" + id).status, 204);
}

TEST(QueuedRuns, have_no_arguments_in_memory) {
  InProcess server(16LL << 20, {}, 12 << 20);
  const std::string session = server.ask("POST", "/v1/sessions").json().at("id");
  const auto upload = [&] {
    return server
        .ask("POST", "/v1/arrays?dtype=float32&shape=1048576", std::string(4 << 20, '\0'),
             {"Content-Type: application/octet-stream"})
        .json()
        .value("id", "");
  };
  // Plans 8 MiB, and keeps them until it is fed.
  const std::string text =
      "func.func @main(%t: !stablehlo.token, %a: tensor<1048576xf32>) -> tensor<1048576xf32> { %0:2 = "
      "\\\"stablehlo.infeed\\\"(%t) <{infeed_config = \\\"q\\\"}> : (!stablehlo.token) -> (tensor<f32>, "
      "!stablehlo.token) %1 = stablehlo.broadcast_in_dim %0#0, dims = [] : (tensor<f32>) -> tensor<1048576xf32> %2 = "
      "stablehlo.add %a, %1 : tensor<1048576xf32> return %2 : tensor<1048576xf32> }";
  const auto start = [&](const std::string& array) {
    auto request = nlohmann::json::parse(run_of(text, R"([{"array": ")" + array + R"("}])"));
    request["results"] = {{"encoding", "none"}};
    const Answer queued =
        server.ask("POST", "/v1/sessions/" + session + "/jobs", request.dump(), {"Prefer: respond-async"});
    EXPECT_EQ(queued.status, 202) << queued.body;
    return queued.json().value("id", "");
  };
  const auto state = [&](const std::string& job) {
    return server.ask("GET", "/v1/jobs/" + job + "?wait=60").json().value("state", "");
  };
  const std::string first = start(upload());
  const auto waits = [&] {
    return server.ask("GET", "/v1/jobs/" + first).json().value("progress", nlohmann::json()).contains("waits_for");
  };
  ASSERT_TRUE(eventually(waits));
  // What the first one plans leaves no room for this one, neither for its array in memory nor for its run.
  const std::string array = upload();
  const std::string second = start(array);
  ASSERT_TRUE(eventually([&] { return server.queued_runs() == 1; }));
  EXPECT_FALSE(server.is_loaded(array));
  for (int entry = 0; entry < 2; ++entry) {
    server.ask("POST", "/v1/sessions/" + session + "/infeed",
               R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})");
  }
  EXPECT_EQ(state(first), "done");
  EXPECT_EQ(state(second), "done");
}

TEST_F(Routes, barrier_of_a_client_that_left_ends_and_the_jobs_go_on) {
  const std::string session = made("/v1/sessions");
  const std::string id = made("/v1/sessions/" + session + "/jobs", run_of(kWaits, "[]"), {"Prefer: respond-async"});
  const auto waiter = std::make_shared<core::ThreadWaiter>();
  Answer answer;
  std::thread waits([&] { answer = server_.ask("POST", "/v1/sessions/" + session + "/barrier", {}, {}, waiter); });
  waiter->abandon();
  waits.join();
  EXPECT_NE(answer.status, 200);
  EXPECT_EQ(answer.json().value("code", ""), "cancelled");
  const std::string state = server_.ask("GET", "/v1/jobs/" + id).json().at("state");
  EXPECT_TRUE(state == "queued" || state == "running") << state;
}

class HaltingSession : public Routes {
 protected:
  std::string queue(const std::string& request) { return made(jobs_, request, {"Prefer: respond-async"}); }
  nlohmann::json job(const std::string& id, int wait = 0) {
    return server_.ask("GET", "/v1/jobs/" + id + "?wait=" + std::to_string(wait)).json();
  }
  nlohmann::json session() { return server_.ask("GET", path_).json(); }
  /// A job that waits for its client, and fails in vain.
  std::string failing() {
    auto request = nlohmann::json::parse(run_of(kWaits, "[]"));
    request["deadline"] = 0.05;
    return queue(request.dump());
  }

  const std::string path_ = "/v1/sessions/" + made("/v1/sessions", R"({"on_error": "halt"})");
  const std::string jobs_ = path_ + "/jobs";
};

TEST_F(HaltingSession, jobs_behind_a_failed_one_wait_until_it_is_resumed) {
  EXPECT_EQ(session().at("on_error"), "halt");
  const std::string failed = failing();
  const std::string behind = queue(run_of(kWaits, "[]"));
  EXPECT_EQ(job(failed, 60).at("state"), "failed");
  EXPECT_EQ(session().at("state"), "halted");
  EXPECT_EQ(session().at("halted_by"), 1);
  const std::string later = queue(run_of(kDouble, "[[1, 2]]"));
  EXPECT_EQ(server_.ask("POST", jobs_, run_of(kDouble, "[[1, 2]]")).problem(), "409 session_halted");
  EXPECT_EQ(server_.ask("POST", path_ + "/barrier").problem(), "409 session_halted");
  EXPECT_EQ(session().at("jobs"), 3) << "what is refused has no number";
  EXPECT_EQ(job(later, 1).at("state"), "queued");
  const Answer resumed = server_.ask("POST", path_ + ":resume");
  EXPECT_EQ(resumed.status, 200);
  EXPECT_EQ(resumed.json().at("state"), "open");
  EXPECT_FALSE(resumed.json().contains("halted_by"));
  EXPECT_EQ(job(later, 60).at("state"), "done");
  server_.ask("POST", path_ + "/infeed", R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})");
  EXPECT_EQ(job(behind, 60).at("state"), "done");
  EXPECT_EQ(server_.ask("POST", jobs_, run_of(kDouble, "[[1, 2]]")).status, 200);
}

TEST_F(HaltingSession, repeated_resume_does_not_pass_over_the_next_failure) {
  const std::vector<std::string> key = {"Idempotency-Key: rr"};
  EXPECT_EQ(job(failing(), 60).at("state"), "failed");
  const std::string next = queue(run_of(kWaits, "[]"));
  auto logs = nlohmann::json::parse(run_of(kLogs, "[3]"));
  logs["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  const std::string behind = queue(logs.dump());
  const Answer first = server_.ask("POST", path_ + ":resume", {}, key);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.json().at("state"), "open");
  EXPECT_EQ(first.header("Idempotency-Replayed"), "");
  server_.ask("POST", path_ + "/infeed", R"({"queue": "q", "values": [{"dtype": "int32", "shape": [], "data": 4}]})");
  EXPECT_EQ(job(next, 60).at("state"), "failed") << "it wants float32";
  EXPECT_EQ(session().at("halted_by"), 2);
  const Answer again = server_.ask("POST", path_ + ":resume", {}, key);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.json().at("state"), "halted") << "the session as it is now";
  EXPECT_EQ(again.json(), session());
  EXPECT_NE(job(behind, 1).at("state"), "done");
  EXPECT_TRUE(server_.ask("GET", path_ + "/effects").json().at("items").empty());
  const std::string other = "/v1/sessions/" + made("/v1/sessions");
  EXPECT_EQ(server_.ask("POST", other + ":resume", {}, key).problem(), "422 idempotency_key_reused");
  EXPECT_EQ(server_.ask("POST", path_ + ":resume", {}, {"Idempotency-Key: r2"}).json().at("state"), "open");
  EXPECT_EQ(job(behind, 60).at("state"), "done");
}

TEST_F(HaltingSession, cancelled_job_does_not_halt_it) {
  const std::string id = queue(run_of(kWaits, "[]"));
  server_.ask("DELETE", "/v1/jobs/" + id);
  EXPECT_EQ(job(id, 60).at("state"), "cancelled");
  EXPECT_EQ(session().at("state"), "open");
}

TEST_F(HaltingSession, job_that_has_run_does_not_commit_behind_one_that_failed) {
  const std::string failed = failing();
  auto logs = nlohmann::json::parse(run_of(kLogs, "[3]"));
  logs["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  const std::string behind = queue(logs.dump());  // runs beside, and waits for its turn
  EXPECT_EQ(job(failed, 60).at("state"), "failed");
  EXPECT_NE(job(behind, 1).at("state"), "done");
  EXPECT_TRUE(server_.ask("GET", path_ + "/effects").json().at("items").empty());
  server_.ask("POST", path_ + ":resume");
  EXPECT_EQ(job(behind, 60).at("state"), "done");
  EXPECT_EQ(server_.ask("GET", path_ + "/effects").json().at("items").size(), 1U);
}

TEST_F(HaltingSession, job_without_order_does_not_commit_behind_one_that_failed) {
  const std::string failed = failing();
  auto asks = nlohmann::json::parse(run_of(kAsks, "[3]"));
  asks["callbacks"] = {{"0", {{"effect", "callback"}, {"live", true}}}};
  asks["results"] = {{"encoding", "array"}};
  const std::string behind = queue(asks.dump());
  EXPECT_EQ(server_.ask("GET", path_ + "/callbacks/1?wait=60").status, 200);
  EXPECT_EQ(job(failed, 60).at("state"), "failed");
  const Answer replied =
      server_.ask("POST", path_ + "/callbacks/1", R"({"values": [{"dtype": "int32", "shape": [], "data": 4}]})");
  EXPECT_EQ(replied.status, 200) << replied.body;
  EXPECT_EQ(job(behind, 1).at("state"), "running");
  server_.ask("POST", path_ + ":resume");
  EXPECT_EQ(job(behind, 60).at("state"), "done");
}

/// A POST that makes or changes something each time.
struct Once {
  std::string operation, target, body, other_body;
  std::string type = "application/json";
};

class RepeatedPosts : public Routes {
 protected:
  std::string mesh() { return made("/v1/meshes", R"({"axes": [{"name": "x", "size": 2}], "device_ids": [0, 1]})"); }
  std::string array() { return made("/v1/arrays", R"({"dtype": "float32", "shape": [2], "data": [1, 2]})"); }
  std::string count_of(const std::string& list) {
    return std::to_string(server_.ask("GET", list).json().at("items").size());
  }
};

TEST_F(RepeatedPosts, make_what_they_make_once) {
  const std::string session = made("/v1/sessions");
  const std::string x = mesh();
  const std::string value = R"({"dtype": "float32", "shape": [2], "data": [1, 2]})";
  const std::string feed = R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})";
  const std::vector<Once> all = {
      {"createSession", "/v1/sessions", R"({"name": "a"})", R"({"name": "b"})"},
      {"createArray", "/v1/arrays", value, R"({"dtype": "float32", "shape": [2], "data": [1, 20]})"},
      {"assembleArray", "/v1/arrays:assemble", R"({"shape": [2], "dtype": "float32", "mesh": ")" + x + R"("})",
       R"({"shape": [4], "dtype": "float32", "mesh": ")" + x + R"("})"},
      {"reshardArray", "/v1/arrays/" + array() + ":reshard", R"({"mesh": ")" + x + R"(", "spec": ["x"]})",
       R"({"mesh": ")" + x + R"(", "spec": []})"},
      {"moveArray", "/v1/arrays/" + array() + ":move", "", ""},
      {"deleteArrayByPost", "/v1/arrays/" + array() + ":delete", "", ""},
      {"appendInfeed", "/v1/sessions/" + session + "/infeed", feed,
       R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 5}]})"},
      {"enterMesh", "/v1/sessions/" + session + "/mesh", R"({"mesh": ")" + x + R"("})",
       R"({"mesh": ")" + made("/v1/meshes", R"({"axes": [{"name": "y", "size": 2}], "device_ids": [0, 1]})") +
           R"("})"}};
  for (const Once& one : all) {
    const std::vector<std::string> key = {"Idempotency-Key: k", "Content-Type: " + one.type};
    const auto there = [&] { return count_of("/v1/arrays") + " " + count_of("/v1/sessions"); };
    const Answer first = server_.ask("POST", one.target, one.body, key);
    ASSERT_LT(first.status, 300) << one.operation << first.body;
    EXPECT_EQ(first.header("Idempotency-Replayed"), "") << one.operation;
    const std::string before = there();
    const Answer again = server_.ask("POST", one.target, one.body, key);
    EXPECT_EQ(again.status, first.status) << one.operation;
    EXPECT_EQ(again.body, first.body) << one.operation;
    EXPECT_EQ(again.header("Location"), first.header("Location")) << one.operation;
    EXPECT_EQ(again.header("Idempotency-Replayed"), "true") << one.operation;
    EXPECT_EQ(there(), before) << one.operation;
    if (one.other_body != one.body) {
      EXPECT_EQ(server_.ask("POST", one.target, one.other_body, key).problem(), "422 idempotency_key_reused")
          << one.operation;
      EXPECT_NE(server_.ask("POST", one.target, one.body, {"Idempotency-Key: l"}).body, first.body) << one.operation;
    }
  }
  EXPECT_EQ(server_.ask("GET", "/v1/sessions/" + session + "/mesh").json().at("depth"), 2);
  EXPECT_EQ(server_.ask("GET", "/v1/sessions/" + session + "/infeed").json().at("items").at(0).at("last"), 2);
}

TEST_F(RepeatedPosts, resume_a_webhook_once) {
  const std::vector<std::string> key = {"Idempotency-Key: k"};
  const std::string request = R"({"url": "https://hooks.invalid/", "session": ")" + made("/v1/sessions") + R"("})";
  const std::string id = made("/v1/webhooks", request);
  const auto disable = [&] {
    server_.catalog().write([&](storage::Transaction& t) {
      storage::WebhookRow row = *t.webhook(id);
      row.state = storage::WebhookState::kDisabled;
      t.update_webhook(row);
    });
  };
  disable();
  const std::string target = "/v1/webhooks/" + id + ":resume";
  EXPECT_EQ(server_.ask("POST", target, {}, key).json().at("state"), "active");
  disable();
  const Answer again = server_.ask("POST", target, {}, key);
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.json().at("state"), "disabled") << "the webhook as it is now";
  const std::string other = "/v1/webhooks/" + made("/v1/webhooks", request) + ":resume";
  EXPECT_EQ(server_.ask("POST", other, {}, key).problem(), "422 idempotency_key_reused");
  server_.ask("DELETE", "/v1/webhooks/" + id);
  EXPECT_EQ(server_.ask("POST", target, {}, key).problem(), "404 not_found");
}

TEST_F(RepeatedPosts, are_all_known) {
  // Tested above, or elsewhere.
  std::set<std::string> known = {"createSession",     "createArray",  "assembleArray", "reshardArray",  "moveArray",
                                 "deleteArrayByPost", "appendInfeed", "enterMesh",     "importArrays",  "run",
                                 "createJob",         "uploadArray",  "commitZarr",    "commitAllZarr", "createWebhook",
                                 "resumeSession",     "resumeWebhook"};
  // These change nothing, or nothing twice.
  known.merge(std::set<std::string>{"createMesh",
                                    "createProgram",
                                    "differentiateProgram",
                                    "replyToCallback",
                                    "sessionBarrier",
                                    "compareArrays",
                                    "resolveSharding",
                                    "resolveCall",
                                    "explainProgram",
                                    "partitionProgram",
                                    "suggestShardings",
                                    "lowerProgram",
                                    "infer",
                                    "inferVersion",
                                    "getRepositoryIndex",
                                    "loadModel",
                                    "unloadModel",
                                    "changeSystemSharedMemory",
                                    "changeCudaSharedMemory",
                                    "changeTraceSetting",
                                    "changeModelTraceSetting",
                                    "changeLogSettings"});
  for (const auto& route : server_.router().routes()) {
    if (route->method == "POST") {
      EXPECT_TRUE(known.contains(route->operation_id)) << route->operation_id << ": what if it comes twice?";
    }
  }
}

TEST_F(RepeatedPosts, do_not_make_again_what_was_deleted) {
  const std::string request = R"({"shape": [2], "dtype": "float32", "mesh": ")" + mesh() + R"("})";
  const std::string id = server_.ask("POST", "/v1/arrays:assemble", request, {"Idempotency-Key: k"}).json().at("id");
  server_.ask("DELETE", "/v1/arrays/" + id);
  const Answer again = server_.ask("POST", "/v1/arrays:assemble", request, {"Idempotency-Key: k"});
  EXPECT_EQ(again.problem(), "404 not_found");
  const std::string detail = again.json().at("detail");
  EXPECT_NE(detail.find("the first request with this Idempotency-Key made it, and it was deleted since"),
            std::string::npos)
      << detail;
}

TEST_F(Routes, profile_of_a_run_is_a_table_of_steps_and_a_trace) {
  // Counts to 3, each time with a product of two numbers of its argument.
  const std::string loops =
      "func.func @main(%a: tensor<9x9xf32>) -> tensor<9x9xf32> {\\n %z = stablehlo.constant dense<0> : tensor<i32>\\n "
      "%o = stablehlo.constant dense<1> : tensor<i32>\\n %n = stablehlo.constant dense<3> : tensor<i32>\\n %r:2 = "
      "stablehlo.while(%i = %z, %b = %a) : tensor<i32>, tensor<9x9xf32> cond {\\n %c = stablehlo.compare LT, %i, %n : "
      "(tensor<i32>, tensor<i32>) -> tensor<i1>\\n stablehlo.return %c : tensor<i1> } do {\\n %j = stablehlo.add %i, "
      "%o : tensor<i32>\\n %d = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<9x9xf32>, "
      "tensor<9x9xf32>) -> tensor<9x9xf32>\\n stablehlo.return %j, %d : tensor<i32>, tensor<9x9xf32> }\\n return %r#1 "
      ": "
      "tensor<9x9xf32> }";
  const std::string ones = nlohmann::json(std::vector(9, std::vector(9, 1))).dump();
  auto request = nlohmann::json::parse(run_of(loops, "[" + ones + "]"));
  EXPECT_FALSE(server_.ask("POST", "/v1/run", request.dump()).json().contains("profile"));
  request["profile"] = true;
  const Answer answer = server_.ask("POST", "/v1/run", request.dump());
  const nlohmann::json document = answer.json();
  ASSERT_EQ(answer.status, 200) << answer.body;
  const nlohmann::json& profile = document.at("profile");
  int64_t executions = 0;
  bool has_product = false;
  for (const auto& step : profile.at("steps")) {
    executions += step.at("executions").get<int64_t>();
    if (step.at("op") != "stablehlo.dot_general") continue;
    has_product = true;
    EXPECT_EQ(step.at("executions"), 3);
    EXPECT_EQ(step.at("line"), 9);
    EXPECT_EQ(step.at("operations"), 3 * 2 * 9 * 9 * 9);
    EXPECT_GT(step.at("bytes_per_second"), 0);
  }
  EXPECT_TRUE(has_product) << answer.body;
  EXPECT_EQ(executions + 3, document.at("statistics").at("steps")) << "an iteration counts as a step";
  EXPECT_EQ(profile.at("dropped_events"), 0);
  EXPECT_GE(profile.at("page_faults").get<int64_t>(), 0);
  EXPECT_GE(profile.at("wake_ups").get<int64_t>(), 0);
  const nlohmann::json machine = profile.at("machine");
  EXPECT_GT(machine.at("bytes_per_second"), 0);
  for (const auto& step : profile.at("steps")) {
    if (!step.contains("limit_share")) continue;
    const double least =
        std::max(step.at("bytes").get<double>() / machine.at("bytes_per_second").get<double>(),
                 step.at("operations").get<double>() / machine.at("operations_per_second").get<double>());
    EXPECT_NEAR(step.at("limit_share"), least / (step.at("ms").get<double>() / 1000),
                1e-6 + 1e-3 * step.at("limit_share").get<double>());
  }
  EXPECT_EQ(server_.ask("POST", "/v1/run", request.dump()).json()["profile"]["machine"], machine) << "measured once";
  EXPECT_EQ(static_cast<int64_t>(profile.at("traceEvents").size()), executions);
  // The loop ends last, and all that it did is inside of it.
  const nlohmann::json& loop = profile.at("traceEvents").back();
  EXPECT_EQ(loop.at("name"), "stablehlo.while");
  for (const auto& event : profile.at("traceEvents")) {
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_LE(event.at("ts").get<double>() + event.at("dur").get<double>(),
              loop.at("ts").get<double>() + loop.at("dur").get<double>() + 0.001);
  }
}

const std::string kDoubles =
    "func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.add %a, %a : tensor<f32> return %0 : tensor<f32> "
    "}";

class PromisedResults : public Routes {
 protected:
  Answer post(const std::string& text, const std::string& arguments, const std::string& session) {
    auto request = nlohmann::json::parse(run_of(text, arguments));
    request["results"] = {{"encoding", "array"}};
    return server_.ask("POST", "/v1/sessions/" + session + "/jobs", request.dump(), {"Prefer: respond-async"});
  }
  nlohmann::json ended(const std::string& id) { return server_.ask("GET", "/v1/jobs/" + id + "?wait=60").json(); }
  std::string state(const std::string& array) {
    return server_.ask("GET", "/v1/arrays/" + array).json().value("state", "");
  }
  void feed() {
    server_.ask("POST", "/v1/sessions/" + session_ + "/infeed",
                R"({"queue": "q", "values": [{"dtype": "float32", "shape": [], "data": 4}]})");
  }

  const std::string session_ = made("/v1/sessions");
  /// Makes its array once the session is fed.
  const nlohmann::json first_ = post(kWaits, "[]", session_).json();
  const std::string array_ = first_.at("arrays").at(0);
  const std::string argument_ = R"([{"array": ")" + array_ + R"("}])";
};

TEST_F(PromisedResults, are_arguments_of_later_jobs_of_their_session) {
  EXPECT_EQ(state(array_), "pending");
  EXPECT_EQ(server_.ask("GET", "/v1/arrays/" + array_ + "/data").problem(), "409 conflict");
  EXPECT_EQ(server_.ask("GET", "/v1/arrays").json().at("items").at(0).at("id"), array_);
  const nlohmann::json second = post(kDoubles, argument_, session_).json();
  const std::string made_of_it = second.at("arrays").at(0);
  const nlohmann::json third = post(kDoubles, R"([{"array": ")" + made_of_it + R"("}])", session_).json();
  feed();
  EXPECT_EQ(ended(third.at("id")).at("state"), "done");
  const std::string last = third.at("arrays").at(0);
  EXPECT_EQ(ended(third.at("id")).at("answer").at("results").at(0).at("array"), last);
  for (const auto& [array, value] : {std::pair(array_, 4), std::pair(made_of_it, 8), std::pair(last, 16)}) {
    EXPECT_EQ(state(array), "ready");
    EXPECT_EQ(server_.ask("GET", "/v1/arrays/" + array + "/data", {}, {"Accept: application/json"}).json().at("data"),
              value);
  }
}

TEST_F(PromisedResults, are_named_by_their_jobs_too) {
  const auto result_of = [](const std::string& job, int result) {
    return R"([{"job": ")" + job + R"(", "result": )" + std::to_string(result) + "}]";
  };
  const std::string first = first_.at("id"), chosen = "job_0192f0c4-7c1e-7b52-9c7a-5d1f0e6a2b41";
  auto request = nlohmann::json::parse(run_of(kDoubles, result_of(first, 0)));
  request["results"] = {{"encoding", "array"}};
  request["session"] = session_;
  ASSERT_EQ(server_.ask("PUT", "/v1/jobs/" + chosen, request.dump(), {"If-None-Match: *"}).status, 201);
  const nlohmann::json last = post(kDoubles, result_of(chosen, 0), session_).json();
  feed();
  EXPECT_EQ(ended(last.at("id")).at("state"), "done");
  const std::string array = last.at("arrays").at(0);
  EXPECT_EQ(server_.ask("GET", "/v1/arrays/" + array + "/data", {}, {"Accept: application/json"}).json().at("data"),
            16);
  // Once the job is over, in any session and in a run.
  EXPECT_EQ(server_.ask("POST", "/v1/run", run_of(kDoubles, result_of(first, 0))).json().at("results").at(0).at("data"),
            8);

  EXPECT_EQ(post(kDoubles, result_of(first, 1), session_).problem(), "422 invalid_request /arguments/0");
  EXPECT_EQ(post(kDoubles, result_of("job_none", 0), session_).problem(), "404 not_found /arguments/0");
  const std::string as_text =
      made("/v1/sessions/" + session_ + "/jobs", run_of(kDoubles, "[1]"), {"Prefer: respond-async"});
  EXPECT_EQ(post(kDoubles, result_of(as_text, 0), session_).problem(), "422 invalid_request /arguments/0");
  EXPECT_EQ(server_.ask("POST", "/v1/run", run_of(kDoubles, result_of(first, 0)), {"X-Principal: bob"}).problem(),
            "404 not_found /arguments/0");
  EXPECT_EQ(post(kDoubles, R"([{"job": ")" + first + R"("}])", session_).problem(),
            "422 invalid_request /arguments/0/result");
  EXPECT_EQ(post(kDoubles, R"([{"array": ")" + array_ + R"(", "result": 0}])", session_).problem(),
            "422 invalid_request /arguments/0/result");
}

TEST_F(PromisedResults, are_refused_elsewhere) {
  EXPECT_EQ(post(kDoubles, argument_, made("/v1/sessions")).problem(), "409 conflict");
  EXPECT_EQ(server_.ask("POST", "/v1/run", run_of(kDoubles, argument_)).problem(), "409 conflict");
  EXPECT_EQ(server_.ask("DELETE", "/v1/arrays/" + array_).problem(), "409 array_in_use");
  EXPECT_EQ(server_.ask("GET", "/v1/arrays/" + array_, {}, {"X-Principal: bob"}).problem(), "404 not_found");
}

TEST_F(PromisedResults, are_donated_by_one_job) {
  auto donating = nlohmann::json::parse(run_of(kDoubles, argument_));
  donating["donate"] = {0};
  const auto queue = [&] {
    return server_.ask("POST", "/v1/sessions/" + session_ + "/jobs", donating.dump(), {"Prefer: respond-async"});
  };
  const std::string job = queue().json().at("id");
  EXPECT_EQ(queue().problem(), "409 array_in_use");
  feed();
  EXPECT_EQ(ended(job).at("state"), "done");
  EXPECT_EQ(state(array_), "donated");
}

TEST_F(PromisedResults, are_lost_with_the_job_that_was_to_make_them) {
  const nlohmann::json second = post(kDoubles, argument_, session_).json();
  const std::string behind = second.at("id"), made_of_it = second.at("arrays").at(0);
  const std::string last = post(kDoubles, R"([{"array": ")" + made_of_it + R"("}])", session_).json().at("id");
  const std::string first = first_.at("id");
  server_.ask("DELETE", "/v1/jobs/" + first);
  const nlohmann::json seen = ended(behind);
  EXPECT_EQ(seen.at("error").at("code"), "dependency_failed");
  EXPECT_EQ(seen.at("error").at("detail"),
            "array '" + array_ + "' was not made: it was to be a result of job '" + first + "', which was cancelled");
  const nlohmann::json in_turn = ended(last);
  EXPECT_EQ(in_turn.at("error").at("code"), "dependency_failed");
  EXPECT_EQ(in_turn.at("error").at("detail"), "array '" + made_of_it +
                                                  "' was not made: it was to be a result of job '" + behind +
                                                  "', which failed with dependency_failed");
  // Named by the job that is over.
  const Answer later = post(kDoubles, R"([{"job": ")" + first + R"(", "result": 0}])", session_);
  EXPECT_EQ(later.problem(), "409 dependency_failed /arguments/0");
  const Answer gone = server_.ask("GET", "/v1/arrays/" + array_);
  EXPECT_EQ(gone.problem(), "404 not_found");
  EXPECT_EQ(gone.json().at("detail"), seen.at("error").at("detail"));
  EXPECT_TRUE(server_.ask("GET", "/v1/arrays").json().at("items").empty());
}

// The array is there before and after, as it was: whoever names the result does not mean that.
TEST_F(PromisedResults, that_are_updates_are_lost_with_the_job_too) {
  const std::string text =
      "func.func @main(%a: tensor<f32>, %t: !stablehlo.token) -> tensor<f32> { %0:2 = \\\"stablehlo.infeed\\\"(%t) "
      "<{infeed_config = \\\"q\\\"}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token) %1 = stablehlo.add %a, "
      "%0#0 "
      ": tensor<f32> return %1 : tensor<f32> }";
  const std::string kept = made("/v1/arrays", R"({"dtype": "float32", "shape": [], "data": 3})");
  auto update = nlohmann::json::parse(run_of(text, R"([{"array": ")" + kept + R"("}])"));
  update["results"] = {{"encoding", "array"}};
  update["update"] = {{{"argument", 0}, {"result", 0}}};
  const std::string first = made("/v1/sessions/" + session_ + "/jobs", update.dump(), {"Prefer: respond-async"});
  const std::string result = R"([{"job": ")" + first + R"(", "result": 0}])";
  const std::string second = post(kDoubles, result, session_).json().at("id");
  EXPECT_EQ(server_.ask("POST", "/v1/run", run_of(kDoubles, result)).problem(), "409 conflict");
  server_.ask("DELETE", "/v1/jobs/" + first);
  EXPECT_EQ(ended(first).at("state"), "cancelled");
  const nlohmann::json seen = ended(second);
  EXPECT_EQ(seen.at("state"), "failed");
  EXPECT_EQ(seen.at("error").at("code"), "dependency_failed");
}

/// A server whose principals may each have two jobs of the background started, one of them running.
class HaltedWithFewStarted : public ::testing::Test {
 protected:
  static jobs::RunnerOptions few_started() {
    jobs::RunnerOptions options;
    options.started_limit = 2;
    options.background_jobs = 1;
    return options;
  }
  std::string halting_session() {
    return "/v1/sessions/" + server_.ask("POST", "/v1/sessions", R"({"on_error": "halt"})").json().value("id", "");
  }
  std::string queue(const std::string& path, const std::string& text, const std::string& arguments,
                    double deadline = 0) {
    auto request = nlohmann::json::parse(run_of(text, arguments));
    if (deadline > 0) request["deadline"] = deadline;
    if (text == kLogs) request["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
    return server_.ask("POST", path + "/jobs", request.dump(), {"Prefer: respond-async"}).json().value("id", "");
  }
  std::string state(const std::string& id) {
    return server_.ask("GET", "/v1/jobs/" + id + "?wait=60").json().value("state", "");
  }
  /// A halted session with a started job that is held and one that is not started.
  std::string halted() {
    const std::string path = halting_session();
    const std::string failed = queue(path, kWaits, "[]", 0.2);
    started_ = queue(path, kLogs, "[3]");
    EXPECT_EQ(state(failed), "failed");
    waiting_ = queue(path, kDouble, "[[1, 2]]");
    return path;
  }

  InProcess server_{4LL << 20, few_started()};
  std::string started_, waiting_;
};

TEST_F(HaltedWithFewStarted, held_jobs_leave_room_for_those_of_other_sessions) {
  const std::string first = halted();
  const std::string second = halted();
  const std::string third = halted();
  const std::string free = "/v1/sessions/" + server_.ask("POST", "/v1/sessions").json().value("id", "");
  EXPECT_EQ(state(queue(free, kDouble, "[[1, 2]]")), "done");
  for (const std::string& path : {first, second, third}) EXPECT_EQ(server_.ask("DELETE", path).status, 204);
}

TEST_F(HaltedWithFewStarted, held_jobs_go_on_when_their_session_is_resumed) {
  const std::string path = halted();
  EXPECT_EQ(server_.ask("POST", path + ":resume").status, 200);
  EXPECT_EQ(state(started_), "done");
  EXPECT_EQ(state(waiting_), "done");
}

TEST(HaltedForLong, jobs_without_a_deadline_wait_for_it) {
  constexpr std::chrono::milliseconds kLongest{300};
  jobs::RunnerOptions options;
  options.longest = kLongest;
  InProcess server(4LL << 20, options);
  const std::string path =
      "/v1/sessions/" + server.ask("POST", "/v1/sessions", R"({"on_error": "halt"})").json().value("id", "");
  const auto queue = [&](nlohmann::json request, double deadline) {
    if (deadline > 0) request["deadline"] = deadline;
    return server.ask("POST", path + "/jobs", request.dump(), {"Prefer: respond-async"}).json().value("id", "");
  };
  const auto state = [&](const std::string& id) {
    return server.ask("GET", "/v1/jobs/" + id + "?wait=60").json().value("state", "");
  };
  auto logs = nlohmann::json::parse(run_of(kLogs, "[3]"));
  logs["callbacks"] = {{"0", {{"effect", "log"}, {"name", "n"}}}};
  const std::string failing = queue(nlohmann::json::parse(run_of(kWaits, "[]")), 0.05);
  const std::vector<std::string> started = {queue(logs, 0), queue(logs, 0)};  // they run, and wait for their turn
  EXPECT_EQ(state(failing), "failed");
  const auto doubles = nlohmann::json::parse(run_of(kDouble, "[[1, 2]]"));
  const std::string held = queue(doubles, 0);
  EXPECT_EQ(state(queue(doubles, 0.1)), "failed") << "this one asked for no more time";
  std::this_thread::sleep_for(2 * kLongest);
  EXPECT_EQ(server.ask("POST", path + ":resume").status, 200);
  for (const std::string& id : started) EXPECT_EQ(state(id), "done");
  EXPECT_EQ(state(held), "done");
}

TEST_F(HaltingSession, closed_one_ends_the_jobs_that_it_holds) {
  const std::string failed = failing();
  EXPECT_EQ(job(failed, 60).at("state"), "failed");
  queue(run_of(kDouble, "[[1, 2]]"));
  queue(run_of(kWaits, "[]"));
  EXPECT_EQ(server_.ask("DELETE", path_).status, 204);
  EXPECT_EQ(server_.ask("POST", path_ + ":resume").problem(), "404 not_found");
}

TEST_F(Routes, session_that_goes_on_is_not_halted) {
  const std::string path = "/v1/sessions/" + made("/v1/sessions");
  auto request = nlohmann::json::parse(run_of(kWaits, "[]"));
  request["deadline"] = 0.05;
  EXPECT_EQ(server_.ask("POST", path + "/jobs", request.dump()).problem(), "422 deadline_exceeded");
  EXPECT_EQ(server_.ask("GET", path).json().at("state"), "open");
  EXPECT_EQ(server_.ask("POST", path + ":resume").status, 200);
  EXPECT_EQ(server_.ask("POST", "/v1/sessions", R"({"on_error": "stop"})").problem(), "422 invalid_request /on_error");
}

TEST_F(Routes, closed_session_takes_no_jobs_and_ends_those_that_wait_for_their_client) {
  const std::string session = made("/v1/sessions");
  const std::string id = made("/v1/sessions/" + session + "/jobs", run_of(kWaits, "[]"), {"Prefer: respond-async"});
  EXPECT_EQ(server_.ask("DELETE", "/v1/sessions/" + session).status, 204);
  EXPECT_EQ(server_.ask("GET", "/v1/sessions/" + session).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", "/v1/jobs/" + id).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("POST", "/v1/sessions/" + session + "/jobs", run_of(kDouble, "[[1, 2]]")).problem(),
            "404 not_found");
}

}  // namespace
}  // namespace meshd::testing
