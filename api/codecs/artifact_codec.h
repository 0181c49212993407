// Programs that come as artifacts (MLIR bytecode, portable artifacts, what jax.export writes): as base64 in JSON, as a
// part of a form, or as a whole body.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/codecs/files/form_files.h"
#include "api/json/json.h"
#include "service/compile/pipeline.h"
#include "service/core/memory_ledger.h"
#include "service/program/bytecode/artifact.h"

namespace meshd::api {

/// The fields of a program that say what it is: at most one of them is given.
struct ProgramSource {
  std::optional<std::string> text, base64, part;

  [[nodiscard]] bool is_artifact() const { return base64 || part; }
};

/// The program of an artifact in `source`: nothing, and a mistake noted under `pointer`, for what is no base64, for a
/// part that is not there, and where there is no form (`files` is null). Throws what program::read_artifact throws.
std::optional<program::ArtifactProgram> read_artifact_source(const ProgramSource& source, const std::string& pointer,
                                                             FormFiles* files, core::MemoryReservation* memory,
                                                             core::Diagnostics& wrong);

/// Notes sources that are missing or given beside each other.
void check_source(const ProgramSource& source, const std::string& pointer, core::Diagnostics& wrong);

}  // namespace meshd::api
