#include "api/codecs/ops_document.h"

#include <fmt/core.h>

#include <algorithm>

#include "api/codecs/explain/html.h"
#include "api/codecs/value.h"
#include "api/json/schema.h"
#include "service/program/op_facts.h"

namespace meshd::api {
template <>
Schema<program::OpFacts> make_schema() {
  using Facts = program::OpFacts;
  return {"Op",
          {{"name", [](const Facts& facts) { return std::string_view(facts.def->name); }},
           {"summary", [](const Facts& facts) { return std::string_view(facts.def->summary); }},
           {"supported", &Facts::runs},
           {"kind", &Facts::how, {.words = {"pointwise", "kernel", "collective", "structural", "composed", "refused"}}},
           {"constraints", &Facts::constraints},
           {"dtypes", &Facts::dtypes, {.words = json_type<tensor::DType>().words}},
           {"sharding_rule", [](const Facts& facts) { return unless_empty(facts.sharding_rule); }},
           {"example", [](const Facts& facts) { return std::string_view(facts.def->example); }}}};
}

const SchemaBase& ops_schema() { return JsonCodec<Page<program::OpFacts>>::of(); }

namespace {

const std::vector<program::OpFacts>& op_facts() {
  static const std::vector<program::OpFacts> kFacts = program::all_op_facts();
  return kFacts;
}

std::string fact(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format("<dt>{}</dt><dd>{}</dd>", name, value);
}

std::string list_of(const std::vector<std::string>& items) {
  if (items.empty()) return {};
  std::string out = "<ul>";
  for (const std::string& item : items) out += "<li>" + escaped_html(item) + "</li>";
  return out + "</ul>";
}

std::string code_list(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += fmt::format("<code>{}</code> ", name);
  return out;
}

// The example is posted as a program: its types, or what keeps it from running, are in the answer.
std::string entry(const program::OpFacts& facts) {
  const std::string name = escaped_html(facts.def->name);
  const std::string tried =
      fmt::format(R"({{"method":"POST","target":"/v1/programs","bodies":[{{"type":"text/plain","text":{}}}]}})",
                  quote(facts.def->example));
  const std::string rule = facts.sharding_rule.empty() ? "" : "<code>" + escaped_html(facts.sharding_rule) + "</code>";
  return fmt::format(R"(<section class="entry" id="{0}" data-try="{1}"><h3>{0} <span class="badge">{2}</span>)"
                     R"(<a class="anchor" href="#{0}" aria-label="Link to {0}">#</a></h3><p>{3}</p>)"
                     R"(<dl class="facts">{4}{5}{6}</dl>{7}</section>)",
                     name, escaped_html(tried), facts.how, escaped_html(facts.def->summary),
                     fact("constraints", list_of(facts.constraints)), fact("element types", code_list(facts.dtypes)),
                     fact("sharding rule", rule), text_block(facts.def->example, false));
}

// Ops by their dialect, the part of the name before the first dot.
PageParts make_page(const std::vector<program::OpFacts>& ops) {
  PageParts out;
  std::vector<std::pair<std::string_view, std::vector<const program::OpFacts*>>> dialects;
  for (const program::OpFacts& facts : ops) {
    const std::string_view name = facts.def->name, dialect = name.substr(0, name.find('.'));
    auto at = std::find_if(dialects.begin(), dialects.end(), [&](const auto& each) { return each.first == dialect; });
    if (at == dialects.end()) at = dialects.insert(at, {dialect, {}});
    at->second.push_back(&facts);
  }
  out.main = fmt::format(
      R"(<h1>Ops</h1><p class="lead">{} ops of the language, as <code>GET /v1/ops</code> lists them.</p><p>Element )"
      "types "
      "are those of the first operand; constraints have the labels of the StableHLO specification; the sharding rule "
      "is "
      "that of the example.</p>",
      ops.size());
  for (const auto& [dialect, members] : dialects) {
    out.contents +=
        fmt::format("<details{}><summary>{} ({})</summary><ul>", &members == &dialects.front().second ? " open" : "",
                    escaped_html(dialect), members.size());
    out.main += fmt::format(R"(<h2 id="dialect-{0}">{0}</h2>)", escaped_html(dialect));
    for (const program::OpFacts* facts : members) {
      out.contents += contents_item(facts->def->name, facts->def->name);
      out.main += entry(*facts);
      out.search +=
          search_entry("op", facts->def->name, fmt::format("/docs/ops#{}", facts->def->name), facts->def->summary);
    }
    out.contents += "</ul></details>";
  }
  return out;
}

}  // namespace

const std::string& ops_document() {
  static const std::string kDocument = to_json(Page<program::OpFacts>{op_facts(), ""});
  return kDocument;
}

const PageParts& ops_page() {
  static const PageParts kParts = make_page(op_facts());
  return kParts;
}

}  // namespace meshd::api
