#include "api/codecs/files/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>

#include "api/codecs/value.h"
#include "service/arrays/regions/region.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kLongestHead = 64 * 1024;

[[noreturn]] void fail_npy(const std::string& what) { throw core::Error("malformed_body", "npy: " + what); }

// Text behind 'name': in the head's dictionary.
std::string_view entry(std::string_view head, std::string_view name) {
  const std::string key = "'" + std::string(name) + "'";
  const size_t at = head.find(key);
  if (at == std::string_view::npos) fail_npy("the head has no " + std::string(name));
  std::string_view rest = head.substr(at + key.size());
  const size_t start = rest.find_first_not_of(": ");
  if (start == std::string_view::npos) fail_npy("the head ends behind " + std::string(name));
  return rest.substr(start);
}

tensor::Dims parse_shape(std::string_view text) {
  tensor::Dims dims;
  if (text.empty() || text.front() != '(') fail_npy("shape is no tuple");
  text.remove_prefix(1);
  for (;;) {
    const size_t start = text.find_first_not_of(" ,");
    if (start == std::string_view::npos) fail_npy("shape does not end");
    text.remove_prefix(start);
    if (text.front() == ')') return dims;
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc{} || dim < 0) fail_npy("shape holds something else than sizes");
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty() && text.front() == 'L') text.remove_prefix(1);
    dims.push_back(dim);
  }
}

// What ml_dtypes calls a type of a byte that has infinities: '<f1' is float8_e5m2 and nothing else.
constexpr std::string_view kFloatOfOneByte = "|f1";

// "<f4", "=f4" and "f4" as "<f4"; "|V2" and "V2" as "<V2"; any order of one byte as "|i1", but void as "<V1".
std::string canonical_descr(std::string_view descr) {
  std::string out(descr);
  if (!out.empty() && ((out[0] >= 'a' && out[0] <= 'z') || out[0] == 'V')) out.insert(out.begin(), '=');
  if (out.size() < 3) return out;
  const bool is_void = out[1] == 'V';
  if (out[0] == '=' || is_void) out[0] = '<';
  if (out.substr(2) == "1" && !is_void) out[0] = '|';
  return out;
}

// Nothing where several are called so.
std::optional<tensor::DType> dtype_of_descr(std::string_view descr) {
  const std::string canonical = canonical_descr(descr);
  if (!canonical.empty() && canonical[0] == '>')
    throw core::Error("unsupported_format", "npy: big-endian data is not read; use .astype(a.dtype.newbyteorder('<'))");
  if (canonical == kFloatOfOneByte) return tensor::DType::kFloat8E5M2;
  if (const auto dtype = tensor::dtype_from_npy(canonical)) return dtype;
  const auto& rows = tensor::kDTypeTable;
  if (std::none_of(std::begin(rows), std::end(rows), [&](const auto& row) { return row.npy == canonical; }))
    throw core::Error("unsupported_dtype", "npy: dtype '" + std::string(descr) + "' is not known here");
  return std::nullopt;
}

}  // namespace

tensor::DType resolve_open_dtype(std::string_view open_descr, std::optional<tensor::DType> wanted) {
  const std::string canonical = canonical_descr(open_descr);
  std::string several;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    if (row.npy != canonical) continue;
    if (wanted == row.dtype) return row.dtype;
    several += (several.empty() ? "" : ", ") + std::string(row.name);
  }
  throw core::Error("unsupported_dtype", "npy: the file says '" + std::string(open_descr) +
                                             "', which stands for each of " + several + "; say which by dtype" +
                                             (wanted ? ", not " + std::string(tensor::name(*wanted)) : ""));
}

NpyHead read_npy_head(const std::function<void(std::span<std::byte>)>& read_exactly,
                      std::optional<tensor::DType> wanted) {
  NpyHead head = read_open_npy_head(read_exactly);
  if (head.open_descr.empty()) return head;
  head.type.dtype = resolve_open_dtype(head.open_descr, wanted);
  head.open_descr.clear();
  return head;
}

NpyHead read_open_npy_head(const std::function<void(std::span<std::byte>)>& read_exactly) {
  std::array<char, 8> start{};
  read_exactly(std::as_writable_bytes(std::span(start)));
  if (std::string_view(start.data(), 6) != kMagic) fail_npy("the body does not begin with \\x93NUMPY");
  const auto version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) fail_npy(fmt::format("version {} is not known", version));
  size_t length = 0;
  std::array<unsigned char, 4> size{};
  const size_t size_bytes = version == 1 ? 2 : 4;
  read_exactly(std::as_writable_bytes(std::span(size).first(size_bytes)));
  for (size_t i = 0; i < size_bytes; ++i) length |= static_cast<size_t>(size[i]) << (8 * i);
  if (length > kLongestHead) fail_npy(fmt::format("a head of {} bytes", length));
  std::string head(length, '\0');
  read_exactly(std::as_writable_bytes(std::span(head)));

  std::string_view descr = entry(head, "descr");
  if (descr.empty() || (descr.front() != '\'' && descr.front() != '"')) {
    throw core::Error("unsupported_dtype", "npy: structured dtypes are not read");
  }
  descr = descr.substr(1, descr.find(descr.front(), 1) - 1);
  const auto dtype = dtype_of_descr(descr);
  // Types that share a name have one byte each.
  NpyHead out{{dtype.value_or(tensor::DType::kUint8), parse_shape(entry(head, "shape"))}};
  if (!dtype) out.open_descr = descr;
  if (entry(head, "fortran_order").starts_with("True") && out.type.dims.size() > 1) out.order = ElementOrder::kFortran;
  return out;
}

void read_elements(const NpyHead& head, std::span<std::byte> out,
                   const std::function<void(std::span<std::byte>)>& read_exactly) {
  if (head.order == ElementOrder::kC) {
    read_exactly(out);
  } else {
    const auto columns = std::make_unique_for_overwrite<std::byte[]>(out.size());
    read_exactly({columns.get(), out.size()});
    arrays::to_row_major(head.type, columns.get(), out.data());
  }
  clean_elements(head.type.dtype, out);
}

std::string write_npy_head(const tensor::TensorType& type) {
  const std::string_view descr = tensor::row(type.dtype).npy;
  std::string dict = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t dim : type.dims) dict += fmt::format("{},", dim);
  if (type.dims.size() > 1) dict.pop_back();
  dict += "), }";
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';
  dict += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

}  // namespace meshd::api
