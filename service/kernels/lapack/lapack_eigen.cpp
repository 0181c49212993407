// Eigenvalues, and the reduced forms that they are computed from.
#include <cstring>

#include "service/kernels/lapack/lapack_plans.h"

namespace meshd::kernels {
namespace {

using namespace lapack;

template <class T>
struct Syevd : Lapack::Plan {
  explicit Syevd(const LapackSpec& spec) : mode(spec.mode), uplo(spec.uplo), n(spec.rows) {
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<Real<T>>(n), bytes_of<int32_t>(1)};
    T size{};
    Real<T> asked_real = 0;
    int asked_int = 0;
    syevd(mode, uplo, to_int(n), static_cast<T*>(nullptr), leading(n), static_cast<Real<T>*>(nullptr), &size, -1,
          &asked_real, -1, &asked_int, -1);
    work_size = asked(size);
    real_size = kIsComplex<T> ? asked(asked_real) : 0;
    int_size = std::max(1, asked_int);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a;
    T* work;
    Real<T>* real_work;
    int* int_work;
  };
  Memory lay_out(Arena& arena) const {
    return {arena.take<T>(n * n), arena.take<T>(work_size), arena.take<Real<T>>(real_size), arena.take<int>(int_size)};
  }
  /// Only one triangle is read.
  [[nodiscard]] bool is_finite(const T* a) const {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t begin = uplo == 'L' ? 0 : i;
      const int64_t end = uplo == 'L' ? i + 1 : n;
      if (!all_finite(a + i * n + begin, end - begin)) return false;
    }
    return true;
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    const T* const a = operand<T>(operands, 0);
    int32_t& info = *result<int32_t>(results, 2);
    info = 0;
    if (n == 0) return;
    if (!is_finite(a)) {
      info = kNotFinite;
      fill_nan(result<T>(results, 0), n * n);
      fill_nan(result<Real<T>>(results, 1), n);
      return;
    }
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(a, n, n, memory.a);
    info = syevd(mode, uplo, to_int(n), memory.a, leading(n), result<Real<T>>(results, 1), memory.work, work_size,
                 memory.real_work, real_size, memory.int_work, int_size);
    to_rows(memory.a, n, n, result<T>(results, 0));
  }
  char mode;
  char uplo;
  int64_t n;
  int work_size;
  int real_size;
  int int_size;
};

template <class T>
struct Geev : Lapack::Plan {
  using Complex = std::complex<Real<T>>;

