// The documents that the code declares are those of openapi.yaml, both ways: names, types, what is required, words and
// limits.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/http/embedded.h"
#include "api/json/schema.h"
#include "api/routes/routes.h"
#include "api/routes/uploads.h"

namespace meshd::api {
namespace {

// Objects of the contract that no table declares, and why.
const std::set<std::string> kUndeclared = {
    "ArrayUploadForm",
    "RunForm",     // a form, not JSON
    "InfeedForm",  // a form, not JSON
    "CallbackReplyForm",
    "ProgramForm",   // a form, not JSON
    "ZarrDocument",  // Zarr's specification says what is in it
    "OpenapiDocument",
};

class Contract {
 public:
  Contract() : document_(Json::parse(std::string(embedded::openapi_json()))) {
    schemas_ = document_.find("components")->find("schemas");
  }
  [[nodiscard]] const JsonObject& schemas() const { return *schemas_->as<JsonObject>(); }
  // What a $ref stands for.
  [[nodiscard]] const Json& resolved(const Json& node) const {
    const Json* ref = node.find("$ref");
    if (ref == nullptr) return node;
    const std::string& name = *ref->as<std::string>();
    return resolved(*schemas_->find(name.substr(name.rfind('/') + 1)));
  }

 private:
  Json document_;
  const Json* schemas_ = nullptr;
};

std::string text_of(const Json* node) {
  const auto* text = node == nullptr ? nullptr : node->as<std::string>();
  return text == nullptr ? "" : *text;
}

bool is_true(const Json* node) { return node != nullptr && node->as<bool>() != nullptr && *node->as<bool>(); }

std::optional<double> number_of(const Json* node) {
  return node == nullptr ? std::nullopt : std::optional(node->as<JsonNumber>()->as_double());
}

std::set<std::string> words_of(const Json* list) {
  std::set<std::string> out;
  if (list == nullptr) return out;
  list->each([&](size_t, const Json& word) {
    out.insert(*word.as<std::string>());
    return true;
  });
  return out;
}

std::string kind_of(const JsonType& type) {
  using Kind = JsonType::Kind;
  switch (type.kind) {
    case Kind::kAny:
      return "";
    case Kind::kString:
    case Kind::kTime:
    case Kind::kBase64:
      return "string";
    case Kind::kInteger:
      return "integer";
    case Kind::kNumber:
      return "number";
    case Kind::kBoolean:
      return "boolean";
    case Kind::kList:
      return "array";
    case Kind::kMap:
    case Kind::kObject:
      return "object";
  }
  return "";
}

class Comparison {
 public:
  // Everything that differs between a declared document and the contract's, and between those inside of it.
  void compare(const SchemaBase& declared) {
    if (!seen_.insert(&declared).second) return;
    names_.insert(declared.name());
    const auto& all = contract_.schemas();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& schema) { return schema.first == declared.name(); });
    if (found == all.end()) return differ(declared.name(), "is not in the contract");
    const Json* properties = found->second.find("properties");
    const std::set<std::string> required = words_of(found->second.find("required"));
    std::set<std::string> known;
    for (const Property& property : declared.properties()) {
      if (property.hidden) continue;
      known.insert(property.name);
      const std::string place = declared.name() + "." + property.name;
      const Json* said = properties == nullptr ? nullptr : properties->find(property.name);
      if (said == nullptr) {
        differ(place, "is not in the contract");
        continue;
      }
      if (property.required != required.contains(property.name))
        differ(place, property.required ? "is required in the code alone" : "is required in the contract alone");
      compare(property.type, *said, place);
    }
    if (properties == nullptr) return;
    for (const auto& [name, node] : *properties->as<JsonObject>()) {
      if (!known.contains(name)) differ(declared.name() + "." + name, "is in the contract alone");
    }
  }

  // Objects of the contract that nothing declares.
  void compare_rest() {
    for (const auto& [name, node] : contract_.schemas()) {
      if (text_of(node.find("type")) == "object" && !names_.contains(name) && !kUndeclared.contains(name))
        differ(name, "is in the contract alone");
    }
  }

  [[nodiscard]] const std::string& differences() const { return differences_; }

 private:
  void differ(const std::string& place, const std::string& what) { differences_ += place + ": " + what + "\n"; }

  void compare(const JsonType& declared, const Json& node, const std::string& place) {
    const Json& said = contract_.resolved(node);
    const std::string kind = kind_of(declared);
    if (kind != text_of(said.find("type")))
      return differ(place, "is '" + kind + "', the contract says '" + text_of(said.find("type")) + "'");
    if (kind.empty()) return;
    if (declared.nullable != (is_true(said.find("nullable")) || is_true(node.find("nullable"))))
      differ(place, declared.nullable ? "may be null in the code alone" : "may be null in the contract alone");
    const std::string format = declared.kind == JsonType::Kind::kTime     ? "date-time"
                               : declared.kind == JsonType::Kind::kBase64 ? "byte"
                                                                          : "";
    if (kind == "string" && format != text_of(said.find("format"))) differ(place, "has another format");
    if (std::set<std::string>(declared.words.begin(), declared.words.end()) != words_of(said.find("enum")))
      differ(place, "has other words");
    if (declared.low != number_of(said.find("minimum")) || declared.high != number_of(said.find("maximum")))
      differ(place, "has other limits");
    const auto longest = number_of(said.find("maxLength"));
    if (static_cast<double>(declared.longest) != longest.value_or(0)) differ(place, "may have another length");
    if (declared.kind == JsonType::Kind::kList) {
      compare(declared.items.front(), *said.find("items"), place + "[]");
    } else if (declared.kind == JsonType::Kind::kMap) {
      const Json& values = *said.find("additionalProperties");
      if (values.as<bool>() == nullptr) compare(declared.items.front(), values, place + "{}");
    } else if (declared.kind == JsonType::Kind::kObject) {
      const SchemaBase& inner = *declared.object();
      const std::string ref = text_of(node.find("$ref"));
      if (ref.substr(ref.rfind('/') + 1) != inner.name()) differ(place, "is '" + inner.name() + "', not '" + ref + "'");
      compare(inner);
    }
  }

  Contract contract_;
  std::set<const SchemaBase*> seen_;
  std::set<std::string> names_;
  std::string differences_;
};

Schemas all_schemas() {
  Schemas out;
  for (const Schemas& some :
       {array_schemas(), call_schemas(), callback_schemas(), document_schemas(), explain_schemas(), gradient_schemas(),
        health_schemas(), job_schemas(), mesh_schemas(), model_schemas(), principal_schemas(), program_schemas(),
        queue_schemas(), session_schemas(), session_mesh_schemas(), upload_schemas(), webhook_schemas()})
    out.insert(out.end(), some.begin(), some.end());
  return out;
}

TEST(Schemas, declared_documents_are_those_of_the_contract) {
  Comparison comparison;
  for (const SchemaBase* declared : all_schemas()) comparison.compare(*declared);
  comparison.compare_rest();
  EXPECT_EQ(comparison.differences(), "");
}

}  // namespace
}  // namespace meshd::api
