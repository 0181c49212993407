// Which edges of the instrumented code an input passes, so that inputs that reach new code are damaged further. The
// preset fuzz has the code that reads formats instrumented by g++ (-fsanitize-coverage=trace-pc); other builds see no
// edges.
#pragma once

#include <bitset>
#include <cstddef>

namespace meshd::fuzz {

/// One thread.
class Coverage {
 public:
  /// An input begins.
  void begin();
  /// The input has ended: true where it passed an edge that no input before it has passed, or one much more often.
  /// Counts of passes are told apart by powers of two.
  bool has_new();
  /// Edges that were passed, with their counts.
  [[nodiscard]] size_t size() const { return seen_.count(); }

 private:
  static constexpr size_t kClasses = 8;
  std::bitset<kClasses << 16> seen_;
};

}  // namespace meshd::fuzz
