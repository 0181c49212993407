// artifact_tool text FILE: the text of an artifact. artifact_tool compare: for each line `TEXT<tab>ARTIFACT` (two
// files) of its input a line that says whether both are the same module: `same`, `differs`, or what could not be read.
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "service/core/error.h"
#include "service/program/bytecode/artifact.h"
#include "tests/artifacts/canonical_text.h"

namespace {

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const std::string& bytes) {
  const bool is_text = bytes.starts_with("module") || bytes.starts_with("//") || bytes.starts_with("#") ||
                       bytes.starts_with("func") || bytes.starts_with("\"");
  return is_text ? bytes : meshd::program::read_artifact(bytes).text;
}

std::string compared(const std::string& text_path, const std::string& artifact_path) {
  std::string expected;
  try {
    expected = meshd::test::canonical_text(text_of(contents(text_path)));
  } catch (const meshd::core::Error& error) {
    return "text: " + error.detail();
  }
  try {
    const std::string text = text_of(contents(artifact_path));
    try {
      return meshd::test::canonical_text(text) == expected ? "same" : "differs";
    } catch (const meshd::core::Error& error) {
      return "printed: " + error.detail();
    }
  } catch (const meshd::core::Error& error) {
    return "artifact: " + error.detail();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if ((command == "text" || command == "canonical") && argc == 3) {
    try {
      const std::string text = text_of(contents(argv[2]));
      std::cout << (command == "text" ? text : meshd::test::canonical_text(text));
    } catch (const meshd::core::Error& error) {
      std::cerr << error.detail() << "\n";
      return 1;
    }
    return 0;
  }
  if (command != "compare") {
    std::cerr << "usage: artifact_tool text FILE | canonical FILE | compare\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    std::cout << line << "\t" << compared(line.substr(0, tab), line.substr(tab + 1)) << "\n";
  }
}
