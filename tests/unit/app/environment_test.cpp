#include <gtest/gtest.h>

#include "api/app/command_line/environment.h"

namespace meshd::api {
namespace {

using Names = std::vector<std::string>;

const Names kKnown = {"MESHD_LISTEN", "MESHD_DATA", "MESHD_LOG_LEVEL", "MESHD_LOG_FORMAT", "MESHD_TOKENS"};

Names unknown(std::vector<std::string_view> environment) { return unknown_variables(environment, kKnown); }

TEST(Environment, known_and_foreign_variables_are_fine) {
  EXPECT_EQ(Names(),
            unknown({"MESHD_DATA=/x", "PATH=/bin", "MESH=1", "meshd_data=1", "XMESHD_DATA=1", "MESHD_LOG_LEVEL="}));
}

TEST(Environment, misspelt_variable_names_the_nearest) {
  const Names lines = unknown({"MESHD_LOGLEVEL=debug", "MESHD_DATA=/x", "MESHD_TOKEN=t"});
  ASSERT_EQ(2U, lines.size());
  EXPECT_EQ("the environment has MESHD_LOGLEVEL, which no option reads; is MESHD_LOG_LEVEL meant?", lines[0]);
  EXPECT_EQ("the environment has MESHD_TOKEN, which no option reads; is MESHD_TOKENS meant?", lines[1]);
}

TEST(Environment, name_that_is_near_nothing_points_to_the_help) {
  const Names lines = unknown({"MESHD_FRIENDLINESS=1"});
  ASSERT_EQ(1U, lines.size());
  EXPECT_NE(std::string::npos, lines[0].find("--help"));
}

TEST(Environment, service_links_of_platforms_are_fine) {
  EXPECT_EQ(Names(),
            unknown({"MESHD_SERVICE_HOST=10.0.0.1", "MESHD_SERVICE_PORT=80", "MESHD_SERVICE_PORT_HTTP=80",
                     "MESHD_PORT=tcp://10.0.0.1:80", "MESHD_PORT_80_TCP=tcp://10.0.0.1:80",
                     "MESHD_PORT_80_TCP_PROTO=tcp", "MESHD_PORT_80_TCP_PORT=80", "MESHD_PORT_80_TCP_ADDR=10.0.0.1",
                     "MESHD_INSIDE_SERVICE_HOST=10.0.0.2", "MESHD_INSIDE_PORT_80_UDP_ADDR=10.0.0.2"}));
  // A port that somebody meant for the server is none of them.
  EXPECT_EQ(1U, unknown({"MESHD_PORT=8080"}).size());
}

TEST(Environment, only_near_names_are_suggested) {
  EXPECT_NE(std::string::npos, unknown({"MESHD_DTAA=x"}).at(0).find("is MESHD_DATA meant?"));
  EXPECT_EQ(std::string::npos, unknown({"MESHD_QUOTA_OF_ALL=x"}).at(0).find("meant?"));
}

}  // namespace
}  // namespace meshd::api
