#include "api/codecs/ops_document.h"

#include "api/codecs/html.h"
#include "api/codecs/value.h"
#include "api/json/schema.h"
#include "service/program/op_facts.h"

namespace meshd::api {
template <>
const Schema<program::OpFacts>& schema() {
  using Facts = program::OpFacts;
  static const Schema<Facts> kSchema{
      "Op",
      {{"name", [](const Facts& facts) { return std::string_view(facts.def->name); }},
       {"summary", [](const Facts& facts) { return std::string_view(facts.def->summary); }},
       {"supported", &Facts::runs},
       {"kind", &Facts::how, {.words = {"pointwise", "kernel", "collective", "structural", "composed", "refused"}}},
       {"constraints", &Facts::constraints},
       {"dtypes", &Facts::dtypes, {.words = json_type<tensor::DType>().words}},
       {"sharding_rule", [](const Facts& facts) { return unless_empty(facts.sharding_rule); }},
       {"example", [](const Facts& facts) { return std::string_view(facts.def->example); }}}};
  return kSchema;
}

const SchemaBase& ops_schema() { return JsonCodec<Page<program::OpFacts>>::of(); }

namespace {

const std::vector<program::OpFacts>& op_facts() {
  static const std::vector<program::OpFacts> kFacts = program::all_op_facts();
  return kFacts;
}

std::string make_page(const std::vector<program::OpFacts>& ops) {
  std::string out =
      R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><title>meshd: ops</title>)"
      R"(<meta name="viewport" content="width=device-width"><style>body{font:16px/1.5 sans-serif;max-width:60em;)"
      "margin:2em auto;padding:0 1em}pre{background:#f4f4f4;padding:.7em;overflow:auto}h2{margin-top:2em}"
      "dt{font-weight:bold}</style></head><body><h1>Ops</h1><p>" +
      std::to_string(ops.size()) +
      " ops of the language. Element types are those of the first operand; the sharding rule is that of the "
      "example.</p>";
  for (const program::OpFacts& facts : ops) {
    const std::string name = escaped_html(facts.def->name);
    out += R"(<h2 id=")" + name + R"(">)" + name + "</h2><p>" + escaped_html(facts.def->summary) +
           "</p><dl><dt>run as</dt><dd>" + std::string(facts.how) + "</dd><dt>constraints</dt>";
    for (const std::string& constraint : facts.constraints) out += "<dd>" + escaped_html(constraint) + "</dd>";
    if (!facts.dtypes.empty()) {
      out += "<dt>element types</dt><dd>";
      for (const std::string_view dtype : facts.dtypes) out += std::string(dtype) + " ";
      out += "</dd>";
    }
    if (!facts.sharding_rule.empty())
      out += "<dt>sharding rule</dt><dd><code>" + escaped_html(facts.sharding_rule) + "</code></dd>";
    out += "</dl><pre>" + escaped_html(facts.def->example) + "</pre>";
  }
  return out + "</body></html>";
}

}  // namespace

const std::string& ops_document() {
  static const std::string kDocument = to_json(Page<program::OpFacts>{op_facts(), ""});
  return kDocument;
}

const std::string& ops_page() {
  static const std::string kPage = make_page(op_facts());
  return kPage;
}

}  // namespace meshd::api
