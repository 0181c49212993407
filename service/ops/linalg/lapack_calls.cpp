#include "service/ops/linalg/lapack_calls.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "service/kernels/lapack/lapack.h"
#include "service/ops/checks.h"
#include "service/ops/kernel_interface.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/rule_views.h"

namespace meshd::ops {
namespace {

using kernels::LapackRoutine;
using kernels::LapackSpec;
using sharding::FactorKind;
using tensor::Dims;
using tensor::DType;

/// Results 0, 1, ... that take the memory of operands, from `operand` on: those that JAX overwrites.
struct InPlace {
  int operand = 0;
  int results = 1;
};

/// A routine under its real and its complex name.
struct Routine {
  LapackRoutine routine;
  std::string_view real;
  std::string_view complex;
  std::string_view summary;
  size_t operand_count;
  int operand_rank;  ///< of operand 0 without batch dimensions
  bool is_square;    ///< the matrices of operand 0
  InPlace in_place = {};
};

constexpr Routine kRoutines[] = {
    {LapackRoutine::kPotrf, "potrf", "potrf", "Cholesky factors", 1, 2, true},
    {LapackRoutine::kGetrf, "getrf", "getrf", "LU factors with row pivots", 1, 2, false},
    {LapackRoutine::kGeqrf, "geqrf", "geqrf", "QR factors as reflectors", 1, 2, false},
    {LapackRoutine::kOrgqr, "orgqr", "ungqr", "columns of Q from reflectors", 2, 2, false},
    {LapackRoutine::kOrmqr, "ormqr", "unmqr", "a product with Q from reflectors", 3, 2, false, {2, 1}},
    {LapackRoutine::kGeqp3, "geqp3", "geqp3", "QR factors with column pivots", 2, 2, false, {0, 2}},
    {LapackRoutine::kSyevd, "syevd", "heevd", "eigenvalues and vectors of symmetric matrices", 1, 2, true},
    {LapackRoutine::kGesdd, "gesdd", "gesdd", "singular values by divide and conquer", 1, 2, false},
    {LapackRoutine::kGesvd, "gesvd", "gesvd", "singular values by QR iteration", 1, 2, false},
    {LapackRoutine::kGeev, "geev", "geev", "eigenvalues and vectors", 1, 2, true, {0, 0}},
    {LapackRoutine::kGees, "gees", "gees", "Schur form", 1, 2, true},
    {LapackRoutine::kGehrd, "gehrd", "gehrd", "Hessenberg form as reflectors", 1, 2, true},
    {LapackRoutine::kSytrd, "sytrd", "hetrd", "tridiagonal form as reflectors", 1, 2, true},
    {LapackRoutine::kGtsv, "gtsv", "gtsv", "tridiagonal systems", 4, 1, true, {0, 4}},
    {LapackRoutine::kTrsm, "trsm", "trsm", "triangular systems", 2, 2, true, {1, 1}},
};
constexpr Routine kPerturbed = {
    LapackRoutine::kTridiagonalPerturbed, "", "", "tridiagonal systems, singular ones too", 4, 1, true, {3, 1}};
constexpr std::string_view kPerturbedTarget = "tridiagonal_solve_perturbed_ffi";

struct Letter {
  char letter;
  DType dtype;
};
constexpr Letter kLetters[] = {
    {'s', DType::kFloat32}, {'d', DType::kFloat64}, {'c', DType::kComplex64}, {'z', DType::kComplex128}};

/// A row of the table. No element type: that of the operand.
struct Target {
  std::string name;
  const Routine* routine = nullptr;
  std::optional<DType> dtype;
};

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = [] {
    std::vector<Target> out;
    for (const Routine& routine : kRoutines) {
      for (const Letter& letter : kLetters) {
        const std::string_view stem = tensor::is_complex(letter.dtype) ? routine.complex : routine.real;
        out.push_back({"lapack_" + std::string(1, letter.letter) + std::string(stem) + "_ffi", &routine, letter.dtype});
      }
    }
    out.push_back({std::string(kPerturbedTarget), &kPerturbed, std::nullopt});
    return out;
  }();
  return kTargets;
}

const Target& target_row(const OpView& view) {
  const std::string name = target_of(view);
  const auto& all = targets();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Target& target) { return target.name == name; });
  if (found == all.end()) reject(view, "internal", "custom_call @" + name + " is no LAPACK target");
  return *found;
}

