#include "api/server/next_request.h"

#include <gtest/gtest.h>

namespace meshd::api {
namespace {

using std::chrono::microseconds;

class NextRequests : public ::testing::Test {
 protected:
  void answer() { next_.on_answered(now_); }
  void request_after(microseconds gap) {
    now_ += gap;
    next_.on_request(now_);
  }
  /// Requests and answers, as many as make the reactor look for the next one.
  void be_prompt() {
    for (int i = 0; i < NextRequest::kPrompt; ++i) {
      answer();
      request_after(microseconds(20));
    }
  }
  bool is_expected() { return next_.is_expected(now_); }

  NextRequest next_;
  NextRequest::Time now_{microseconds(1'000'000)};
};

TEST_F(NextRequests, nobody_is_expected_at_first) {
  EXPECT_FALSE(is_expected());
  answer();
  EXPECT_FALSE(is_expected());
}

TEST_F(NextRequests, one_is_expected_for_a_moment_after_some_that_were_prompt) {
  be_prompt();
  EXPECT_FALSE(is_expected()) << "it is not answered yet";
  answer();
  EXPECT_TRUE(is_expected());
  now_ += NextRequest::kMoment;
  EXPECT_TRUE(is_expected());
  now_ += microseconds(1);
  EXPECT_FALSE(is_expected());
}

TEST_F(NextRequests, one_that_does_not_come_ends_it) {
  be_prompt();
  answer();
  now_ += 2 * NextRequest::kMoment;
  EXPECT_FALSE(is_expected());
  request_after(microseconds(1));
  answer();
  EXPECT_FALSE(is_expected());
  be_prompt();
  answer();
  EXPECT_TRUE(is_expected());
}

TEST_F(NextRequests, a_late_one_begins_the_count_anew) {
  for (int i = 1; i < NextRequest::kPrompt; ++i) {
    answer();
    request_after(microseconds(20));
  }
  answer();
  request_after(NextRequest::kMoment + microseconds(1));
  answer();
  request_after(microseconds(20));
  answer();
  EXPECT_FALSE(is_expected());
}

// Of several clients only the time without any request between them counts.
TEST_F(NextRequests, requests_beside_others_say_nothing) {
  be_prompt();
  request_after(10 * NextRequest::kMoment);
  answer();
  EXPECT_TRUE(is_expected());
}

}  // namespace
}  // namespace meshd::api
