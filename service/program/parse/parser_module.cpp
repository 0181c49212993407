// The file: alias definitions, the module with its meshes and functions, and the metadata at the end. Locations and
// resources are looked up last, because JAX prints their definitions behind the module.
#include <fmt/core.h>

#include <utility>

#include "service/core/error.h"
#include "service/ir/walk.h"
#include "service/program/bytecode/vhlo_forms.h"
#include "service/program/literals/hex.h"
#include "service/program/parse/parse.h"
#include "service/program/parse/parser.h"

namespace meshd::program {
namespace {

constexpr std::string_view kEntry = "main";

}  // namespace

ir::Module Parser::parse() {
  try {
    return file();
  } catch (const core::Error& error) {
    // Want of memory has no place in the text.
    const bool is_memory =
        error.code() == core::ErrorCode("memory_full") || error.code() == core::ErrorCode("memory_exceeded");
    // Accessors of attributes have no location; the current token is near.
    if (!is_memory && error.diagnostics().empty()) fail(error.code(), token_, error.detail());
    throw;
  }
}

ir::Module Parser::file() {
  bool seen_module = false;
  while (!token_.is(TokenKind::kEnd)) {
    if (token_.is(TokenKind::kHash) || token_.is(TokenKind::kBang)) {
      alias_definition();
    } else if (token_.is(TokenKind::kFileMetadata)) {
      file_metadata();
    } else if (!seen_module && at("module")) {
      seen_module = true;
      advance();
      if (token_.is(TokenKind::kSymbol)) module_.name = symbol_name(take());
      if (accept("attributes")) set_module_attributes(attribute_dict());
      module_body();
      optional_location();
    } else if (!seen_module && token_.is(TokenKind::kString) && token_.text == "\"builtin.module\"") {
      seen_module = true;
      generic_module_op(take());
    } else if (at("module")) {
      fail("unsupported_op", token_, "one module is expected");
    } else {
      // A file may also hold the module's ops without the module.
      module_op();
    }
  }
  resolve_resources();
  resolve_locations();
  name_entry();
  return std::move(module_);
}

void Parser::name_entry() {
  if (module_.functions.empty() || module_.find_function(kEntry) != nullptr) return;
  std::vector<ir::Function*> entries;
  for (ir::Function& function : module_.functions) {
    if (function.is_public) entries.push_back(&function);
  }
  if (entries.size() != 1) {
    std::string names;
    for (const ir::Function* entry : entries) names += (names.empty() ? "@" : ", @") + entry->name;
    ir::fail("invalid_program", module_.functions.front().location,
             "the module has no function @main, and " +
                 (entries.empty() ? "none that is public" : "several that are public: " + names) +
                 "; name the one to run @main");
  }
  const std::string name = std::exchange(entries.front()->name, std::string(kEntry));
  for (ir::Function& function : module_.functions) {
    ir::walk(function.body, [&](ir::Op& op) {
      for (auto& [key, value] : op.attributes) {
        auto* symbol = std::get_if<ir::SymbolAttr>(&value.value);
        if (symbol != nullptr && symbol->name == name) symbol->name = kEntry;
      }
    });
  }
}

void Parser::alias_definition() {
  const Token name = take();
  expect('=', "in the definition of an alias");
  if (at("loc") && name.is(TokenKind::kHash)) {
    advance();
    location_aliases_[name.text] = location_body();
    return;
  }
  aliases_.insert_or_assign(name.text, std::pair(lexer_, token_));
  // It is parsed where it is used, when meshes are known; here only its end is found, which is the end of its line.
  while (!token_.is(TokenKind::kEnd) && token_.line == name.line) {
    if (token_.is('<') || token_.is('(') || token_.is('[') || token_.is('{')) {
      skip_balanced();
    } else {
      advance();
    }
  }
}

void Parser::set_module_attributes(ir::AttributeList attributes) {
  const Token where = token_;
  try {
    module_.num_partitions = ir::int_or(attributes, "mhlo.num_partitions", 1);
    module_.num_replicas = ir::int_or(attributes, "mhlo.num_replicas", 1);
  } catch (const core::Error& error) {
    fail("invalid_program", where, error.detail());
  }
  module_.attributes = std::move(attributes);
}

void Parser::module_body() {
  const Token start = expect('{', "at the start of a module");
  while (!accept('}')) {
    if (token_.is(TokenKind::kEnd)) fail("program_syntax", start, "the module that begins here is not closed");
    module_op();
  }
}

void Parser::module_op() {
  const Token start = token_;
  if (token_.is(TokenKind::kString)) {
    advance();
    generic_module_op(start);
    return;
  }
  if (!token_.is(TokenKind::kWord)) expected("a function or a mesh");
  advance();
  if (start.text == "func.func" || start.text == "func" || without_version(start.text) == "vhlo.func") {
    pretty_function(start);
  } else if (start.text == "sdy.mesh") {
    pretty_mesh();
  } else {
    fail("unsupported_op", start, "op " + describe(start) + " is not supported in a module");
  }
}

void Parser::pretty_mesh() {
  const Token name = expect(TokenKind::kSymbol, "the name of a mesh");
  expect('=', "behind the name of a mesh");
  add_mesh(symbol_name(name), mesh_body(), name);
  optional_attribute_dict();
  optional_location();
}

void Parser::generic_module_op(const Token& start) {
  const std::string name = todays_op_name(unescape(start), false);
  expect('(', "behind the name of an op");
  expect(')', "behind the name of an op");
  ir::Function function;
  function.location = start.location();
  ir::AttributeList properties;
  std::optional<mesh::Mesh> mesh;
  if (accept('<')) {
    // A mesh is not stored as an attribute: it is parsed here.
    list('{', '}', "around attributes", [&] {
      const Token key = expect(TokenKind::kWord, "the name of an attribute");
      const bool has_value = accept('=');
      if (name == "sdy.mesh" && key.text == "mesh" && has_value) {
        if (token_.text != "#sdy.mesh") expected("#sdy.mesh<...>");
        advance();
        mesh = mesh_body();
      } else {
        properties.emplace_back(std::string(key.text), has_value ? attribute() : ir::Attribute{ir::Unit{}});
      }
    });
    expect('>', "behind the properties of an op");
  }
  if (name == "sdy.mesh") {
    if (!mesh) fail("invalid_program", start, "a mesh needs 'mesh'");
    const std::string symbol = ir::string_or(properties, "sym_name", {});
    add_mesh(symbol, std::move(*mesh), start);
    optional_attribute_dict();
  } else if (name == "func.func") {
    begin_function(function);
    function.attributes = std::move(properties);
    expect('(', "before the body of a function");
    function.body = region({});
    expect(')', "behind the body of a function");
    for (auto& entry : optional_attribute_dict()) function.attributes.push_back(std::move(entry));
    generic_function(function);
  } else if (name == "builtin.module") {
    if (region_depth_ != 0 || !module_.functions.empty()) fail("unsupported_op", start, "one module is expected");
    ++region_depth_;
    module_.name = ir::string_or(properties, "sym_name", {});
    expect('(', "before the body of a module");
    module_body();
    expect(')', "behind the body of a module");
    ir::AttributeList attributes = optional_attribute_dict();
    set_module_attributes(std::move(attributes));
    --region_depth_;
  } else {
    fail("unsupported_op", start, "op '" + name + "' is not supported in a module");
  }
  expect(':', "before the type of an op");
  expect('(', "in the type of an op");
  expect(')', "in the type of an op");
  expect(TokenKind::kArrow, "'->' in the type of an op");
  expect('(', "in the type of an op");
  expect(')', "in the type of an op");
  std::string location = optional_location();
  if (name == "func.func") {
    function.location.name = std::move(location);
    end_function(std::move(function));
  }
}

void Parser::file_metadata() {
  // {-# dialect_resources: { builtin: { name: "0x...", ... } }, external_resources: { ... } #-}
  const Token start = take();
  const auto entries = [&](auto&& entry) {
    list('{', '}', "in file metadata", [&] {
      if (!token_.is(TokenKind::kWord) && !token_.is(TokenKind::kString)) expected("a name");
      const Token key = take();
      expect(':', "behind a name");
      entry(key);
    });
  };
  while (!at('#')) {
    if (token_.is(TokenKind::kEnd)) fail("program_syntax", start, "the metadata that begins here does not end");
    const Token section = expect(TokenKind::kWord, "a section of file metadata");
    expect(':', "behind the name of a section");
    entries([&](const Token&) {
      entries([&](const Token& key) {
        if (section.text == "dialect_resources" && token_.is(TokenKind::kString)) {
          resource_blobs_[key.is(TokenKind::kString) ? unescape(key) : std::string(key.text)] =
              token_.text.substr(1, token_.text.size() - 2);
        }
        if (at('{') || at('[')) {
          skip_balanced();
        } else {
          advance();
        }
      });
    });
    accept(',');
  }
  advance();
  expect('-', "at the end of file metadata");
  expect('}', "at the end of file metadata");
}

void Parser::resolve_resources() {
  // A blob is its alignment in four bytes, then the elements.
  constexpr size_t kAlignmentBytes = 4;
  for (Resource& resource : resources_) {
    const auto blob = resource_blobs_.find(resource.name);
    if (blob == resource_blobs_.end()) {
      fail("invalid_program", resource.where, "resource '" + resource.name + "' is not at the end of the file");
    }
    if (!decode_hex(blob->second, *resource.bytes) || resource.bytes->size() < kAlignmentBytes) {
      fail("program_syntax", resource.where, "resource '" + resource.name + "' is not hex");
    }
    resource.bytes->erase(resource.bytes->begin(), resource.bytes->begin() + kAlignmentBytes);
    const int64_t count = tensor::element_count(resource.type);
    adopt_stored_bytes(resource.type, count, *resource.bytes);
    if (static_cast<int64_t>(resource.bytes->size()) != tensor::byte_count(resource.type)) {
      fail("program_syntax", resource.where,
           fmt::format("resource '{}' has {} bytes, but tensor<{}> has {}", resource.name, resource.bytes->size(),
                       to_string(resource.type), tensor::byte_count(resource.type)));
    }
  }
}

void Parser::resolve_locations() {
  const auto resolve = [&](ir::Location& location) {
    for (int step = 0; step < kMaxAttributeDepth && !location.name.empty() && location.name[0] == kAlias; ++step) {
      const auto found = location_aliases_.find(std::string_view(location.name).substr(1));
      location.name = found == location_aliases_.end() ? std::string() : found->second;
    }
    if (!location.name.empty() && location.name[0] == kAlias) location.name.clear();
  };
  for (ir::Function& function : module_.functions) {
    resolve(function.location);
    for (ir::Parameter& argument : function.arguments) resolve(argument.location);
    ir::walk(function.body, [&](ir::Op& each) { resolve(each.location); });
  }
}

ir::Attribute Parser::parse_attribute(std::vector<ir::NamedMesh>& meshes) {
  module_.meshes = std::move(meshes);
  ir::Attribute out = attribute();
  if (!token_.is(TokenKind::kEnd)) expected("the end of the attribute");
  meshes = std::move(module_.meshes);
  return out;
}

std::vector<ir::NamedMesh> Parser::parse_meshes() {
  list('{', '}', "around meshes", [&] {
    const Token name = token_;
    if (!name.is(TokenKind::kWord) && !name.is(TokenKind::kString)) expected("the name of a mesh");
    advance();
    expect('=', "behind the name of a mesh");
    if (token_.text != "#sdy.mesh") expected("#sdy.mesh<...>");
    advance();
    add_mesh(name.is(TokenKind::kString) ? unescape(name) : std::string(name.text), mesh_body(), name);
  });
  return std::move(module_.meshes);
}

ir::Attribute parse_attribute(std::string_view text, std::vector<ir::NamedMesh>& meshes) {
  return Parser(text).parse_attribute(meshes);
}

std::vector<ir::NamedMesh> parse_meshes(std::string_view text) { return Parser(text).parse_meshes(); }

ir::Module parse_unverified(std::string_view text, const core::HoldMemory& hold) { return Parser(text, hold).parse(); }

}  // namespace meshd::program