/// Reads one call; every complaint names the target.
class Reader {
 public:
  explicit Reader(const OpView& view) : view_(view), target_(target_row(view)) {}

  [[noreturn]] void complain(const std::string& what) const {
    reject(view_, "custom_call @" + target_.name + ": " + what);
  }

  /// What is computed, after everything has been checked.
  LapackSpec read();
  [[nodiscard]] const std::vector<ir::Type>& results() const { return results_; }
  [[nodiscard]] int64_t batch_rank() const { return batch_rank_; }
  void check_layouts() const;
  void check_aliases() const;

 private:
  void read_sizes(LapackSpec& spec);
  void read_config(LapackSpec& spec) const;
  void expect_types(const LapackSpec& spec);

  [[nodiscard]] const ir::AttributeList& config() const;
  [[nodiscard]] int64_t number(std::string_view name) const;
  [[nodiscard]] char letter(std::string_view name, std::string_view allowed) const;
  [[nodiscard]] ir::Type batched(DType dtype, Dims dims) const;
  [[nodiscard]] int64_t dim(size_t operand, int from_end) const;
  void expect_operand(size_t index, const ir::Type& type) const;
  void check_layout_list(std::string_view name, std::span<const ir::Type> types) const;

  const OpView& view_;
  const Target& target_;
  DType dtype_ = DType::kFloat32;
  DType real_ = DType::kFloat32;
  DType complex_ = DType::kComplex64;
  int64_t batch_rank_ = 0;
  Dims batch_;
  std::vector<ir::Type> results_;
};

const ir::AttributeList& Reader::config() const {
  static const ir::AttributeList kNone;
  for (const std::string_view name : {"mhlo.backend_config", "backend_config"}) {
    const ir::Attribute* attribute = ir::find(attributes_of(view_), name);
    const auto* entries = attribute == nullptr ? nullptr : attribute->as<ir::DictAttr>();
    if (entries != nullptr) return entries->entries;
  }
  return kNone;
}

int64_t Reader::number(std::string_view name) const {
  const ir::Attribute* attribute = ir::find(config(), name);
  const auto* integer = attribute == nullptr ? nullptr : attribute->as<ir::IntegerAttr>();
  if (integer == nullptr) complain("mhlo.backend_config must have an integer " + std::string(name));
  return integer->value;
}

char Reader::letter(std::string_view name, std::string_view allowed) const {
  const int64_t value = number(name);
  const auto found = std::find_if(allowed.begin(), allowed.end(), [&](char c) { return c == value; });
  if (found != allowed.end()) return *found;
  std::string list;
  for (const char c : allowed) list += fmt::format("{}{} ('{}')", list.empty() ? "" : ", ", static_cast<int>(c), c);
  complain(fmt::format("{} of mhlo.backend_config must be one of {}, got {}", name, list, value));
}

ir::Type Reader::batched(DType dtype, Dims dims) const {
  dims.insert(dims.begin(), batch_.begin(), batch_.end());
  return ir::Type::of({dtype, std::move(dims)});
}

int64_t Reader::dim(size_t operand, int from_end) const {
  const Dims& dims = view_.operands[operand].dims();
  return dims[dims.size() - static_cast<size_t>(from_end)];
}

void Reader::expect_operand(size_t index, const ir::Type& type) const {
  if (compatible(view_.operands[index], type)) return;
  complain(fmt::format("operand {} must be {}, got {}", index, ir::to_string(type), operand_text(view_, index)));
}

