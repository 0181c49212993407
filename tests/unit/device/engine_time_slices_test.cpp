// Runs that share devices take time slices: in a fair order of principals, sessions and runs, without circular waits.
#include <random>
#include <set>

#include "service/compile/pipeline.h"
#include "service/device/scheduler.h"
#include "service/ops/kernel_interface.h"
#include "tests/support/eventually.h"
#include "tests/unit/device/engine_programs.h"

namespace meshd::test {
namespace {

using device::QueueEntryRef;
using device::Scheduler;
using std::chrono::nanoseconds;

constexpr nanoseconds kTurn{2'000'000};

class Entry final : public device::QueueEntry {
 public:
  explicit Entry(std::string entry_name) : name(std::move(entry_name)) {}
  [[nodiscard]] bool is_wanted() const { return (attention_.load() & kWanted) != 0; }
  std::string name;
};
using EntryRef = std::shared_ptr<Entry>;

device::QueueRequest on(std::vector<int64_t> devices, const std::string& principal = "", uint64_t ticket = 0) {
  device::QueueRequest request;
  request.devices = std::move(devices);
  request.principal = principal;
  request.ticket = ticket;
  return request;
}

// One device, on which every slice takes the same counted time.
class Slices {
 public:
  EntryRef add(const std::string& name, const std::string& principal, const std::string& session) {
    auto entry = std::make_shared<Entry>(name);
    note(scheduler_.add(entry, {.devices = {0}, .principal = principal, .session = session}));
    return entry;
  }
  /// Who has the next slices.
  std::vector<std::string> take(int count) {
    std::vector<std::string> out;
    for (int i = 0; i < count; ++i) {
      out.push_back(running_->name);
      note(scheduler_.yield(running_, kTurn));
    }
    return out;
  }
  void end(const EntryRef& entry) { note(scheduler_.remove(entry, kTurn)); }
  [[nodiscard]] const EntryRef& running() const { return running_; }

