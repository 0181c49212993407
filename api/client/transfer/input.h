// A file of a command, or standard input: what it is by its first bytes, and its bytes by pieces. Files of any size
// take 256 KiB of memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/codecs/files/file_kinds.h"

namespace meshd::client {

/// Owns its descriptor. One thread.
class Input {
 public:
  /// "-" is standard input, and so is a file that cannot be read twice (a pipe). Throws Failure kNoInput.
  explicit Input(std::string path);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  /// A regular file: its size is known and its bytes can be read again.
  [[nodiscard]] bool is_file() const { return size_ >= 0; }
  /// Of a regular file, else -1.
  [[nodiscard]] int64_t size() const { return size_; }
  /// For messages, and the filename of a form's part: "-" is "standard input".
  [[nodiscard]] std::string name() const;
  /// The first bytes, at most `most`; of standard input they stay to be read.
  std::string_view head(size_t most = api::kMagicBytes);
  [[nodiscard]] api::FileKind kind() { return api::file_kind_of(head()); }

  /// Bytes of a regular file at an offset, fewer at its end.
  std::string read_at(int64_t offset, size_t most) const;
  /// The next bytes, as many as `most` unless the input ends.
  std::string read(size_t most);
  /// All that is left. Throws Failure kNoInput beyond `most` bytes.
  std::string read_all(size_t most);

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string path_;
  std::string head_;  ///< read ahead; of standard input alone
  int descriptor_ = -1;
  int64_t size_ = -1;
  int64_t at_ = 0;  ///< of read() in a regular file
};

}  // namespace meshd::client
