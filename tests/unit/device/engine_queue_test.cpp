// Who runs when: a queue for each device, tickets, memory.
#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

// Stops at its first step until it is resumed; notes that it began.
class QueueTest : public ::testing::Test {
 protected:
  std::shared_ptr<Bench::Pending> held(Bench& bench, std::vector<int64_t> devices, const std::string& name,
                                       uint64_t ticket = 0) {
    device::RunRequest request;
    request.plan = plan_for(devices.size());
    request.arguments = {
        bench.shards<float>(std::vector<std::vector<float>>(devices.size(), std::vector<float>(1, 1)))};
    request.devices = std::move(devices);
    request.ticket = ticket;
    request.pause_before = [this, name](int64_t executed) {
      if (executed != 0) return false;
      const std::lock_guard lock(mutex_);
      begun_.push_back(name);
      return true;
    };
    return bench.start(std::move(request));
  }

  static compile::PlanRef plan_for(size_t devices) {
    LocalBuilder b({static_cast<int64_t>(devices)});
    b.result(b.point("stablehlo.negate", {b.argument(std::to_string(devices) + "xf32", {{0}})}));
    return plan_of(b);
  }

  std::vector<std::string> begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }
  void wait_for(size_t count) {
    static_cast<void>(testing::eventually([&] { return begun().size() >= count; }));
    ASSERT_EQ(begun().size(), count);
  }
  static void let_go(const std::shared_ptr<Bench::Pending>& pending) {
    ASSERT_TRUE(testing::eventually([&] { return pending->run->progress().state == device::RunState::kWaiting; }));
    pending->run->resume();
    EXPECT_TRUE(pending->wait().ok());
  }

  std::mutex mutex_;
  std::vector<std::string> begun_;
  std::atomic<bool> is_cancelled_{false};
};

TEST_F(QueueTest, runs_of_one_device_come_in_order) {
  Bench bench({.device_count = 4, .threads = 2});
  const auto a = held(bench, {0}, "a");
  const auto b = held(bench, {0, 1}, "b");
  const auto c = held(bench, {1}, "c");
  const auto d = held(bench, {2}, "d");
  wait_for(2);
  EXPECT_EQ(bench.engine.stats().queued, 2);
  EXPECT_EQ(bench.engine.stats().device_queue, (std::vector<int64_t>{2, 2, 1, 0}));
  let_go(d);
  let_go(a);
  wait_for(3);
  EXPECT_EQ(begun().back(), "b");
  EXPECT_EQ(c->run->progress().state, device::RunState::kQueued);
  let_go(b);
  wait_for(4);
  EXPECT_EQ(begun().back(), "c");
  let_go(c);
}

TEST_F(QueueTest, crossing_device_sets_do_not_lock_each_other_out) {
  Bench bench({.device_count = 3, .threads = 2});
  std::vector<std::shared_ptr<Bench::Pending>> all;
  for (int i = 0; i < 60; ++i) {
    device::RunRequest request;
    request.devices = i % 3 == 0   ? std::vector<int64_t>{0, 1}
                      : i % 3 == 1 ? std::vector<int64_t>{1, 2}
                                   : std::vector<int64_t>{2, 0};
    request.plan = plan_for(2);
    request.arguments = {bench.shards<float>({{1}, {2}})};
    all.push_back(bench.start(std::move(request)));
  }
  for (const auto& pending : all) EXPECT_TRUE(pending->wait().ok());
}

TEST_F(QueueTest, lower_ticket_goes_first) {
  Bench bench({.device_count = 2, .threads = 2});
  const auto a = held(bench, {0}, "a", 10);
  wait_for(1);
  const auto b = held(bench, {0}, "b", 30);
  const auto c = held(bench, {0}, "c", 20);
  let_go(a);
  wait_for(2);
  EXPECT_EQ(begun().back(), "c");
  let_go(c);
  wait_for(3);
  let_go(b);
}

TEST_F(QueueTest, cancelled_in_the_queue_makes_room) {
  Bench bench({.device_count = 2, .threads = 2});
  const auto a = held(bench, {0}, "a");
  const auto b = held(bench, {0, 1}, "b");
  wait_for(1);
  b->run->cancel(core::Error("cancelled", "enough"));
  const auto out = b->wait();
  ASSERT_TRUE(out.error.has_value());
  EXPECT_EQ(out.error->code().word(), "cancelled");
  EXPECT_TRUE(out.overwritten.empty());
  const auto c = held(bench, {1}, "c");
  wait_for(2);
  let_go(a);
  let_go(c);
}

