// Texts of the suite with random changes: each is traced or refused with an Error, and nothing else happens.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "service/core/error.h"
#include "service/numpy/numpy.h"

namespace meshd::numpy {
namespace {

// Texts between three quotes, and expressions by the line.
std::vector<std::string> seeds() {
  std::ifstream file(MESHD_SOURCE_DIR "/tests/numpy/programs.py");
  std::vector<std::string> out;
  std::string line;
  std::string block;
  bool inside = false;
  while (std::getline(file, line)) {
    const size_t quotes = line.find("\"\"\"");
    if (quotes != std::string::npos && line.find("\"\"\"", quotes + 3) == std::string::npos) {
      if (inside && block.find("def ") != std::string::npos) out.push_back(block);
      inside = !inside;
      block.clear();
      continue;
    }
    if (!inside) continue;
    block += line + "\n";
    if (line.find("def ") == std::string::npos && line.find('(') != std::string::npos && line[0] != ' ')
      out.push_back("def f(x, y=1.0, key=None):\n    return " + line + "\n");
  }
  return out;
}

std::string mutated(std::string text, const std::vector<std::string>& all, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"(",        ")",
                                                   "[",        "]",
                                                   ":",        ",",
                                                   "-1",       "0",
                                                   "10**9",    "x",
                                                   "y",        "jnp.",
                                                   ".at[0]",   "**",
                                                   "//",       "%",
                                                   "@",        "None",
                                                   "...",      "-",
                                                   "lambda: ", "if x.sum() > 0 else",
                                                   "\n    ",   " for i in range(3)",
                                                   "axis=7",   "'a'",
                                                   "1e400",    "range(x)",
                                                   "x.shape"};
  const auto pick = [&](size_t size) { return std::uniform_int_distribution<size_t>(0, size - 1)(random); };
  for (size_t changes = 1 + pick(4); changes > 0 && !text.empty(); --changes) {
    const size_t at = pick(text.size());
    switch (pick(5)) {
      case 0:
        text.erase(at, 1 + pick(6));
        break;
      case 1:
        text.insert(at, kPieces[pick(kPieces.size())]);
        break;
      case 2:
        text[at] = static_cast<char>(pick(128));
        break;
      case 3:
        text.insert(at, text.substr(pick(text.size()), 1 + pick(12)));
        break;
      default: {
        const std::string& other = all[pick(all.size())];
        text.insert(at, other.substr(pick(other.size()), 1 + pick(20)));
      }
    }
  }
  return text;
}

TEST(MutationTest, no_text_does_more_than_be_refused) {
  const std::vector<std::string> all = seeds();
  ASSERT_GT(all.size(), 200U);
  std::mt19937 random(7);
  int traced = 0;
  constexpr int kTexts = 30000;
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = mutated(all[static_cast<size_t>(i) % all.size()], all, random);
    try {
      const ProgramRef program = read(text);
      Inputs inputs;
      for (size_t p = 0; p < program->parameters().size() && p < 3; ++p)
        inputs.positional.push_back({Input::ArrayType{
            {p == 2 ? tensor::DType::kUint32 : tensor::DType::kFloat32, p == 2 ? tensor::Dims{2} : tensor::Dims{2, 3}},
            false}});
      trace(*program, inputs, nullptr);
      ++traced;
    } catch (const core::Error& error) {
      EXPECT_FALSE(error.detail().empty());
      EXPECT_NE(error.code().word(), "internal") << text;
    }
  }
  EXPECT_GT(traced, kTexts / 100);
}

}  // namespace
}  // namespace meshd::numpy