void Reader::read_config(LapackSpec& spec) const {
  switch (spec.routine) {
    case LapackRoutine::kPotrf:
    case LapackRoutine::kSytrd:
      spec.uplo = letter("uplo", "LU");
      break;
    case LapackRoutine::kSyevd:
      spec.uplo = letter("uplo", "LU");
      spec.mode = letter("mode", "NV");
      break;
    case LapackRoutine::kGesdd:
    case LapackRoutine::kGesvd:
      spec.mode = letter("mode", "ASN");
      break;
    case LapackRoutine::kGeev:
      spec.left = letter("compute_left", "NV");
      spec.right = letter("compute_right", "NV");
      break;
    case LapackRoutine::kGees:
      spec.mode = letter("mode", "NV");
      static_cast<void>(letter("sort", "N"));
      break;
    case LapackRoutine::kGehrd:
      spec.low = number("low");
      spec.high = number("high");
      break;
    case LapackRoutine::kOrmqr:
      spec.side = number("left") != 0 ? 'L' : 'R';
      spec.transpose = number("transpose") != 0 ? 'T' : 'N';
      break;
    case LapackRoutine::kTrsm:
      spec.side = letter("side", "LR");
      spec.uplo = letter("uplo", "LU");
      spec.diagonal = letter("diag", "NU");
      spec.transpose = letter("trans_x", "NTC");
      break;
    default:
      break;
  }
}

void Reader::read_sizes(LapackSpec& spec) {
  const Routine& routine = *target_.routine;
  // JAX 0.4.38 has a factor as operand 2, which older_lapack.h takes off.
  const bool has_factor = spec.routine == LapackRoutine::kTrsm && view_.operands.size() == 3;
  if (view_.operands.size() != routine.operand_count && !has_factor) {
    complain(fmt::format("has {}{}, got {}", routine.operand_count,
                         routine.operand_count == 1 ? " operand" : " operands", view_.operands.size()));
  }
  for (size_t i = 0; i < view_.operands.size(); ++i) {
    if (!view_.operands[i].is_tensor())
      complain(fmt::format("operand {} must be a tensor, got {}", i, operand_text(view_, i)));
  }
  const ir::Type& first = view_.operands[0];
  dtype_ = target_.dtype.value_or(first.dtype());
  const bool is_known =
      std::any_of(std::begin(kLetters), std::end(kLetters), [&](const Letter& l) { return l.dtype == dtype_; });
  if (first.dtype() != dtype_ || !is_known) {
    complain("operand 0 must be of " +
             (target_.dtype ? std::string(tensor::row(dtype_).stablehlo) : "f32, f64, complex<f32> or complex<f64>") +
             ", got " + operand_text(view_, 0));
  }
  if (first.rank() < routine.operand_rank) {
    complain(std::string("operand 0 must be a ") + (routine.operand_rank == 2 ? "matrix" : "vector") +
             " or a batch of them, got " + operand_text(view_, 0));
  }
  const bool is_double = dtype_ == DType::kFloat64 || dtype_ == DType::kComplex128;
  real_ = is_double ? DType::kFloat64 : DType::kFloat32;
  complex_ = is_double ? DType::kComplex128 : DType::kComplex64;
  batch_rank_ = first.rank() - routine.operand_rank;
  batch_.assign(first.dims().begin(), first.dims().begin() + batch_rank_);
  spec.dtype = dtype_;
  spec.columns = dim(0, 1);
  spec.rows = routine.operand_rank == 2 ? dim(0, 2) : spec.columns;
  if (!routine.is_square) return;
  if (spec.rows == tensor::kDynamicDim) spec.rows = spec.columns;
  if (spec.columns == tensor::kDynamicDim) spec.columns = spec.rows;
  if (spec.rows != spec.columns) complain("the matrices of operand 0 must be square, got " + operand_text(view_, 0));
}

