// The arrays of one file that is in memory whole: of a .npy file (one, without a name), a .npz or a safetensors file.
//
// The entries are sorted by name, because the order in the file is not the writer's: libraries that write safetensors
// sort by the size of elements first. Example: a file of "arr_10", "arr_9" and "arr_1" has the entries arr_1, arr_9,
// arr_10, since digits that follow each other are compared as one number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/files/file_kinds.h"
#include "api/codecs/files/npy.h"
#include "service/core/memory_ledger.h"
#include "service/tensor/dense_value.h"

namespace meshd::api {

/// Whether a file of this kind is one of arrays: kNpy, kZip or kSafetensors.
constexpr bool is_array_file(FileKind kind) {
  return kind == FileKind::kNpy || kind == FileKind::kZip || kind == FileKind::kSafetensors;
}

/// An array of raw bytes, as many as its type has, in memory of `pool`, of which `memory` holds as much first (null: it
/// is not counted). Throws invalid_array for sizes that fit no memory, and memory_full.
tensor::DenseValue raw_array(const tensor::TensorType& type, std::string_view bytes, tensor::BufferPool& pool,
                             core::MemoryReservation* memory);

/// One thread.
class FileArrays {
 public:
  struct Entry {
    std::string name;         ///< empty in a .npy file
    tensor::TensorType type;  ///< of an open entry with one dtype of several
    bool is_open = false;     ///< the file does not say which dtype it is (NpyHead::open_descr)
  };

  /// Reads heads, and unpacks the members of a .npz file. `data`, of a kind with is_array_file, outlives it; values are
  /// in memory of `pool`, of which `memory` holds as much first (null: it is not counted). Throws malformed_body,
  /// malformed_json, unsupported_format, unsupported_dtype, body_too_large (a member that expands too much) and
  /// memory_full.
  FileArrays(FileKind kind, std::string_view data, tensor::BufferPool& pool, core::MemoryReservation* memory);

  /// By name, where digits that follow each other count as a number.
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// The entry of a name; nothing: there is none.
  [[nodiscard]] std::optional<size_t> find(std::string_view name) const;
  /// The array in memory that nobody else has. `wanted`: the dtype of an open entry. Throws unsupported_dtype without
  /// it, and memory_full.
  [[nodiscard]] tensor::DenseValue read(size_t entry, std::optional<tensor::DType> wanted) const;
  /// The same, once for an entry: what was unpacked is given away.
  [[nodiscard]] tensor::DenseValue take(size_t entry, std::optional<tensor::DType> wanted);

 private:
  /// Where the elements of an entry are: in `data`, or unpacked.
  struct Elements {
    NpyHead head;
    std::string_view bytes;
    std::optional<tensor::DenseValue> unpacked;
  };
  [[nodiscard]] NpyHead resolved_head(size_t entry, std::optional<tensor::DType> wanted) const;
  void add(std::string name, Elements elements);
  void hold(int64_t bytes) const;
  void open_npy(std::string_view data);
  void open_zip(std::string_view data);
  void open_safetensors(std::string_view data);
  void sort_by_name();

  const FileKind kind_;
  tensor::BufferPool& pool_;
  core::MemoryReservation* const memory_;
  std::vector<Entry> entries_;
  std::vector<Elements> elements_;  ///< by entry
};

}  // namespace meshd::api
