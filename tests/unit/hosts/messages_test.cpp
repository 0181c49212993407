// Blocks and control messages over a network: who comes first waits, and what nobody expects any more is dropped.
#include "service/hosts/messages.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <thread>

#include "tests/support/fake_network.h"

namespace meshd::hosts {
namespace {

std::vector<std::byte> bytes(std::string_view text) {
  std::vector<std::byte> out(text.size());
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

// Two ranks; rank 1 tells of each control message that it got, and all before it are there then.
class TwoEnds : public ::testing::Test {
 protected:
  TwoEnds() {
    const auto ignore = [](int, Control, std::string_view) {};
    first = std::make_shared<Messages>(*networks[0], ignore);
    second = std::make_shared<Messages>(*networks[1], [this](int, Control kind, std::string_view text) {
      const std::lock_guard held(mutex);
      told.emplace_back(kind, text);
      there.notify_all();
    });
    networks[0]->start(first);
    networks[1]->start(second);
  }
  ~TwoEnds() override {
    for (auto& network : networks) network->close();
  }
  void settle() {
    const size_t count = ++settled;
    first->send(1, Control::kWelcome, "settle");
    std::unique_lock held(mutex);
    ASSERT_TRUE(there.wait_for(held, std::chrono::seconds(60), [&] { return told.size() == count; }));
  }

  std::vector<std::unique_ptr<Network>> networks = testing::make_fake_network(2);
  std::mutex mutex;
  std::condition_variable there;
  std::vector<std::pair<Control, std::string>> told;
  size_t settled = 0;
  std::shared_ptr<Messages> first, second;
};

TEST_F(TwoEnds, block_waits_for_its_receiver) {
  first->post(1, {.run = 1, .visit = 2}, bytes("early"));
  settle();
  EXPECT_EQ(second->early_count(), 1U);
  std::vector<std::byte> buffer(5);
  bool is_there = false;
  second->expect(0, {.run = 1, .visit = 2}, buffer, [&] { is_there = true; });
  EXPECT_TRUE(is_there);
  EXPECT_EQ(buffer, bytes("early"));
  EXPECT_EQ(second->early_count(), 0U);
}

TEST_F(TwoEnds, receiver_waits_for_its_block) {
  std::vector<std::byte> buffer(4);
  bool is_there = false;
  second->expect(0, {.run = 1, .shard = 3}, buffer, [&] { is_there = true; });
  first->post(1, {.run = 1, .shard = 3}, bytes("late"));
  settle();
  EXPECT_TRUE(is_there);
  EXPECT_EQ(buffer, bytes("late"));
}

TEST_F(TwoEnds, block_without_bytes_arrives) {
  bool is_there = false;
  second->expect(0, {.run = 1}, {}, [&] { is_there = true; });
  first->post(1, {.run = 1}, {});
  settle();
  EXPECT_TRUE(is_there);
}

TEST_F(TwoEnds, large_block_is_sent_once_it_is_expected_and_small_ones_pass_it) {
  const auto large = std::make_shared<std::vector<std::byte>>(size_t{3} << 20, std::byte{7});
  first->post_kept(1, {.run = 1}, *large, large);
  const std::vector<std::byte> expected = *large;
  first->post(1, {.run = 1, .visit = 1}, bytes("small"));
  settle();
  std::vector<std::byte> small(5);
  bool is_small_there = false;
  second->expect(0, {.run = 1, .visit = 1}, small, [&] { is_small_there = true; });
  EXPECT_TRUE(is_small_there);
  EXPECT_EQ(second->early_count(), 1U) << "its name, not its bytes";
  std::vector<std::byte> buffer(expected.size());
  std::promise<void> is_there;
  second->expect(0, {.run = 1}, buffer, [&] { is_there.set_value(); });
  ASSERT_EQ(is_there.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_EQ(buffer, expected);
  EXPECT_EQ(second->early_count(), 0U);
}

TEST_F(TwoEnds, large_block_of_a_run_that_is_over_is_not_sent) {
  auto large = std::make_shared<std::vector<std::byte>>(size_t{1} << 20);
  const std::weak_ptr<const void> kept = large;
  const std::span<const std::byte> block = *large;
  first->post_kept(1, {.run = 2}, block, large);
  first->post_kept(1, {.run = 3}, block, std::move(large));
  settle();
  EXPECT_FALSE(kept.expired());
  first->forget(2);
  first->forget(3);
  EXPECT_TRUE(kept.expired());
  std::vector<std::byte> buffer(size_t{1} << 20);
  second->expect(0, {.run = 2}, buffer, [] { ADD_FAILURE() << "it came"; });
  settle();
  second->forget(2);
  second->ignore_before(4);
  EXPECT_EQ(second->early_count(), 0U);
}

TEST_F(TwoEnds, run_that_is_over_keeps_nothing) {
  first->post(1, {.run = 7}, bytes("before"));
  settle();
  second->forget(7);
  first->post(1, {.run = 7, .visit = 1}, bytes("after"));
  settle();
  EXPECT_EQ(second->early_count(), 0U);
}

TEST_F(TwoEnds, earlier_runs_than_the_oldest_live_one_are_over) {
  first->post(1, {.run = 3}, bytes("a"));
  first->post(1, {.run = 5 | kArgumentsAndResults}, bytes("b"));
  settle();
  second->ignore_before(5);
  first->post(1, {.run = 4}, bytes("c"));
  first->post(1, {.run = 4 | kArgumentsAndResults}, bytes("d"));
  settle();
  EXPECT_EQ(second->early_count(), 1U) << "that of run 5";
}

// `moved` is what a network says of parts of a message.
TEST_F(TwoEnds, peer_is_silent_until_a_message_or_a_part_of_one_has_come) {
  const auto ends_silence = [&](const auto& sign) {
    while (second->silence(0) < std::chrono::milliseconds(20)) std::this_thread::yield();
    const auto begun = std::chrono::steady_clock::now();
    sign();
    const std::chrono::nanoseconds silence = second->silence(0);
    EXPECT_LE(silence, std::chrono::steady_clock::now() - begun);
  };
  ends_silence([&] { second->moved(0); });
  ends_silence([&] { settle(); });
}

TEST_F(TwoEnds, control_messages_come_in_order) {
  for (uint32_t kind = 1; kind < 50; ++kind) first->send(1, Control{kind}, std::to_string(kind));
  settled += 49;
  settle();
  for (uint32_t kind = 1; kind < 50; ++kind) EXPECT_EQ(told[kind - 1], std::pair(Control{kind}, std::to_string(kind)));
}

}  // namespace
}  // namespace meshd::hosts
