#include <gtest/gtest.h>

#include <vector>

#include "service/core/near_names.h"

namespace meshd::core {
namespace {

TEST(NearNames, edits_are_counted) {
  EXPECT_EQ(edit_distance("sum", "sum"), 0U);
  EXPECT_EQ(edit_distance("", "sum"), 3U);
  EXPECT_EQ(edit_distance("summ", "sum"), 1U);
  EXPECT_EQ(edit_distance("meam", "mean"), 1U);
  EXPECT_EQ(edit_distance("flaot32", "float32"), 1U) << "two neighbours that change places are one mistake";
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(NearNames, the_nearest_name_is_suggested) {
  const std::vector<std::string> known{"sum", "mean", "cumsum"};
  EXPECT_EQ(did_you_mean("summ", known), "; did you mean 'sum'?");
  EXPECT_EQ(did_you_mean("meam", known, '"'), "; did you mean \"mean\"?");
  EXPECT_EQ(did_you_mean("reshape", known), "");
  EXPECT_EQ(nearest_name("tahn", std::vector<std::string>{"tan", "tanh", "tanc"}), "tanh")
      << "as long as what was given";
  EXPECT_EQ(nearest_name("tah", std::vector<std::string>{"tan", "ta", "tab"}), "tan")
      << "the first of equally near ones";
  EXPECT_EQ(did_you_mean("ab", std::vector<std::string>{"cd"}), "") << "two letters of two are not a mistake";
  EXPECT_EQ(did_you_mean("fooo", std::vector<std::string>{"bool"}), "") << "nor two of four";
}

TEST(NearNames, long_names_are_near_nothing) {
  const std::string given(65, 'a');
  EXPECT_EQ(nearest_name(given, std::vector<std::string>{given + "b"}), "");
}

}  // namespace
}  // namespace meshd::core
