// Singular values.
#include "service/kernels/lapack/lapack_plans.h"

namespace meshd::kernels {
namespace {

using namespace lapack;

template <class T>
struct Svd : Lapack::Plan {
  explicit Svd(const LapackSpec& spec)
      : divides(spec.routine == LapackRoutine::kGesdd),
        mode(spec.mode),
        m(spec.rows),
        n(spec.columns),
        k(std::min(m, n)),
        left_columns(spec.left_columns),
        right_rows(spec.right_rows) {
    operand_bytes = {bytes_of<T>(m * n)};
    result_bytes = {bytes_of<T>(m * n), bytes_of<Real<T>>(k), bytes_of<T>(m * left_columns),
                    bytes_of<T>(right_rows * n), bytes_of<int32_t>(1)};
    T size{};
    Real<T> unused = 0;
    int unused_int = 0;
    Memory query;
    query.real_work = &unused;
    query.int_work = &unused_int;
    if (k > 0) call(query, nullptr, &size, -1);
    work_size = asked(size);
    scratch_bytes = scratch_of(*this);
  }
  struct Memory {
    T* a = nullptr;
    T* u = nullptr;
    T* vt = nullptr;
    T* work = nullptr;
    Real<T>* real_work = nullptr;
    int* int_work = nullptr;
  };
  [[nodiscard]] int64_t real_work_size() const {
    if (!kIsComplex<T>) return 0;
    if (!divides) return 5 * k;
    if (mode == 'N') return 7 * k;
    return std::max(5 * k * k + 5 * k, 2 * std::max(m, n) * k + 2 * k * k + k);
  }
  Memory lay_out(Arena& arena) const {
    return {arena.take<T>(m * n),     arena.take<T>(m * left_columns),       arena.take<T>(right_rows * n),
            arena.take<T>(work_size), arena.take<Real<T>>(real_work_size()), arena.take<int>(divides ? 8 * k : 0)};
  }
  int call(const Memory& memory, Real<T>* s, T* work, int size) const {
    if (divides) {
      return gesdd(mode, to_int(m), to_int(n), memory.a, leading(m), s, memory.u, leading(m), memory.vt,
                   leading(right_rows), work, size, memory.real_work, memory.int_work);
    }
    return gesvd(mode, mode, to_int(m), to_int(n), memory.a, leading(m), s, memory.u, leading(m), memory.vt,
                 leading(right_rows), work, size, memory.real_work);
  }
  void run(const std::byte* const* operands, std::byte* const* results, std::byte* scratch) const override {
    Arena arena(scratch);
    const Memory memory = lay_out(arena);
    const T* const a = operand<T>(operands, 0);
    int32_t& info = *result<int32_t>(results, 4);
    info = 0;
    if (!all_finite(a, m * n)) {
      info = kNotFinite;
      fill_nan(result<T>(results, 0), m * n);
      fill_nan(result<Real<T>>(results, 1), k);
      fill_nan(result<T>(results, 2), m * left_columns);
      fill_nan(result<T>(results, 3), right_rows * n);
      return;
    }
    // Vectors that are not requested, and those of an empty matrix, are the unit matrix.
    for (T* vectors : {memory.u, memory.vt}) {
      const int64_t rows = vectors == memory.u ? m : right_rows;
      const int64_t columns = vectors == memory.u ? left_columns : n;
      std::fill_n(vectors, rows * columns, T{});
      for (int64_t i = 0; i < std::min(rows, columns); ++i) vectors[i * rows + i] = T{1};
    }
    if (k > 0) {
      to_columns(a, m, n, memory.a);
      info = call(memory, result<Real<T>>(results, 1), memory.work, work_size);
      to_rows(memory.a, m, n, result<T>(results, 0));
    }
    to_rows(memory.u, m, left_columns, result<T>(results, 2));
    to_rows(memory.vt, right_rows, n, result<T>(results, 3));
  }
  bool divides;
  char mode;
  int64_t m, n, k, left_columns, right_rows;
  int work_size = 1;
};

}  // namespace

std::shared_ptr<Lapack::Plan> plan_svd(const LapackSpec& spec) {
  return for_dtype(spec.dtype,
                   [&]<class T>() -> std::shared_ptr<Lapack::Plan> { return std::make_shared<Svd<T>>(spec); });
}

}  // namespace meshd::kernels