 private:
  void note(const std::vector<QueueEntryRef>& starting) {
    ASSERT_LE(starting.size(), 1U);
    if (!starting.empty()) running_ = std::static_pointer_cast<Entry>(starting[0]);
  }
  Scheduler scheduler_{1, 0};
  EntryRef running_;
};

int64_t count_of(const std::vector<std::string>& slices, const std::string& name) {
  return std::count(slices.begin(), slices.end(), name);
}

TEST(EngineTimeSlices, small_principal_has_every_second_slice_beside_twenty_sessions_of_another) {
  Slices slices;
  for (int session = 0; session < 20; ++session) {
    for (int run = 0; run < 3; ++run) slices.add("flood", "a", "s" + std::to_string(session));
  }
  slices.take(100);
  slices.add("small", "b", "s");
  // At most the slice that is going on comes before its first one.
  const std::vector<std::string> taken = slices.take(100);
  EXPECT_EQ(count_of({taken.begin(), taken.begin() + 2}, "small"), 1);
  EXPECT_EQ(count_of(taken, "small"), 50);
}

TEST(EngineTimeSlices, sessions_of_a_principal_share_its_slices_and_so_do_runs_of_a_session) {
  Slices slices;
  for (int run = 0; run < 10; ++run) slices.add("many " + std::to_string(run), "a", "first");
  slices.add("one", "a", "second");
  const std::vector<std::string> taken = slices.take(200);
  EXPECT_NEAR(static_cast<double>(count_of(taken, "one")), 100, 1);
  for (int run = 0; run < 10; ++run)
    EXPECT_NEAR(static_cast<double>(count_of(taken, "many " + std::to_string(run))), 10, 1);
}

TEST(EngineTimeSlices, principal_that_was_idle_saves_no_time_up) {
  Slices slices;
  slices.add("busy", "a", "");
  const EntryRef early = slices.add("idle", "b", "");
  slices.take(10);
  slices.end(early);
  slices.take(1000);
  slices.add("idle", "b", "");
  EXPECT_NEAR(static_cast<double>(count_of(slices.take(100), "idle")), 50, 1);
}

TEST(EngineTimeSlices, running_entry_is_told_when_others_wait_for_its_device) {
  Scheduler scheduler(2, 0);
  const auto running = std::make_shared<Entry>("running");
  ASSERT_EQ(scheduler.add(running, on({0})).size(), 1U);
  EXPECT_EQ(scheduler.add(std::make_shared<Entry>("elsewhere"), on({1})).size(), 1U);
  EXPECT_FALSE(running->is_wanted());
  EXPECT_TRUE(scheduler.add(std::make_shared<Entry>("waits"), on({0, 1})).empty());
  EXPECT_TRUE(running->is_wanted());
}

TEST(EngineTimeSlices, order_of_tickets_is_kept_where_ranks_count_on_it) {
  Scheduler scheduler(1, 0, Scheduler::Order::kTickets);
  const auto running = std::make_shared<Entry>("running");
  scheduler.add(running, on({0}, "a", 1));
  scheduler.add(std::make_shared<Entry>("other"), on({0}, "b", 3));
  const auto next = std::make_shared<Entry>("next");
  scheduler.add(next, on({0}, "a", 2));
  EXPECT_FALSE(running->is_wanted());
  EXPECT_EQ(scheduler.remove(running, kTurn), std::vector<QueueEntryRef>{next});
}

TEST(EngineTimeSlices, bytes_are_given_in_the_order_of_tickets_where_ranks_count_on_it) {
  Scheduler scheduler(2, 100, Scheduler::Order::kTickets);
  const auto add = [&](const char* name, int64_t device, uint64_t ticket, int64_t bytes) {
    const auto entry = std::make_shared<Entry>(name);
    device::QueueRequest request = on({device}, "a", ticket);
    request.bytes = bytes;
    return std::pair(entry, scheduler.add(entry, std::move(request)));
  };
  const auto [first, first_starts] = add("first", 0, 1, 60);
  EXPECT_EQ(first_starts.size(), 1U);
  const auto [second, second_starts] = add("second", 0, 2, 60);
  EXPECT_TRUE(second_starts.empty());
  const auto [third, third_starts] = add("third", 1, 3, 30);
  EXPECT_TRUE(third_starts.empty()) << "it fits and its device is free, but another rank may give bytes to the second";
  EXPECT_EQ(scheduler.remove(first, kTurn), (std::vector<QueueEntryRef>{second, third}));
}

TEST(EngineTimeSlices, entry_that_keeps_its_devices_is_not_asked_for_them) {
  Scheduler scheduler(1, 0);
  const auto keeper = std::make_shared<Entry>("keeper");
  device::QueueRequest request = on({0});
  request.keeps_devices = true;
  scheduler.add(keeper, std::move(request));
  const auto next = std::make_shared<Entry>("next");
  scheduler.add(next, on({0}));
  EXPECT_FALSE(keeper->is_wanted());
  EXPECT_EQ(scheduler.yield(keeper, kTurn), std::vector<QueueEntryRef>{keeper});
  EXPECT_EQ(scheduler.remove(keeper, kTurn), std::vector<QueueEntryRef>{next});
}

// Random device sets, bytes, yields and waits: no two that run share a device, bytes stay below the limit, and
// each of them ends whatever happens.
TEST(EngineTimeSlices, random_device_sets_never_wait_in_a_circle) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t most) { return static_cast<int64_t>(random() % static_cast<uint32_t>(most)); };
    constexpr int64_t kDevices = 6;
    constexpr int64_t kLimit = 100;
    Scheduler scheduler(kDevices, kLimit);
    struct Member {
      std::vector<int64_t> devices;
      int64_t bytes = 0;
      int64_t slices = 0;
    };
    std::map<QueueEntryRef, Member> members;
    std::set<QueueEntryRef> running;
    std::set<QueueEntryRef> aside;
    const auto start = [&](const std::vector<QueueEntryRef>& starting) {
      for (const QueueEntryRef& entry : starting) {
        for (const QueueEntryRef& other : running) {
          for (const int64_t device : members[entry].devices)
            ASSERT_EQ(std::count(members[other].devices.begin(), members[other].devices.end(), device), 0);
        }
        ASSERT_TRUE(running.insert(entry).second);
      }
      ASSERT_LE(scheduler.stats().planned_bytes, kLimit);
    };
    int64_t to_come = 60;
    for (int64_t step = 0; to_come > 0 || !members.empty(); ++step) {
      ASSERT_LT(step, 20'000) << "seed " << seed;
      if (to_come > 0 && below(3) == 0) {
        --to_come;
        const auto entry = std::make_shared<Entry>("");
        Member member{{}, 1 + below(kLimit), 1 + below(5)};
        for (int64_t device = 0; device < kDevices; ++device) {
          if (below(3) == 0) member.devices.push_back(device);
        }
        if (member.devices.empty()) member.devices.push_back(below(kDevices));
        members[entry] = member;
        start(scheduler.add(entry, {.devices = member.devices,
                                    .bytes = member.bytes,
                                    .principal = std::to_string(below(3)),
                                    .session = std::to_string(below(3))}));
        continue;
      }
      if (!aside.empty() && (running.empty() || below(4) == 0)) {
        const QueueEntryRef entry = *std::next(aside.begin(), below(static_cast<int64_t>(aside.size())));
        aside.erase(entry);
        start(scheduler.step_back(entry));
        continue;
      }
      if (running.empty()) {
        ASSERT_TRUE(members.empty() || to_come > 0) << "nobody runs, seed " << seed;
        continue;
      }
      const QueueEntryRef entry = *std::next(running.begin(), below(static_cast<int64_t>(running.size())));
      running.erase(entry);
      const int64_t action = --members[entry].slices <= 0 ? 0 : below(4);
      if (action == 0) {
        members.erase(entry);
        start(scheduler.remove(entry, kTurn));
      } else if (action == 1) {
        aside.insert(entry);
        start(scheduler.step_aside(entry, kTurn));
      } else {
        start(scheduler.yield(entry, kTurn));
      }
    }
    EXPECT_EQ(scheduler.stats().planned_bytes, 0);
    EXPECT_TRUE(scheduler.entries().empty());
  }
}

