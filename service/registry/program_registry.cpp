#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/registry/registry.h"

namespace meshd::registry {
namespace {

// Behind the name, what else the row keeps; names have no control characters.
constexpr char kBetween = '\x1f';

std::string to_row_document(const StoredProgram& program) {
  return program.name + kBetween + program.doc + kBetween + program.in_tree + kBetween + program.out_tree;
}

void from_row_document(std::string_view document, StoredProgram& out) {
  std::string* fields[] = {&out.name, &out.doc, &out.in_tree, &out.out_tree};
  for (std::string* field : fields) {
    const size_t end = document.find(kBetween);
    *field = std::string(document.substr(0, end));
    if (end == std::string_view::npos) return;
    document.remove_prefix(end + 1);
  }
}

std::string printable(std::string text) {
  for (char& c : text) {
    if (c == kBetween) c = ' ';
  }
  return text;
}

}  // namespace

std::pair<StoredProgram, bool> ProgramRegistry::put(const std::string& format, const std::string& text,
                                                    const ProgramNames& names, const std::string& principal) {
  StoredProgram out;
  out.parsed = compiler_.parse(format, text);
  out.in_tree = names.in_tree;
  out.out_tree = names.out_tree;
  out.id = out.parsed->id;
  if (!out.in_tree.empty() || !out.out_tree.empty())
    out.id = core::digest_id("prog", out.id + "\n" + out.in_tree + "\n" + out.out_tree);
  const auto known = catalog_.read([&](storage::Reader& reader) { return reader.program(out.id, principal); });
  if (known) {
    from_row_document(known->document, out);
    out.created = known->created;
    return {out, false};
  }
  out.name = names.name.empty() ? out.parsed->module->name : printable(names.name);
  out.doc = printable(names.doc);
  out.created = clock_.wall();
  storage::ProgramRow row;
  row.id = out.id;
  row.principal = principal;
  row.format = format;
  row.text = text;
  row.document = to_row_document(out);
  row.created = out.created;
  bool fresh = false;
  catalog_.write([&](storage::Transaction& transaction) { fresh = transaction.put_program(row); });
  return {out, fresh};
}

StoredProgram ProgramRegistry::get(const std::string& id, std::string_view principal) {
  const auto row = catalog_.read([&](storage::Reader& reader) { return reader.program(id, principal); });
  if (!row) throw core::Error("not_found", "there is no program '" + id + "'");
  StoredProgram out;
  out.id = row->id;
  out.created = row->created;
  from_row_document(row->document, out);
  out.parsed = compiler_.find(id);
  if (out.parsed == nullptr) out.parsed = compiler_.parse(row->format, row->text);
  return out;
}

ProgramRegistry::Page ProgramRegistry::list(std::string_view principal, const storage::PageRequest& page) {
  auto rows = catalog_.read([&](storage::Reader& reader) { return reader.programs(principal, page); });
  Page out;
  out.next = std::move(rows.next);
  for (const storage::ProgramRow& row : rows.items) {
    StoredProgram listed;
    listed.id = row.id;
    listed.created = row.created;
    from_row_document(row.document, listed);
    out.items.push_back(std::move(listed));
  }
  return out;
}

void ProgramRegistry::remove(std::string_view id, std::string_view principal) {
  bool removed = false;
  catalog_.write([&](storage::Transaction& transaction) { removed = transaction.delete_program(id, principal); });
  if (!removed) throw core::Error("not_found", "there is no program '" + std::string(id) + "'");
}

}  // namespace meshd::registry
