// The stored form of jobs: every field comes back, rows of version 1 are read for as long as there are any, and a row
// that is damaged gives an error and nothing else.
#include "service/jobs/stored/stored_job.h"

#include <gtest/gtest.h>

#include <limits>

#include "service/mesh/mesh_document.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using namespace jobs;

constexpr const char* kAdd =
    "func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> { %0 = stablehlo.add %a, %b : "
    "tensor<2xf32> "
    "return %0 : tensor<2xf32> }";

tensor::DenseValue floats(std::vector<float> values) {
  const tensor::TensorType type{tensor::DType::kFloat32, {static_cast<int64_t>(values.size())}};
  return tensor::dense_copy(type, std::as_bytes(std::span(values)));
}

std::string joined(const StoredJob& job) {
  std::string out;
  for (const auto piece : job.bytes) out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return out;
}

class StoredJobs : public ::testing::Test {
 protected:
  JobRequest request() {
    JobRequest out;
    out.principal = "ann";
    out.program = compiler_.parse("stablehlo", kAdd);
    out.arguments = {floats({1, 2}), floats({3, 4})};
    return out;
  }
  /// A row as job admission writes it; blobs stay.
  storage::JobRow keep(const JobRequest& given) {
    storage::JobRow row = job_row("job_1");
    keep_stored_job(to_stored_job(given), row, *store_, clock_).keep();
    return row;
  }
  JobRequest read(const storage::JobRow& row) {
    return read_stored_job(row, {*store_, arrays_, programs_, compiler_, *pool_, {8, 2}});
  }
  storage::JobRow row_of(const std::string& text) {
    storage::JobRow row = job_row("job_1");
    row.request_version = kStoredJobVersion;
    row.request = text;
    return row;
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  core::SystemClock clock_;
  OpenStore store_{folder_.path()};
  std::shared_ptr<tensor::BufferPool> pool_ = tensor::BufferPool::create(0);
  compile::Compiler compiler_{1, 16};
  arrays::ArrayStore arrays_{*store_, pool_, clock_, {int64_t{1} << 30, INT64_MAX}, int64_t{1} << 30};
  registry::ProgramRegistry programs_{store_->catalog(), compiler_, clock_};
};

// A change of what is written, or of how it is read, fails here: it needs a new version, beside this one.
TEST_F(StoredJobs, version_1_is_read_and_written_as_it_was_at_first) {
  const std::string program = R"({"format":"stablehlo","bytes":142,"at":0})";
  const std::string document =
      R"({"version":1,"program":)" + program +
      R"(,"arguments":[{"dtype":"float32","dims":[2],"at":142},{"dtype":"float32","dims":[2],"at":150}],)"
      R"("mesh":{"axes":[{"name":"x","size":2}],"device_ids":[1,0]},)"
      R"("meshes":{"m":{"axes":[{"name":"y","size":2}]}},"least_loaded":true,)"
      R"("in_specs":[{"dims":[["x"]],"mesh":"m"},null],"out_specs":[{"dims":[[]],"parts":[2]}],)"
      R"("num_partitions":2,"local_num_partitions":1,"as_process":1,"reshard":true,)"
      R"("callbacks":[{"index":3,"kind":"log","name":"loss","live":true,)"
      R"("answers":[[{"dtype":"float32","dims":[1],"at":158}],[]]}],)"
      R"("infeeds":[{"queue":"q","partitions":2,"values":[],)"
      R"("parts":[{"device":1,"values":[{"dtype":"float32","dims":[1],"at":162}]}]}],"effects":"streaming",)"
      R"("results":"array","durability":"memory","result_names":["w"],"answer_base64":true,"answer_tree":"[0]",)"
      R"("donate":[0],"strict_donation":true,"updates":[{"argument":1,"result":0,"version":4}],)"
      R"("deadline_ms":1500,"profile":true,"find_nans":true,"find_infinities":true})";
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  std::string bytes = kAdd;
  ASSERT_EQ(bytes.size(), 142U);
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  const JobRequest got = read(row_of(document + "\n" + bytes));

  EXPECT_EQ(got.principal, "ann");
  EXPECT_EQ(got.program, compiler_.parse("stablehlo", kAdd));
  ASSERT_EQ(got.arguments.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(std::get<tensor::DenseValue>(got.arguments[1]).bytes(), floats({3, 4}).bytes()));
  EXPECT_EQ(got.mesh->device_ids, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(got.meshes.at("m").axes.at(0).name, "y");
  EXPECT_TRUE(got.least_loaded && got.reshard && got.strict_donation && got.profile);
  EXPECT_TRUE(got.nonfinite.nans && got.nonfinite.infinities);
  EXPECT_EQ(got.in_specs.at(0)->dims, (std::vector<std::vector<std::string>>{{"x"}}));
  EXPECT_EQ(got.in_specs.at(0)->mesh_name, "m");
  EXPECT_FALSE(got.in_specs.at(1));
  EXPECT_EQ(got.out_specs.at(0)->parts, std::vector<int64_t>{2});
  EXPECT_EQ(got.num_partitions, 2);
  EXPECT_EQ(got.local_num_partitions, 1);
  EXPECT_EQ(got.as_process, 1);
  EXPECT_EQ(got.processes.count, 2) << "the server's, not the job's";
  const effects::Binding& binding = got.callbacks.at(3);
  EXPECT_EQ(binding.kind, effects::find_effect_kind("log"));
  EXPECT_TRUE(binding.live);
  ASSERT_EQ(binding.answers.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(binding.answers[0].at(0).bytes(), floats({5}).bytes()));
  EXPECT_EQ(got.infeeds.at(0).queue, "q");
  EXPECT_EQ(got.infeeds[0].partitions, 2);
  EXPECT_EQ(got.infeeds[0].parts.at(0).device, 1);
  EXPECT_TRUE(std::ranges::equal(got.infeeds[0].parts[0].values.at(0).bytes(), floats({6}).bytes()));
  EXPECT_EQ(got.effects, storage::EffectMode::kStreaming);
  EXPECT_EQ(got.results, ResultMode::kArray);
  EXPECT_EQ(got.durability, storage::Durability::kMemory);
  EXPECT_EQ(got.result_names, std::vector<std::string>{"w"});
  EXPECT_TRUE(got.form.base64);
  EXPECT_EQ(got.form.result_tree, "[0]");
  EXPECT_EQ(got.donate, std::vector<int64_t>{0});
  EXPECT_EQ(got.updates.at(0).version, 4);
  EXPECT_EQ(got.deadline, std::chrono::milliseconds(1500));

  const StoredJob again = to_stored_job(got);
  EXPECT_EQ(again.document, document);
  EXPECT_EQ(joined(again), bytes);
}

TEST_F(StoredJobs, what_is_not_said_is_left_out_and_comes_back_as_it_was) {
  const StoredJob stored = to_stored_job(request());
  EXPECT_EQ(stored.document,
            R"({"version":1,"program":{"format":"stablehlo","bytes":142,"at":0},"arguments":[)"
            R"({"dtype":"float32","dims":[2],"at":142},{"dtype":"float32","dims":[2],"at":150}],"results":"inline"})");
  const JobRequest got = read(keep(request()));
  EXPECT_FALSE(got.mesh || got.donate || got.deadline || got.effects || got.trace || got.num_partitions);
  EXPECT_EQ(got.durability, storage::Durability::kDurable);
}

TEST_F(StoredJobs, traced_programs_are_traced_for_the_same_again) {
  JobRequest given = request();
  given.program = compiler_.parse("numpy", "def f(x, n, t, *, mode):\n  return x * n + t[0]");
  const auto fixed = [](numpy::Input::Static value) { return numpy::Input{std::move(value)}; };
  const numpy::Input x{numpy::Input::ArrayType{{tensor::DType::kFloat32, {2}}, false}};
  const numpy::Input weak{numpy::Input::ArrayType{{tensor::DType::kFloat32, {}}, true}};
  numpy::Inputs inputs;
  inputs.positional = {x, weak, {numpy::Input::List{x, fixed(int64_t{3})}, true}};
  // Beside those that the program looks at, one of each kind.
  inputs.keywords = {{"mode",
                      {numpy::Input::Dict{{"none", fixed(std::monostate())},
                                          {"flag", fixed(true)},
                                          {"nan", fixed(std::numeric_limits<double>::quiet_NaN())},
                                          {"zero", fixed(-0.0)},
                                          {"text", fixed(std::string("\"\n\u00e9"))},
                                          {"tuple", {numpy::Input::List{weak}, false}}}}}};
  given.trace = {inputs, mesh::Mesh{{{"x", 2}}, {0, 1}, {}}};
  given.program = compiler_.trace(given.program, given.trace->inputs, given.trace->mesh);
  const JobRequest got = read(keep(given));
  EXPECT_EQ(numpy::key_of(got.trace->inputs), numpy::key_of(inputs));
  EXPECT_EQ(got.trace->mesh, given.trace->mesh);
  EXPECT_EQ(got.program, given.program) << "the cache has it";
}

TEST_F(StoredJobs, static_values_are_constants_again) {
  JobRequest given = request();
  given.statics.emplace(1, floats({3, 4}));
  given.program = compiler_.with_static(given.program, given.statics);
  given.arguments.pop_back();
  EXPECT_EQ(read(keep(given)).program, given.program);
}

TEST_F(StoredJobs, many_bytes_are_a_blob) {
  JobRequest given = request();
  const std::vector<float> many(static_cast<size_t>(kMostInRow) / sizeof(float), 7);
  given.arguments[1] = floats(many);
  const storage::JobRow row = keep(given);
  ASSERT_TRUE(row.bytes);
  EXPECT_EQ(row.bytes->length, 142 + 8 + kMostInRow);
  EXPECT_LT(row.request.size(), 400U);
  const JobRequest got = read(row);
  EXPECT_TRUE(std::ranges::equal(std::get<tensor::DenseValue>(got.arguments[1]).bytes(), floats(many).bytes()));

  given.arguments[1] = floats({3, 4});
  EXPECT_FALSE(keep(given).bytes) << "few are in the row";
}

TEST_F(StoredJobs, a_request_that_is_refused_leaves_no_blob) {
  JobRequest given = request();
  given.arguments[1] = floats(std::vector<float>(static_cast<size_t>(kMostInRow), 7));
  storage::JobRow row = job_row("job_1");
  { const auto abandoned = keep_stored_job(to_stored_job(given), row, *store_, clock_); }
  store_->collect_garbage();
  EXPECT_TRUE(store_->blobs().list().empty());
}

// What is promised is in memory alone: after a restart the row of the job that was to make it says what became of it.
TEST_F(StoredJobs, array_that_was_not_made_is_told_by_the_job_that_was_to_make_it) {
  JobRequest given = request();
  arrays::NewArray wanted;
  wanted.principal = "ann";
  wanted.type = {tensor::DType::kFloat32, {2}};
  const arrays::ArrayRef promised = arrays_.promise(wanted, "job_0");
  given.arguments[1] = ArrayArgument{promised, std::nullopt};
  const storage::JobRow row = keep(given);
  EXPECT_EQ(std::get<ArrayArgument>(read(row).arguments[1]).of_job, "job_0");
  arrays_.withdraw({promised}, "failed: by the test");
  EXPECT_EQ(error_word([&] { read(row); }), "array_lost") << "there is no such job";
  storage::JobRow maker = job_row("job_0");
  const auto word_with = [&](storage::JobState state) {
    maker.state = state;
    store_->catalog().write([&](storage::Transaction& t) {
      t.delete_job(maker.id, maker.principal);
      t.insert_job(maker);
    });
    return error_word([&] { read(row); });
  };
  EXPECT_EQ(word_with(storage::JobState::kQueued), "dependency_failed") << "it cannot run again either";
  EXPECT_EQ(word_with(storage::JobState::kFailed), "dependency_failed");
  EXPECT_EQ(word_with(storage::JobState::kCancelled), "dependency_failed");
  EXPECT_EQ(word_with(storage::JobState::kDone), "array_lost") << "it was made, in memory";
}

TEST_F(StoredJobs, damaged_rows_are_errors) {
  const std::string whole = keep(request()).request;
  ASSERT_NO_THROW(read(row_of(whole)));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(error_word([&] { read(row_of(whole.substr(0, size))); }), "") << size;
  // Any one character of the document changed: an error, or another request.
  const size_t end = whole.find('\n');
  for (size_t i = 0; i < end; ++i) {
    for (const char other : {'0', '9', '"', '-', '[', '}', 'z', '\xff'}) {
      std::string changed = whole;
      changed[i] = other;
      error_word([&] { read(row_of(changed)); });
    }
  }
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string changed = whole;
    const size_t at = changed.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    changed.replace(at, what.size(), by);
    return error_word([&] { read(row_of(changed)); });
  };
  EXPECT_EQ(replaced(R"("version":1)", R"("version":2)"), "internal");
  EXPECT_EQ(replaced(R"("dims":[2])", R"("dims":[9223372036854775807,9223372036854775807])"), "internal");
  EXPECT_EQ(replaced(R"("dims":[2])", R"("dims":[-2])"), "internal");
  EXPECT_EQ(replaced(R"("at":150)", R"("at":-1)"), "internal");
  EXPECT_EQ(replaced(R"("at":150)", R"("at":9223372036854775807)"), "internal");
  EXPECT_EQ(replaced(R"("bytes":142)", R"("bytes":-142)"), "internal");
  EXPECT_EQ(replaced(R"("inline")", R"("aline")"), "internal");
  EXPECT_EQ(replaced(R"({"format":"stablehlo","bytes":142,"at":0})", R"({"id":"prog_gone"})"), "not_found");
  EXPECT_EQ(replaced(R"({"dtype":"float32","dims":[2],"at":142})", R"({"array":"arr_gone"})"), "array_lost");
}

}  // namespace
}  // namespace meshd::testing
