// Kinds of files by their first bytes: the one table of magic numbers, media types and suffixes that clients send.
//
// Example: a body that begins with "\x93NUMPY" is a .npy file, whether its type is application/octet-stream or missing;
// with Content-Type: application/zip it is refused, and the message names both.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace meshd::api {

enum class FileKind : uint8_t {
  kUnknown,  ///< none of these: raw bytes, or text
  kNpy,
  kZip,  ///< .npz
  kSafetensors,
  kMlirBytecode,  ///< and StableHLO's portable artifacts
  kJson,
  kForm,
  // Kinds that clients try and that nothing here reads.
  kPickle,
  kHdf5,
  kGzip,
  kZstd,
};

/// One row each.
struct FileKindRow {
  FileKind kind;
  std::string_view name;                  ///< in messages: "a .npy file"
  std::string_view magic;                 ///< what it begins with; empty: by other means, or not by its bytes
  std::string_view suffix;                ///< of its filename; may be empty
  std::array<std::string_view, 3> media;  ///< types that name it; the first is the usual one
  std::string_view instead;               ///< of kinds that nothing reads: what to send
};
const FileKindRow& file_kind_row(FileKind kind);

/// Bytes that file_kind_of looks at: fewer where the file has no more.
inline constexpr size_t kMagicBytes = 16;
/// The kind by the first bytes; never kJson or kForm.
FileKind file_kind_of(std::string_view first_bytes);
/// The kind that a media type names (in lower case, without parameters); kUnknown for others.
FileKind file_kind_of_media(std::string_view media);
/// The media type leaves it open what the bytes are: there is none, application/octet-stream, or what curl's
/// --data-binary says without -H.
bool is_open_media(std::string_view media);
/// The kind of a file that has this type, name (may be empty) and bytes: what its type names, else what its bytes are,
/// else what its name says. Throws malformed_body where the type names one kind and the bytes are another's, and
/// unsupported_format for kinds that nothing reads.
FileKind resolve_file_kind(std::string_view media, std::string_view filename, std::string_view first_bytes);

}  // namespace meshd::api