// A run of one device whose arguments are made when it begins.
device::RunRequest binding(Bench& bench, std::function<void(core::Checkpoint&)> look) {
  LocalBuilder b({1});
  b.result(b.point("stablehlo.negate", {b.argument("2xf32")}));
  device::RunRequest request;
  request.plan = plan_of(b);
  request.devices = {0};
  request.bind = [&bench, look = std::move(look)](core::Checkpoint& checkpoint, int64_t /*planned_bytes*/) {
    look(checkpoint);
    return std::vector<device::RunArgument>{bench.shards<float>({{1, 2}})};
  };
  return request;
}

TEST_F(QueueTest, arguments_are_bound_when_the_run_has_its_devices) {
  Bench bench({.device_count = 1, .threads = 2});
  const auto a = held(bench, {0}, "a");
  wait_for(1);
  std::atomic<int> bound{0};
  const auto b = bench.start(binding(bench, [&](core::Checkpoint&) { ++bound; }));
  const auto never = bench.start(binding(bench, [&](core::Checkpoint&) { ++bound; }));
  never->run->cancel(core::Error("cancelled", "enough"));
  EXPECT_EQ(never->wait().error->code().word(), "cancelled");
  EXPECT_EQ(bound, 0);
  let_go(a);
  const auto out = b->wait();
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(output<float>(out), (std::vector<std::vector<float>>{{-1, -2}}));
  EXPECT_EQ(bound, 1);
}

TEST_F(QueueTest, run_ends_with_what_its_binding_throws) {
  Bench bench({.device_count = 1, .threads = 1});
  const auto failing =
      bench.start(binding(bench, [](core::Checkpoint&) { throw core::Error("array_lost", "it is gone"); }));
  const auto out = failing->wait();
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.error->code().word(), "array_lost");
  EXPECT_TRUE(out.overwritten.empty());
  device::RunRequest short_of_bytes = binding(bench, [](core::Checkpoint&) {});
  short_of_bytes.bind = [&](core::Checkpoint&, int64_t /*planned_bytes*/) {
    return std::vector<device::RunArgument>(1);
  };
  EXPECT_EQ(bench.start(std::move(short_of_bytes))->wait().error->code().word(), "invalid_argument");
}

TEST_F(QueueTest, others_have_the_device_while_a_binding_reads_files) {
  Bench bench({.device_count = 1, .threads = 1});
  std::promise<void> reads, has_read;
  const auto slow = bench.start(binding(bench, [&](core::Checkpoint& checkpoint) {
    core::UncheckedCall aside(&checkpoint);
    reads.set_value();
    has_read.get_future().wait();
    aside.end();
  }));
  reads.get_future().wait();
  EXPECT_TRUE(bench.start(binding(bench, [](core::Checkpoint&) {}))->wait().ok());
  EXPECT_FALSE(slow->is_done());
  has_read.set_value();
  EXPECT_TRUE(slow->wait().ok());
  const auto cancelled = bench.start(binding(bench, [&](core::Checkpoint& checkpoint) {
    core::UncheckedCall aside(&checkpoint);
    EXPECT_TRUE(testing::eventually([&] { return is_cancelled_.load(); }));
    aside.end();
  }));
  cancelled->run->cancel(core::Error("cancelled", "enough"));
  is_cancelled_ = true;
  EXPECT_EQ(cancelled->wait().error->code().word(), "cancelled");
}

TEST_F(QueueTest, run_that_can_never_fit_is_refused) {
  Bench bench({.device_count = 2, .threads = 1, .memory_limit_bytes = 15});
  LocalBuilder b({1});
  b.result(b.point("stablehlo.negate", {b.argument("2xf32")}));
  device::RunRequest request;
  request.plan = plan_of(b);
  request.arguments = {bench.shards<float>({{1, 2}})};
  const std::string error = error_of([&] { bench.start(std::move(request)); });
  EXPECT_NE(error.find("memory_exceeded"), std::string::npos);
  EXPECT_NE(error.find("16 bytes"), std::string::npos) << error;
}

