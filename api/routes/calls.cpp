// /v1/calls:resolve: how the arguments of a call are taken apart, without running anything: leaves, specs, donation.
#include <set>

#include "api/codecs/json.h"
#include "api/codecs/trees.h"
#include "api/routes/routes.h"
#include "service/jobs/call_plan.h"

namespace meshd::api {
namespace {

namespace call_plan = jobs::call_plan;

std::vector<int64_t> one_or_more(ObjectReader& reader, std::string_view name) {
  const Json* given = reader.field(name);
  if (given == nullptr) return {};
  if (given->as<JsonNumber>() != nullptr) {
    const auto one = reader.integer(name, 0, INT32_MAX);
    return one ? std::vector<int64_t>{*one} : std::vector<int64_t>{};
  }
  return reader.integers(name).value_or(std::vector<int64_t>{});
}

// A leaf of the answer: what stands in the request.
std::string leaf_json(const Json& value) {
  std::string out = "null";
  if (const auto* text = value.as<std::string>()) out = quote(*text);
  if (const auto* number = value.as<JsonNumber>()) {
    out.clear();
    if (number->kind == JsonNumber::Kind::kSigned) {
      append_integer(out, number->i);
    } else {
      append_double(out, number->as_double());
    }
  }
  if (const auto* word = value.as<bool>()) out = *word ? "true" : "false";
  return out;
}

Response resolve(Request& request) {
  const Json body = Json::parse(request.body().read_all(body_limit(BodyPolicy::kJson)));
  core::Diagnostics wrong;
  ObjectReader reader(body, "", wrong);
  const Json* arguments = reader.field("arguments");
  if (arguments == nullptr) reader.missing("arguments");
  if (arguments != nullptr && !arguments->is_array())
    wrong.add("/arguments", "expected a list, got " + std::string(arguments->kind_name()));
  const Json* keywords = reader.field("keywords");
  if (keywords != nullptr && keywords->as<JsonObject>() == nullptr)
    wrong.add("/keywords", "expected an object, got " + std::string(keywords->kind_name()));
  const std::vector<int64_t> statics = one_or_more(reader, "static");
  const std::vector<int64_t> donated = one_or_more(reader, "donate");
  const Json* specs = reader.field("specs");
  reader.finish();
  wrong.throw_if_any("invalid_request");

  const std::vector<int64_t> rebased =
      call_plan::rebase_donation(donated, statics, static_cast<int64_t>(arguments->size()));
  // Static arguments are taken out before anything is counted.
  JsonArray dynamic;
  std::vector<int64_t> leaves;
  const std::set<int64_t> taken(statics.begin(), statics.end());
  for (size_t i = 0; i < arguments->size(); ++i) {
    if (taken.contains(static_cast<int64_t>(i))) continue;
    dynamic.push_back(arguments->at(i));
    leaves.push_back(leaf_count(dynamic.back(), Leaves::kValues));
  }
  Json tree;
  tree.value = std::move(dynamic);
  const int64_t keyword_leaves = keywords == nullptr ? 0 : leaf_count(*keywords, Leaves::kValues);
  std::string flags;
  for (const bool is_donated : call_plan::donation_vector(rebased, leaves, keyword_leaves)) {
    flags += (flags.empty() ? "" : ",") + std::string(is_donated ? "true" : "false");
  }
  std::string out = "{\"tree\":" + quote(tree_text(tree, Leaves::kValues)) +
                    ",\"leaves\":" + std::to_string(leaf_count(tree, Leaves::kValues) + keyword_leaves) +
                    ",\"donated\":[" + flags + "],\"donate\":" + integer_list(rebased);
  if (specs != nullptr) {
    std::string list;
    for (const TreeLeaf& leaf : flatten_specs(*specs, tree, Leaves::kValues, "/specs")) {
      list += (list.empty() ? "" : ",") + std::string("{\"pointer\":") + quote(leaf.pointer) +
              ",\"value\":" + leaf_json(leaf.value) + "}";
    }
    out += ",\"specs\":[" + list + "]";
  }
  return json(200, out + "}");
}

}  // namespace

std::vector<Route> call_routes() {
  return {
      {"POST", "/v1/calls:resolve", "resolveCall", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [](Request& request) { return resolve(request); }},
  };
}

}  // namespace meshd::api
