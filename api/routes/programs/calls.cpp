// /v1/calls:resolve: how the arguments of a call are taken apart, without running anything: leaves, specs, donation.
#include <fmt/core.h>

#include <set>

#include "api/codecs/runs/trees.h"
#include "api/routes/routes.h"
#include "service/jobs/admission/call_plan.h"

namespace meshd::api {
namespace {

namespace call_plan = jobs::call_plan;

struct CallQuery {
  const Json* arguments = nullptr;
  const Json* keywords = nullptr;
  OneOrMore<int64_t> statics, donate;
  const Json* specs = nullptr;
};

// The entry of the request's specs that holds for a value.
struct LeafSpec {
  const TreeLeaf& leaf;
};

struct ResolvedCall {
  std::string tree;
  int64_t leaves = 0;
  std::vector<bool> donated;
  std::vector<int64_t> donate;
  std::optional<std::vector<TreeLeaf>> specs;
};

// A leaf of specs that is written as it came.
struct PlainLeaf {
  const Json& value;
};

}  // namespace

template <>
struct JsonCodec<PlainLeaf> {
  static JsonType type() { return {}; }
  static void append(std::string& out, const PlainLeaf& leaf) {
    if (const auto* text = leaf.value.as<std::string>()) return append_string(out, *text);
    if (const auto* word = leaf.value.as<bool>()) return JsonCodec<bool>::append(out, *word);
    const auto* number = leaf.value.as<JsonNumber>();
    if (number == nullptr) {
      out += "null";
    } else if (number->kind == JsonNumber::Kind::kSigned) {
      append_integer(out, number->i);
    } else {
      append_double(out, number->as_double());
    }
  }
};

template <>
Schema<CallQuery> make_schema() {
  using In = CallQuery;
  return {"CallQuery",
          {{"arguments", &In::arguments, {.required = true, .like = json_type<std::vector<const Json*>>}},
           {"keywords", &In::keywords, {.like = map_of<const Json*>}},
           {"static", &In::statics, {.low = 0, .high = INT32_MAX, .optional = true}},
           {"donate", &In::donate, {.low = 0, .high = INT32_MAX, .optional = true}},
           {"specs", &In::specs}}};
}

template <>
Schema<LeafSpec> make_schema() {
  return {"LeafSpec",
          {{"pointer", [](const LeafSpec& spec) -> std::string_view { return spec.leaf.pointer; }},
           {"value", [](const LeafSpec& spec) { return PlainLeaf{spec.leaf.value}; }}}};
}

template <>
Schema<ResolvedCall> make_schema() {
  using Doc = ResolvedCall;
  return {"ResolvedCall",
          {{"tree", &Doc::tree},
           {"leaves", &Doc::leaves, {.low = 0}},
           {"donated", &Doc::donated},
           {"donate", &Doc::donate, {.low = 0, .high = kLargestExact - 1}},
           {"specs", [](const Doc& doc) -> std::optional<std::vector<LeafSpec>> {
              if (!doc.specs) return std::nullopt;
              std::vector<LeafSpec> out;
              for (const TreeLeaf& leaf : *doc.specs) out.push_back({leaf});
              return out;
            }}}};
}

Schemas call_schemas() { return {&schema<CallQuery>(), &schema<ResolvedCall>()}; }

namespace {

Response resolve(Request& request) {
  const Json body = body_json(request, BodyPolicy::kJson);
  core::Diagnostics wrong;
  const auto in = read_json<CallQuery>(body, "", wrong);
  if (in.arguments != nullptr) expect_list(*in.arguments, "/arguments", wrong);
  if (in.keywords != nullptr) expect_object(*in.keywords, "/keywords", wrong);
  wrong.throw_if_any("invalid_request");

  ResolvedCall out;
  out.donate =
      call_plan::rebase_donation(in.donate.values, in.statics.values, static_cast<int64_t>(in.arguments->size()));
  // Static arguments are taken out before anything is counted.
  JsonArray dynamic;
  std::vector<int64_t> leaves;
  const std::set<int64_t> taken(in.statics.values.begin(), in.statics.values.end());
  in.arguments->each([&](size_t i, const Json& argument) {
    if (taken.contains(static_cast<int64_t>(i))) return true;
    dynamic.push_back(argument);
    leaves.push_back(leaf_count(argument, Leaves::kValues));
    return true;
  });
  Json tree;
  tree.value = std::move(dynamic);
  const int64_t keyword_leaves = in.keywords == nullptr ? 0 : leaf_count(*in.keywords, Leaves::kValues);
  out.tree = tree_text(tree, Leaves::kValues);
  out.leaves = leaf_count(tree, Leaves::kValues) + keyword_leaves;
  out.donated = call_plan::donation_vector(out.donate, leaves, keyword_leaves);
  if (in.specs != nullptr) out.specs = flatten_specs(*in.specs, tree, Leaves::kValues, "/specs");
  return json_of(200, out);
}

}  // namespace

std::vector<Route> call_routes() {
  return {
      {"POST", "/v1/calls:resolve", "resolveCall", BodyPolicy::kJson, RunOn::kWorker, Access::kReader,
       [](Request& request) { return resolve(request); }},
  };
}

}  // namespace meshd::api
