// What a lowering was made of, written down and compiled again by the next start.
#include "service/warmup/warmup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <set>
#include <thread>

#include "service/core/error.h"
#include "service/warmup/compile_record.h"
#include "tests/support/temp_folder.h"

namespace meshd::warmup {
namespace {

using testing::TempFolder;

const std::string kAdd =
    "func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {\n  %0 = stablehlo.add %a, %b : "
    "tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n";
const std::string kDynamic =
    "func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {\n  %0 = stablehlo.negate %a : tensor<?xf32>\n  return %0 : "
    "tensor<?xf32>\n}\n";

tensor::TensorType floats(int64_t size) { return {tensor::DType::kFloat32, {size}}; }

/// A request with a value in every field.
compile::LowerRequest sharded_request() {
  mesh::Mesh mesh;
  mesh.axes = {{"x", 4}, {"y", 2}};
  mesh.axis_types = {mesh::AxisType::kAuto, mesh::AxisType::kExplicit};
  const auto shared = std::make_shared<const mesh::Mesh>(mesh);
  sharding::TensorSharding cut = sharding::fully_replicated("mesh", shared, 1);
  cut.dims[0].axes = {{0, 2, 2}};
  cut.dims[0].open = true;
  cut.dims[0].priority = 1;
  cut.replicated = {{1, 1, 0}};
  compile::LowerRequest request;
  request.mesh = mesh;
  request.device_count = 8;
  request.in_shardings = {cut, std::nullopt};
  request.out_shardings = {std::nullopt};
  request.donate = {1};
  request.is_unfused = true;
  return request;
}

/// Programs of each kind of derivation, with their requests.
std::vector<std::pair<compile::ParsedRef, compile::LowerRequest>> programs(compile::Compiler& compiler) {
  const compile::ParsedRef add = compiler.parse("stablehlo", kAdd);
  std::vector<float> numbers(8, 1.5F);
  const tensor::DenseValue value = tensor::dense_copy(floats(8), std::as_bytes(std::span(numbers)));
  const compile::ParsedRef traced = compiler.parse("numpy", "def f(x, *, n, axes):\n  return {'y': x * n}\n");
  numpy::Inputs inputs;
  inputs.positional.push_back({numpy::ArrayInput{floats(8), true}});
  inputs.keywords.emplace_back("n", numpy::Input{numpy::Input::Static{int64_t{3}}});
  inputs.keywords.emplace_back("axes",
                               numpy::Input{numpy::Input::List{{numpy::Input::Static{std::string("x")}},
                                                               {numpy::Input::Dict{{"k", {numpy::Input::Static{2.5}}}}},
                                                               {numpy::Input::Static{}}},
                                            true});
  std::vector<std::pair<compile::ParsedRef, compile::LowerRequest>> out;
  out.emplace_back(add, compile::LowerRequest{});
  out.emplace_back(add, sharded_request());
  out.emplace_back(compiler.with_static(add, {{1, value}}), compile::LowerRequest{});
  out.emplace_back(compiler.specialise(compiler.parse("stablehlo", kDynamic), {floats(5)}), compile::LowerRequest{});
  out.emplace_back(compiler.trace(traced, inputs, sharded_request().mesh), compile::LowerRequest{});
  return out;
}

TEST(CompileRecord, compiles_to_what_it_was_made_of) {
  compile::Compiler compiler(2, 64);
  for (const auto& [program, request] : programs(compiler)) {
    const compile::LoweredRef lowered = compiler.lower(program, request);
    const std::string bytes = encode(record_of(*program, request));
    compile::Compiler other(2, 64);
    const compile::LoweredRef again = compile_record(other, decode_record(bytes));
    EXPECT_EQ(again->id, lowered->id);
    EXPECT_EQ(again->key, lowered->key);
    EXPECT_EQ(to_text(*again->plan), to_text(*lowered->plan));
    EXPECT_EQ(again->parsed->result_tree, program->result_tree);
    EXPECT_EQ(encode(record_of(*again->parsed, decode_record(bytes).request)), bytes);
    EXPECT_GE(bytes.size(), static_cast<size_t>(record_bytes(*program)));
  }
}

/// What records had before lowerings could be unfused: a 1 in their first line, and no byte for it at their end.
TEST(CompileRecord, of_the_version_before_is_of_a_fused_lowering) {
  compile::Compiler compiler(2, 64);
  const compile::ParsedRef add = compiler.parse("stablehlo", kAdd);
  const std::string bytes = encode(record_of(*add, {}));
  std::string before = bytes;
  before.replace(before.find(" 2\n"), 3, " 1\n").pop_back();
  const CompileRecord read = decode_record(before);
  EXPECT_FALSE(read.request.is_unfused);
  EXPECT_EQ(encode(read), bytes);
}

TEST(CompileRecord, no_bytes_crash_the_reader) {
  compile::Compiler compiler(2, 64);
  for (const auto& [program, request] : programs(compiler)) {
    const std::string bytes = encode(record_of(*program, request));
    for (size_t length = 0; length < bytes.size(); ++length)
      EXPECT_THROW(decode_record(bytes.substr(0, length)), core::Error);
    EXPECT_THROW(decode_record(bytes + "x"), core::Error);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ flip);
        try {
          const CompileRecord read = decode_record(damaged);
          EXPECT_EQ(encode(read), damaged) << "what is read is what is there";
        } catch (const core::Error&) {
          // Refused. What is not is another record: the checksum of the folder comes first.
        }
      }
    }
  }
}

