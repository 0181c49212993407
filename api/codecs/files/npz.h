// The arrays of a .npz file: members of a ZIP file that are .npy files, one after another.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "api/codecs/files/npy.h"
#include "api/codecs/files/zip.h"

namespace meshd::api {

/// Fills the span with the member's next bytes, or throws.
using ReadMember = std::function<void(std::span<std::byte>)>;
/// Takes one array: its name (without .npy), its head, and its bytes, all of which it reads.
using TakeMember = std::function<void(const std::string& name, const NpyHead& head, const ReadMember& read)>;
/// What a member is whose head leaves it open (read_npy_head); empty: its head stays open (read_open_npy_head).
using MemberDType = std::function<std::optional<tensor::DType>(const std::string& name)>;

/// Calls `take` for each member, in the order of the file. Throws as ZipReader and read_npy_head, which name the
/// member, and malformed_body for a member that is no .npy file and for two of one name.
void walk_npz(ZipReader::ReadSome read, const TakeMember& take, const MemberDType& dtype_of = {});

}  // namespace meshd::api
