#include "api/codecs/files/file_arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "api/codecs/files/npz.h"
#include "api/codecs/files/safetensors.h"
#include "api/codecs/value.h"
#include "api/json/json.h"
#include "service/core/error.h"
#include "service/tensor/sizes.h"

namespace meshd::api {
namespace {

// Of an entry beside its elements: a file may have a million of them without any.
constexpr int64_t kEntryBytes = 512;
constexpr size_t kUnpackedPiece = size_t{1} << 20;

// Reads a file from its beginning.
class Cursor {
 public:
  explicit Cursor(std::string_view data) : left_(data) {}
  void read_exactly(std::span<std::byte> to) {
    if (read_some(to) != to.size()) throw core::Error("malformed_body", "the file ends before its array does");
  }
  size_t read_some(std::span<std::byte> to) {
    const size_t count = std::min(to.size(), left_.size());
    std::copy_n(left_.data(), count, reinterpret_cast<char*>(to.data()));
    left_.remove_prefix(count);
    return count;
  }
  [[nodiscard]] std::string_view left() const { return left_; }

 private:
  std::string_view left_;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits that a text begins with, without zeros before them; `text` then begins behind them.
std::string_view take_digits(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

// "arr_2" is before "arr_10"; names that differ in zeros alone are in the order of their bytes.
bool is_before(std::string_view a, std::string_view b) {
  std::string_view left = a, right = b;
  while (!left.empty() && !right.empty()) {
    if (is_digit(left.front()) && is_digit(right.front())) {
      const std::string_view x = take_digits(left), y = take_digits(right);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else if (left.front() != right.front()) {
      return static_cast<unsigned char>(left.front()) < static_cast<unsigned char>(right.front());
    } else {
      left.remove_prefix(1);
      right.remove_prefix(1);
    }
  }
  if (left.empty() != right.empty()) return left.empty();
  return a < b;
}

}  // namespace

tensor::DenseValue raw_array(const tensor::TensorType& type, std::string_view bytes, tensor::BufferPool& pool,
                             core::MemoryReservation* memory) {
  tensor::require_sizes(type);
  if (memory != nullptr) memory->grow(tensor::byte_count(type));
  tensor::DenseValue out = tensor::dense_copy(type, std::as_bytes(std::span(bytes)), pool);
  clean_elements(type.dtype, out.buffer->bytes());
  return out;
}

FileArrays::FileArrays(FileKind kind, std::string_view data, tensor::BufferPool& pool, core::MemoryReservation* memory)
    : kind_(kind), pool_(pool), memory_(memory) {
  switch (kind) {
    case FileKind::kNpy:
      open_npy(data);
      break;
    case FileKind::kZip:
      open_zip(data);
      break;
    case FileKind::kSafetensors:
      open_safetensors(data);
      break;
    default:
      throw core::Error("internal", "a file of no arrays is read as one of arrays");
  }
  sort_by_name();
}

void FileArrays::hold(int64_t bytes) const {
  if (memory_ != nullptr) memory_->grow(bytes);
}

void FileArrays::add(std::string name, Elements elements) {
  hold(kEntryBytes);
  entries_.push_back({std::move(name), elements.head.type, !elements.head.open_descr.empty()});
  elements_.push_back(std::move(elements));
}

void FileArrays::open_npy(std::string_view data) {
  Cursor file(data);
  NpyHead head = read_open_npy_head([&](std::span<std::byte> to) { file.read_exactly(to); });
  const auto expected = static_cast<size_t>(tensor::byte_count(head.type));
  if (file.left().size() != expected) {
    throw core::Error("malformed_body", fmt::format("the head of the .npy file says {} bytes, behind it are {}",
                                                    expected, file.left().size()));
  }
  add("", {std::move(head), file.left(), std::nullopt});
}

void FileArrays::open_zip(std::string_view data) {
  Cursor file(data);
  const auto take = [&](const std::string& name, const NpyHead& head, const ReadMember& read) {
    tensor::require_sizes(head.type);
    hold(tensor::byte_count(head.type));
    tensor::DenseValue value = tensor::new_dense(head.type, pool_);
    // What expands too much is found after each piece.
    read_elements(head, value.buffer->bytes(), [&](std::span<std::byte> to) {
      for (; !to.empty(); to = to.subspan(std::min(to.size(), kUnpackedPiece)))
        read(to.first(std::min(to.size(), kUnpackedPiece)));
    });
    add(name, {{head.type, ElementOrder::kC, head.open_descr}, {}, std::move(value)});
  };
  walk_npz([&](std::span<std::byte> to) { return file.read_some(to); }, take);
}

void FileArrays::open_safetensors(std::string_view data) {
  Cursor file(data);
  const SafetensorsHead head = read_safetensors_head([&](std::span<std::byte> to) { file.read_exactly(to); }, memory_);
  if (file.left().size() != static_cast<size_t>(head.data_bytes)) {
    throw core::Error("malformed_body", fmt::format("the head of the safetensors file says {} bytes, behind it are {}",
                                                    head.data_bytes, file.left().size()));
  }
  for (const NamedTensor& tensor : head.tensors) {
    const auto bytes = static_cast<size_t>(tensor::byte_count(tensor.type));
    add(tensor.name, {{tensor.type}, file.left().substr(static_cast<size_t>(tensor.begin), bytes), std::nullopt});
  }
}

void FileArrays::sort_by_name() {
  std::vector<size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return is_before(entries_[a].name, entries_[b].name); });
  std::vector<Entry> entries;
  std::vector<Elements> elements;
  for (const size_t from : order) {
    entries.push_back(std::move(entries_[from]));
    elements.push_back(std::move(elements_[from]));
  }
  entries_ = std::move(entries);
  elements_ = std::move(elements);
}

std::optional<size_t> FileArrays::find(std::string_view name) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), name,
                       [](const Entry& entry, std::string_view of) { return is_before(entry.name, of); });
  if (found == entries_.end() || found->name != name) return std::nullopt;
  return static_cast<size_t>(found - entries_.begin());
}

