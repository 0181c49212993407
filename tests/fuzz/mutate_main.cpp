// Runs a libFuzzer target without libFuzzer: the seed files as they are, then mutated for so many seconds. For
// compilers that have no -fsanitize=fuzzer.
//   parser_fuzz SECONDS SEED FILE...        a failing input is left in fuzz_last_input
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tests/support/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

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
  const uint64_t seed = std::strtoull(argv[2], nullptr, 10);
  meshd::testing::Mutator mutator(seed, meshd::testing::stablehlo_words());
  std::mt19937_64 choose(seed);
  const auto stop = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  size_t runs = 0;
  for (; runs < seeds.size() || std::chrono::steady_clock::now() < stop; ++runs) {
    const std::string input = runs < seeds.size()
                                  ? seeds[runs]
                                  : mutator.mutate(seeds[choose() % seeds.size()], seeds[choose() % seeds.size()]);
    std::ofstream("fuzz_last_input", std::ios::binary) << input;
    // Processor time: a busy machine is no hang.
    const std::clock_t begin = std::clock();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    if ((std::clock() - begin) / CLOCKS_PER_SEC >= 5) {
      std::cerr << "an input took more than 5 seconds\n";
      return 1;
    }
  }
  std::cout << runs << " runs\n";
  return 0;
}
