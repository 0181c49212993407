// Which environment variables mean that a launcher started several ranks.
#include <gtest/gtest.h>

#include <map>

#include "service/core/error.h"
#include "service/hosts/holders.h"
#include "service/hosts/mpi_module.h"

namespace meshd::hosts {
namespace {

std::string launcher(const std::map<std::string, std::string>& variables) {
  return launcher_of([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, several_ranks_are_seen_by_their_launchers_variables) {
  EXPECT_EQ(launcher({}), "");
  EXPECT_EQ(launcher({{"OMPI_COMM_WORLD_SIZE", "4"}}), "OMPI_COMM_WORLD_SIZE is 4");
  EXPECT_EQ(launcher({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), "PMI_SIZE is 2");
  EXPECT_NE(launcher({{"SLURM_NTASKS", "2"}, {"PMIX_RANK", "0"}}), "");
}

TEST(Launcher, one_rank_and_a_batch_job_without_pmi_are_one_process) {
  EXPECT_EQ(launcher({{"OMPI_COMM_WORLD_SIZE", "1"}, {"PMIX_RANK", "0"}}), "");
  EXPECT_EQ(launcher({{"SLURM_NTASKS", "8"}}), "");
  EXPECT_EQ(launcher({{"SLURM_NTASKS", "1"}, {"PMIX_RANK", "0"}}), "");
}

TEST(Launcher, missing_module_says_what_to_install) {
  try {
    open_mpi("OMPI_COMM_WORLD_SIZE is 4", "/nonexistent");
    FAIL() << "a module was found";
  } catch (const core::Error& error) {
    EXPECT_NE(error.detail().find("install openmpi-bin"), std::string::npos) << error.detail();
  }
}

TEST(Launcher, devices_are_dealt_in_equal_runs_or_refused) {
  EXPECT_EQ(ranks_of_devices(8, 4), (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_THROW(ranks_of_devices(8, 3), core::Error);
}

}  // namespace
}  // namespace meshd::hosts
