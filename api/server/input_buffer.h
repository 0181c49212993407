// The input buffer of a connection: bytes read and not yet consumed. Small while idle, grows with what is read. One
// thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace meshd::api {

class InputBuffer {
 public:
  [[nodiscard]] std::string_view view() const { return {bytes_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] bool empty() const { return begin_ == end_; }

  void consume(size_t count) {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }

  /// Room for at least `count` bytes after the view; what was read there is made part of it with commit().
  std::span<char> prepare(size_t count) {
    if (capacity_ - end_ < count) {
      const size_t used = end_ - begin_;
      if (capacity_ < used + count) {
        // Not zeroed: it is read into before it is read from.
        auto larger = std::make_unique_for_overwrite<char[]>(used + count);
        if (used != 0) std::memcpy(larger.get(), bytes_.get() + begin_, used);
        bytes_ = std::move(larger);
        capacity_ = used + count;
      } else {
        std::memmove(bytes_.get(), bytes_.get() + begin_, used);
      }
      begin_ = 0;
      end_ = used;
    }
    return {bytes_.get() + end_, capacity_ - end_};
  }
  void commit(size_t count) { end_ += count; }

  /// Gives memory back if it is empty and larger than `kept` bytes: an idle connection costs little.
  void shrink(size_t kept) {
    if (!empty() || capacity_ <= kept) return;
    bytes_.reset();
    capacity_ = 0;
  }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace meshd::api
