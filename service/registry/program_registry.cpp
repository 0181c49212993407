#include "service/core/error.h"
#include "service/registry/registry.h"

namespace meshd::registry {

std::pair<StoredProgram, bool> ProgramRegistry::put(const std::string& format, const std::string& text,
                                                    const std::string& name, const std::string& principal) {
  StoredProgram out;
  out.parsed = compiler_.parse(format, text);
  out.id = out.parsed->id;
  const auto known = catalog_.read([&](storage::Reader& reader) { return reader.program(out.id, principal); });
  if (known) {
    out.name = known->document;
    out.created = known->created;
    return {out, false};
  }
  out.name = name.empty() ? out.parsed->module->name : name;
  out.created = clock_.wall();
  storage::ProgramRow row;
  row.id = out.id;
  row.principal = principal;
  row.format = format;
  row.text = text;
  row.document = out.name;
  row.created = out.created;
  bool fresh = false;
  catalog_.write([&](storage::Transaction& transaction) { fresh = transaction.put_program(row); });
  return {out, fresh};
}

StoredProgram ProgramRegistry::get(const std::string& id, std::string_view principal) {
  const auto row = catalog_.read([&](storage::Reader& reader) { return reader.program(id, principal); });
  if (!row) throw core::Error("not_found", "there is no program '" + id + "'");
  StoredProgram out{row->id, row->document, row->created, compiler_.find(id)};
  if (out.parsed == nullptr) out.parsed = compiler_.parse(row->format, row->text);
  return out;
}

ProgramRegistry::Page ProgramRegistry::list(std::string_view principal, const storage::PageRequest& page) {
  auto rows = catalog_.read([&](storage::Reader& reader) { return reader.programs(principal, page); });
  Page out;
  out.next = std::move(rows.next);
  for (const storage::ProgramRow& row : rows.items) out.items.push_back({row.id, row.document, row.created, nullptr});
  return out;
}

void ProgramRegistry::remove(std::string_view id, std::string_view principal) {
  bool removed = false;
  catalog_.write([&](storage::Transaction& transaction) { removed = transaction.delete_program(id, principal); });
  if (!removed) throw core::Error("not_found", "there is no program '" + std::string(id) + "'");
}

}  // namespace meshd::registry
