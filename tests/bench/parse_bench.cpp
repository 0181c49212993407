// Modules of 50 MB that are one large constant: how fast the parser reads them, against reading the same bytes of text
// with std::from_chars or a hex table alone, and how much memory it takes beyond the text.
#include <malloc.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "service/program/literals/hex.h"
#include "service/program/parse_stablehlo.h"

namespace {

using Clock = std::chrono::steady_clock;

double best_seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    run();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

/// Resident bytes now ("VmRSS:") or at most ("VmHWM:") since the peak was reset.
int64_t resident(const std::string& which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(which, 0) == 0) return std::stoll(line.substr(which.size())) * 1024;
  }
  return 0;
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string module_of(const std::string& constant, int64_t count) {
  const std::string type = "tensor<" + std::to_string(count) + "xf32>";
  return "module @m {\n  func.func public @main() -> " + type + " {\n    %0 = stablehlo.constant dense<" + constant +
         "> : " + type + "\n    return %0 : " + type + "\n  }\n}\n";
}

void report(const char* name, const std::string& text, int64_t constant_bytes, const std::function<void()>& by_hand) {
  malloc_trim(0);
  reset_peak();
  const int64_t before = resident("VmRSS:");
  meshd::program::parse_stablehlo(text);
  const int64_t taken = resident("VmHWM:") - before;
  const double parse = best_seconds([&] { meshd::program::parse_stablehlo(text); });
  const double hand = best_seconds(by_hand);
  std::printf("%-24s %6.0f MB/s, by hand %6.0f MB/s, ratio %.2f; memory beyond the text %.2f x the constant\n", name,
              static_cast<double>(text.size()) / parse / 1e6, static_cast<double>(text.size()) / hand / 1e6,
              hand / parse, static_cast<double>(taken) / static_cast<double>(constant_bytes));
}

}  // namespace

int main() {
  std::mt19937 random(1);
  {
    constexpr int64_t kCount = 6'000'000;
    std::string digits = "0x";
    for (int64_t i = 0; i < kCount * 8; ++i) digits += "0123456789ABCDEF"[random() % 16];
    const std::string text = module_of("\"" + digits + "\"", kCount);
    report("hex, f32", text, kCount * 4, [&] {
      std::vector<std::byte> out;
      meshd::program::decode_hex(digits, out);
    });
  }
  {
    constexpr int64_t kCount = 3'500'000;
    std::string list = "[";
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kCount; ++i) {
      char number[32];
      std::snprintf(number, sizeof(number), "%s%.8e", i == 0 ? "" : ", ", static_cast<double>(normal(random)));
      list += number;
    }
    const std::string text = module_of(list + "]", kCount);
    report("decimal list, f32", text, kCount * 4, [&] {
      std::vector<float> out;
      const char* at = list.data() + 1;
      const char* const end = list.data() + list.size();
      while (at < end) {
        double value = 0;
        at = std::from_chars(at, end, value).ptr;
        out.push_back(static_cast<float>(value));
        at += 2;
      }
    });
  }
}
