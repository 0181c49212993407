#include "service/program/gspmd/gspmd_sharding.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "service/core/error.h"
#include "service/program/gspmd/device_order.h"
#include "service/program/gspmd/gspmd_text.h"
#include "service/program/limits.h"

namespace meshd::program {
namespace {

/// 1,2,3
template <typename Number>
std::string listed(const std::vector<Number>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size(); ++i) out += fmt::format("{}{}", i > 0 ? "," : "", numbers[i]);
  return out;
}

/// Devices of an order that axes cannot express.
constexpr int64_t kMaxWrittenOut = 4096;

/// Whether full axes can express the tiles over the iota.
bool has_axes(const Iota& iota, const std::vector<int64_t>& tile) {
  std::set<int64_t> splits;
  return add_splits(iota, tile, splits) && can_hold_axes(splits);
}

/// Holds what was read to the rules of shardings.
class Checker {
 public:
  explicit Checker(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] GspmdSharding check(GspmdWords words) const {
    GspmdSharding out;
    if (words.kinds.size() > 1) wrong("is both " + words.kinds[0] + " and " + words.kinds[1]);
    if (words.alike.size() > 1) wrong(fmt::format("is in {} sharding groups, one expected", words.alike.size()));
    if (!words.alike.empty()) out.group = words.alike[0];
    const std::string kind = words.kinds.empty() ? "devices=" : words.kinds[0];
    if (!words.kinds.empty() && (!words.tile.empty() || !words.groups.empty()))
      wrong("is " + kind + " and has tiles of devices: one of the two is expected");
    if (kind == "maximal") {
      if (words.device.size() != 1)
        wrong(fmt::format("is maximal with {} devices, expected device= once", words.device.size()));
      out.device = words.device[0];
    } else if (!words.device.empty()) {
      wrong("has device= and is not maximal");
    }
    if (kind == "replicated") out.kind = GspmdKind::kReplicated;
    if (kind == "maximal") out.kind = GspmdKind::kMaximal;
    if (kind == "manual") out.kind = GspmdKind::kManual;
    if (kind == "unknown") out.kind = GspmdKind::kUnknown;
    if (kind == "unreduced") out.kind = GspmdKind::kUnreduced;
    if (words.kinds.empty()) tiled(std::move(words), out);
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const { throw core::Error("invalid_spec", name_ + " " + what); }

  void tiled(GspmdWords words, GspmdSharding& out) const {
    out.kind = GspmdKind::kTiled;
    if (words.tile.empty()) wrong("has neither a kind nor devices=[...]");
    const int64_t tiles = product("tiles", words.tile);
    for (const std::string& group : words.groups) {
      if (group == "replicated") {
        out.subgroups.push_back(GspmdSubgroup::kReplicated);
      } else if (group == "manual") {
        out.subgroups.push_back(GspmdSubgroup::kManual);
      } else if (group == "unreduced") {
        out.subgroups.push_back(GspmdSubgroup::kUnreduced);
      } else if (group == "maximal") {
        throw core::Error("unsupported_attribute", name_ +
                                                       " has a subgroup that is maximal, supported are manual, "
                                                       "replicated and unreduced");
      } else {
        wrong("has a subgroup '" + group + "', expected manual, replicated or unreduced");
      }
    }
    if (out.subgroups.size() > words.tile.size()) {
      wrong(fmt::format("has {} subgroups, but {} tile dimensions", out.subgroups.size(), words.tile.size()));
    }
    out.tile = std::move(words.tile);
    if (!words.reshape.empty()) {
      iota(words, tiles, out);
    } else {
      list(std::move(words.devices), tiles, out);
    }
  }

  [[nodiscard]] int64_t product(const char* what, const std::vector<int64_t>& sizes) const {
    int64_t count = 1;
    for (const int64_t size : sizes) {
      if (size < 1 || count > kMaxAxisSize / size) {
        wrong(fmt::format("has {} {}, expected sizes from 1 and at most {} devices", what, in_brackets(sizes),
                          kMaxAxisSize));
      }
      count *= size;
    }
    return count;
  }

  void iota(const GspmdWords& words, int64_t tiles, GspmdSharding& out) const {
    const int64_t count = product("devices", words.reshape);
    if (count != tiles) {
      wrong(fmt::format("has tiles {} for {} devices, but <={} are {}", in_brackets(out.tile), tiles,
                        in_brackets(words.reshape), count));
    }
    Iota iota{words.reshape, std::vector<int>(words.reshape.size())};
    std::iota(iota.transpose.begin(), iota.transpose.end(), 0);
    if (!words.transpose.empty()) {
      std::vector<int64_t> sorted = words.transpose;
      std::sort(sorted.begin(), sorted.end());
      if (!std::equal(sorted.begin(), sorted.end(), iota.transpose.begin(), iota.transpose.end())) {
        wrong(fmt::format("transposes by T{}, which is no permutation of the {} dimensions <={}",
                          in_brackets(words.transpose), words.reshape.size(), in_brackets(words.reshape)));
      }
      iota.transpose.assign(words.transpose.begin(), words.transpose.end());
    }
    take(merged(iota), out);
  }

  /// An order whose tiles axes cannot express is kept as a list: its mesh lists its devices.
  void take(Iota iota, GspmdSharding& out) const {
    if (has_axes(iota, out.tile)) {
      out.reshape = std::move(iota.reshape);
      out.transpose = std::move(iota.transpose);
      return;
    }
    const int64_t count = out.device_count();
    if (count > kMaxWrittenOut) {
      throw core::Error(
          "unsupported_attribute",
          fmt::format(
              "{} has tiles that shard no dimension of <={} evenly; that is supported for {} devices, here are {}",
              name_, in_brackets(iota.reshape), kMaxWrittenOut, count));
    }
    out.devices = written_out(iota);
  }

  void list(std::vector<int64_t> devices, int64_t tiles, GspmdSharding& out) const {
    const auto count = static_cast<int64_t>(devices.size());
    if (count != tiles) {
      wrong(fmt::format("has tiles {} for {} devices, but lists {}", in_brackets(out.tile), tiles, count));
    }
    std::vector<int64_t> sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) wrong(fmt::format("lists device {} more than once", *twice));
    if (sorted.front() < 0) wrong(fmt::format("lists device {}, expected numbers from 0", sorted.front()));
    if (sorted.back() >= count) {
      throw core::Error(
          "unsupported_attribute",
          fmt::format("{} lists device {} among {} devices; supported are lists of all devices from 0 to {}", name_,
                      sorted.back(), count, count - 1));
    }
    if (std::optional<Iota> iota = as_iota(devices)) {
      take(std::move(*iota), out);
    } else {
      out.devices = std::move(devices);
    }
  }