  explicit Geev(const LapackSpec& spec) : left(spec.left), right(spec.right), n(spec.rows) {
    operand_bytes = {bytes_of<T>(n * n)};
    if (kIsComplex<T>) {
      result_bytes = {bytes_of<T>(n)};
    } else {
      result_bytes = {bytes_of<T>(n), bytes_of<T>(n)};
    }
    for (int side = 0; side < 2; ++side) result_bytes.push_back(bytes_of<Complex>(n * n));
    result_bytes.push_back(bytes_of<int32_t>(1));
    T size{};
    Real<T> unused = 0;  // some queries write there
    geev(left, right, to_int(n), static_cast<T*>(nullptr), leading(n), static_cast<T*>(nullptr),
         static_cast<Real<T>*>(nullptr), static_cast<T*>(nullptr), leading(n), static_cast<T*>(nullptr), leading(n),
         &size, -1, &unused);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a;
    T* vectors[2];
    T* work;
    Real<T>* real_work;
  };
  Memory lay_out(Arena& arena) const {
    Memory memory{};
    memory.a = arena.take<T>(n * n);
    for (T*& vectors : memory.vectors) vectors = arena.take<T>(n * n);
    memory.work = arena.take<T>(work_size);
    memory.real_work = arena.take<Real<T>>(kIsComplex<T> ? 2 * n : 0);
    return memory;
  }
  /// Vectors of real matrices come as one column, or as real and imaginary parts of a pair in two.
  void unpack(const T* packed, const Real<T>* imaginary, Complex* to) const {
    for (int64_t j = 0; j < n; ++j) {
      const bool is_pair = !kIsComplex<T> && imaginary[j] != 0 && j + 1 < n;
      for (int64_t i = 0; i < n; ++i) {
        if constexpr (kIsComplex<T>) {
          to[i * n + j] = packed[j * n + i];
        } else if (is_pair) {
          to[i * n + j] = {packed[j * n + i], packed[(j + 1) * n + i]};
          to[i * n + j + 1] = std::conj(to[i * n + j]);
        } else {
          to[i * n + j] = packed[j * n + i];
        }
      }
      if (is_pair) ++j;
    }
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    const T* const a = operand<T>(operands, 0);
    const size_t first_vectors = kIsComplex<T> ? 1 : 2;
    int32_t& info = *result<int32_t>(results, first_vectors + 2);
    info = 0;
    if (n == 0) return;
    auto* const imaginary = kIsComplex<T> ? nullptr : result<Real<T>>(results, 1);
    if (all_finite(a, n * n)) {
      Arena arena(scratch);
      const Memory memory = lay_out(arena);
      to_columns(a, n, n, memory.a);
      for (T* vectors : memory.vectors) std::fill_n(vectors, n * n, T{});
      info = geev(left, right, to_int(n), memory.a, leading(n), result<T>(results, 0), imaginary, memory.vectors[0],
                  leading(n), memory.vectors[1], leading(n), memory.work, work_size, memory.real_work);
      if (info == 0) {
        for (size_t side = 0; side < 2; ++side) {
          unpack(memory.vectors[side], imaginary, result<Complex>(results, first_vectors + side));
        }
        return;
      }
    } else {
      info = kNotFinite;
    }
    fill_nan(result<T>(results, 0), n);
    if (!kIsComplex<T>) fill_nan(imaginary, n);
    for (size_t side = 0; side < 2; ++side) fill_nan(result<Complex>(results, first_vectors + side), n * n);
  }
  char left;
  char right;
  int64_t n;
  int work_size;
};

template <class T>
struct Gees : Lapack::Plan {
  explicit Gees(const LapackSpec& spec) : mode(spec.mode), n(spec.rows) {
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<T>(n * n), bytes_of<T>(n)};
    if (!kIsComplex<T>) result_bytes.push_back(bytes_of<T>(n));
    for (int i = 0; i < 2; ++i) result_bytes.push_back(bytes_of<int32_t>(1));
    T size{};
    Real<T> unused = 0;  // some queries write there
    gees(mode, 'N', to_int(n), static_cast<T*>(nullptr), leading(n), nullptr, static_cast<T*>(nullptr),
         static_cast<Real<T>*>(nullptr), static_cast<T*>(nullptr), leading(n), &size, -1, &unused, nullptr);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a;
    T* vectors;
    T* work;
    Real<T>* real_work;
  };
  Memory lay_out(Arena& arena) const {
    return {arena.take<T>(n * n), arena.take<T>(n * n), arena.take<T>(work_size),
            arena.take<Real<T>>(kIsComplex<T> ? n : 0)};
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    const T* const a = operand<T>(operands, 0);
    const size_t counts = kIsComplex<T> ? 3 : 4;
    int32_t& selected = *result<int32_t>(results, counts);
    int32_t& info = *result<int32_t>(results, counts + 1);
    selected = 0;
    info = 0;
    if (n == 0) return;
    auto* const imaginary = kIsComplex<T> ? nullptr : result<Real<T>>(results, 3);
    if (!all_finite(a, n * n)) {
      info = kNotFinite;
      for (size_t i = 0; i < 2; ++i) fill_nan(result<T>(results, i), n * n);
      fill_nan(result<T>(results, 2), n);
      if (!kIsComplex<T>) fill_nan(imaginary, n);
      return;
    }
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(a, n, n, memory.a);
    std::fill_n(memory.vectors, n * n, T{});
    int unused = 0;
    info = gees(mode, 'N', to_int(n), memory.a, leading(n), &selected, result<T>(results, 2), imaginary, memory.vectors,
                leading(n), memory.work, work_size, memory.real_work, &unused);
    to_rows(memory.a, n, n, result<T>(results, 0));
    to_rows(memory.vectors, n, n, result<T>(results, 1));
  }
  char mode;
  int64_t n;
  int work_size;
};

