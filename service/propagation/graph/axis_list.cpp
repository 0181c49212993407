#include "service/propagation/graph/axis_list.h"

#include <numeric>

namespace meshd::propagation {
namespace {

int64_t full_size(const AxisRef& axis, const mesh::Mesh& mesh) {
  return mesh.axes[static_cast<size_t>(axis.axis)].size;
}

int64_t end_of(const AxisRef& axis, const mesh::Mesh& mesh) {
  return axis.is_whole() ? full_size(axis, mesh) : axis.pre * axis.size;
}

}  // namespace

bool contains(const AxisRef& outer, const AxisRef& inner, const mesh::Mesh& mesh) {
  return outer.axis == inner.axis && outer.pre <= inner.pre && end_of(outer, mesh) >= end_of(inner, mesh);
}

bool is_prefix(const AxisRef& shorter, const AxisRef& longer, const mesh::Mesh& mesh) {
  return shorter.pre == longer.pre && contains(longer, shorter, mesh);
}

std::optional<AxisRef> prefix_beside(const AxisRef& axis, const AxisList& others, const mesh::Mesh& mesh) {
  AxisRef out = axis;
  for (const AxisRef& other : others) {
    if (!sharding::overlaps(out, other, mesh)) continue;
    if (out.pre >= other.pre || other.pre % out.pre != 0) return std::nullopt;
    out.size = other.pre / out.pre;
  }
  return out;
}

void append(AxisList& list, const AxisRef& axis, const mesh::Mesh& mesh) {
  if (list.empty() || list.back().axis != axis.axis || list.back().is_whole() || axis.is_whole() ||
      end_of(list.back(), mesh) != axis.pre) {
    list.push_back(axis);
    return;
  }
  AxisRef& last = list.back();
  last.size *= axis.size;
  if (last.size == full_size(last, mesh)) last = {last.axis, 1, 0};
}

int64_t size_of(const AxisList& list, const mesh::Mesh& mesh) {
  int64_t size = 1;
  for (const AxisRef& axis : list) size *= sharding::axis_size(axis, mesh);
  return size;
}

PrefixStatus prefix_status(const AxisList& first, const AxisList& second, const mesh::Mesh& mesh) {
  if (first.empty()) return second.empty() ? PrefixStatus::kEqual : PrefixStatus::kStrict;
  if (first.size() > second.size()) return PrefixStatus::kNone;
  const size_t last = first.size() - 1;
  for (size_t i = 0; i < last; ++i) {
    if (first[i] != second[i]) return PrefixStatus::kNone;
  }
  if (first.size() == second.size() && first[last] == second[last]) return PrefixStatus::kEqual;
  return is_prefix(first[last], second[last], mesh) ? PrefixStatus::kStrict : PrefixStatus::kNone;
}

AxisList agree(const AxisList& known, const AxisList& next, Growth& growth, const mesh::Mesh& mesh) {
  AxisList out;
  const auto stop = [&] {
    growth = Growth::kForbidden;
    return out;
  };
  size_t i = 0;
  for (; i < known.size() && i < next.size(); ++i) {
    const AxisRef& a = known[i];
    const AxisRef& b = next[i];
    if (a == b) {
      out.push_back(b);
    } else if (is_prefix(b, a, mesh)) {
      if (i + 1 < next.size()) {  // whatever follows the shorter part contradicts the rest of the longer one
        out.push_back(b);
        return stop();
      }
      out.push_back(a);
    } else if (is_prefix(a, b, mesh)) {
      if (growth == Growth::kForbidden || i + 1 < known.size()) {
        out.push_back(a);
        return stop();
      }
      out.push_back(b);
    } else {
      return stop();
    }
  }
  for (size_t k = i; k < known.size(); ++k) out.push_back(known[k]);
  if (growth == Growth::kAllowed) {
    for (size_t k = i; k < next.size(); ++k) out.push_back(next[k]);
  }
  return out;
}

AxisList dividing_prefix(const AxisList& axes, int64_t size, const mesh::Mesh& mesh) {
  AxisList out;
  for (AxisRef axis : axes) {
    const int64_t ways = sharding::axis_size(axis, mesh);
    const int64_t common = std::gcd(size, ways);
    if (common == 1 && ways != 1) break;
    if (common != ways) axis.size = common;
    out.push_back(axis);
    if (common != ways) break;
    size /= ways;
  }
  return out;
}

}  // namespace meshd::propagation