  std::string name_;  ///< of the sharding, for messages
};

}  // namespace

int64_t GspmdSharding::device_count() const {
  return std::accumulate(tile.begin(), tile.end(), int64_t{1}, std::multiplies<>());
}

std::vector<GspmdSharding> parse_gspmd(std::string_view text) {
  const bool binary =
      text.empty() || std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; });
  const Checker checker(binary ? "the sharding in wire form (OpSharding)" : quoted_gspmd(text));
  std::vector<GspmdSharding> out;
  for (GspmdWords& words : binary ? read_gspmd_bytes(text) : read_gspmd_text(text))
    out.push_back(checker.check(std::move(words)));
  return out;
}

std::string to_text(const GspmdSharding& sharding) {
  std::string out = "{";
  if (sharding.kind == GspmdKind::kReplicated) out += "replicated";
  if (sharding.kind == GspmdKind::kMaximal) out += fmt::format("maximal device={}", sharding.device);
  if (sharding.kind == GspmdKind::kManual) out += "manual";
  if (sharding.kind == GspmdKind::kUnknown) out += "unknown";
  if (sharding.kind == GspmdKind::kUnreduced) out += "unreduced";
  if (sharding.kind == GspmdKind::kTiled) {
    out += "devices=[" + listed(sharding.tile) + "]";
    if (sharding.devices.empty()) {
      out += "<=[" + listed(sharding.reshape) + "]T(" + listed(sharding.transpose) + ")";
    } else {
      out += listed(sharding.devices);
    }
    for (size_t i = 0; i < sharding.subgroups.size(); ++i) {
      out += i == 0 ? " last_tile_dims={" : ", ";
      constexpr const char* kWords[] = {"replicated", "manual", "unreduced"};
      out += kWords[static_cast<size_t>(sharding.subgroups[i])];
    }
    if (!sharding.subgroups.empty()) out += "}";
  }
  if (sharding.group) out += fmt::format(" shard_as {}", *sharding.group);
  return out + "}";
}

}  // namespace meshd::program
