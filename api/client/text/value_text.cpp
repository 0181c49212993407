#include "api/client/text/value_text.h"

#include <algorithm>

namespace meshd::client {
namespace {

constexpr int64_t kWhole = 1000;
constexpr int64_t kEdge = 3;
constexpr size_t kMostSplitDims = 6;
constexpr const char* kGap = "...";

void append(const Json& data, size_t depth, std::string& out) {
  if (!data.is_array()) {
    out += data.is_string() ? data.get<std::string>() : data.dump();
    return;
  }
  out += '[';
  for (size_t i = 0; i < data.size(); ++i) {
    const bool is_row = i > 0 && (data[i].is_array() || data[i - 1].is_array());
    if (is_row) {
      out += '\n';
      out.append(depth + 1, ' ');
    } else if (i > 0) {
      out += ' ';
    }
    append(data[i], depth + 1, out);
  }
  out += ']';
}

int64_t element_count(const Json& data) {
  if (!data.is_array()) return 1;
  int64_t count = 0;
  for (const Json& item : data) count += element_count(item);
  return count;
}

Json ends_of(const Json& data) {
  if (!data.is_array()) return data;
  const auto size = static_cast<int64_t>(data.size());
  Json out = Json::array();
  for (int64_t i = 0; i < size; ++i) {
    if (size <= 2 * kEdge || i < kEdge || i >= size - kEdge) {
      out.push_back(ends_of(data[static_cast<size_t>(i)]));
    } else if (i == kEdge) {
      out.push_back(kGap);
    }
  }
  return out;
}

/// The rows of `back` behind those of `front` in dimension `dim`, with a gap between them.
Json joined(Json front, const Json& back, size_t dim) {
  if (dim == 0) {
    front.push_back(kGap);
    for (const Json& row : back) front.push_back(row);
    return front;
  }
  for (size_t i = 0; i < front.size(); ++i) {
    if (front[i].is_array()) front[i] = joined(std::move(front[i]), back[i], dim - 1);
  }
  return front;
}

struct Reader {
  const std::vector<int64_t>& shape;
  const std::function<Json(const std::string&)>& read;

  /// The data of `slice`, which ends before dimension `dim`, with `splits` more dimensions to be shortened at both
  /// ends.
  Json from(size_t dim, const std::string& slice, size_t splits) const {
    if (dim == shape.size()) return read(slice);
    const std::string begun = dim == 0 ? "" : slice + ",";
    if (shape[dim] <= 2 * kEdge) return from(dim + 1, begun + ":", splits);
    Json front = from(dim + 1, begun + "0:" + std::to_string(kEdge), splits > 0 ? splits - 1 : 0);
    if (splits == 0) return front;
    return joined(std::move(front), from(dim + 1, begun + "-" + std::to_string(kEdge) + ":", splits - 1), dim);
  }
};

}  // namespace

std::string value_text(const Json& data) {
  std::string out;
  append(data, 0, out);
  return out;
}

Json shortened(const Json& data) { return element_count(data) <= kWhole ? data : ends_of(data); }

Json summarised_data(const std::vector<int64_t>& shape, const std::function<Json(const std::string&)>& read) {
  int64_t size = 1;
  for (const int64_t dim : shape) size = std::min(size * std::min(dim, kWhole + 1), kWhole + 1);
  return size <= kWhole ? read("") : Reader{shape, read}.from(0, "", kMostSplitDims);
}

}  // namespace meshd::client
