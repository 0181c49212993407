#include "api/codecs/files/zarr.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "api/codecs/files/zarr_keys.h"
#include "api/codecs/mesh_codec.h"

namespace meshd::api {
namespace {

using nlohmann::ordered_json;

// Chunks have at least one element a dimension, also where there is none to hold.
std::vector<int64_t> chunk_dims(const sharding::Layout& layout) {
  std::vector<int64_t> out = layout.shard_dims;
  for (int64_t& size : out) size = std::max<int64_t>(size, 1);
  return out;
}

ordered_json fill_value(tensor::DType dtype) {
  const tensor::DTypeRow& row = tensor::row(dtype);
  switch (row.kind) {
    case tensor::DTypeClass::kBool:
      return true;
    case tensor::DTypeClass::kSigned:
      return INT64_MIN >> (64 - row.bits);
    case tensor::DTypeClass::kUnsigned:
      return UINT64_MAX >> (64 - row.bits);
    case tensor::DTypeClass::kFloat:
      return "NaN";
    case tensor::DTypeClass::kComplex:
      return {"NaN", "NaN"};
  }
  throw core::Error("internal", "a dtype of no class");
}

// Its name of Zarr; empty: it has none.
std::string_view name3(tensor::DType dtype) { return tensor::row(dtype).zarr3; }
std::string_view name2(tensor::DType dtype) {
  return tensor::is_void_in_numpy(dtype) ? std::string_view() : tensor::row(dtype).npy;
}

std::string_view name_or_throw(std::string_view name, const arrays::Array& array) {
  if (name.empty()) {
    throw core::Error("not_acceptable", fmt::format("Zarr has no name for {}; ask for /v1/arrays/{}/data",
                                                    tensor::name(array.info().type.dtype), array.info().id));
  }
  return name;
}

// What a client has said of an array or a group (zarr_metadata.h writes it).
ordered_json kept(const std::string& text) { return text.empty() ? ordered_json::object() : ordered_json::parse(text); }

ordered_json own_attributes(const ordered_json& kept_document) {
  const auto found = kept_document.find("attributes");
  return found == kept_document.end() ? ordered_json::object() : *found;
}

// The names that a client gave, or else some that no other array of the group has: xarray takes dimensions of one name
// for one dimension.
ordered_json dimension_names(const arrays::Array& array, const ordered_json& kept_document) {
  const std::string& name = array.info().name;
  const std::string leaf = name.empty() ? "" : name.substr(name.rfind('/') + 1) + "_";
  const auto given = kept_document.find("dimension_names");
  ordered_json out = ordered_json::array();
  for (size_t d = 0; d < array.info().type.dims.size(); ++d) {
    const bool is_given = given != kept_document.end() && (*given)[d].is_string();
    out.push_back(is_given ? (*given)[d] : ordered_json(fmt::format("{}dim_{}", leaf, d)));
  }
  return out;
}

struct Described {
  ordered_json attributes, dimension_names;
};

Described describe(arrays::Array& array, int64_t version) {
  const arrays::ArrayInfo& info = array.info();
  const ordered_json document =
      kept(array.state().with([](const arrays::Array::State& state) { return state.attributes; }));
  ordered_json ours{{"array", info.id}, {"name", info.name}, {"version", version}, {"mesh", nullptr}};
  if (!info.mesh_id.empty()) ours["mesh"] = info.mesh_id;
  ours["sharding"] = ordered_json::parse(to_json(sharding_document(info.sharding, info.type.rank())));
  ours["pinned"] = fmt::format("/v1/arrays/{}/v{}/zarr", info.id, version);
  Described out{own_attributes(document), dimension_names(array, document)};
  out.attributes["meshd"] = std::move(ours);
  return out;
}

std::string text_of(const ordered_json& document) {
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json attributes2(arrays::Array& array, int64_t version) {
  Described described = describe(array, version);
  described.attributes["_ARRAY_DIMENSIONS"] = std::move(described.dimension_names);
  return std::move(described.attributes);
}

ordered_json array2(const arrays::Array& array) {
  const tensor::TensorType& type = array.info().type;
  ordered_json out{{"zarr_format", 2}, {"shape", type.dims}, {"chunks", chunk_dims(array.layout())}};
  out["dtype"] = name_or_throw(name2(type.dtype), array);
  out["compressor"] = nullptr;
  out["filters"] = nullptr;
  out["order"] = "C";
  out["fill_value"] = fill_value(type.dtype);
  return out;
}

ordered_json array3(arrays::Array& array, int64_t version) {
  const tensor::TensorType& type = array.info().type;
  Described described = describe(array, version);
  ordered_json codec{{"name", "bytes"}};
  if (tensor::size_bytes(type.dtype) > 1) codec["configuration"] = {{"endian", "little"}};
  ordered_json out{{"zarr_format", 3}, {"node_type", "array"}, {"shape", type.dims}};
  out["data_type"] = name_or_throw(name3(type.dtype), array);
  out["chunk_grid"] = {{"name", "regular"}, {"configuration", {{"chunk_shape", chunk_dims(array.layout())}}}};
  out["chunk_key_encoding"] = {{"name", "default"}, {"configuration", {{"separator", "/"}}}};
  out["fill_value"] = fill_value(type.dtype);
  out["codecs"] = ordered_json::array({codec});
  out["dimension_names"] = std::move(described.dimension_names);
  out["attributes"] = std::move(described.attributes);
  return out;
}

// A node below a group.
struct Member {
  arrays::ArrayRef array;         ///< null: a group
  std::string attributes;         ///< of a group
  std::string_view left_out_for;  ///< why it is not shown; empty: it is
};

// By path behind the group's, groups that follow from names among them.
std::map<std::string, Member> members_of(const zarr::Group& group, const std::string& path,
                                         std::string_view (*name_of)(tensor::DType)) {
  std::map<std::string, Member> out;
  if (!group.arrays) return out;
  const size_t skip = path.empty() ? 0 : path.size() + 1;
  for (const arrays::ArrayRef& array : *group.arrays) {
    Member member{array, {}, {}};
    const std::string name = array->info().name.substr(skip);
    if (!is_zarr_path(name)) member.left_out_for = "its name is no path of Zarr";
    if (name_of(array->info().type.dtype).empty()) member.left_out_for = tensor::name(array->info().type.dtype);
    out[name] = std::move(member);
  }
  // Names come in order, so that an array is met before what is below it.
  const auto is_shown_array = [&](const std::string& name) {
    const auto found = out.find(name);
    return found != out.end() && found->second.array != nullptr && found->second.left_out_for.empty();
  };
  std::map<std::string, Member> groups;
  for (auto& [name, member] : out) {
    if (!member.left_out_for.empty()) continue;
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      const std::string above = name.substr(0, slash);
      if (is_shown_array(above)) {
        member.left_out_for = "it is below an array";
        break;
      }
      groups.try_emplace(above);
    }
  }
  for (const storage::ZarrGroupRow& row : group.groups) groups[row.path.substr(skip)].attributes = row.attributes;
  for (auto& [name, member] : groups) {
    if (!is_shown_array(name)) out[name] = std::move(member);
  }
  return out;
}

ordered_json group_attributes(const std::string& text, const std::map<std::string, Member>& members) {
  ordered_json out = own_attributes(kept(text));
  ordered_json left_out = ordered_json::object();
  for (const auto& [name, member] : members) {
    if (!member.left_out_for.empty()) left_out[name] = member.left_out_for;
  }
  if (!left_out.empty()) out["meshd"] = {{"left_out", std::move(left_out)}};
  return out;
}

ordered_json group3(ordered_json attributes) {
  return {{"zarr_format", 3}, {"node_type", "group"}, {"attributes", std::move(attributes)}};
}

}  // namespace

std::string zarr2_attributes(arrays::Array& array, int64_t version) { return text_of(attributes2(array, version)); }

std::string zarr3_document(arrays::Array& array, int64_t version) { return text_of(array3(array, version)); }

std::string zarr2_document(arrays::Array& array) { return text_of(array2(array)); }

std::string zarr3_group(const zarr::Group& group, const std::string& path, ZarrListing listing) {
  const auto members = members_of(group, path, name3);
  ordered_json out = group3(group_attributes(group.attributes, members));
  if (listing == ZarrListing::kNone || !group.arrays) return text_of(out);
  ordered_json metadata = ordered_json::object();
  for (const auto& [name, member] : members) {
    if (!member.left_out_for.empty()) continue;
    metadata[name] = member.array != nullptr ? array3(*member.array, member.array->version())
                                             : group3(own_attributes(kept(member.attributes)));
  }
  out["consolidated_metadata"] = {{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}};
  return text_of(out);
}

std::string zarr2_group() { return text_of({{"zarr_format", 2}}); }

std::string zarr2_group_attributes(const zarr::Group& group, const std::string& path) {
  return text_of(group_attributes(group.attributes, members_of(group, path, name2)));
}

std::string zarr2_consolidated(const zarr::Group& group, const std::string& path) {
  if (!group.arrays) return {};
  const auto members = members_of(group, path, name2);
  ordered_json metadata{{".zattrs", group_attributes(group.attributes, members)}, {".zgroup", {{"zarr_format", 2}}}};
  for (const auto& [name, member] : members) {
    if (!member.left_out_for.empty()) continue;
    if (member.array != nullptr) {
      metadata[name + "/.zarray"] = array2(*member.array);
      metadata[name + "/.zattrs"] = attributes2(*member.array, member.array->version());
    } else {
      metadata[name + "/.zgroup"] = {{"zarr_format", 2}};
      metadata[name + "/.zattrs"] = own_attributes(kept(member.attributes));
    }
  }
  return text_of({{"zarr_consolidated_format", 1}, {"metadata", std::move(metadata)}});
}

}  // namespace meshd::api
