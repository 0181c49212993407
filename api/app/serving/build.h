// What names the build that runs. Written into a source of its own, which is compiled again when the commit changes and
// nothing else is (cmake/build_source.cmake).
#pragma once

#include <string>

namespace meshd::api {

/// "0.1.0".
std::string version();
/// The commit that it was made of, as "28623c69a0b1", or "28623c69a0b1-dirty" where tracked files differed from it.
/// Empty where the sources were in no repository.
std::string commit_of_build();
/// Both, which tells builds of one version apart: "0.1.0+28623c69a0b1".
std::string build_name();

}  // namespace meshd::api
