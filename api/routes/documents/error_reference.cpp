// What is behind GET /docs/errors: kErrorTable, and error_examples.yaml as error_table.py made it a table.
#include "api/routes/documents/error_reference.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "api/codecs/explain/html.h"
#include "api/http/pretty_json.h"
#include "api/http/problem.h"
#include "api/routes/documents/error_examples.h"
#include "api/routes/documents/error_examples.inc"
#include "service/core/error_codes.h"

namespace meshd::api {
namespace {

/// Both tables have the same codes in the same order: a code without an example does not compile.
consteval bool covers_all_codes() {
  if (std::size(kErrorExamples) != std::size(core::kErrorTable)) return false;
  for (size_t i = 0; i < std::size(kErrorExamples); ++i) {
    if (kErrorExamples[i].code != core::kErrorTable[i].word || kErrorExamples[i].detail.empty()) return false;
    if (kErrorExamples[i].command.empty() == kErrorExamples[i].only_when.empty()) return false;
  }
  return true;
}
static_assert(covers_all_codes(), "each row of kErrorTable needs one of error_examples.yaml, in the same order");

std::vector<core::Diagnostic> diagnostics_of(const ErrorExample& example) {
  std::vector<core::Diagnostic> out;
  for (const ExamplePlace& place : example.errors) {
    out.push_back(
        {std::string(place.pointer), std::string(place.detail), place.line, place.column, std::string(place.excerpt)});
  }
  return out;
}

ProblemDocument example_of(const ErrorExample& reference, const core::ErrorRow& row) {
  return {fmt::format("/docs/errors#{}", row.word),
          std::string(row.title),
          status_of(row.kind),
          std::string(reference.detail),
          "req-...",
          "",
          std::string(row.word),
          std::string(row.hint),
          diagnostics_of(reference),
          {}};
}

// A word that problems carry.
struct ErrorEntry {
  const ErrorExample* reference;
  const core::ErrorRow* row;
};

std::vector<ErrorEntry> entries() {
  std::vector<ErrorEntry> out;
  for (size_t i = 0; i < std::size(kErrorExamples); ++i) out.push_back({&kErrorExamples[i], &core::kErrorTable[i]});
  return out;
}

}  // namespace

template <>
Schema<ErrorEntry> make_schema() {
  using Doc = ErrorEntry;
  return {"ErrorCode",
          {{"code", [](const Doc& doc) { return doc.row->word; }},
           {"title", [](const Doc& doc) { return doc.row->title; }},
           {"status", [](const Doc& doc) { return status_of(doc.row->kind); }, {.low = 400, .high = 599}},
           {"hint", [](const Doc& doc) { return doc.row->hint; }},
           {"example", [](const Doc& doc) { return example_of(*doc.reference, *doc.row); }},
           {"command", [](const Doc& doc) { return unless_empty(doc.reference->command); }},
           {"only_when", [](const Doc& doc) { return unless_empty(doc.reference->only_when); }}}};
}

const SchemaBase& error_schema() { return JsonCodec<Page<ErrorEntry>>::of(); }

std::string error_document() { return to_json(Page<ErrorEntry>{entries(), ""}); }

namespace {

std::string page_entry(const ErrorEntry& entry) {
  const ErrorExample& reference = *entry.reference;
  const core::ErrorRow& row = *entry.row;
  std::string out = fmt::format(R"(<section class="entry" id="{0}"><h3><code>{0}</code> <span class="badge">{1}</span>)"
                                R"(<a class="anchor" href="#{0}" aria-label="Link to {0}">#</a></h3>)"
                                "<p><strong>{2}.</strong> {3}</p>",
                                row.word, status_of(row.kind), escaped_html(row.title), escaped_html(row.hint));
  out += reference.command.empty() ? fmt::format("<p>No request alone is answered so: {}.</p><h4>Answer</h4>",
                                                 escaped_html(reference.only_when))
                                   : "<h4>Request</h4>" + text_block(reference.command, true) + "<h4>Answer</h4>";
  return out + text_block(pretty_json(to_json(example_of(reference, row))), false) + "</section>";
}

PageParts make_page() {
  PageParts out;
  out.main =
      R"(<h1>Errors</h1><p class="lead">Every refusal is <code>application/problem+json</code> with one of these )"
      "codes.</p><p>Switch on <code>code</code>: codes stay, and new ones may come. <code>detail</code> and "
      "<code>errors</code> say what was wrong in this request, with a JSON Pointer, and in texts of programs with line "
      "and "
      "column; <code>hint</code> says how to mend it. In the requests below <code>$URL</code> is the server; the "
      "answers "
      "are those of a test that sends them, with ids shortened to <code>...</code>.</p>";
  std::vector<ErrorEntry> all = entries();
  std::stable_sort(all.begin(), all.end(), [](const ErrorEntry& a, const ErrorEntry& b) {
    return status_of(a.row->kind) < status_of(b.row->kind);
  });
  int status = 0;
  for (const ErrorEntry& entry : all) {
    const int now = status_of(entry.row->kind);
    if (now != status) {
      out.main += fmt::format(R"(<h2 id="status-{0}">{0}</h2>)", now);
      out.contents += fmt::format("{}<h3>{}</h3><ul>", status == 0 ? "" : "</ul>", now);
    }
    status = now;
    out.main += page_entry(entry);
    out.contents += contents_item(entry.row->word, entry.row->word);
    out.search += search_entry("error", entry.row->word, fmt::format("/docs/errors#{}", entry.row->word),
                               fmt::format("{}. {}", entry.row->title, entry.row->hint));
  }
  out.contents += "</ul>";
  return out;
}

}  // namespace

const PageParts& error_page() {
  static const PageParts kParts = make_page();
  return kParts;
}

}  // namespace meshd::api
