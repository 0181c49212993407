#include "api/server/busy_poll.h"

#include <gtest/gtest.h>

namespace meshd::api {
namespace {

using std::chrono::microseconds;

class BusyPolls : public ::testing::Test {
 protected:
  void answer() { poll_.on_answered(now_); }
  void request_after(microseconds gap) {
    now_ += gap;
    poll_.on_request(now_);
  }
  /// Requests and answers, as many as make the reactor poll for the next one.
  void be_prompt() {
    for (int i = 0; i < BusyPoll::kPrompt; ++i) {
      answer();
      request_after(microseconds(20));
    }
  }
  bool is_expected() { return poll_.is_expected(now_); }

  BusyPoll poll_;
  BusyPoll::Time now_{microseconds(1'000'000)};
};

TEST_F(BusyPolls, nobody_is_expected_at_first) {
  EXPECT_FALSE(is_expected());
  answer();
  EXPECT_FALSE(is_expected());
}

TEST_F(BusyPolls, one_is_expected_for_a_moment_after_some_that_were_prompt) {
  be_prompt();
  EXPECT_FALSE(is_expected()) << "it is not answered yet";
  answer();
  EXPECT_TRUE(is_expected());
  now_ += BusyPoll::kMoment;
  EXPECT_TRUE(is_expected());
  now_ += microseconds(1);
  EXPECT_FALSE(is_expected());
}

TEST_F(BusyPolls, one_that_does_not_come_ends_it) {
  be_prompt();
  answer();
  now_ += 2 * BusyPoll::kMoment;
  EXPECT_FALSE(is_expected());
  request_after(microseconds(1));
  answer();
  EXPECT_FALSE(is_expected());
  be_prompt();
  answer();
  EXPECT_TRUE(is_expected());
}

TEST_F(BusyPolls, a_late_one_begins_the_count_anew) {
  for (int i = 1; i < BusyPoll::kPrompt; ++i) {
    answer();
    request_after(microseconds(20));
  }
  answer();
  request_after(BusyPoll::kMoment + microseconds(1));
  answer();
  request_after(microseconds(20));
  answer();
  EXPECT_FALSE(is_expected());
}

// Of several clients only the time without any request between them counts.
TEST_F(BusyPolls, requests_beside_others_say_nothing) {
  be_prompt();
  request_after(10 * BusyPoll::kMoment);
  answer();
  EXPECT_TRUE(is_expected());
}

}  // namespace
}  // namespace meshd::api