// ---- with an engine

compile::PlanRef plan_of_text(const std::string& text) {
  compile::Compiler compiler(2, 4);
  return compiler.lower(compiler.parse("stablehlo", text), {})->plan;
}

// Sums 10^12 numbers that are nowhere in memory, in one step.
compile::PlanRef minutes_in_a_step() {
  return plan_of_text(R"(func.func @main() -> tensor<f32> {
    %0 = stablehlo.iota dim = 0 : tensor<1000000x1000000xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<1000000x1000000xf32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  })");
}

device::RunRequest request_for(const compile::PlanRef& plan, const std::string& principal) {
  device::RunRequest request;
  request.plan = plan;
  request.principal = principal;
  return request;
}

void wait_until_in_a_step(const std::shared_ptr<Bench::Pending>& pending) {
  ASSERT_TRUE(testing::eventually([&] { return !pending->run->progress().op.empty(); }));
}

TEST(EngineTimeSlices, small_runs_end_beside_runs_of_minutes_on_the_same_device) {
  for (const int threads : {1, 2}) {
    Bench bench({.device_count = 2, .threads = threads});
    const compile::PlanRef plan = minutes_in_a_step();
    std::vector<std::shared_ptr<Bench::Pending>> large;
    for (int i = 0; i < 3; ++i) {
      large.push_back(bench.start(request_for(plan, "large")));
      wait_until_in_a_step(large.back());
    }
    LocalBuilder b({1});
    b.result(b.point("stablehlo.negate", {b.argument("f32")}));
    const compile::PlanRef small = plan_of(b);
    for (int i = 0; i < 20; ++i) {
      device::RunRequest request = request_for(small, i % 2 == 0 ? "small" : "large");
      request.arguments = {bench.shards<float>({{static_cast<float>(i)}})};
      request.on_callers_thread = i % 3 == 0;
      EXPECT_EQ(output<float>(bench.start(std::move(request))->wait())[0][0], static_cast<float>(-i));
    }
    for (const auto& pending : large) {
      EXPECT_FALSE(pending->is_done());
      pending->run->cancel(core::Error("cancelled", "enough"));
      EXPECT_EQ(pending->wait().error->code().word(), "cancelled");
    }
    EXPECT_EQ(bench.engine.stats().planned_bytes, 0);
  }
}

TEST(EngineTimeSlices, results_do_not_depend_on_slices) {
  const compile::PlanRef plan = plan_of_text(R"(func.func @main(%a: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.iota dim = 1 : tensor<1000x3001xf32>
    %1 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<1000x3001xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<1000x3001xf32>
    %3 = stablehlo.sine %2 : tensor<1000x3001xf32>
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%3 init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<1000x3001xf32>, tensor<f32>) -> tensor<f32>
    return %4 : tensor<f32>
  })");
  Bench bench({.device_count = 1, .threads = 2});
  const auto request = [&](int i) {
    device::RunRequest made = request_for(plan, std::to_string(i));
    made.arguments = {bench.shards<float>({{0.1F}})};
    return made;
  };
  const float alone = output<float>(bench.start(request(0))->wait())[0][0];
  std::vector<std::shared_ptr<Bench::Pending>> together;
  for (int i = 0; i < 8; ++i) together.push_back(bench.start(request(i)));
  for (const auto& pending : together) EXPECT_EQ(output<float>(pending->wait())[0][0], alone);
}