class WarmupTest : public ::testing::Test {
 protected:
  // A start of a server: folder, compiler, warm-up, destroyed in the order of a server.
  struct Process {
    explicit Process(WarmupTest& test, WarmupOptions options = {}, int64_t bytes = 1 << 20)
        : folder(*test.files_, test.folder_.path() + "/warmup", bytes,
                 [&test](const std::string& name, const std::string&) { test.removed_.push_back(name); }),
          warmup(compiler, folder, test.clock_, options) {}
    WarmupStats warm_up() {
      std::promise<WarmupStats> over;
      warmup.start([&](const WarmupStats& stats) { over.set_value(stats); });
      return over.get_future().get();
    }
    compile::Compiler compiler{2, 64};
    storage::EntryFolder folder;
    Warmup warmup;
  };
  /// Compiles all of programs() in a process of its own.
  void run_once() {
    Process first(*this);
    first.warm_up();
    for (const auto& [program, request] : programs(first.compiler)) first.compiler.lower(program, request);
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  const std::unique_ptr<storage::FileSystem> files_ = storage::real_file_system();
  core::SystemClock clock_;
  std::vector<std::string> removed_;
};

TEST_F(WarmupTest, the_next_start_has_compiled_all) {
  run_once();
  Process second(*this);
  EXPECT_EQ(second.warm_up().compiled, 5);
  const int64_t made = second.compiler.counters().lower_count;
  for (const auto& [program, request] : programs(second.compiler)) {
    second.compiler.lower(program, request);
    second.compiler.lower(program, request);
  }
  EXPECT_EQ(second.compiler.counters().lower_count, made) << "nothing was compiled again";
  const WarmupStats stats = second.warmup.stats();
  EXPECT_EQ(stats.hits, 5);
  EXPECT_EQ(stats.misses, 0);
  EXPECT_EQ(stats.records, 5);
  EXPECT_GT(stats.record_bytes, 5 * 32);
  EXPECT_TRUE(stats.is_over);
  EXPECT_TRUE(removed_.empty());
}

// It names all of them: with a thousand records, to write it costs more than to compile.
TEST_F(WarmupTest, the_order_is_not_written_for_each_record) {
  const std::string order = folder_.path() + "/warmup/order.entry";
  {
    Process first(*this);
    first.warm_up();
    int64_t records = 0;
    for (const auto& [program, request] : programs(first.compiler)) {
      first.compiler.lower(program, request);
      ++records;
      while (first.warmup.stats().records < records) std::this_thread::yield();
    }
    EXPECT_FALSE(std::filesystem::exists(order));
  }
  EXPECT_TRUE(std::filesystem::exists(order)) << "the end of a process keeps it";
}

TEST_F(WarmupTest, most_recently_used_first_while_there_is_room) {
  run_once();
  std::string last;
  {
    Process second(*this);
    second.warm_up();
    const auto all = programs(second.compiler);
    last = second.compiler.lower(all[2].first, all[2].second)->id;
  }
  WarmupOptions options;
  options.most_fullness = 1.0 / 64;
  Process third(*this, options);
  EXPECT_EQ(third.folder.names().front(), last);
  EXPECT_EQ(third.warm_up().compiled, 1);
  const auto all = programs(third.compiler);
  third.compiler.lower(all[2].first, all[2].second);
  EXPECT_EQ(third.warmup.stats().hits, 1);
  WarmupOptions no_time;
  no_time.most_time = std::chrono::milliseconds(0);
  Process fourth(*this, no_time);
  EXPECT_EQ(fourth.warm_up().compiled, 0);
}

TEST_F(WarmupTest, what_cannot_be_used_is_removed_and_the_rest_compiled) {
  run_once();
  {
    Process writer(*this);
    EXPECT_TRUE(writer.folder.write("lowered_other", encode({"stablehlo", kAdd, {}, {}})));
    EXPECT_TRUE(writer.folder.write("lowered_nonsense", "nonsense"));
    EXPECT_TRUE(writer.folder.write("lowered_refused", encode({"stablehlo", "func.func @main(", {}, {}})));
  }
  Process next(*this);
  EXPECT_EQ(next.warm_up().compiled, 6);
  EXPECT_EQ(std::set<std::string>(removed_.begin(), removed_.end()),
            (std::set<std::string>{"lowered_other", "lowered_nonsense", "lowered_refused"}));
  EXPECT_EQ(next.warmup.stats().unusable, 3);
  EXPECT_EQ(next.warmup.stats().records, 5);
}

// What clients compile meanwhile may borrow; the warm-up takes what is left, and leaves its records for the next start.
TEST_F(WarmupTest, it_neither_borrows_nor_waits_for_memory) {
  run_once();
  const core::MemoryLedgerRef ledger = core::MemoryLedger::create(int64_t{64} << 20);
  int asked = 0;
  ledger->borrow_from({[&](int64_t) {
                         ++asked;
                         return true;
                       },
                       [](int64_t) {}});
  core::MemoryReservation others(ledger, core::MemoryAccount::kRequests);
  others.grow(others.limit_bytes());
  const std::string large = kAdd + "// " + std::string(400'000, 'x') + "\n";
  {
    Process writer(*this, {}, 16 << 20);
    EXPECT_TRUE(writer.folder.write("lowered_large", encode({"stablehlo", large, {}, {}})));
  }
  Process third(*this, {}, 16 << 20);
  third.compiler.count_work({.ledger = ledger});
  EXPECT_EQ(third.warm_up().compiled, 5) << "small ones are not counted";
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(third.warmup.stats().records, 6);
  third.compiler.parse("stablehlo", large);
  EXPECT_GT(asked, 0) << "a client's may";
}

TEST_F(WarmupTest, without_bytes_nothing_is_recorded) {
  {
    Process off(*this, {}, 0);
    off.warmup.start(nullptr);
    for (const auto& [program, request] : programs(off.compiler)) off.compiler.lower(program, request);
    EXPECT_EQ(off.warmup.stats().misses, 5);
    EXPECT_TRUE(off.warmup.stats().is_over);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/warmup"));
}

TEST_F(WarmupTest, records_that_are_too_large_are_not_kept) {
  Process small(*this, {}, 1000);
  small.warm_up();
  const compile::ParsedRef add = small.compiler.parse("stablehlo", kAdd);
  small.compiler.lower(add, sharded_request());
  small.compiler.lower(small.compiler.parse("stablehlo", kAdd + "// " + std::string(300, 'x') + "\n"), {});
  EXPECT_EQ(small.warmup.stats().misses, 2);
  EXPECT_EQ(small.warmup.stats().records, 0);
}

}  // namespace
}  // namespace meshd::warmup
