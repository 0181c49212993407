#include "service/kernels/machine_rates.h"

#include <fmt/core.h>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "service/core/error.h"
#include "service/kernels/product/gemm.h"

namespace meshd::kernels {
namespace {

constexpr int kRounds = 6;
constexpr size_t kCopiedBytes = size_t{64} << 20;
constexpr int64_t kProductSize = 512;  // large enough for the rate of the largest
constexpr int kProducts = 2;           // a round

// The shortest of several rounds, in seconds, in which each thread does `work(thread)` once.
double best_round(int threads, const std::function<void(int)>& work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> ready{0};
    std::vector<double> took(static_cast<size_t>(threads));
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        ++ready;
        while (ready.load() < threads) std::this_thread::yield();
        const auto start = std::chrono::steady_clock::now();
        work(t);
        took[static_cast<size_t>(t)] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      });
    }
    for (std::thread& thread : all) thread.join();
    const double longest = *std::max_element(took.begin(), took.end());
    best = round == 0 ? longest : std::min(best, longest);
  }
  return best;
}

// Memory in huge pages: faults of small ones would take longer than all copies.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw core::Error("memory_exceeded", "there is no memory to measure the machine with");
    ::madvise(at, bytes, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(at);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  size_t bytes_;
};

double copied_bytes_per_second(int threads) {
  const Pages from(kCopiedBytes), to(kCopiedBytes);
  std::memset(from.data(), 1, kCopiedBytes);
  const size_t part = kCopiedBytes / static_cast<size_t>(threads);
  const double seconds = best_round(threads, [&](int thread) {
    const size_t begin = static_cast<size_t>(thread) * part;
    std::memcpy(to.data() + begin, from.data() + begin, part);
  });
  return 2.0 * static_cast<double>(part) * threads / seconds;
}

double product_operations_per_second(int threads) {
  GemmSpec spec;
  spec.m = spec.n = spec.k = kProductSize;
  spec.a = spec.b = {kProductSize, 1};
  const Gemm product(spec);
  constexpr auto kElements = static_cast<size_t>(kProductSize * kProductSize);
  std::vector<std::vector<float>> memory(static_cast<size_t>(threads), std::vector<float>(3 * kElements, 0.5F));
  std::vector<std::vector<std::byte>> scratch(
      static_cast<size_t>(threads), std::vector<std::byte>(static_cast<size_t>(product.scratch_bytes()) + 64));
  const double seconds = best_round(threads, [&](int thread) {
    auto* const a = reinterpret_cast<std::byte*>(memory[static_cast<size_t>(thread)].data());
    constexpr size_t kBytes = kElements * sizeof(float);
    void* aligned = scratch[static_cast<size_t>(thread)].data();
    size_t room = scratch[static_cast<size_t>(thread)].size();
    std::align(64, static_cast<size_t>(product.scratch_bytes()), aligned, room);
    for (int i = 0; i < kProducts; ++i) product.run(a, a + kBytes, a + 2 * kBytes, static_cast<std::byte*>(aligned));
  });
  return 2.0 * kProductSize * kProductSize * kProductSize * kProducts * threads / seconds;
}

}  // namespace

MachineRates measure_machine(int threads) {
  return {copied_bytes_per_second(threads), product_operations_per_second(threads)};
}

std::string processor_name() {
  std::ifstream facts("/proc/cpuinfo");
  for (std::string line; std::getline(facts, line);) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos || (!line.starts_with("model name") && !line.starts_with("CPU part"))) continue;
    return line.substr(colon + 2);
  }
  return "unknown";
}

std::string machine_name(int threads) { return fmt::format("{}, {} threads", processor_name(), threads); }

}  // namespace meshd::kernels