void Reader::expect_types(const LapackSpec& spec) {
  const int64_t m = spec.rows;
  const int64_t n = spec.columns;
  const int64_t least = m == tensor::kDynamicDim || n == tensor::kDynamicDim ? tensor::kDynamicDim : std::min(m, n);
  const int64_t off_diagonal = n == tensor::kDynamicDim ? n : std::max<int64_t>(n - 1, 0);
  const ir::Type matrix = batched(dtype_, {m, n});
  const ir::Type info = batched(DType::kInt32, {});
  const bool is_complex = tensor::is_complex(dtype_);
  switch (spec.routine) {
    case LapackRoutine::kPotrf:
      results_ = {matrix, info};
      return;
    case LapackRoutine::kGetrf:
      results_ = {matrix, batched(DType::kInt32, {least}), info};
      return;
    case LapackRoutine::kGeqrf:
      results_ = {matrix, batched(dtype_, {least})};
      return;
    case LapackRoutine::kOrgqr:
      expect_operand(1, batched(dtype_, {spec.inner}));
      if (n > m || spec.inner > n) {
        complain("must have at least as many rows as columns, and as many columns as reflectors, got " +
                 operand_text(view_, 0) + " and " + operand_text(view_, 1));
      }
      results_ = {matrix};
      return;
    case LapackRoutine::kOrmqr: {
      expect_operand(1, batched(dtype_, {spec.inner}));
      const int64_t order = spec.side == 'L' ? spec.other_rows : spec.other_columns;
      if (n != spec.inner || m != order || n > m) {
        complain(std::string("operand 0 must have as many rows as operand 2 has ") +
                 (spec.side == 'L' ? "rows" : "columns") + ", and a column for each of operand 1, got " +
                 operand_text(view_, 0) + ", " + operand_text(view_, 1) + " and " + operand_text(view_, 2));
      }
      expect_operand(2, batched(dtype_, {spec.other_rows, spec.other_columns}));
      results_ = {batched(dtype_, {spec.other_rows, spec.other_columns})};
      return;
    }
    case LapackRoutine::kGeqp3:
      expect_operand(1, batched(DType::kInt32, {n}));
      results_ = {matrix, batched(DType::kInt32, {n}), batched(dtype_, {least})};
      return;
    case LapackRoutine::kSyevd:
      results_ = {matrix, batched(real_, {n}), info};
      return;
    case LapackRoutine::kGesdd:
    case LapackRoutine::kGesvd:
      results_ = {matrix, batched(real_, {least}), batched(dtype_, {m, spec.left_columns}),
                  batched(dtype_, {spec.right_rows, n}), info};
      return;
    case LapackRoutine::kGeev:
      results_ = {batched(dtype_, {n}), batched(complex_, {n, n}), batched(complex_, {n, n}), info};
      if (!is_complex) results_.insert(results_.begin(), results_[0]);
      return;
    case LapackRoutine::kGees:
      results_ = {matrix, matrix, batched(dtype_, {n}), info, info};
      if (!is_complex) results_.insert(results_.begin() + 2, results_[2]);
      return;
    case LapackRoutine::kGehrd:
      if (n > 0 && (spec.low < 1 || spec.low > spec.high || spec.high > n)) {
        complain(fmt::format("low and high must be 1 <= low <= high <= {}, got {} and {}", n, spec.low, spec.high));
      }
      results_ = {matrix, batched(dtype_, {off_diagonal}), info};
      return;
    case LapackRoutine::kSytrd:
      results_ = {matrix, batched(real_, {n}), batched(real_, {off_diagonal}), batched(dtype_, {off_diagonal}), info};
      return;
    case LapackRoutine::kGtsv:
    case LapackRoutine::kTridiagonalPerturbed: {
      const ir::Type diagonal = batched(dtype_, {n});
      const ir::Type sides = batched(dtype_, {n, spec.other_columns});
      expect_operand(1, diagonal);
      expect_operand(2, diagonal);
      expect_operand(3, sides);
      if (spec.routine == LapackRoutine::kGtsv) {
        results_ = {diagonal, diagonal, diagonal, sides, info};
      } else {
        results_ = {sides};
      }
      return;
    }
    case LapackRoutine::kTrsm: {
      const ir::Type sides = batched(dtype_, {spec.other_rows, spec.other_columns});
      if (view_.operands.size() == 3) expect_operand(2, ir::Type::of({dtype_, {}}));
      expect_operand(
          1, spec.side == 'L' ? batched(dtype_, {n, spec.other_columns}) : batched(dtype_, {spec.other_rows, n}));
      results_ = {sides};
      return;
    }
  }
}

