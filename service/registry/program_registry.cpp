#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/quotas/limits.h"
#include "service/registry/registry.h"

namespace meshd::registry {
namespace {

// Of a row as a principal sees it.
std::string seen_key(std::string_view id, std::string_view principal) {
  return std::string(id).append(1, '\n').append(principal);
}

// Between the trees in the content's document; JSON text has no control characters.
constexpr char kBetween = '\x1f';

std::string to_row_document(const ProgramNames& names) { return names.in_tree + kBetween + names.out_tree; }

constexpr size_t kLarge = size_t{1} << 20;  // bytes of a text

// Of a program's row of so many bytes, which is to be read; the compiler holds what it makes of it.
void hold_row(core::MemoryReservation& memory, int64_t bytes) {
  if (memory.try_grow_beyond(bytes)) return;
  throw core::Error("memory_full", "other requests hold the memory that the program needs").with_retry_after(1);
}

// The program, which holds `memory` for as long as somebody holds it.
compile::ParsedRef held_with(compile::ParsedRef parsed, core::MemoryReservation memory) {
  struct Held {
    compile::ParsedRef parsed;
    core::MemoryReservation memory;
  };
  const auto held = std::make_shared<const Held>(Held{std::move(parsed), std::move(memory)});
  return {held, held->parsed.get()};
}

StoredProgram from_row(const storage::ProgramRow& row) {
  StoredProgram out;
  out.id = row.id;
  out.created = row.created;
  out.name = row.name;
  out.doc = row.doc;
  out.format = row.format;
  const std::string_view document = row.document;
  const size_t end = std::min(document.find(kBetween), document.size());
  out.in_tree = document.substr(0, end);
  out.out_tree = document.substr(std::min(end + 1, document.size()));
  return out;
}

}  // namespace

namespace {

void check_leaves(std::optional<int64_t> leaves, size_t values, std::string_view field, std::string_view what) {
  if (!leaves || *leaves == static_cast<int64_t>(values)) return;
  throw core::Error("invalid_request",
                    fmt::format("/{}: the tree has {} leaves, the program has {} {}", field, *leaves, values, what));
}

}  // namespace

std::pair<StoredProgram, bool> ProgramRegistry::put(const std::string& format, const std::string& text,
                                                    const ProgramNames& names, const std::string& principal) {
  const compile::ParsedRef parsed = compiler_.parse(format, text);
  if (parsed->needs_trace() && (!names.in_tree.empty() || !names.out_tree.empty())) {
    throw core::Error("invalid_request",
                      std::string(names.in_tree.empty() ? "/out_tree" : "/in_tree") +
                          ": a program of NumPy syntax takes and gives trees as they are; leave it out");
  }
  check_leaves(names.in_leaves, parsed->arguments.size(), "in_tree", "arguments");
  check_leaves(names.out_leaves, parsed->results.size(), "out_tree", "results");
  storage::ProgramRow row;
  row.id = parsed->id;
  if (!names.in_tree.empty() || !names.out_tree.empty())
    row.id = core::digest_id("prog", parsed->id + "\n" + names.in_tree + "\n" + names.out_tree);
  const auto seen = [&](storage::Reader& reader) { return reader.program(row.id, principal); };
  std::optional<storage::ProgramRow> known = catalog_.read(seen);
  bool fresh = false;
  if (!known) {
    row.principal = principal;
    row.format = format;
    row.text = text;
    row.document = to_row_document(names);
    row.created = clock_.wall();
    row.name = names.name.empty() ? parsed->module->name : names.name;
    row.doc = names.doc;
    catalog_.write([&](storage::Transaction& transaction) {
      fresh = transaction.put_program(row);
      known = seen(transaction);
      if (!fresh) return;
      const int64_t others = transaction.count_of(storage::Counted::kPrograms, principal) - 1;
      quotas::require_below(others, limit_, principal, "programs");
    });
  }
  StoredProgram out = from_row(*known);
  out.parsed = parsed;
  return {std::move(out), fresh};
}

std::pair<StoredProgram, bool> ProgramRegistry::put_gradient(const StoredProgram& of,
                                                             const compile::DifferentiationRequest& request,
                                                             const std::optional<std::string>& name,
                                                             const std::string& principal) {
  ProgramNames names;
  names.name = name.value_or("grad_" + of.name);
  return put("stablehlo", compiler_.gradient_text(*of.parsed, request), names, principal);
}

StoredProgram ProgramRegistry::get(const std::string& id, std::string_view principal) {
  const std::string key = seen_key(id, principal);
  StoredProgram out;
  const int64_t removals = seen_.with([&](SeenRows& seen) {
    if (const Seen* known = seen.rows.find(key); known != nullptr) {
      out = known->program;
      out.parsed = known->parsed.lock();
    }
    return seen.removals;
  });
  if (out.parsed != nullptr) return out;
  core::MemoryReservation memory(memory_, core::MemoryAccount::kRequests);
  const auto admit = [&](int64_t bytes) {
    hold_row(memory, bytes);
    return true;
  };
  out = load(catalog_.read([&](storage::Reader& reader) { return reader.program(id, principal, admit); }), id);
  // What the compiler's cache has is counted there.
  if (out.parsed->text.size() >= kLarge && compiler_.find(out.parsed->id) != out.parsed) {
    memory.hold(static_cast<int64_t>(out.parsed->text.size()));
    out.parsed = held_with(std::move(out.parsed), std::move(memory));
  }
  Seen entry{out, out.parsed};
  entry.program.parsed = nullptr;
  const auto bytes = static_cast<int64_t>(sizeof(Seen) + key.size() + id.size() + out.name.size() + out.doc.size() +
                                          out.in_tree.size() + out.out_tree.size());
  seen_.with([&](SeenRows& seen) {
    if (seen.removals == removals) seen.rows.replace(key, std::move(entry), bytes);  // else this row is gone, maybe
  });
  return out;
}

StoredProgram ProgramRegistry::get_for_accepted_job(const std::string& id) {
  return load(catalog_.read([&](storage::Reader& reader) { return reader.program_content(id); }), id);
}

StoredProgram ProgramRegistry::load(const std::optional<storage::ProgramRow>& row, const std::string& id) {
  if (!row) throw core::Error("not_found", "there is no program '" + id + "'");
  StoredProgram out = from_row(*row);
  out.parsed = compiler_.find(id);
  if (out.parsed == nullptr) out.parsed = compiler_.parse(row->format, row->text);
  // From before names were each principal's own: the name of whoever posted it first is not for others.
  if (out.name.empty()) out.name = out.parsed->module->name;
  return out;
}

ProgramRegistry::Page ProgramRegistry::list(std::string_view principal, const storage::PageRequest& page) {
  auto rows = catalog_.read([&](storage::Reader& reader) { return reader.programs(principal, page); });
  Page out;
  out.next = std::move(rows.next);
  for (const storage::ProgramRow& row : rows.items) out.items.push_back(from_row(row));
  return out;
}

int64_t ProgramRegistry::count(std::string_view principal) {
  return catalog_.read(
      [&](storage::Reader& reader) { return reader.count_of(storage::Counted::kPrograms, principal); });
}

void ProgramRegistry::remove(std::string_view id, std::string_view principal) {
  bool removed = false;
  catalog_.write([&](storage::Transaction& transaction) { removed = transaction.delete_program(id, principal); },
                 storage::Space::kFrees);
  seen_.with([&](SeenRows& seen) {
    ++seen.removals;
    seen.rows.erase(seen_key(id, principal));
  });
  if (!removed) throw core::Error("not_found", "there is no program '" + std::string(id) + "'");
}

}  // namespace meshd::registry
