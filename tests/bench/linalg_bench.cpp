// Fourier transforms beside kissfft (powers of two) and beside the next power of two (other lengths); factorisations as
// rates. Medians of rounds in which both are measured in turn, in this thread's own time.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#ifdef MESHD_HAS_KISSFFT
#include <kiss_fft.h>
#endif

#include "service/kernels/fft/fft.h"
#include "service/kernels/lapack/lapack.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace meshd;
using bench::compare;

struct Freed {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Freed>;
Memory allocate(int64_t bytes) { return Memory(std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64))); }

/// One transform of random-looking numbers that can be run again and again.
class Transform {
 public:
  Transform(int64_t length, bool is_double)
      : fft_({kernels::FftKind::kForward, is_double, 1, {length}}),
        in_(allocate(length * (is_double ? 16 : 8))),
        out_(allocate(length * (is_double ? 16 : 8))),
        scratch_(allocate(fft_.scratch_bytes())) {
    for (int64_t i = 0; i < 2 * length; ++i) {
      const double value = static_cast<double>(i * 37 % 101) * 0.01;
      if (is_double) {
        static_cast<double*>(in_.get())[i] = value;
      } else {
        static_cast<float*>(in_.get())[i] = static_cast<float>(value);
      }
    }
  }
  void run() const {
    fft_.run({static_cast<const std::byte*>(in_.get()), static_cast<std::byte*>(out_.get()),
              static_cast<std::byte*>(scratch_.get()), nullptr},
             0, fft_.work_count());
  }
  [[nodiscard]] double flops() const { return fft_.flops(); }
  [[nodiscard]] const void* in() const { return in_.get(); }

 private:
  kernels::Fft fft_;
  Memory in_;
  Memory out_;
  Memory scratch_;
};

void bench_powers() {
  for (const int64_t length : {64, 256, 1024, 4096, 65536, 1 << 20, 1 << 22}) {
    const Transform ours(length, false);
#ifdef MESHD_HAS_KISSFFT
    const std::unique_ptr<kiss_fft_state, void (*)(kiss_fft_cfg)> plan(
        kiss_fft_alloc(static_cast<int>(length), 0, nullptr, nullptr), [](kiss_fft_cfg cfg) { kiss_fft_free(cfg); });
    std::vector<kiss_fft_cpx> out(static_cast<size_t>(length));
    const auto [mine, kiss] = compare(
        [&] { ours.run(); }, [&] { kiss_fft(plan.get(), static_cast<const kiss_fft_cpx*>(ours.in()), out.data()); });
    std::printf("fft c64 %8ld   %6.1f GFLOP/s   %5.2fx of kissfft (%.1f)\n", length, ours.flops() / mine / 1e9,
                kiss / mine, ours.flops() / kiss / 1e9);
#else
    const auto [mine, again] = compare([&] { ours.run(); }, [&] { ours.run(); });
    std::printf("fft c64 %8ld   %6.1f GFLOP/s   (kissfft is not installed)\n", length,
                ours.flops() / std::min(mine, again) / 1e9);
#endif
  }
}

void bench_others(bool is_double) {
  for (const int64_t length : {100, 1000, 1009, 1018, 5000, 5003, 65537, 100000, 1000003}) {
    int64_t power = 1;
    while (power < length) power *= 2;
    const Transform ours(length, is_double);
    const Transform peer(power, is_double);
    const auto [mine, next] = compare([&] { ours.run(); }, [&] { peer.run(); });
    std::printf("fft %s %8ld   %6.1f GFLOP/s   %5.2fx the time of %ld\n", is_double ? "c128" : "c64 ", length,
                ours.flops() / mine / 1e9, mine / next, power);
  }
}

void bench_factors() {
  struct Row {
    const char* name;
    kernels::LapackRoutine routine;
    double flops;  ///< in n^3
  };
  for (const Row& row :
       {Row{"potrf", kernels::LapackRoutine::kPotrf, 1.0 / 3}, Row{"getrf", kernels::LapackRoutine::kGetrf, 2.0 / 3},
        Row{"geqrf", kernels::LapackRoutine::kGeqrf, 4.0 / 3}, Row{"syevd", kernels::LapackRoutine::kSyevd, 9}}) {
    for (const int64_t n : {64, 512, 1024}) {
      const int64_t batch = n == 64 ? 64 : 1;
      kernels::LapackSpec spec{
          .routine = row.routine, .dtype = tensor::DType::kFloat64, .batch = batch, .rows = n, .columns = n};
      const kernels::Lapack lapack(spec);
      std::vector<double> a(static_cast<size_t>(batch * n * n));
      for (size_t i = 0; i < a.size(); ++i) {
        const auto row_of = static_cast<int64_t>(i) / n % n;
        const auto column = static_cast<int64_t>(i) % n;
        a[i] =
            (row_of == column ? static_cast<double>(n) : 0) + static_cast<double>((row_of + column) * 37 % 101) * 0.01;
      }
      std::vector<double> results[3] = {a, std::vector<double>(static_cast<size_t>(batch * n)),
                                        std::vector<double>(static_cast<size_t>(batch))};
      const Memory scratch = allocate(lapack.scratch_bytes());
      const auto* operand = reinterpret_cast<const std::byte*>(a.data());
      std::byte* out[3];
      for (size_t i = 0; i < 3; ++i) out[i] = reinterpret_cast<std::byte*>(results[i].data());
      const Memory workspace = allocate(lapack.workspace_bytes());
      const auto run = [&] {
        lapack.run({&operand, out, static_cast<std::byte*>(scratch.get()), static_cast<std::byte*>(workspace.get())}, 0,
                   lapack.work_count());
      };
      const auto [seconds, again] = compare(run, run);
      const auto order = static_cast<double>(n);
      std::printf("%s f64 %3ld x %4ld   %6.1f GFLOP/s   %.0f us a matrix\n", row.name, batch, n,
                  static_cast<double>(batch) * row.flops * order * order * order / seconds / 1e9,
                  std::min(seconds, again) / static_cast<double>(batch) * 1e6);
    }
  }
}

}  // namespace

int main() {
  bench_powers();
  bench_others(false);
  bench_others(true);
  bench_factors();
}
