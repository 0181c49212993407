// The cases of tests/conformance/propagation, and how one of them is judged: as its README and explain.py say.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace meshd::propagation {

/// Names of all cases ("calls/layer_once"), sorted.
std::vector<std::string> case_names();
/// What is wrong with a case, or empty text when every sharding is Shardy's (or the text is refused where it must be).
std::string judge(const std::string& name);
/// Where an op's factor rule is not the one that Shardy prints; no case demands it, but the order of factors decides
/// ties.
std::string differing_rules(const std::string& name);
/// Lines of tests/conformance/passing/propagation.txt.
std::vector<std::string> passing_names();
std::filesystem::path conformance_folder();

}  // namespace meshd::propagation
