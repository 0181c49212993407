// Runs a libFuzzer target without libFuzzer: the seed files as they are, then mutated for so many seconds. For
// compilers that have no -fsanitize=fuzzer. Where the code is instrumented (the preset fuzz), what reaches new code
// is mutated further.
//   parser_fuzz SECONDS SEED FILE...        a failing input is left in fuzz_last_input
// With FUZZ_FOUND=FOLDER each input that reached code that none before it had reached is left there, whether it was a
// file or was made. A second run over what was found, short files first, leaves the few that are worth keeping
// (keep.py).
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "tests/fuzz/coverage.h"
#include "tests/support/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMostWords = 2'000;
constexpr size_t kLongestWord = 24;

// Names, keywords and numbers that the seeds are made of, beside those of StableHLO.
std::vector<std::string> words_of(const std::vector<std::string>& seeds) {
  std::set<std::string> words;
  for (const std::string& seed : seeds) {
    std::string word;
    for (const char c : seed + ' ') {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.') {
        word += c;
      } else {
        if (word.size() > 1 && word.size() <= kLongestWord && words.size() < kMostWords) words.insert(word);
        word.clear();
      }
    }
  }
  std::vector<std::string> out = meshd::testing::stablehlo_words();
  out.insert(out.end(), words.begin(), words.end());
  return out;
}

void write(const std::string& path, const std::string& input) { std::ofstream(path, std::ios::binary) << input; }

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: " << argv[0] << " SECONDS SEED FILE...\n";
    return 2;
  }
  std::vector<std::string> seeds;
  for (int i = 3; i < argc; ++i) {
    std::stringstream content;
    content << std::ifstream(argv[i], std::ios::binary).rdbuf();
    seeds.push_back(content.str());
  }
  const size_t given = seeds.size();
  const char* found = std::getenv("FUZZ_FOUND");
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  meshd::testing::Mutator mutator(seed, words_of(seeds));
  std::mt19937_64 choose(seed);
  // Half of the time one of those that reached something new, as long as there are any.
  const auto chosen = [&]() -> const std::string& {
    const size_t first = seeds.size() > given && choose() % 2 == 0 ? given : 0;
    return seeds[first + choose() % (seeds.size() - first)];
  };
  meshd::fuzz::Coverage coverage;
  const auto stop = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  size_t runs = 0;
  for (; runs < given || std::chrono::steady_clock::now() < stop; ++runs) {
    const std::string input = runs < given ? seeds[runs] : mutator.mutate(chosen(), chosen());
    write("fuzz_last_input", input);
    // Processor time: a busy machine is no hang.
    const std::clock_t begin = std::clock();
    coverage.begin();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    const bool is_new = coverage.has_new();
    if ((std::clock() - begin) / CLOCKS_PER_SEC >= 5) {
      std::cerr << "an input took more than 5 seconds\n";
      return 1;
    }
    if (!is_new) continue;
    if (found != nullptr) write((std::filesystem::path(found) / std::to_string(runs)).string(), input);
    if (runs >= given) seeds.push_back(input);
  }
  std::cout << runs << " runs, " << seeds.size() - given << " inputs reached new code, " << coverage.size()
            << " edges and counts of them\n";
  return 0;
}
