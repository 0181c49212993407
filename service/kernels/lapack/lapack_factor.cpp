// Triangular and orthogonal factors.
#include <cstring>

#include "service/kernels/lapack/lapack_plans.h"

namespace meshd::kernels {
namespace {

using namespace lapack;

template <class T>
struct Getrf : Lapack::Plan {
  explicit Getrf(const LapackSpec& spec) : m(spec.rows), n(spec.columns) {
    operand_bytes = {bytes_of<T>(m * n)};
    result_bytes = {bytes_of<T>(m * n), bytes_of<int32_t>(std::min(m, n)), bytes_of<int32_t>(1)};
    scratch_bytes = bytes_of<T>(m * n);
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    T* const a = reinterpret_cast<T*>(scratch);
    to_columns(operand<T>(operands, 0), m, n, a);
    const bool is_empty = m == 0 || n == 0;
    *result<int32_t>(results, 2) =
        is_empty ? 0 : getrf(to_int(m), to_int(n), a, leading(m), result<int32_t>(results, 1));
    to_rows(a, m, n, result<T>(results, 0));
  }
  int64_t m, n;
};

template <class T>
struct Geqrf : Lapack::Plan {
  explicit Geqrf(const LapackSpec& spec) : m(spec.rows), n(spec.columns) {
    const int64_t k = std::min(m, n);
    operand_bytes = {bytes_of<T>(m * n)};
    result_bytes = {bytes_of<T>(m * n), bytes_of<T>(k)};
    T size{};
    if (k > 0) geqrf(to_int(m), to_int(n), static_cast<T*>(nullptr), leading(m), static_cast<T*>(nullptr), &size, -1);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  using Memory = MatrixAndWork<T>;
  Memory lay_out(Arena& arena) const { return {arena.take<T>(m * n), arena.take<T>(work_size)}; }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), m, n, memory.a);
    if (m != 0 && n != 0)
      geqrf(to_int(m), to_int(n), memory.a, leading(m), result<T>(results, 1), memory.work, work_size);
    to_rows(memory.a, m, n, result<T>(results, 0));
  }
  int64_t m, n;
  int work_size;
};

template <class T>
struct Orgqr : Lapack::Plan {
  explicit Orgqr(const LapackSpec& spec) : m(spec.rows), n(spec.columns), k(spec.inner) {
    operand_bytes = {bytes_of<T>(m * n), bytes_of<T>(k)};
    result_bytes = {bytes_of<T>(m * n)};
    T size{};
    if (m != 0 && n != 0) {
      orgqr(to_int(m), to_int(n), to_int(k), static_cast<T*>(nullptr), leading(m), static_cast<const T*>(nullptr),
            &size, -1);
    }
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  using Memory = MatrixAndWork<T>;
  Memory lay_out(Arena& arena) const { return {arena.take<T>(m * n), arena.take<T>(work_size)}; }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    if (m == 0 || n == 0) return;
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), m, n, memory.a);
    orgqr(to_int(m), to_int(n), to_int(k), memory.a, leading(m), operand<T>(operands, 1), memory.work, work_size);
    to_rows(memory.a, m, n, result<T>(results, 0));
  }
  int64_t m, n, k;
  int work_size;
};

template <class T>
struct Ormqr : Lapack::Plan {
  explicit Ormqr(const LapackSpec& spec)
      : rows(spec.rows),
        k(spec.inner),
        m(spec.other_rows),
        n(spec.other_columns),
        side(spec.side),
        transpose(spec.transpose) {
    if (kIsComplex<T> && transpose == 'T') transpose = 'C';
    operand_bytes = {bytes_of<T>(rows * k), bytes_of<T>(k), bytes_of<T>(m * n)};
    result_bytes = {bytes_of<T>(m * n)};
    T size{};
    if (m != 0 && n != 0) call(nullptr, nullptr, nullptr, &size, -1);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a;
    T* c;
    T* work;
  };
  Memory lay_out(Arena& arena) const {
    return {arena.take<T>(rows * k), arena.take<T>(m * n), arena.take<T>(work_size)};
  }
  void call(const T* a, const T* tau, T* c, T* work, int size) const {
    ormqr(side, transpose, to_int(m), to_int(n), to_int(k), a, leading(rows), tau, c, leading(m), work, size);
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    if (m == 0 || n == 0) return;
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), rows, k, memory.a);
    to_columns(operand<T>(operands, 2), m, n, memory.c);
    call(memory.a, operand<T>(operands, 1), memory.c, memory.work, work_size);
    to_rows(memory.c, m, n, result<T>(results, 0));
  }
  int64_t rows, k, m, n;
  char side;
  char transpose;
  int work_size;
};

template <class T>
struct Geqp3 : Lapack::Plan {
  explicit Geqp3(const LapackSpec& spec) : m(spec.rows), n(spec.columns) {
    const int64_t k = std::min(m, n);
    operand_bytes = {bytes_of<T>(m * n), bytes_of<int32_t>(n)};
    result_bytes = {bytes_of<T>(m * n), bytes_of<int32_t>(n), bytes_of<T>(k)};
    T size{};
    geqp3(to_int(m), to_int(n), static_cast<T*>(nullptr), leading(m), nullptr, static_cast<T*>(nullptr), &size, -1,
          nullptr);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a;
    T* work;
    Real<T>* real_work;
  };
  Memory lay_out(Arena& arena) const {
    return {arena.take<T>(m * n), arena.take<T>(work_size), arena.take<Real<T>>(kIsComplex<T> ? 2 * n : 0)};
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    to_columns(operand<T>(operands, 0), m, n, memory.a);
    if (operands[1] != results[1]) std::memmove(results[1], operands[1], static_cast<size_t>(operand_bytes[1]));
    auto* const pivots = result<int32_t>(results, 1);
    if (m == 0 || n == 0) {
      for (int64_t j = 0; j < n; ++j) pivots[j] = static_cast<int32_t>(j + 1);
      return;
    }
    geqp3(to_int(m), to_int(n), memory.a, leading(m), pivots, result<T>(results, 2), memory.work, work_size,
          memory.real_work);
    to_rows(memory.a, m, n, result<T>(results, 0));
  }
  int64_t m, n;
  int work_size;
};

}  // namespace

std::shared_ptr<Lapack::Plan> plan_factor(const LapackSpec& spec) {
  return for_dtype(spec.dtype, [&]<class T>() -> std::shared_ptr<Lapack::Plan> {
    switch (spec.routine) {
      case LapackRoutine::kGetrf:
        return std::make_shared<Getrf<T>>(spec);
      case LapackRoutine::kGeqrf:
        return std::make_shared<Geqrf<T>>(spec);
      case LapackRoutine::kOrgqr:
        return std::make_shared<Orgqr<T>>(spec);
      case LapackRoutine::kOrmqr:
        return std::make_shared<Ormqr<T>>(spec);
      case LapackRoutine::kGeqp3:
        return std::make_shared<Geqp3<T>>(spec);
      default:
        throw core::Error("internal", "plan_factor: not a routine that factors");
    }
  });
}

}  // namespace meshd::kernels
