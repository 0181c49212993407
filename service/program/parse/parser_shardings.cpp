// Shardy's attributes: meshes, shardings, manual axes. Shardings are resolved against meshes while they are read: a
// mesh must precede its use, as JAX and Shardy print it. Meshes written inside shardings are lifted to the module, as
// Shardy does.
#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/mesh/positions.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

/// Priorities are p0, p1, ... as Shardy prints them.
std::optional<int> priority_of(std::string_view word) {
  if (word.size() < 2 || word.size() > 6 || word[0] != 'p') return std::nullopt;
  int value = 0;
  for (const char c : word.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

mesh::Mesh Parser::mesh_body() {
  mesh::Mesh out;
  expect('<', "at the start of a mesh");
  const bool brackets = accept('[');
  const Token start = token_;
  bool more = token_.is(TokenKind::kString);
  while (more) {
    const Token name = expect(TokenKind::kString, "the name of an axis");
    std::string axis = unescape(name);
    if (axis.find_first_of("\"\\") != std::string::npos) {
      fail("invalid_mesh", name, "an axis name must have no quotes and backslashes");
    }
    if (axis.size() > mesh::kLongestAxisName) {
      fail("invalid_mesh", name,
           fmt::format("an axis name has at most {} bytes, got {}", mesh::kLongestAxisName, axis.size()));
    }
    if (out.axis_index(axis)) fail("invalid_mesh", name, "duplicate axis name: \"" + axis + "\"");
    expect('=', "behind the name of an axis");
    const Token size_token = token_;
    const int64_t size = signed_integer("the size of an axis");
    if (size < 1 || size > kMaxAxisSize) {
      fail("invalid_mesh", size_token,
           fmt::format("the size of axis \"{}\" must be at least 1 and at most {}, got {}", axis, kMaxAxisSize, size));
    }
    out.axes.push_back({std::move(axis), size});
    if (out.axes.size() > kMaxAxes) fail("invalid_mesh", name, fmt::format("a mesh has at most {} axes", kMaxAxes));
    if (const mesh::Positions positions = mesh::count_positions(out.axes); positions.fault)
      fail("invalid_mesh", start, positions.problem);
    more = at(',') && brackets ? accept(',') : false;
    if (!brackets && at(',')) {
      advance();
      more = token_.is(TokenKind::kString);
      if (!more) break;
    }
  }
  if (brackets) {
    expect(']', "behind the axes of a mesh");
    accept(',');
  }
  if (at("device_ids")) {
    expect_key("device_ids");
    out.device_ids = integer_list("around device ids");
    const int64_t count = out.position_count();
    if (!out.axes.empty() && static_cast<int64_t>(out.device_ids.size()) != count) {
      fail("invalid_mesh", start,
           fmt::format("the mesh has {} positions, but {} device ids", count, out.device_ids.size()));
    }
    if (out.axes.empty() && out.device_ids.size() > 1)
      fail("invalid_mesh", start, "a mesh without axes has at most one device id");
    std::vector<int64_t> sorted = out.device_ids;
    std::sort(sorted.begin(), sorted.end());
    if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= mesh::kMaxPositions))
      fail("invalid_mesh", start, fmt::format("device ids must be at least 0 and below {}", mesh::kMaxPositions));
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      fail("invalid_mesh", start, "device ids must be distinct");
    // An absent list means iota order.
    bool is_iota = !out.axes.empty();
    for (size_t i = 0; i < out.device_ids.size(); ++i)
      is_iota = is_iota && out.device_ids[i] == static_cast<int64_t>(i);
    if (is_iota) out.device_ids.clear();
  }
  expect('>', "at the end of a mesh");
  return out;
}

void Parser::add_mesh(std::string name, mesh::Mesh mesh, const Token& where) {
  if (module_.find_mesh(name) != nullptr) fail("invalid_program", where, "mesh @" + name + " is defined twice");
  if (module_.meshes.size() == kMaxMeshes) fail("invalid_program", where, "there are too many meshes");
  module_.meshes.push_back({std::move(name), std::make_shared<const mesh::Mesh>(std::move(mesh)), where.location()});
}

