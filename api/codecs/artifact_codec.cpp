#include "api/codecs/artifact_codec.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "api/codecs/base64.h"

namespace meshd::api {

void check_source(const ProgramSource& source, const std::string& pointer, core::Diagnostics& wrong) {
  const int given = (source.text ? 1 : 0) + (source.base64 ? 1 : 0) + (source.part ? 1 : 0);
  if (given == 0) wrong.add(pointer + "/text", "is missing");
  if (given > 1)
    wrong.add(pointer + (source.base64 ? "/base64" : "/part"), "is given beside text or another source; give one");
}

std::optional<program::ArtifactProgram> read_artifact_source(const ProgramSource& source, const std::string& pointer,
                                                             FormFiles* files, core::MemoryReservation* memory,
                                                             core::Diagnostics& wrong) {
  if (source.base64) {
    const auto size = base64_size(*source.base64);
    if (memory != nullptr && size) memory->grow(*size);
    std::string bytes(static_cast<size_t>(size.value_or(0)), '\0');
    if (!size || !base64_decode(*source.base64, std::as_writable_bytes(std::span(bytes)))) {
      wrong.add(pointer + "/base64", "is no base64 (RFC 4648 section 4) of an artifact");
      return std::nullopt;
    }
    return program::read_artifact(bytes, memory);
  }
  if (files == nullptr) {
    wrong.add(pointer + "/part", "names a part of a form, but the request is JSON alone; send a form, or base64");
    return std::nullopt;
  }
  const auto& parts = files->parts();
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const FormPart& part) { return part.name == *source.part; });
  if (found == parts.end()) {
    wrong.add(pointer + "/part", fmt::format("the form has no part named {}", quote(*source.part)));
    return std::nullopt;
  }
  return program::read_artifact(found->data, memory);
}

}  // namespace meshd::api
