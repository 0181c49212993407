#include "api/codecs/runs/old_job_row.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "api/codecs/array_document.h"
#include "api/codecs/base64.h"
#include "api/codecs/mesh_codec.h"
#include "service/mesh/mesh_document.h"

namespace meshd::api {
namespace {

std::string text_of(const Json& file, std::string_view name) {
  const Json* field = file.find(name);
  const auto* text = field == nullptr ? nullptr : field->as<std::string>();
  return text == nullptr ? std::string() : *text;
}

// The files of a form, which view `bytes`.
std::vector<FormPart> files_of(const Json& list, std::vector<std::unique_ptr<std::string>>& bytes) {
  std::vector<FormPart> out;
  list.each([&](size_t, const Json& file) {
    const std::string base64 = text_of(file, "base64");
    std::string& content =
        *bytes.emplace_back(std::make_unique<std::string>(static_cast<size_t>(base64_size(base64).value_or(0)), '\0'));
    if (!base64_decode(base64, std::as_writable_bytes(std::span(content))))
      throw core::Error("internal", "a stored job has a file that is no base64");
    out.push_back({text_of(file, "part"), text_of(file, "filename"), text_of(file, "media_type"), content});
    return true;
  });
  return out;
}

}  // namespace

jobs::JobRequest decode_old_job_row(const storage::JobRow& row, const OldJobSources& sources) {
  const Json document = Json::parse(row.request, kInlineLimits);
  // No body has a field of this name: it would have been refused.
  const Json* wrapped = document.find("body");
  std::optional<mesh::Mesh> session_mesh;
  std::map<std::string, mesh::Mesh> known;  // by what they are: an id is the digest of a mesh
  std::vector<std::unique_ptr<std::string>> bytes;
  std::vector<FormPart> parts;
  if (wrapped != nullptr) {
    core::Diagnostics wrong;
    if (const Json* mesh = document.find("session_mesh")) session_mesh = read_mesh(*mesh, "/session_mesh", wrong);
    if (const Json* meshes = document.find("meshes")) {
      meshes->each([&](size_t, const Json& item) {
        if (auto mesh = read_mesh(item, "/meshes", wrong)) known.emplace(mesh::mesh_id(*mesh), *mesh);
        return true;
      });
    }
    wrong.throw_if_any("internal");
    if (const Json* files = document.find("files")) parts = files_of(*files, bytes);
  }
  const bool has_files = !parts.empty();
  FormFiles files(std::move(parts), sources.pool, nullptr);
  MeshFinder meshes(sources.meshes, row.principal);
  meshes.know(std::move(known));
  const JobContext context{sources.arrays,
                           sources.programs,
                           sources.compiler,
                           sources.pool,
                           meshes,
                           session_mesh ? &*session_mesh : nullptr,
                           sources.processes,
                           true,
                           has_files ? &files : nullptr};
  return decode_job(wrapped != nullptr ? *wrapped : document, row.principal, row.session, context);
}

}  // namespace meshd::api