LapackSpec Reader::read() {
  LapackSpec spec;
  spec.routine = target_.routine->routine;
  read_sizes(spec);
  read_config(spec);
  const auto expect_rank = [&](size_t index, int64_t rank) {
    if (view_.operands[index].rank() != batch_rank_ + rank) {
      complain(fmt::format("operand {} must have {} dimensions, got {}", index, batch_rank_ + rank,
                           operand_text(view_, index)));
    }
  };
  switch (spec.routine) {
    case LapackRoutine::kOrgqr:
      expect_rank(1, 1);
      spec.inner = dim(1, 1);
      break;
    case LapackRoutine::kOrmqr:
      expect_rank(1, 1);
      expect_rank(2, 2);
      spec.inner = dim(1, 1);
      spec.other_rows = dim(2, 2);
      spec.other_columns = dim(2, 1);
      break;
    case LapackRoutine::kGtsv:
    case LapackRoutine::kTridiagonalPerturbed:
      expect_rank(3, 2);
      spec.other_columns = dim(3, 1);
      break;
    case LapackRoutine::kTrsm:
      expect_rank(1, 2);
      spec.other_rows = dim(1, 2);
      spec.other_columns = dim(1, 1);
      break;
    case LapackRoutine::kGesdd:
    case LapackRoutine::kGesvd: {
      const bool is_dynamic = spec.rows == tensor::kDynamicDim || spec.columns == tensor::kDynamicDim;
      const int64_t least = is_dynamic ? tensor::kDynamicDim : std::min(spec.rows, spec.columns);
      bool full = spec.mode == 'A';
      // Of vectors that are not computed either size will do.
      if (spec.mode == 'N' && view_.results.size() == 5 && view_.results[2].is_tensor() &&
          view_.results[3].is_tensor()) {
        full = compatible(view_.results[2], batched(dtype_, {spec.rows, spec.rows})) &&
               compatible(view_.results[3], batched(dtype_, {spec.columns, spec.columns}));
      }
      spec.left_columns = full ? spec.rows : least;
      spec.right_rows = full ? spec.columns : least;
      break;
    }
    default:
      break;
  }
  expect_types(spec);
  bool agrees = view_.results.size() == results_.size();
  for (size_t i = 0; agrees && i < results_.size(); ++i) agrees = compatible(view_.results[i], results_[i]);
  if (!agrees) {
    complain("results must be " + types_text(results_) + ", got " +
             types_text({view_.results.begin(), view_.results.end()}));
  }
  spec.batch = 1;
  for (const int64_t size : batch_) spec.batch *= size;
  return spec;
}

/// LAPACK reads columns: [r - 2, r - 1, r - 3, ..., 0], minor first. Vectors keep their layout.
std::vector<int64_t> layout_of(const ir::Type& type, int64_t batch_rank) {
  std::vector<int64_t> out;
  for (int64_t dim = type.rank() - 1; dim >= 0; --dim) out.push_back(dim);
  if (type.rank() >= batch_rank + 2) std::swap(out[0], out[1]);
  return out;
}