std::string Parser::lift_mesh(mesh::Mesh mesh, const Token& where) {
  for (const ir::NamedMesh& known : module_.meshes) {
    if (*known.mesh == mesh) return known.name;
  }
  const std::string base = mesh.is_maximal() ? fmt::format("maximal_mesh_{}", mesh.device_ids[0]) : "mesh";
  std::string name = base;
  for (int i = 0; module_.find_mesh(name) != nullptr; ++i) name = fmt::format("{}_{}", base, i);
  add_mesh(name, std::move(mesh), where);
  return name;
}

sharding::AxisRef Parser::axis_ref(const mesh::Mesh& mesh) {
  const Token name = expect(TokenKind::kString, "the name of an axis");
  const auto index = mesh.axis_index(unescape(name));
  if (!index) {
    fail("invalid_program", name, fmt::format("unknown axis {}, the mesh is {}", name.text, mesh::to_text(mesh)));
  }
  sharding::AxisRef out;
  out.axis = *index;
  if (accept(':')) {
    expect('(', "before the pre-size of a part of an axis");
    const Token size = token_;
    out.pre = signed_integer("the pre-size of a part of an axis");
    expect(')', "behind the pre-size of a part of an axis");
    out.size = signed_integer("the size of a part of an axis");
    if (out.pre > kMaxAxisSize || out.size > kMaxAxisSize)
      fail("invalid_program", size, "the part of an axis is too large");
    if (out.pre < 1 || out.size < 2) {
      fail("invalid_program", size, "parts of axes have pre-sizes of at least 1 and sizes of at least 2");
    }
  }
  return out;
}

std::vector<sharding::AxisRef> Parser::axis_list(const mesh::Mesh& mesh) {
  std::vector<sharding::AxisRef> out;
  list('{', '}', "around axes", [&] { out.push_back(axis_ref(mesh)); });
  return out;
}

sharding::DimSharding Parser::dim_sharding(const mesh::Mesh& mesh) {
  sharding::DimSharding out;
  expect('{', "at the start of a dimension's axes");
  while (!at('}')) {
    if (out.open) expected("'}' behind '?'");
    if (accept('?')) {
      out.open = true;
    } else {
      out.axes.push_back(axis_ref(mesh));
    }
    if (!at('}')) expect(',', "between axes");
  }
  advance();
  if (token_.is(TokenKind::kWord)) {
    out.priority = priority_of(token_.text);
    if (!out.priority) expected("a priority such as p0");
    if (out.axes.empty() && !out.open) {
      fail("invalid_program", token_, "a dimension that is empty and closed has no priority");
    }
    advance();
  }
  return out;
}

sharding::TensorSharding Parser::sharding_body() {
  if (token_.text == "#sdy.sharding") {
    advance();
  } else if (token_.is(TokenKind::kHash)) {
    const Token use = token_;
    const ir::Attribute alias = attribute();
    const auto* held = alias.as<ir::ShardingAttr>();
    if (held == nullptr || held->per_value) fail("program_syntax", use, describe(use) + " is not one sharding");
    return held->shardings[0];
  }
  const Token start = expect('<', "at the start of a sharding");
  sharding::TensorSharding out;
  if (token_.is(TokenKind::kSymbol)) {
    const Token name = take();
    out.mesh_name = symbol_name(name);
  } else {
    expect_word("mesh", "or a mesh's name in a sharding");
    out.mesh_name = lift_mesh(mesh_body(), start);
  }
  const ir::NamedMesh* named = module_.find_mesh(out.mesh_name);
  if (named == nullptr)
    fail("invalid_program", start, "unknown mesh @" + out.mesh_name + ": a mesh must be above its use");
  out.mesh = named->mesh;
  const mesh::Mesh& mesh = *out.mesh;
  expect(',', "behind the mesh of a sharding");
  list('[', ']', "around the dimensions of a sharding", [&] { out.dims.push_back(dim_sharding(mesh)); });
  while (accept(',')) {
    if (at("replicated")) {
      expect_key("replicated");
      out.replicated = axis_list(mesh);
    } else {
      expect_key("unreduced");
      if (accept("max")) {
        out.unreduced_kind = sharding::ReductionKind::kMax;
      } else if (accept("min")) {
        out.unreduced_kind = sharding::ReductionKind::kMin;
      } else {
        accept("sum");
      }
      out.unreduced = axis_list(mesh);
    }
  }
  expect('>', "at the end of a sharding");
  size_t axis_count = out.replicated.size() + out.unreduced.size();
  for (const sharding::DimSharding& dim : out.dims) axis_count += dim.axes.size();
  if (axis_count > kMaxAxes || out.rank() > kMaxRank) fail("invalid_program", start, "the sharding is too large");
  try {
    if (!mesh.is_maximal()) sharding::verify(out, out.rank());
  } catch (const core::Error& error) {
    fail("invalid_program", start, error.detail());
  }
  return out;
}

