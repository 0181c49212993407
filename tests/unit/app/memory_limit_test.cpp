#include "api/app/serving/memory_limit.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace meshd::testing {
namespace {

class MemoryLimit : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  int64_t limit(const std::string& process) {
    write("process", process);
    return api::cgroup_memory_limit({folder_.path() + "/process", folder_.path() + "/groups"});
  }
  TempFolder folder_{TempFolder::Where::kMemory};
};

TEST_F(MemoryLimit, least_of_the_groups_above_counts) {
  write("groups/a/memory.max", "1073741824");
  write("groups/a/b/memory.max", "max");
  EXPECT_EQ(limit("0::/a/b"), 1073741824);
  write("groups/a/b/memory.max", "4096000");
  EXPECT_EQ(limit("0::/a/b"), 4096000);
}

TEST_F(MemoryLimit, group_that_a_container_does_not_see_is_the_root) {
  write("groups/memory.max", "536870912");
  EXPECT_EQ(limit("0::/system.slice/docker-1.scope"), 536870912);
  EXPECT_EQ(limit("0::/"), 536870912);
}

TEST_F(MemoryLimit, version_1_has_a_hierarchy_of_its_own_and_a_number_for_none) {
  write("groups/memory/memory.limit_in_bytes", "9223372036854771712");
  write("groups/memory/job/memory.limit_in_bytes", "268435456");
  EXPECT_EQ(limit("9:cpu,cpuacct:/job\n4:hugetlb,memory:/job\n0::/"), 268435456);
  EXPECT_EQ(limit("4:memory:/other\n0::/"), 0);
}

TEST_F(MemoryLimit, what_is_not_there_or_no_number_is_no_limit) {
  EXPECT_EQ(limit("0::/a"), 0);
  EXPECT_EQ(limit("nonsense"), 0);
  write("groups/a/memory.max", "12 apples");
  EXPECT_EQ(limit("0::/a"), 12);
  write("groups/a/memory.max", "12apples");
  EXPECT_EQ(limit("0::/a"), 0);
  EXPECT_EQ(api::cgroup_memory_limit({"/nowhere", "/nowhere"}), 0);
}

TEST_F(MemoryLimit, process_has_some_memory) { EXPECT_GT(api::available_memory(), 1 << 20); }

}  // namespace
}  // namespace meshd::testing
