// Elements by their width alone, for loops that move elements and do not compute with them.
#pragma once

#include <cstdint>

namespace meshd::kernels {

/// Anywhere in memory, as the others through a type of alignment 1: the assignment of a struct binds a reference to it.
struct [[gnu::packed]] Element16 {
  uint64_t low;
  uint64_t high;
};

/// Calls visit(T{}) with the type T of so many bytes: an unsigned integer, or Element16. False, and no call, where no
/// element has so many.
template <class Visit>
bool visit_element(int64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      visit(uint8_t{});
      return true;
    case 2:
      visit(uint16_t{});
      return true;
    case 4:
      visit(uint32_t{});
      return true;
    case 8:
      visit(uint64_t{});
      return true;
    case 16:
      visit(Element16{});
      return true;
    default:
      return false;
  }
}

/// Throws internal.
[[noreturn]] void refuse_element_width(int64_t bytes);

/// The same where every width is an element's; throws internal for others.
template <class Visit>
void with_element(int64_t bytes, const Visit& visit) {
  if (!visit_element(bytes, visit)) refuse_element_width(bytes);
}

}  // namespace meshd::kernels