// One step of so many work items, each a library call without checkpoints that takes as long as `call`.
compile::PlanRef library_calls_in_a_step(int64_t work_items, std::function<void()> call) {
  LocalBuilder b({1});
  b.result(b.point("stablehlo.negate", {b.argument("f32")}));
  compile::Plan plan = *plan_of(b);
  auto kernel = std::make_shared<ops::PreparedKernel>();
  kernel->work_count = work_items;
  kernel->passes_checkpoints = true;
  kernel->run = [call = std::move(call)](const ops::KernelCall& part) {
    for (int64_t item = part.begin; item < part.end; ++item) {
      core::UncheckedCall library(part.checkpoint);
      call();
      library.end();
    }
  };
  compile::Step& step = plan.blocks.at(0).steps.at(0);
  step.kernel = kernel;
  step.estimated_ns = 1e9;  // worth sharing
  plan.threads = 4;
  return std::make_shared<const compile::Plan>(std::move(plan));
}

// A thread comes back from its call while another one is about to release the devices for its own.
TEST(EngineTimeSlices, threads_of_a_step_leave_and_come_back_in_any_order) {
  const compile::PlanRef plan = library_calls_in_a_step(64, [] {});
  for (const int threads : {2, 4}) {
    Bench bench({.device_count = 1, .threads = threads});
    for (int i = 0; i < 150; ++i) {
      std::vector<std::shared_ptr<Bench::Pending>> runs;
      for (int run = 0; run <= i % 3; ++run) {
        device::RunRequest request = request_for(plan, std::to_string(run));
        request.arguments = {bench.shards<float>({{1}})};
        runs.push_back(bench.start(std::move(request)));
      }
      const bool is_cancelled = i % 5 == 0;
      if (is_cancelled) runs[0]->run->cancel(core::Error("cancelled", "enough"));
      for (const auto& pending : runs) EXPECT_TRUE(pending->wait().ok() || (is_cancelled && pending == runs[0]));
    }
  }
}

// The pool has at most 512 threads: the last ones have no other thread for their places.
TEST(EngineTimeSlices, more_runs_are_in_library_calls_than_there_may_be_threads) {
  std::atomic<bool> is_open = false;
  std::atomic<int> calls = 0;
  const compile::PlanRef plan = library_calls_in_a_step(1, [&] {
    ++calls;
    is_open.wait(false);
  });
  Bench bench({.device_count = 1, .threads = 2});
  std::vector<std::shared_ptr<Bench::Pending>> runs;
  for (int run = 0; run < 560; ++run) {
    device::RunRequest request = request_for(plan, std::to_string(run % 7));
    request.arguments = {bench.shards<float>({{1}})};
    runs.push_back(bench.start(std::move(request)));
  }
  // All threads but one hold a run; that one has no place to give, and its run keeps the device.
  EXPECT_TRUE(testing::eventually([&] { return calls >= 511; }));
  is_open = true;
  is_open.notify_all();
  for (const auto& pending : runs) EXPECT_TRUE(pending->wait().ok());
}

TEST(EngineTimeSlices, least_loaded_devices_come_first) {
  Bench bench({.device_count = 4, .threads = 2});
  const compile::PlanRef plan = minutes_in_a_step();
  std::vector<std::shared_ptr<Bench::Pending>> busy;
  for (const int64_t device : {0, 0, 2}) {
    device::RunRequest request = request_for(plan, "");
    request.devices = {device};
    busy.push_back(bench.start(std::move(request)));
  }
  EXPECT_EQ(bench.engine.least_loaded(4), (std::vector<int64_t>{1, 3, 2, 0}));
  EXPECT_EQ(bench.engine.least_loaded(1), (std::vector<int64_t>{1}));
  EXPECT_NE(error_of([&] { static_cast<void>(bench.engine.least_loaded(5)); }).find("too_few_devices"),
            std::string::npos);
  for (const auto& pending : busy) pending->run->cancel(core::Error("cancelled", "enough"));
  for (const auto& pending : busy) pending->wait();
}

TEST(EngineTimeSlices, engine_that_ends_ends_runs_in_the_middle_of_their_steps) {
  std::vector<std::shared_ptr<Bench::Pending>> runs;
  {
    Bench bench({.device_count = 2, .threads = 2});
    const compile::PlanRef plan = minutes_in_a_step();
    for (int i = 0; i < 4; ++i) runs.push_back(bench.start(request_for(plan, std::to_string(i % 2))));
    wait_until_in_a_step(runs[0]);
  }
  for (const auto& pending : runs) EXPECT_EQ(pending->wait().error->code().word(), "draining");
}

}  // namespace
}  // namespace meshd::test