template <class T>
struct Gehrd : Lapack::Plan {
  explicit Gehrd(const LapackSpec& spec) : n(spec.rows), low(spec.low), high(spec.high) {
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<T>(std::max<int64_t>(n - 1, 0)), bytes_of<int32_t>(1)};
    T size{};
    if (n > 0) {
      gehrd(to_int(n), to_int(low), to_int(high), static_cast<T*>(nullptr), leading(n), static_cast<T*>(nullptr), &size,
            -1);
    }
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  using Memory = MatrixAndWork<T>;
  Memory lay_out(Arena& arena) const { return {arena.take<T>(n * n), arena.take<T>(work_size)}; }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    int32_t& info = *result<int32_t>(results, 2);
    info = 0;
    if (n == 0) return;
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), n, n, memory.a);
    info = gehrd(to_int(n), to_int(low), to_int(high), memory.a, leading(n), result<T>(results, 1), memory.work,
                 work_size);
    to_rows(memory.a, n, n, result<T>(results, 0));
  }
  int64_t n, low, high;
  int work_size;
};

template <class T>
struct Sytrd : Lapack::Plan {
  explicit Sytrd(const LapackSpec& spec) : uplo(spec.uplo), n(spec.rows) {
    const int64_t off = std::max<int64_t>(n - 1, 0);
    operand_bytes = {bytes_of<T>(n * n)};
    result_bytes = {bytes_of<T>(n * n), bytes_of<Real<T>>(n), bytes_of<Real<T>>(off), bytes_of<T>(off),
                    bytes_of<int32_t>(1)};
    T size{};
    if (n > 0) {
      sytrd(uplo, to_int(n), static_cast<T*>(nullptr), leading(n), static_cast<Real<T>*>(nullptr),
            static_cast<Real<T>*>(nullptr), static_cast<T*>(nullptr), &size, -1);
    }
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  using Memory = MatrixAndWork<T>;
  Memory lay_out(Arena& arena) const { return {arena.take<T>(n * n), arena.take<T>(work_size)}; }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    int32_t& info = *result<int32_t>(results, 4);
    info = 0;
    if (n == 0) return;
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), n, n, memory.a);
    info = sytrd(uplo, to_int(n), memory.a, leading(n), result<Real<T>>(results, 1), result<Real<T>>(results, 2),
                 result<T>(results, 3), memory.work, work_size);
    to_rows(memory.a, n, n, result<T>(results, 0));
  }
  char uplo;
  int64_t n;
  int work_size;
};

}  // namespace

std::shared_ptr<Lapack::Plan> plan_eigen(const LapackSpec& spec) {
  return for_dtype(spec.dtype, [&]<class T>() -> std::shared_ptr<Lapack::Plan> {
    switch (spec.routine) {
      case LapackRoutine::kGeev:
        return std::make_shared<Geev<T>>(spec);
      case LapackRoutine::kGees:
        return std::make_shared<Gees<T>>(spec);
      case LapackRoutine::kGehrd:
        return std::make_shared<Gehrd<T>>(spec);
      case LapackRoutine::kSytrd:
        return std::make_shared<Sytrd<T>>(spec);
      case LapackRoutine::kSyevd:
        return std::make_shared<Syevd<T>>(spec);
      default:
        throw core::Error("internal", "plan_eigen: not a routine of eigenvalues");
    }
  });
}

}  // namespace meshd::kernels
