// Jobs that stream their effects, between the steps of their runs: a job waits for its client to feed it, and what its
// log has meanwhile is as a run before left it.
#include "tests/support/eventually.h"
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

using nlohmann::json;

// Takes a value and logs it, twice.
constexpr std::string_view kTakesAndLogs = R"(
func.func @main(%t: !stablehlo.token {jax.token = true}) -> (!stablehlo.token {jax.token = true}) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  %1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%0#1, %0#0) {backend_config = "", has_side_effect = true,
    mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  %2:2 = "stablehlo.infeed"(%1) <{infeed_config = ""}> : (!stablehlo.token) -> (tensor<i32>, !stablehlo.token)
  %3 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%2#1, %2#0) {backend_config = "", has_side_effect = true,
    mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, tensor<i32>) -> !stablehlo.token
  return %3 : !stablehlo.token
})";

class LiveJobs : public ::testing::Test {
 protected:
  void SetUp() override { session_ = server_.ask("POST", "/v1/sessions", R"({"effects": "streaming"})").json()["id"]; }

  std::string start(const json& more = json::object()) {
    json body = {{"program", {{"text", kTakesAndLogs}}}, {"arguments", json::array()}};
    body.update(more);
    const Answer made =
        server_.ask("POST", "/v1/sessions/" + session_ + "/jobs", body.dump(), {"Prefer: respond-async"});
    EXPECT_EQ(made.status, 202) << made.body;
    return made.json()["id"];
  }
  void feed(int value) {
    const json body = {{"values", {{{"dtype", "int32"}, {"shape", json::array()}, {"data", value}}}}};
    EXPECT_LT(server_.ask("POST", "/v1/sessions/" + session_ + "/infeed", body.dump()).status, 300);
  }
  json job(const std::string& id) { return server_.ask("GET", "/v1/jobs/" + id).json(); }
  json ended(const std::string& id) {
    EXPECT_TRUE(eventually([&] { return job(id).contains("finished"); }));
    return job(id);
  }
  // "log 1, log 2, failed crashed"
  std::string log() {
    std::string out;
    const json entries = server_.ask("GET", "/v1/sessions/" + session_ + "/effects").json()["items"];
    for (const json& entry : entries) {
      out += (out.empty() ? "" : ", ") + entry["effect"].get<std::string>() + " ";
      out += entry["values"].empty() ? entry["name"].get<std::string>() : entry["values"][0]["data"].dump();
    }
    return out;
  }
  bool logs(const std::string& expected) {
    return eventually([&] { return log() == expected; });
  }
  // What a run of the job before this one has logged, as it was found.
  void log_before(const std::string& id, int64_t step, int value) {
    storage::EffectRow row;
    row.job = id;
    row.step = step;
    row.kind = "log";
    row.name = "callback_0";
    const storage::EffectRow like =
        server_.catalog().read([&](storage::Reader& reader) { return reader.effects(session_, 0, 1).at(0); });
    row.values = like.values;
    const size_t at = row.values.find(std::string("\1\0\0\0", 4), 8);  // the value 1 of the first entry
    ASSERT_NE(at, std::string::npos);
    row.values[at] = static_cast<char>(value);
    server_.catalog().write(
        [&](storage::Transaction& transaction) { transaction.append_effects(session_, std::span(&row, 1)); });
  }

  InProcess server_;
  std::string session_;
};

TEST_F(LiveJobs, effects_are_in_the_log_while_their_job_waits) {
  const std::string id = start();
  feed(1);
  EXPECT_TRUE(logs("log 1"));
  EXPECT_EQ(job(id)["state"], "running");
  feed(2);
  const json over = ended(id);
  EXPECT_EQ(over["state"], "done") << over;
  EXPECT_EQ(log(), "log 1, log 2");
  EXPECT_EQ(over["answer"]["streamed"], json({{"count", 2}, {"first", 1}, {"last", 2}}));
}

TEST_F(LiveJobs, atomic_job_of_a_streaming_session_logs_at_its_end) {
  const std::string id = start({{"effects", "atomic"}});
  feed(1);
  EXPECT_TRUE(eventually([&] { return job(id)["progress"]["effects"] == 1; }));
  EXPECT_EQ(log(), "");
  feed(2);
  ended(id);
  EXPECT_EQ(log(), "log 1, log 2");
}

TEST_F(LiveJobs, cancelled_job_leaves_its_prefix_and_a_mark) {
  const std::string id = start();
  feed(1);
  EXPECT_TRUE(logs("log 1"));
  EXPECT_EQ(server_.ask("DELETE", "/v1/jobs/" + id).status, 202);
  ended(id);
  EXPECT_EQ(log(), "log 1, cancelled cancelled");
}

TEST_F(LiveJobs, what_a_run_before_has_logged_is_not_logged_again) {
  const std::string first = start();
  feed(1);
  EXPECT_TRUE(logs("log 1"));
  feed(3);
  ended(first);
  const std::string id = start();
  log_before(id, 0, 5);
  EXPECT_EQ(log(), "log 1, log 3, log 5");
  feed(5);
  feed(6);
  EXPECT_EQ(ended(id)["state"], "done");
  EXPECT_EQ(log(), "log 1, log 3, log 5, log 6");
}

TEST_F(LiveJobs, other_effects_than_before_fail_the_job) {
  const std::string first = start();
  feed(1);
  feed(2);
  ended(first);
  const std::string id = start();
  log_before(id, 0, 5);
  feed(6);
  const json over = ended(id);
  EXPECT_EQ(over["error"]["code"], "nondeterministic_job") << over;
  EXPECT_EQ(log(), "log 1, log 2, log 5, failed nondeterministic_job");
}

TEST_F(LiveJobs, fewer_effects_than_before_fail_the_job) {
  const std::string first = start();
  feed(1);
  feed(2);
  ended(first);
  const std::string id = start();
  log_before(id, 2, 5);  // it had a third one then
  feed(6);
  feed(7);
  EXPECT_EQ(ended(id)["error"]["code"], "nondeterministic_job");
  EXPECT_TRUE(log().ends_with("failed nondeterministic_job")) << log();
}

TEST_F(LiveJobs, later_job_holds_its_effects_back) {
  const std::string first = start();
  const std::string second = start({{"infeed",
                                     {{{"values", {{{"dtype", "int32"}, {"shape", json::array()}, {"data", 8}}}}},
                                      {{"values", {{{"dtype", "int32"}, {"shape", json::array()}, {"data", 9}}}}}}}});
  EXPECT_TRUE(eventually([&] { return job(second).value("/progress/effects"_json_pointer, 0) == 2; }));
  EXPECT_EQ(log(), "");
  feed(1);
  EXPECT_TRUE(logs("log 1"));
  feed(2);
  ended(second);
  EXPECT_EQ(log(), "log 1, log 2, log 8, log 9");
}

}  // namespace
}  // namespace meshd::testing
