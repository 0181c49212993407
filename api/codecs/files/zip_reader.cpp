#include <fmt/core.h>

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "api/codecs/files/zip.h"
#include "api/codecs/files/zip_records.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

using zip::get;

constexpr size_t kInputBytes = 64 * 1024;
// As for encoded bodies (README of api): so many times its bytes a member may have, after the first MiB.
constexpr int64_t kMostTimes = 200;
constexpr int64_t kFreeBytes = int64_t{1} << 20;
constexpr size_t kLocalRest = 26, kCentralRest = 42, kEnd64Rest = 52, kLocatorRest = 16, kEndRest = 18;

[[noreturn]] void fail_npz(const std::string& what) { throw core::Error("malformed_body", "npz: " + what); }

// Sizes of a zip64 field whose 4-byte fields are 0xFFFFFFFF, in the order of `wanted`.
bool read_zip64(std::string_view extra, std::initializer_list<int64_t*> wanted) {
  while (extra.size() >= 4) {
    const auto id = get(extra, 0, 2);
    const size_t length = get(extra, 2, 2);
    extra.remove_prefix(4);
    if (length > extra.size()) fail_npz("an extra field is longer than its record");
    if (id == zip::kZip64Extra) {
      std::string_view field = extra.substr(0, length);
      for (int64_t* value : wanted) {
        if (*value != zip::kSee64) continue;
        if (field.size() < 8) fail_npz("a zip64 field is too short");
        const uint64_t large = get(field, 0, 8);
        if (large > INT64_MAX) fail_npz("a size does not fit in 63 bits");
        *value = static_cast<int64_t>(large);
        field.remove_prefix(8);
      }
      return true;
    }
    extra.remove_prefix(length);
  }
  return false;
}

}  // namespace

struct ZipReader::State {
  ReadSome read;
  std::vector<std::byte> input = std::vector<std::byte>(kInputBytes);
  size_t at = 0, filled = 0;
  int64_t taken = 0;  // bytes of the file before input[at]

  // The member that is being read.
  struct Current {
    std::string name;
    ZipMethod method = ZipMethod::kStored;
    bool sizes_behind = false, has_zip64 = false, ended = true;
    int64_t offset = 0, start = 0;
    int64_t stored_bytes = 0, bytes = 0;  // from its record, unless sizes_behind
    int64_t produced = 0;
    uint32_t crc = 0, computed = 0;
  } current;
  std::map<int64_t, Current> members;  // by offset
  z_stream inflater{};
  bool inflating = false, inflated = false;

  ~State() {
    if (inflating) inflateEnd(&inflater);
  }

  bool refill() {
    if (at < filled) return true;
    at = 0;
    filled = read(input);
    return filled > 0;
  }

  void take(std::span<std::byte> out) {
    while (!out.empty()) {
      size_t count = 0;
      if (at == filled && out.size() >= kInputBytes) {
        count = read(out);
        if (count == 0) fail_npz("the file ends too early");
      } else {
        if (!refill()) fail_npz("the file ends too early");
        count = std::min(out.size(), filled - at);
        std::memcpy(out.data(), input.data() + at, count);
        at += count;
      }
      taken += static_cast<int64_t>(count);
      out = out.subspan(count);
    }
  }

  std::string take_text(size_t length) {
    std::string out(length, '\0');
    take(std::as_writable_bytes(std::span(out)));
    return out;
  }

