// Memory for machine code made at run time. It is written before it can be executed and never both at once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace meshd::kernels {

/// Pages of code that can be read and executed; unmapped with the object. Immutable; any thread.
class CodeMemory {
 public:
  /// Copies position-independent code into pages of its own: they are mapped for writing, then made executable. Null
  /// where the system allows no such pages.
  static std::unique_ptr<const CodeMemory> make(std::span<const std::byte> code);
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  [[nodiscard]] const std::byte* begin() const { return memory_; }
  /// Of the pages.
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  CodeMemory(std::byte* memory, size_t bytes) : memory_(memory), bytes_(bytes) {}

  std::byte* memory_;
  size_t bytes_;
};

}  // namespace meshd::kernels
