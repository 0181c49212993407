// For developers: judges cases of tests/conformance/propagation and says what differs.
//   propagation_cases_tool --rules    factor rules that are not Shardy's
//   propagation_cases_tool [WORD]     those with WORD in their name; names alone of those that pass on standard output
#include <chrono>
#include <exception>
#include <iostream>

#include "tests/properties/propagation_cases.h"

int main(int argc, char** argv) {
  using meshd::propagation::case_names;
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "--rules") {
    for (const std::string& name : case_names()) {
      const std::string problems = meshd::propagation::differing_rules(name);
      if (!problems.empty()) std::cout << name << problems << "\n";
    }
    return 0;
  }
  int passed = 0;
  int failed = 0;
  for (const std::string& name : case_names()) {
    if (name.find(word) == std::string::npos) continue;
    std::string problem;
    const auto start = std::chrono::steady_clock::now();
    try {
      problem = meshd::propagation::judge(name);
    } catch (const std::exception& error) {
      problem = std::string("threw ") + error.what();
    }
    const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    ++(problem.empty() ? passed : failed);
    if (problem.empty()) {
      std::cout << name << "\n";
    } else {
      std::cerr << "FAIL " << name << ": " << problem << "\n";
    }
    if (spent.count() > 200) std::cerr << "SLOW " << name << ": " << spent.count() << " ms\n";
  }
  std::cerr << passed << " passed, " << failed << " failed\n";
  return failed == 0 ? 0 : 1;
}