NpyHead FileArrays::resolved_head(size_t entry, std::optional<tensor::DType> wanted) const {
  NpyHead head = elements_.at(entry).head;
  if (!head.open_descr.empty()) {
    try {
      head.type.dtype = resolve_open_dtype(head.open_descr, wanted);
    } catch (const core::Error& error) {
      if (kind_ == FileKind::kNpy) throw;
      throw core::Error(error.code(), "member " + quote(entries_[entry].name + ".npy") + ": " + error.detail());
    }
  }
  tensor::require_sizes(head.type);
  return head;
}

tensor::DenseValue FileArrays::take(size_t entry, std::optional<tensor::DType> wanted) {
  const NpyHead head = resolved_head(entry, wanted);
  std::optional<tensor::DenseValue> unpacked = std::exchange(elements_[entry].unpacked, std::nullopt);
  if (!unpacked) return read(entry, wanted);
  unpacked->type = head.type;
  clean_elements(head.type.dtype, unpacked->buffer->bytes());
  return *std::move(unpacked);
}

tensor::DenseValue FileArrays::read(size_t entry, std::optional<tensor::DType> wanted) const {
  const Elements& from = elements_.at(entry);
  const NpyHead head = resolved_head(entry, wanted);
  hold(tensor::byte_count(head.type));
  tensor::DenseValue out = tensor::new_dense(head.type, pool_);
  const std::span<const std::byte> bytes =
      from.unpacked ? from.unpacked->bytes() : std::as_bytes(std::span<const char>(from.bytes));
  size_t at = 0;
  read_elements(head, out.buffer->bytes(), [&](std::span<std::byte> to) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    at += to.size();
  });
  return out;
}

}  // namespace meshd::api
