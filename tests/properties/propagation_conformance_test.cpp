// Every case that is listed in tests/conformance/passing/propagation.txt gives the shardings that Shardy gives. The
// list only grows.
#include <gtest/gtest.h>

#include "tests/properties/propagation_cases.h"

namespace meshd::propagation {
namespace {

TEST(PropagationConformance, listed_cases_give_shardys_shardings) {
  const std::vector<std::string> names = passing_names();
  ASSERT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_EQ(judge(name), "") << name;
}

}  // namespace
}  // namespace meshd::propagation