std::vector<sharding::TensorSharding> Parser::sharding_list() {
  std::vector<sharding::TensorSharding> out;
  list('[', ']', "around shardings", [&] { out.push_back(sharding_body()); });
  return out;
}

ir::Attribute Parser::manual_axes() {
  ir::ArrayAttr out;
  list('{', '}', "around manual axes",
       [&] { out.values.push_back({ir::StringAttr{unescape(expect(TokenKind::kString, "the name of an axis"))}}); });
  return {std::move(out)};
}

ir::Attribute Parser::axis_lists(std::string_view kind) {
  ir::DictAttr out{"sdy." + std::string(kind), {}};
  const auto axes = [&] {
    ir::ArrayAttr names;
    list('{', '}', "around axes", [&] {
      std::string axis(expect(TokenKind::kString, "the name of an axis").text);
      if (accept(':')) {
        expect('(', "before the pre-size of a part of an axis");
        axis += fmt::format(":({})", signed_integer("the pre-size of a part of an axis"));
        expect(')', "behind the pre-size of a part of an axis");
        axis += std::to_string(signed_integer("the size of a part of an axis"));
      }
      names.values.push_back({ir::StringAttr{std::move(axis)}});
    });
    return names;
  };
  if (kind == "axis_ref_list") {
    out.entries.emplace_back("", ir::Attribute{axes()});
    return {std::move(out)};
  }
  list('[', ']', "around lists of axes", [&] {
    ir::ArrayAttr names = axes();
    std::string dims;
    if (kind == "all_to_all_param_list") {
      expect(':', "behind the axes that change their dimension");
      dims = std::to_string(signed_integer("a dimension"));
      expect(TokenKind::kArrow, "'->' between two dimensions");
      dims += fmt::format("->{}", signed_integer("a dimension"));
    }
    out.entries.emplace_back(std::move(dims), ir::Attribute{std::move(names)});
  });
  return {std::move(out)};
}

ir::Attribute Parser::sdy_attribute(const std::string& name) {
  const Token start = token_;
  if (name == "sdy.sharding") return {ir::ShardingAttr{{sharding_body()}, false}};
  if (name == "sdy.sharding_per_value") {
    expect('<', "behind '#sdy.sharding_per_value'");
    ir::ShardingAttr out{sharding_list(), true};
    expect('>', "at the end of shardings");
    return {std::move(out)};
  }
  if (name == "sdy.op_sharding_rule") return {ir::ShardingRuleAttr{factor_rule()}};
  if (name == "sdy") {
    expect('<', "behind '#sdy'");
    const Token kind = expect(TokenKind::kWord, "the kind of an attribute");
    ir::Attribute out;
    if (kind.text == "manual_axes") {
      out = manual_axes();
    } else if (kind.text == "axis_ref_list" || kind.text == "list_of_axis_ref_lists" ||
               kind.text == "all_to_all_param_list") {
      out = axis_lists(kind.text);
    } else if (kind.text == "propagation_direction") {
      out = {ir::EnumAttr{"sdy.propagation_direction", std::string(expect(TokenKind::kWord, "a direction").text)}};
    } else {
      fail("unsupported_attribute", kind, "attribute '#sdy<" + std::string(kind.text) + ">' is not supported");
    }
    expect('>', "at the end of an attribute");
    return out;
  }
  fail("unsupported_attribute", start, "attribute '#" + name + "' is not supported");
}

}  // namespace meshd::program
