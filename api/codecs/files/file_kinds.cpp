#include "api/codecs/files/file_kinds.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "service/core/error.h"

namespace meshd::api {
namespace {

using namespace std::string_view_literals;

constexpr FileKindRow kKinds[] = {
    {FileKind::kUnknown, "raw bytes", "", "", {}, ""},
    {FileKind::kNpy, "a .npy file", "\x93NUMPY", ".npy", {"application/x-npy", "application/npy"}, ""},
    {FileKind::kZip,
     "a ZIP file (.npz)",
     "PK",
     ".npz",
     {"application/zip", "application/x-npz", "application/npz"},
     ""},
    {FileKind::kSafetensors,
     "a safetensors file",
     "",
     ".safetensors",
     {"application/x-safetensors", "application/safetensors"},
     ""},
    {FileKind::kMlirBytecode, "MLIR bytecode", "ML\xefR", ".mlirbc", {}, ""},
    {FileKind::kJson, "JSON", "", "", {"application/json"}, ""},
    {FileKind::kForm, "a form", "", "", {"multipart/form-data"}, ""},
    {FileKind::kPickle, "a Python pickle", "\x80", "", {}, "a pickle runs code where it is read: save by np.save"},
    {FileKind::kHdf5, "an HDF5 file", "\x89HDF\r\n\x1a\n", "", {}, "send its arrays as .npz or safetensors"},
    {FileKind::kGzip, "gzip data", "\x1f\x8b\x08", "", {}, "send it with -H 'Content-Encoding: gzip'"},
    {FileKind::kZstd, "zstd data", "\x28\xb5\x2f\xfd", "", {}, "send it with -H 'Content-Encoding: zstd'"},
};

// The length of a head of JSON, 8 bytes little endian, and its first byte. No head is as long as 2^32.
bool is_safetensors(std::string_view bytes) {
  return bytes.size() > 8 && bytes.substr(4, 4) == "\0\0\0\0"sv && bytes[8] == '{' &&
         bytes.substr(0, 4) != "\0\0\0\0"sv;
}

// Protocols 2 to 5; the opcode of a frame, an object, a tuple or a global follows.
bool is_pickle(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 &&
         "\x95\x8a}c(]\x8c"sv.find(bytes[2]) != std::string_view::npos;
}

bool is_zip(std::string_view bytes) { return bytes.starts_with("PK\x03\x04"sv) || bytes.starts_with("PK\x05\x06"sv); }

bool begins_as(const FileKindRow& row, std::string_view bytes) {
  switch (row.kind) {
    case FileKind::kSafetensors:
      return is_safetensors(bytes);
    case FileKind::kPickle:
      return is_pickle(bytes);
    case FileKind::kZip:
      return is_zip(bytes);
    default:
      return !row.magic.empty() && bytes.starts_with(row.magic);
  }
}

}  // namespace

const FileKindRow& file_kind_row(FileKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds), [&](const FileKindRow& row) { return row.kind == kind; });
}

FileKind file_kind_of(std::string_view first_bytes) {
  for (const FileKindRow& row : kKinds) {
    if (begins_as(row, first_bytes)) return row.kind;
  }
  return FileKind::kUnknown;
}

FileKind file_kind_of_media(std::string_view media) {
  for (const FileKindRow& row : kKinds) {
    if (!media.empty() && std::find(row.media.begin(), row.media.end(), media) != row.media.end()) return row.kind;
  }
  return FileKind::kUnknown;
}

bool is_open_media(std::string_view media) {
  return media.empty() || media == "application/octet-stream" || media == "application/x-www-form-urlencoded";
}

FileKind resolve_file_kind(std::string_view media, std::string_view filename, std::string_view first_bytes) {
  const FileKind named = file_kind_of_media(media), found = file_kind_of(first_bytes);
  if (named != FileKind::kUnknown) {
    if (found != FileKind::kUnknown && found != named) {
      throw core::Error("malformed_body",
                        fmt::format("the type {} names {}, and the bytes are {}; send the other type, "
                                    "or application/octet-stream",
                                    media, file_kind_row(named).name, file_kind_row(found).name));
    }
    return named;
  }
  const FileKindRow& row = file_kind_row(found);
  if (!row.instead.empty())
    throw core::Error("unsupported_format", fmt::format("the bytes are {}: {}", row.name, row.instead));
  if (found != FileKind::kUnknown) return found;
  for (const FileKindRow& candidate : kKinds) {
    if (!candidate.suffix.empty() && filename.ends_with(candidate.suffix)) return candidate.kind;
  }
  return FileKind::kUnknown;
}

}  // namespace meshd::api