void Reader::check_layout_list(std::string_view name, std::span<const ir::Type> types) const {
  const ir::Attribute* attribute = ir::find(attributes_of(view_), name);
  const auto* list = attribute == nullptr ? nullptr : attribute->as<ir::ArrayAttr>();
  const std::string expectation = std::string(name) + " must say that matrices are column-major, as JAX prints it: ";
  if (list == nullptr || list->values.size() != types.size()) {
    complain(fmt::format("{}a list of {} layouts", expectation, types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const std::vector<int64_t> expected = layout_of(types[i], batch_rank_);
    const auto* dense = list->values[i].as<ir::DenseAttr>();
    const std::vector<int64_t> got = dense == nullptr ? std::vector<int64_t>{-1} : ir::dense_ints(*dense);
    if (got == expected) continue;
    std::string text;
    for (const int64_t dim : expected) text += fmt::format("{}{}", text.empty() ? "" : ", ", dim);
    complain(fmt::format("{}layout {} must be [{}]", expectation, i, text));
  }
}

void Reader::check_layouts() const {
  check_layout_list("operand_layouts", view_.operands);
  check_layout_list("result_layouts", view_.results);
}

/// Results have memory of their own or an operand's, as the plan decides; what is written must only be possible.
void Reader::check_aliases() const {
  const ir::Attribute* attribute = ir::find(attributes_of(view_), "output_operand_aliases");
  const auto* list = attribute == nullptr ? nullptr : attribute->as<ir::ArrayAttr>();
  if (list == nullptr) return;
  for (const ir::Attribute& value : list->values) {
    const auto* alias = value.as<ir::DictAttr>();
    if (alias == nullptr) continue;
    const std::vector<int64_t> results = ir::ints_or(alias->entries, "output_tuple_indices", {});
    const int64_t result = results.empty() ? 0 : results[0];
    const int64_t operand = ir::int_or(alias->entries, "operand_index", 0);
    const bool exists = result >= 0 && operand >= 0 && result < static_cast<int64_t>(view_.results.size()) &&
                        operand < static_cast<int64_t>(view_.operands.size());
    if (exists && compatible(view_.results[static_cast<size_t>(result)], view_.operands[static_cast<size_t>(operand)]))
      continue;
    complain(fmt::format("output_operand_aliases: result {} cannot be operand {}{}", result, operand,
                         exists ? ": their types differ" : ": there is no such pair"));
  }
}

}  // namespace

std::span<const LapackTarget> lapack_targets() {
  static const std::vector<LapackTarget> kTable = [] {
    std::vector<LapackTarget> out;
    for (const Target& target : targets()) out.push_back({target.name, target.routine->summary});
    return out;
  }();
  return kTable;
}

int64_t lapack_batch_rank(const OpView& view) {
  return view.operands[0].rank() - target_row(view).routine->operand_rank;
}

ir::Attribute lapack_layouts(std::span<const ir::Type> types, int64_t batch_rank) {
  ir::ArrayAttr out;
  for (const ir::Type& type : types) {
    ir::DenseAttr layout = ir::dense_integers_attr(layout_of(type, batch_rank), {type.rank()});
    layout.is_index = true;
    out.values.push_back({std::move(layout)});
  }
  return {std::move(out)};
}

void check_lapack_call(const OpView& view) {
  Reader reader(view);
  reader.read();
  reader.check_layouts();
  reader.check_aliases();
}

sharding::FactorRule lapack_call_rule(const OpView& view) {
  const int64_t batch_rank = lapack_batch_rank(view);
  sharding::FactorRuleBuilder builder = rule_builder(view);
  for (int64_t dim = 0; dim < batch_rank; ++dim) {
    builder.everywhere(static_cast<int>(dim), view.operands[0].dims()[static_cast<size_t>(dim)]);
  }
  const auto alone = [&](std::span<const ir::Type> types, bool is_result) {
    for (size_t i = 0; i < types.size(); ++i) {
      for (int64_t dim = batch_rank; dim < types[i].rank(); ++dim) {
        std::vector<int> operands(view.operands.size(), -1);
        std::vector<int> results(view.results.size(), -1);
        (is_result ? results : operands)[i] = static_cast<int>(dim);
        builder.factor(std::move(operands), std::move(results), types[i].dims()[static_cast<size_t>(dim)],
                       FactorKind::kNeedReplication, true);
      }
    }
  };
  alone(view.operands, false);
  alone(view.results, true);
  return builder.build();
}

LapackSpec lapack_spec(const OpView& view) { return Reader(view).read(); }

PreparedKernel prepare_lapack_call(const OpView& local) {
  const LapackSpec spec = lapack_spec(local);
  auto lapack = std::make_shared<const kernels::Lapack>(spec);
  PreparedKernel kernel;
  kernel.work_count = lapack->work_count();
  kernel.barriers = lapack->barriers();
  kernel.scratch_bytes = lapack->scratch_bytes();
  kernel.workspace_bytes = lapack->workspace_bytes();
  kernel.flops = lapack->flops() * static_cast<double>(spec.batch);
  kernel.passes_checkpoints = true;
  for (const ir::Type& type : local.operands) kernel.bytes += static_cast<double>(tensor::byte_count(type.tensor));
  for (const ir::Type& type : local.results) kernel.bytes += static_cast<double>(tensor::byte_count(type.tensor));
  const auto [first, results] = target_row(local).routine->in_place;
  for (int result = 0; result < results; ++result) kernel.in_place.emplace_back(first + result, result);
  kernel.run = [lapack](const KernelCall& call) {
    lapack->run({call.operands, call.results, call.scratch, call.workspace}, call.begin, call.end, call.checkpoint);
  };
  return kernel;
}

}  // namespace meshd::ops