TEST_F(QueueTest, run_that_fits_later_waits_and_is_not_overtaken) {
  Bench bench({.device_count = 4, .threads = 2, .memory_limit_bytes = 24});
  const auto a = held(bench, {0}, "a");     // 8 bytes
  const auto b = held(bench, {1, 2}, "b");  // 16 bytes
  wait_for(2);
  const auto c = held(bench, {0, 3}, "c");  // 16 bytes, behind a
  const auto d = held(bench, {3}, "d");     // behind c on device 3
  EXPECT_EQ(bench.engine.stats().planned_bytes, 24);
  let_go(a);
  // c stands first now, but only 8 bytes are free.
  EXPECT_EQ(c->run->progress().state, device::RunState::kQueued);
  let_go(b);
  wait_for(3);
  EXPECT_EQ(begun().back(), "c");
  let_go(c);
  wait_for(4);
  let_go(d);
}

TEST_F(QueueTest, results_that_are_in_use_keep_their_bytes) {
  constexpr int64_t kElements = int64_t{1} << 20;
  const auto negate = [&](Bench& bench) {
    LocalBuilder b({1});
    b.result(b.point("stablehlo.negate", {b.argument(std::to_string(kElements) + "xf32")}));
    device::RunRequest request;
    request.plan = plan_of(b);
    request.arguments = {bench.shards<float>({std::vector<float>(kElements, 1)})};
    return bench.start(std::move(request));
  };
  std::optional<device::RunOutcome> of_a;
  device::RunOutcome later;
  {
    // 8 MiB for the argument and the result.
    Bench bench({.device_count = 1, .threads = 1, .memory_limit_bytes = 12 * kElements - 1});
    of_a = negate(bench)->wait();
    EXPECT_EQ(bench.engine.stats().planned_bytes, 4 * kElements);
    const auto b = negate(bench);
    EXPECT_EQ(b->run->progress().state, device::RunState::kQueued);
    device::RunOutcome moved = std::move(*of_a);
    EXPECT_EQ(b->run->progress().state, device::RunState::kQueued);
    moved.memory = {};
    later = b->wait();
    EXPECT_TRUE(later.ok());
    EXPECT_EQ(bench.engine.stats().planned_bytes, 4 * kElements);
  }
  EXPECT_EQ(later.memory.bytes(), 4 * kElements);  // the engine is gone, nobody waits
}

TEST_F(QueueTest, bytes_that_are_lent_are_taken_from_runs) {
  Bench bench({.device_count = 2, .threads = 1, .memory_limit_bytes = 20});
  ASSERT_TRUE(bench.engine.try_lend(16));
  EXPECT_FALSE(bench.engine.try_lend(5));
  const auto a = held(bench, {0}, "a");  // 8 bytes
  EXPECT_EQ(a->run->progress().state, device::RunState::kQueued);
  bench.engine.take_back(6);
  wait_for(1);
  EXPECT_FALSE(bench.engine.try_lend(3));
  let_go(a);
  EXPECT_EQ(bench.engine.stats().planned_bytes, 10);
  bench.engine.take_back(10);
}

// Asks once on each device and waits until it is answered.
class Asking : public device::EffectSink {
 public:
  device::EffectResult emit(const device::EffectCall& /*call*/) override {
    return is_answered ? device::EffectResult::done() : device::EffectResult::pending();
  }
  std::atomic<bool> is_answered{false};
};

struct Asker {
  Asking sink;
  std::shared_ptr<Bench::Pending> pending;

  void start(Bench& bench, std::vector<int64_t> devices, uint64_t ticket = 0) {
    const auto count = static_cast<int64_t>(devices.size());
    LocalBuilder b({count});
    const LocalId x = b.argument(std::to_string(count) + "xf32", {{0}});
    b.effect({x}, {}, true);
    b.result(b.point("stablehlo.negate", {x}));
    device::RunRequest request;
    request.plan = plan_of(b);
    request.arguments = {
        bench.shards<float>(std::vector<std::vector<float>>(devices.size(), std::vector<float>(1, 1)))};
    request.devices = std::move(devices);
    request.ticket = ticket;
    request.effects = &sink;
    pending = bench.start(std::move(request));
  }
  void wait_until_it_asks() const {
    ASSERT_TRUE(testing::eventually([&] { return pending->run->progress().state == device::RunState::kWaiting; }));
  }
  void answer() {
    sink.is_answered = true;
    pending->run->resume();
  }
};

