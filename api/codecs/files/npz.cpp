#include "api/codecs/files/npz.h"

#include <set>

#include "api/json/json.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

void walk_npz(ZipReader::ReadSome read, const TakeMember& take, const MemberDType& dtype_of) {
  ZipReader zip(std::move(read));
  const ReadMember read_member = [&](std::span<std::byte> to) { zip.read_exactly(to); };
  std::set<std::string> names;
  for (ZipReader::Member member; zip.next(member);) {
    if (!member.name.ends_with(kSuffix))
      throw core::Error("malformed_body", "npz: member " + quote(member.name) + " is no .npy file");
    const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
    if (!names.insert(name).second)
      throw core::Error("malformed_body", "npz: two members are named " + quote(member.name));
    NpyHead head;
    try {
      head = dtype_of ? read_npy_head(read_member, dtype_of(name)) : read_open_npy_head(read_member);
    } catch (const core::Error& error) {
      throw core::Error(error.code(), "member " + quote(member.name) + ": " + error.detail(), error.diagnostics());
    }
    take(name, head, read_member);
    zip.end_member();
  }
}

}  // namespace meshd::api