  void begin_local() {
    Current now;
    now.offset = taken - 4;
    const std::string record = take_text(kLocalRest);
    const auto flags = get(record, 2, 2);
    if (flags & zip::kEncrypted) throw core::Error("unsupported_format", "npz: encrypted members are not read");
    const auto method = get(record, 4, 2);
    if (method != 0 && method != 8) {
      throw core::Error(
          "unsupported_format",
          fmt::format("npz: compression method {} is not read; use numpy.savez or numpy.savez_compressed", method));
    }
    now.method = static_cast<ZipMethod>(method);
    now.sizes_behind = (flags & zip::kSizesBehind) != 0;
    now.crc = static_cast<uint32_t>(get(record, 10, 4));
    now.stored_bytes = static_cast<int64_t>(get(record, 14, 4));
    now.bytes = static_cast<int64_t>(get(record, 18, 4));
    now.name = take_text(get(record, 22, 2));
    now.has_zip64 = read_zip64(take_text(get(record, 24, 2)), {&now.bytes, &now.stored_bytes});
    now.start = taken;
    now.ended = false;
    if (now.method == ZipMethod::kDeflated) {
      if (inflating) inflateReset(&inflater);
      if (!inflating && inflateInit2(&inflater, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
      inflating = true;
      inflated = false;
    }
    current = std::move(now);
  }

  // Inflates into `out`; returns how many bytes came, fewer only at the end of the member.
  size_t inflate_some(std::span<std::byte> out) {
    size_t done = 0;
    while (done < out.size() && !inflated) {
      if (!refill()) fail_npz("the file ends within member '" + current.name + "'");
      const size_t most = std::min<size_t>(out.size() - done, size_t{1} << 30);
      inflater.next_in = reinterpret_cast<unsigned char*>(input.data() + at);
      inflater.avail_in = static_cast<uInt>(filled - at);
      inflater.next_out = reinterpret_cast<unsigned char*>(out.data() + done);
      inflater.avail_out = static_cast<uInt>(most);
      const int code = inflate(&inflater, Z_NO_FLUSH);
      const size_t used = filled - at - inflater.avail_in;
      at += used;
      taken += static_cast<int64_t>(used);
      done += most - inflater.avail_out;
      if (code == Z_STREAM_END) {
        inflated = true;
      } else if (code != Z_OK) {
        fail_npz("the deflated bytes of member '" + current.name + "' are damaged");
      }
      const int64_t produced = current.produced + static_cast<int64_t>(done);
      if (produced > kFreeBytes && produced / kMostTimes > taken - current.start) {
        throw core::Error("body_too_large",
                          fmt::format("npz: member '{}' expands more than {} times; send it stored (numpy.savez)",
                                      current.name, kMostTimes));
      }
    }
    return done;
  }

  void read_directory() {
    for (;;) {
      const std::string record = take_text(kCentralRest);
      Current listed;
      listed.crc = static_cast<uint32_t>(get(record, 12, 4));
      listed.stored_bytes = static_cast<int64_t>(get(record, 16, 4));
      listed.bytes = static_cast<int64_t>(get(record, 20, 4));
      listed.offset = static_cast<int64_t>(get(record, 38, 4));
      listed.name = take_text(get(record, 24, 2));
      read_zip64(take_text(get(record, 26, 2)), {&listed.bytes, &listed.stored_bytes, &listed.offset});
      take_text(get(record, 28, 2));  // comment
      const auto found = members.find(listed.offset);
      if (found == members.end() || found->second.name != listed.name || found->second.crc != listed.crc ||
          found->second.bytes != listed.bytes || found->second.stored_bytes != listed.stored_bytes) {
        fail_npz("the directory lists '" + listed.name + "' otherwise than it is in the file");
      }
      members.erase(found);
      const uint32_t signature = take_signature();
      if (signature != zip::kCentral) return read_end(signature);
    }
  }

  uint32_t take_signature() { return static_cast<uint32_t>(get(take_text(4), 0, 4)); }

  void read_end(uint32_t signature) {
    if (!members.empty()) fail_npz("the directory does not list '" + members.begin()->second.name + "'");
    if (signature == zip::kEnd64) {
      const std::string record = take_text(kEnd64Rest);
      if (get(record, 0, 8) != kEnd64Rest - 8) fail_npz("the zip64 end record has a length that is not known here");
      if (take_signature() != zip::kLocator64) fail_npz("the zip64 locator is missing");
      take_text(kLocatorRest);
      signature = take_signature();
    }
    if (signature != zip::kEnd) fail_npz("the end record is missing");
    take_text(get(take_text(kEndRest), 16, 2));  // comment
    if (refill()) fail_npz("there are bytes behind the end record");
  }
};

ZipReader::ZipReader(ReadSome read) : state_(std::make_unique<State>()) { state_->read = std::move(read); }

ZipReader::~ZipReader() = default;

bool ZipReader::next(Member& out) {
  if (!state_->current.ended) throw core::Error("internal", "a zip member was left before its end");
  const uint32_t signature = state_->take_signature();
  if (signature == zip::kLocal) {
    state_->begin_local();
    out = {state_->current.name, state_->current.method};
    return true;
  }
  if (signature == zip::kCentral) {
    state_->read_directory();
  } else if (signature == zip::kEnd || signature == zip::kEnd64) {
    state_->read_end(signature);
  } else {
    fail_npz(state_->taken == 4 ? "the body is no zip file" : "a member is followed by bytes that are no record");
  }
  return false;
}

void ZipReader::read_exactly(std::span<std::byte> out) {
  State& s = *state_;
  State::Current& now = s.current;
  const auto size = static_cast<int64_t>(out.size());
  const auto too_short = [&] { fail_npz("member '" + now.name + "' ends before its array does"); };
  if (now.method == ZipMethod::kStored) {
    if (!now.sizes_behind && size > now.stored_bytes - now.produced) too_short();
    s.take(out);
  } else if (s.inflate_some(out) != out.size()) {
    too_short();
  }
  now.produced += size;
  now.computed = zip_crc(now.computed, out);
}

void ZipReader::end_member() {
  State& s = *state_;
  State::Current& now = s.current;
  std::byte more{};
  if (now.method == ZipMethod::kDeflated && s.inflate_some({&more, 1}) != 0)
    fail_npz("member '" + now.name + "' has bytes behind its array");
  const int64_t stored = s.taken - now.start;
  if (now.sizes_behind) {
    const int width = now.has_zip64 ? 8 : 4;
    const std::string record = s.take_text(8 + 2 * static_cast<size_t>(width));
    if (get(record, 0, 4) != zip::kDescriptor) fail_npz("member '" + now.name + "' has bytes behind its array");
    now.crc = static_cast<uint32_t>(get(record, 4, 4));
    const uint64_t stored_bytes = get(record, 8, width), bytes = get(record, 8 + static_cast<size_t>(width), width);
    if (stored_bytes > INT64_MAX || bytes > INT64_MAX) fail_npz("a size does not fit in 63 bits");
    now.stored_bytes = static_cast<int64_t>(stored_bytes);
    now.bytes = static_cast<int64_t>(bytes);
  }
  if (now.bytes != now.produced || now.stored_bytes != stored) {
    fail_npz(fmt::format("member '{}' has {} bytes, its record says {}", now.name, now.produced, now.bytes));
  }
  if (now.crc != now.computed) fail_npz("member '" + now.name + "' does not have its checksum");
  now.ended = true;
  s.members.emplace(now.offset, now);
}

}  // namespace meshd::api
