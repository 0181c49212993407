// What infeeds are answered: entries whole and in parts, in the order of their queues, waited for where there are none;
// and the order of sends and recvs in a block.
#include <gtest/gtest.h>

#include <cstring>

#include "service/compile/plan/plan.h"
#include "service/core/error.h"
#include "service/effects/effect_recorder.h"
#include "service/effects/infeed_queues.h"
#include "service/partition/lower/structure/channel_order.h"
#include "service/program/parse/parse.h"
#include "tests/support/storage_fixture.h"

namespace meshd::test {
namespace {

using effects::InfeedEntry;

const core::SystemClock kClock;

tensor::DenseValue floats(tensor::Dims dims, const std::vector<float>& values) {
  return tensor::dense_copy({tensor::DType::kFloat32, std::move(dims)}, std::as_bytes(std::span(values)));
}

std::vector<float> numbers(const std::vector<std::byte>& bytes) {
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

// An infeed with one result over two devices.
class Infeed {
 public:
  explicit Infeed(tensor::Dims dims) {
    effect_.point.form = partition::EffectForm::kInfeed;
    effect_.point.result_shardings.resize(1);
    effect_.results = {{tensor::DType::kFloat32, std::move(dims)}};
  }
  Infeed& cut_by_rows() {
    mesh::Mesh mesh;
    mesh.axes = {{"x", 2}};
    auto sharding = sharding::fully_replicated("mesh", std::make_shared<const mesh::Mesh>(mesh), 2);
    sharding.dims[0].axes.emplace_back();
    effect_.point.result_shardings[0] = sharding;
    return *this;
  }
  device::EffectCall call(int64_t turn = 0, int64_t device = -1) {
    key_.path = {turn};
    device::EffectCall call;
    call.every_device = device >= 0;
    call.device = device;
    call.key = &key_;
    call.name = "stablehlo.infeed";
    call.effect = &effect_;
    call.devices = devices_;
    call.results = effect_.results;
    return call;
  }

 private:
  compile::PlanEffect effect_;
  device::EffectKey key_;
  std::vector<int64_t> devices_ = {4, 6};
};

InfeedEntry whole(std::vector<float> values, int64_t number = 0) {
  InfeedEntry feed;
  feed.number = number;
  const auto count = static_cast<int64_t>(values.size());
  feed.values = {floats({count}, values)};
  feed.from_session = number > 0;
  return feed;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const core::Error& error) {
    return error.detail();
  }
  return "";
}

TEST(InfeedEntry, text_reads_back) {
  InfeedEntry feed;
  feed.partitions = 2;
  feed.parts = {{6, {floats({1, 2}, {3, 4})}}, {4, {floats({}, {5})}}};
  const InfeedEntry read = effects::infeed_from_text("q", 9, effects::infeed_to_text(feed));
  EXPECT_EQ(read.queue, "q");
  EXPECT_EQ(read.number, 9);
  EXPECT_EQ(read.partitions, 2);
  ASSERT_EQ(read.parts.size(), 2U);
  EXPECT_EQ(read.parts[0].device, 6);
  EXPECT_TRUE(std::ranges::equal(read.parts[0].values[0].bytes(), feed.parts[0].values[0].bytes()));
  EXPECT_EQ(read.parts[1].values[0].type.dims, tensor::Dims{});
  const std::string text = effects::infeed_to_text(feed);
  for (size_t length = 0; length < text.size(); ++length)
    EXPECT_NE(error_of([&] { effects::infeed_from_text("q", 9, text.substr(0, length)); }), "") << length;
}

TEST(InfeedEntry, parts_are_put_together_as_the_text_says) {
  Infeed infeed({3, 2});
  InfeedEntry feed;
  feed.parts = {{6, {floats({1, 2}, {5, 6})}}, {4, {floats({2, 2}, {1, 2, 3, 4})}}};
  EXPECT_EQ(numbers(effects::results_of(feed, infeed.cut_by_rows().call())[0]), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  feed.parts[0].values = {floats({2, 2}, {5, 6, 7, 8})};
  EXPECT_NE(error_of([&] { effects::results_of(feed, infeed.call()); }).find("part of device 6"), std::string::npos);
  feed.parts.pop_back();
  EXPECT_NE(error_of([&] { effects::results_of(feed, infeed.call()); }).find("fed in 1 parts"), std::string::npos);
}

TEST(InfeedEntry, replicas_must_agree) {
  Infeed infeed({2});
  InfeedEntry feed;
  feed.parts = {{4, {floats({2}, {1, 2})}}, {6, {floats({2}, {1, 2})}}};
  EXPECT_EQ(numbers(effects::results_of(feed, infeed.call())[0]), (std::vector<float>{1, 2}));
  feed.parts[1].values = {floats({2}, {1, 3})};
  EXPECT_NE(error_of([&] { effects::results_of(feed, infeed.call()); }).find("differs"), std::string::npos);
}

TEST(InfeedEntry, fed_arrays_lie_on_as_many_devices) {
  Infeed infeed({1});
  InfeedEntry feed = whole({7});
  feed.partitions = 2;
  EXPECT_EQ(numbers(effects::results_of(feed, infeed.call())[0]), std::vector<float>{7});
  feed.partitions = 3;
  EXPECT_NE(error_of([&] { effects::results_of(feed, infeed.call()); }).find("over 3 devices"), std::string::npos);
}

TEST(EffectRecorder, infeed_without_session_takes_what_the_request_brings) {
  Infeed infeed({1});
  effects::EffectRecorder recorder(
      {}, {whole({1}), whole({2})}, effects::EarlyCommits::kNone, [] { FAIL(); }, kClock);
  EXPECT_EQ(numbers(recorder.emit(infeed.call(0)).results[0]), std::vector<float>{1});
  EXPECT_EQ(recorder.left(), (std::map<std::string, int64_t>{{"", 1}}));
  EXPECT_EQ(numbers(recorder.emit(infeed.call(1)).results[0]), std::vector<float>{2});
  EXPECT_NE(error_of([&] { recorder.emit(infeed.call(2)); }).find("entry 3"), std::string::npos);
  EXPECT_TRUE(recorder.used().empty());
  EXPECT_TRUE(recorder.left().empty());
}

TEST(EffectRecorder, infeed_of_a_session_waits_and_goes_on) {
  Infeed infeed({1});
  int rung = 0;
  effects::EffectRecorder recorder(
      {}, {}, effects::EarlyCommits::kOutgoing, [&] { ++rung; }, kClock);
  EXPECT_FALSE(recorder.emit(infeed.call(0)).is_done);
  EXPECT_EQ(rung, 1);
  EXPECT_TRUE(recorder.wants().feed);
  recorder.feed("", {whole({1}, 5), whole({2}, 6)});
  EXPECT_FALSE(recorder.wants().any());
  EXPECT_EQ(numbers(recorder.emit(infeed.call(0)).results[0]), std::vector<float>{1});
  EXPECT_EQ(recorder.used(), (std::map<std::string, int64_t>{{"", 5}}));
  EXPECT_EQ(numbers(recorder.emit(infeed.call(1)).results[0]), std::vector<float>{2});
  EXPECT_FALSE(recorder.emit(infeed.call(2)).is_done);
}

TEST(EffectRecorder, devices_take_from_the_same_entry) {
  Infeed infeed({1});
  InfeedEntry feed;
  feed.parts = {{4, {floats({1}, {1})}}, {6, {floats({1}, {2})}}};
  effects::EffectRecorder recorder(
      {}, {feed, feed}, effects::EarlyCommits::kNone, [] {}, kClock);
  for (int64_t turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(numbers(recorder.emit(infeed.call(turn, 4)).results[0]), std::vector<float>{1});
    EXPECT_EQ(numbers(recorder.emit(infeed.call(turn, 6)).results[0]), std::vector<float>{2});
  }
  EXPECT_TRUE(recorder.left().empty());
}

TEST(EffectRecorder, outfeeds_wait_when_too_much_is_open) {
  compile::PlanEffect effect;
  effect.point.form = partition::EffectForm::kOutfeed;
  effect.point.queue = "out";
  const std::vector<std::byte> bytes(size_t{4} << 20);
  const device::EffectValue value{{tensor::DType::kUint8, {int64_t{4} << 20}}, bytes};
  device::EffectCall call;
  call.effect = &effect;
  call.ordered = true;
  call.operands = {&value, 1};
  effects::EffectRecorder recorder(
      {}, {}, effects::EarlyCommits::kOutgoing, [] {}, kClock);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(recorder.emit(call).is_done) << i;
  EXPECT_FALSE(recorder.emit(call).is_done);
  EXPECT_TRUE(recorder.wants().commit);
  const auto rows = recorder.open_rows("job_1");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_TRUE(rows[3].is_queued);
  EXPECT_EQ(rows[3].name, "out");
  EXPECT_EQ(rows[3].step, 3);
  EXPECT_TRUE(recorder.committed(rows.size())) << "the run is to be resumed";
  EXPECT_FALSE(recorder.wants().any());
  EXPECT_TRUE(recorder.emit(call).is_done);
  EXPECT_EQ(recorder.count(), 5);
  EXPECT_FALSE(recorder.committed(1));
}

// A callback without results, called with these bytes.
struct Logged {
  explicit Logged(size_t size) : bytes(size) {
    value = {{tensor::DType::kUint8, {static_cast<int64_t>(size)}}, bytes};
    call.ordered = true;
    call.operands = {&value, 1};
  }
  std::vector<std::byte> bytes;
  device::EffectValue value;
  device::EffectCall call;
};

effects::Bindings one_log() { return {{0, {effects::find_effect_kind("log"), "loss", {}, false}}}; }

TEST(EffectRecorder, streamed_effects_are_wanted_at_once_and_leave_memory_when_committed) {
  Logged log(8);
  int rung = 0;
  effects::EffectRecorder recorder(
      one_log(), {}, effects::EarlyCommits::kAll, [&] { ++rung; }, kClock);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(recorder.emit(log.call).is_done);
  EXPECT_EQ(rung, 1) << "who is told already needs no second word";
  EXPECT_TRUE(recorder.wants().commit);
  EXPECT_EQ(recorder.open_rows("job_1").size(), 3U);
  EXPECT_TRUE(recorder.emit(log.call).is_done) << "while the first three are committed";
  EXPECT_FALSE(recorder.committed(3));
  EXPECT_TRUE(recorder.wants().commit) << "the fourth";
  const auto rows = recorder.open_rows("job_1");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].step, 3);
  EXPECT_EQ(recorder.count(), 4);
  EXPECT_FALSE(recorder.committed(1));
  EXPECT_FALSE(recorder.wants().any());
  EXPECT_TRUE(recorder.emit(log.call).is_done);
  EXPECT_EQ(rung, 2);
  EXPECT_EQ(recorder.take().size(), 1U) << "only what is not committed is left";
}

TEST(EffectRecorder, streaming_run_waits_when_too_much_is_open) {
  Logged log(size_t{6} << 20);
  effects::EffectRecorder recorder(
      one_log(), {}, effects::EarlyCommits::kAll, [] {}, kClock);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(recorder.emit(log.call).is_done) << i;
  EXPECT_FALSE(recorder.emit(log.call).is_done);
  EXPECT_TRUE(recorder.wants().room);
  EXPECT_EQ(recorder.count(), 3) << "it is asked again";
  EXPECT_TRUE(recorder.committed(3)) << "the run is to be resumed";
  EXPECT_TRUE(recorder.emit(log.call).is_done);
  EXPECT_EQ(recorder.count(), 4);
}

TEST(EffectRecorder, open_effects_are_counted_and_a_run_waits_where_there_is_no_memory_for_more) {
  Logged log(400);
  const auto ledger = core::MemoryLedger::create(20'000);
  const int64_t limit = ledger->stats()[static_cast<size_t>(core::MemoryAccount::kEffects)].limit_bytes;
  const auto reservation = [&] { return core::MemoryReservation(ledger, core::MemoryAccount::kEffects); };
  core::MemoryReservation others = reservation();
  {
    effects::EffectRecorder recorder(
        one_log(), {}, effects::EarlyCommits::kAll, [] {}, kClock, reservation());
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(recorder.emit(log.call).is_done) << i;
    const int64_t each = ledger->held_bytes() / 3;
    EXPECT_GE(each, 400);
    others.grow(limit - 3 * each);
    EXPECT_TRUE(recorder.emit(log.call).is_done) << "it has happened already";
    EXPECT_FALSE(recorder.emit(log.call).is_done) << "and the next one waits";
    EXPECT_TRUE(recorder.wants().room);
    EXPECT_EQ(ledger->held_bytes(), limit + each);
    others.grow_regardless(10'000);
    EXPECT_TRUE(recorder.committed(4)) << "the run is to be resumed";
    EXPECT_EQ(ledger->held_bytes(), others.bytes());
    // Others hold everything: still each commit lets it go on by one.
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(recorder.emit(log.call).is_done) << i;
      EXPECT_FALSE(recorder.emit(log.call).is_done) << i;
      EXPECT_TRUE(recorder.committed(1)) << i;
    }
    EXPECT_TRUE(recorder.emit(log.call).is_done);
  }
  EXPECT_EQ(ledger->held_bytes(), others.bytes()) << "what is dropped with a run is given back";

  // Those of a job that does not stream are held until it is over: where there is no memory for them, its run ends.
  {
    effects::EffectRecorder atomic(
        one_log(), {}, effects::EarlyCommits::kOutgoing, [] { FAIL(); }, kClock, reservation());
    EXPECT_THROW(atomic.emit(log.call), core::Error);
    EXPECT_EQ(ledger->held_bytes(), others.bytes());
    others.shrink(others.bytes());
    EXPECT_TRUE(atomic.emit(log.call).is_done);
    EXPECT_GE(ledger->held_bytes(), 400);
  }
  EXPECT_EQ(ledger->held_bytes(), 0);
}

TEST(EffectRecorder, atomic_logs_are_committed_with_the_job_however_many_there_are) {
  Logged log(8);
  effects::EffectRecorder recorder(
      one_log(), {}, effects::EarlyCommits::kOutgoing, [] { FAIL(); }, kClock);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(recorder.emit(log.call).is_done);
  EXPECT_FALSE(recorder.wants().any());
  EXPECT_EQ(recorder.take().size(), 2000U);
}

std::string order_of(const std::string& body) {
  const std::string text = "func.func @main(%a: tensor<f32>, %t: !stablehlo.token) -> tensor<f32> {\n" + body +
                           "\n  return %a : tensor<f32>\n}";
  const ir::Module module = program::parse_unverified(text);
  std::string out;
  for (const ir::Op* op : partition::in_channel_order(module.main().body))
    out += (out.empty() ? "" : " ") + op->name.substr(op->name.find('.') + 1);
  return out;
}

std::string recv(const std::string& name, int channel) {
  return "  " + name + ":2 = \"stablehlo.recv\"(%t) <{channel_handle = #stablehlo.channel_handle<handle = " +
         std::to_string(channel) +
         ", type = 1>, is_host_transfer = false}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)\n";
}
std::string send(const std::string& value, int channel) {
  return "  %s" + value.substr(1, 1) + std::to_string(channel) + " = \"stablehlo.send\"(" + value +
         ", %t) <{channel_handle = #stablehlo.channel_handle<handle = " + std::to_string(channel) +
         ", type = 1>, is_host_transfer = false}> : (tensor<f32>, !stablehlo.token) -> !stablehlo.token\n";
}

TEST(ChannelOrder, recv_moves_behind_its_send) {
  const std::string use = "  %u = stablehlo.negate %r#0 : tensor<f32>\n";
  const std::string other = "  %o = stablehlo.abs %a : tensor<f32>\n";
  EXPECT_EQ(order_of(send("%a", 1) + recv("%r", 1) + use), "send recv negate return");
  EXPECT_EQ(order_of(recv("%r", 1) + use + other + send("%a", 1)), "abs send recv negate return");
  EXPECT_EQ(order_of(other + use.substr(0, 0)), "abs return");
}

TEST(ChannelOrder, channels_of_a_cycle_are_refused) {
  const std::string crossed = recv("%r", 1) + "  %q = stablehlo.negate %r#0 : tensor<f32>\n" + send("%q", 1);
  EXPECT_NE(error_of([&] { order_of(crossed); }).find("channel 1"), std::string::npos);
  EXPECT_NE(error_of([&] { order_of(recv("%r", 2)); }).find("channel 2"), std::string::npos);
}

TEST(InfeedQueues, queues_and_entries_of_a_session_are_limited) {
  const testing::TempFolder folder(testing::TempFolder::Where::kMemory);
  testing::OpenStore store(folder.path());
  store->catalog().write([](storage::Transaction& transaction) {
    for (const char* id : {"ses_1", "ses_2"}) transaction.insert_session(testing::session_row(id));
  });
  const core::SystemClock clock;
  effects::InfeedQueues queues(store->catalog(), clock, {.entries = 2, .of_session = 3, .queues = 2});
  const auto append = [&](const std::string& session, const std::string& queue) {
    InfeedEntry entry;
    entry.queue = queue;
    entry.values = {floats({1}, {1})};
    return error_of([&] { queues.append(session, entry, std::nullopt); });
  };
  EXPECT_EQ(append("ses_1", "a") + append("ses_1", "a") + append("ses_1", "b"), "");
  EXPECT_NE(append("ses_1", "a").find("2 entries of it"), std::string::npos);
  EXPECT_NE(append("ses_1", "b").find("3 of all queues"), std::string::npos);
  EXPECT_NE(append("ses_1", "c").find("has 2 queues"), std::string::npos);
  EXPECT_EQ(append("ses_2", "c"), "");
}

}  // namespace
}  // namespace meshd::test