TEST_F(QueueTest, run_that_waits_for_an_answer_steps_aside_and_comes_back_first) {
  Bench bench({.device_count = 2, .threads = 2});
  Asker asker;
  asker.start(bench, {0, 1});
  asker.wait_until_it_asks();
  const auto a = held(bench, {0}, "a");
  wait_for(1);
  const auto b = held(bench, {0, 1}, "b");
  asker.answer();
  // It has to wait for a, but b has to wait for it.
  ASSERT_TRUE(testing::eventually([&] { return bench.engine.stats().device_queue == std::vector<int64_t>{3, 2}; }));
  EXPECT_FALSE(asker.pending->is_done());
  let_go(a);
  EXPECT_TRUE(asker.pending->wait().ok());
  wait_for(2);
  let_go(b);
}

TEST_F(QueueTest, run_that_waits_for_an_answer_keeps_its_bytes_and_is_not_kept_out_by_who_wants_them) {
  Bench bench({.device_count = 2, .threads = 2, .memory_limit_bytes = 12});
  Asker asker;
  asker.start(bench, {0}, 20);  // 8 bytes
  asker.wait_until_it_asks();
  const auto a = held(bench, {0}, "a", 10);  // 8 bytes, and a lower ticket
  EXPECT_EQ(a->run->progress().state, device::RunState::kQueued);
  asker.answer();
  EXPECT_TRUE(asker.pending->wait().ok());
  wait_for(1);
  let_go(a);
}

TEST_F(QueueTest, cancelled_run_that_waits_needs_no_devices) {
  Bench bench({.device_count = 1, .threads = 2});
  Asker aside;
  aside.start(bench, {0});
  aside.wait_until_it_asks();
  Asker back;
  back.start(bench, {0});
  back.wait_until_it_asks();
  const auto a = held(bench, {0}, "a");
  wait_for(1);
  back.answer();
  ASSERT_TRUE(testing::eventually([&] { return bench.engine.stats().device_queue == std::vector<int64_t>{2}; }));
  for (Asker* asker : {&aside, &back}) {
    asker->pending->run->cancel(core::Error("cancelled", "enough"));
    EXPECT_EQ(asker->pending->wait().error->code().word(), "cancelled");
  }
  let_go(a);
  EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
}

TEST_F(QueueTest, runs_that_ask_on_crossing_devices_all_come_back) {
  Bench bench({.device_count = 4, .threads = 2, .memory_limit_bytes = 200});
  std::vector<std::unique_ptr<Asker>> all;
  for (int64_t i = 0; i < 80; ++i) {
    all.push_back(std::make_unique<Asker>());
    all.back()->start(bench, {i % 4, (i + 1 + i % 3) % 4});
  }
  std::vector<std::thread> clients;
  for (size_t c = 0; c < 2; ++c) {
    clients.emplace_back([&, c] {
      for (size_t i = 0; i < all.size(); ++i) {
        Asker& asker = *all[c == 0 ? i : all.size() - 1 - i];
        if (i % 7 == 3) asker.pending->run->cancel(core::Error("cancelled", "enough"));
        asker.answer();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  for (const auto& asker : all) {
    const device::RunOutcome out = asker->pending->wait();
    EXPECT_TRUE(out.ok() || out.error->code().word() == "cancelled");
  }
  EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  EXPECT_EQ(bench.engine.stats().queued, 0);
}

TEST_F(QueueTest, engine_that_ends_ends_its_runs) {
  std::shared_ptr<Bench::Pending> a;
  std::shared_ptr<Bench::Pending> b;
  {
    Bench bench({.device_count = 2, .threads = 2});
    a = held(bench, {0}, "a");
    b = held(bench, {0}, "b");
    wait_for(1);
  }
  EXPECT_EQ(a->wait().error->code().word(), "draining");
  EXPECT_EQ(b->wait().error->code().word(), "draining");
  a->run->resume();
  a->run->cancel(core::Error("cancelled", "late"));
}

TEST_F(QueueTest, many_runs_from_many_threads) {
  Bench bench({.device_count = 8, .threads = 2});
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 50; ++i) {
        device::RunRequest request;
        request.plan = plan_for(2);
        request.devices = {(c + i) % 8, (c * 3 + i + 1) % 8 == (c + i) % 8 ? (c + i + 1) % 8 : (c * 3 + i + 1) % 8};
        request.arguments = {bench.shards<float>({{static_cast<float>(i)}, {2}})};
        request.on_callers_thread = i % 2 == 0;
        if (output<float>(bench.start(std::move(request))->wait())[0][0] == static_cast<float>(-i)) good.fetch_add(1);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good.load(), 200);
}

}  // namespace
}  // namespace meshd::test
