#include "service/ops/linalg/older_lapack.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/ops/checks.h"
#include "service/ops/linalg/custom_calls.h"
#include "service/ops/linalg/lapack_calls.h"
#include "service/ops/rewrites/writer.h"

namespace meshd::ops {
namespace {

using ir::ValueId;
using Flags = std::vector<std::optional<int64_t>>;  // leading operands; nothing for those that are not integers

/// An entry of today's configuration from the flags.
struct Entry {
  std::string_view name;
  /// A letter as its character code, or a number.
  int64_t (*value)(const Flags& flags);
  std::vector<size_t> reads;  ///< the flags that `value` looks at
};

/// A target's older form.
struct OlderCall {
  std::string_view real;     ///< routine for real elements
  std::string_view complex;  ///< and for complex ones
  std::string_view prefix = "lapack_";
  size_t leading = 0;  ///< operands before the arrays
  std::vector<Entry> config = {};
  /// For each result of today's call the older call's; others were work space.
  std::vector<size_t> results = {};
  std::vector<size_t> complex_results = {};  ///< empty: the same
  std::optional<size_t> factor = {};         ///< the leading operand that the last array is multiplied with
};

template <size_t kFlag>
int64_t flag(const Flags& flags) {
  return flags[kFlag].value_or(0);
}
template <size_t kFlag, char kZero, char kOther>
int64_t letter(const Flags& flags) {
  return *flags[kFlag] != 0 ? kOther : kZero;
}

int64_t svd_mode(const Flags& flags) {
  if (*flags[1] == 0) return 'N';
  return *flags[0] != 0 ? 'A' : 'S';
}

int64_t transposition(const Flags& flags) { return *flags[2] == 0 ? 'N' : *flags[2] == 1 ? 'T' : 'C'; }

const std::vector<OlderCall>& older_calls() {
  static const std::vector<OlderCall> kCalls = {
      // lower, batch, n
      {.real = "potrf",
       .complex = "potrf",
       .leading = 3,
       .config = {{"uplo", letter<0, 'U', 'L'>, {0}}},
       .results = {0, 1}},
      // batch, rows, columns
      {.real = "getrf", .complex = "getrf", .leading = 3, .results = {0, 1, 2}},
      // batch, rows, columns, size of work
      {.real = "geqrf", .complex = "geqrf", .leading = 4, .results = {0, 1}},
      // batch, rows, columns, reflectors, size of work
      {.real = "orgqr", .complex = "ungqr", .leading = 5, .results = {0}},
      // lower, batch, n
      {.real = "syevd",
       .complex = "heevd",
       .leading = 3,
       .config = {{"uplo", letter<0, 'U', 'L'>, {0}}, {"mode", [](const Flags&) -> int64_t { return 'V'; }, {}}},
       .results = {0, 1, 2}},
      // full matrices, vectors, batch, rows, columns, size of work
      {.real = "gesdd",
       .complex = "gesdd",
       .leading = 6,
       .config = {{"mode", svd_mode, {0, 1}}},
       .results = {0, 1, 2, 3, 4}},
      // batch, n, left, right
      {.real = "geev",
       .complex = "geev",
       .leading = 4,
       .config = {{"compute_left", flag<2>, {2}}, {"compute_right", flag<3>, {3}}},
       .results = {3, 4, 5, 6, 7},
       .complex_results = {2, 3, 4, 5}},
      // batch, n, vectors, sorted
      {.real = "gees",
       .complex = "gees",
       .leading = 4,
       .config = {{"mode", flag<2>, {2}}, {"sort", flag<3>, {3}}},
       .results = {0, 3, 1, 2, 4, 5},
       .complex_results = {0, 3, 2, 4, 5}},
      // n, low, high, leading dimension, batch, size of work
      {.real = "gehrd",
       .complex = "gehrd",
       .leading = 6,
       .config = {{"low", flag<1>, {1}}, {"high", flag<2>, {2}}},
       .results = {0, 1, 2}},
      // n, lower, leading dimension, batch, size of work
      {.real = "sytrd",
       .complex = "hetrd",
       .leading = 5,
       .config = {{"uplo", letter<1, 'U', 'L'>, {1}}},
       .results = {0, 1, 2, 3, 4}},
      // left, lower, transposition, unit diagonal, rows, columns, batch, factor
      {.real = "trsm",
       .complex = "trsm",
       .prefix = "blas_",
       .leading = 8,
       .config = {{"side", letter<0, 'R', 'L'>, {0}},
                  {"uplo", letter<1, 'U', 'L'>, {1}},
                  {"trans_x", transposition, {2}},
                  {"diag", letter<3, 'N', 'U'>, {3}}},
       .results = {0},
       .factor = 7},
  };
  return kCalls;
}

/// The letter before the routine: s and d are real, c and z complex.
bool is_complex_letter(char letter) { return letter == 'c' || letter == 'z'; }

/// The row of a target such as lapack_sgeqrf, or null.
const OlderCall* find_older(std::string_view target) {
  for (const OlderCall& call : older_calls()) {
    if (!target.starts_with(call.prefix) || target.size() <= call.prefix.size()) continue;
    const std::string_view name = target.substr(call.prefix.size());
    constexpr std::string_view kRoutineLetters = "sdcz";
    if (kRoutineLetters.find(name[0]) != std::string_view::npos &&
        name.substr(1) == (is_complex_letter(name[0]) ? call.complex : call.real))
      return &call;
  }
  return nullptr;
}

ValueId scaled(Writer& writer, ValueId factor, ValueId value) {
  const ir::Type type = writer.type(value);
  return writer.add("stablehlo.multiply", {writer.broadcast(factor, type.dims(), {}), value}, {}, type);
}

/// Today's call of `target`; its results have `types`.
std::vector<ValueId> call_today(Writer& writer, const std::string& target, std::vector<ValueId> operands,
                                ir::AttributeList config, std::vector<ir::Type> types) {
  const std::vector<ir::Type> inputs = writer.function().types_of(operands);
  const int64_t batch_rank = inputs[0].rank() - 2;
  ir::AttributeList attributes{{"call_target_name", {ir::StringAttr{target}}},
                               {"mhlo.backend_config", {ir::DictAttr{"", std::move(config)}}},
                               {"operand_layouts", lapack_layouts(inputs, batch_rank)},
                               {"result_layouts", lapack_layouts(types, batch_rank)}};
  return writer.add("stablehlo.custom_call", std::move(operands), std::move(attributes), std::move(types), {});
}

std::vector<ValueId> expand(const OpView& view, Writer& writer, const std::string& target, const OlderCall& call) {
  const std::vector<ValueId>& operands = view.op->operands;
  const char letter = target[call.prefix.size()];
  const std::vector<size_t>& kept =
      is_complex_letter(letter) && !call.complex_results.empty() ? call.complex_results : call.results;
  if (operands.size() <= call.leading || view.results.size() <= *std::max_element(kept.begin(), kept.end())) {
    reject(view, fmt::format("custom_call @{}: must have more than {} operands and {} or more results, got {} and {}",
                             target, call.leading, kept.size(), operands.size(), view.results.size()));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool fits = view.operands[i].is_tensor() && (i != call.leading || view.operands[i].rank() >= 2);
    if (!fits) reject(view, fmt::format("custom_call @{}: operand {} is {}", target, i, operand_text(view, i)));
  }
  Flags flags;
  for (size_t i = 0; i < call.leading; ++i) {
    const auto known = view.operands[i].rank() == 0 ? writer.known(operands[i]) : std::nullopt;
    flags.push_back(known ? std::optional((*known)[0]) : std::nullopt);
  }
  ir::AttributeList config;
  for (const Entry& entry : call.config) {
    for (const size_t flag : entry.reads) {
      if (!flags[flag])
        reject(view, fmt::format("custom_call @{}: operand {} must be a constant integer", target, flag));
    }
    config.emplace_back(std::string(entry.name), ir::Attribute{ir::IntegerAttr{entry.value(flags), "i64"}});
  }
  std::vector<ValueId> arrays(operands.begin() + static_cast<std::ptrdiff_t>(call.leading), operands.end());
  if (call.factor) arrays.back() = scaled(writer, operands[*call.factor], arrays.back());
  std::vector<ir::Type> types;
  for (const size_t i : kept) types.push_back(view.results[i]);
  const std::string today = "lapack_" + target.substr(call.prefix.size()) + "_ffi";
  const std::vector<ValueId> made = call_today(writer, today, std::move(arrays), std::move(config), std::move(types));
  std::vector<ValueId> out(view.results.size(), ir::kNoValue);
  for (size_t i = 0; i < kept.size(); ++i) out[kept[i]] = made[i];
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i] == ir::kNoValue) out[i] = writer.splat(view.results[i], 0);
  }
  return out;
}

/// @lapack_strsm_ffi and its like with the factor of the right side as operand 2, which check_lapack_call has seen.
bool is_trsm_with_factor(const OpView& view, std::string_view target) {
  constexpr std::string_view kPrefix = "lapack_";
  constexpr std::string_view kName = "trsm_ffi";
  return view.operands.size() == 3 && target.starts_with(kPrefix) && target.ends_with(kName) &&
         target.size() == kPrefix.size() + 1 + kName.size();
}

}  // namespace

std::optional<std::vector<ValueId>> expand_older_lapack(const OpView& view, Writer& writer) {
  const std::string target = target_of(view);
  if (is_trsm_with_factor(view, target)) {
    const std::vector<ValueId>& operands = view.op->operands;
    const ir::AttributeList config = ir::dict(attributes_of(view), "mhlo.backend_config").entries;
    return call_today(writer, target, {operands[0], scaled(writer, operands[2], operands[1])}, config,
                      {view.results[0]});
  }
  const OlderCall* call = find_older(target);
  if (call == nullptr) return std::nullopt;
  return expand(view, writer, target, *call);
}

}  // namespace meshd::ops
