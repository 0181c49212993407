#include "service/models/model_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "service/core/error.h"

namespace meshd::models {
namespace {

constexpr std::chrono::seconds kMemoryWait{1};  // between tries to load a model whose memory others hold
constexpr const char* kOurFault = "it could not be loaded on our side";
constexpr int64_t kPartOfPrincipal = 4;  // of the bytes that documents of all models may have
constexpr int kThreads = 2;              // batches wait for the engine on fibers; threads join and divide rows

core::Error no_model(std::string_view name, std::optional<int64_t> version) {
  return {"not_found", version ? fmt::format("Request for unknown model: '{}' version {} is not found", name, *version)
                               : fmt::format("Request for unknown model: '{}' is not found", name)};
}

}  // namespace

std::string_view to_string(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kUnavailable:
      return "UNAVAILABLE";
  }
  return "";
}

ModelStore::ModelStore(storage::Catalog& catalog, arrays::ArrayStore& arrays, compile::Compiler& compiler,
                       tensor::BufferPool& pool, jobs::JobRunner& runner, const core::Clock& clock,
                       core::MemoryLedgerRef memory)
    : catalog_(catalog), arrays_(arrays), clock_(clock), fibers_(kThreads), services_{runner, compiler,
                                                                                      pool,   fibers_,
                                                                                      clock,  std::move(memory)} {}

ModelStore::~ModelStore() = default;

std::vector<arrays::ArrayRef> ModelStore::bound_arrays(const ModelSpec& spec) {
  std::vector<arrays::ArrayRef> out;
  for (const ArgumentSource& source : spec.arguments) {
    if (const auto* array = std::get_if<arrays::ArrayRef>(&source)) out.push_back(*array);
  }
  return out;
}

const ModelStore::Versions* ModelStore::find_versions(const Table& table, std::string_view name,
                                                      std::string_view principal) const {
  const auto own = table.models.find({std::string(principal), std::string(name)});
  if (own != table.models.end()) return &own->second;
  const auto shared = table.shared.find(name);
  return shared == table.shared.end() || shared->second.versions.empty() ? nullptr : &shared->second.versions;
}

ModelRef ModelStore::find(std::string_view name, std::optional<int64_t> version, std::string_view principal) const {
  return table_.with([&](const Table& table) {
    const Versions* versions = find_versions(table, name, principal);
    if (versions == nullptr) throw no_model(name, std::nullopt);
    if (!version) return versions->rbegin()->second;
    const auto found = versions->find(*version);
    if (found == versions->end()) throw no_model(name, version);
    return found->second;
  });
}

ModelRef ModelStore::find_ready(std::string_view name, std::optional<int64_t> version,
                                std::string_view principal) const {
  ModelRef model = find(name, version, principal);
  const Model::Status status = model->status();
  if (status.state == ModelState::kReady) return model;
  throw core::Error("model_not_loaded",
                    fmt::format("Request for unknown model: '{}' version {} is not ready: {}", name,
                                model->spec().version, status.reason.empty() ? to_string(status.state) : status.reason))
      .with_retry_after(status.state == ModelState::kLoading ? 1 : 0);
}

std::vector<ModelRef> ModelStore::versions(std::string_view name, std::string_view principal) const {
  return table_.with([&](const Table& table) {
    const Versions* versions = find_versions(table, name, principal);
    if (versions == nullptr) throw no_model(name, std::nullopt);
    std::vector<ModelRef> out;
    for (const auto& [number, model] : *versions) out.push_back(model);
    return out;
  });
}

std::vector<ModelRef> ModelStore::visible(std::string_view principal) const {
  return table_.with([&](const Table& table) {
    std::map<std::string, const Versions*> by_name;
    for (const auto& [name, shared] : table.shared) by_name[name] = &shared.versions;
    for (auto own = table.models.lower_bound({std::string(principal), ""});
         own != table.models.end() && own->first.first == principal; ++own) {
      by_name[own->first.second] = &own->second;
    }
    std::vector<ModelRef> out;
    for (const auto& [name, versions] : by_name) {
      for (const auto& [number, model] : *versions) out.push_back(model);
    }
    return out;
  });
}

ModelStore::Page ModelStore::list(std::string_view principal, const storage::PageRequest& page) const {
  Page out;
  const std::vector<ModelRef> all = visible(principal);
  for (size_t i = 0; i < all.size(); ++i) {
    const ModelSpec& spec = all[i]->spec();
    const bool is_latest = i + 1 == all.size() || all[i + 1]->spec().name != spec.name;
    if (!is_latest || spec.name <= page.cursor) continue;
    const bool is_refused = !out.items.empty() && page.admit && !page.admit(static_cast<int64_t>(spec.document.size()));
    if (static_cast<int64_t>(out.items.size()) == page.limit || is_refused) {
      out.next = out.items.back()->spec().name;
      break;
    }
    out.items.push_back(all[i]);
  }
  return out;
}

void ModelStore::require_room(const ModelSpec& spec) const {
  if (services_.memory == nullptr) return;
  const int64_t most = services_.memory->limit_bytes();
  auto all = static_cast<int64_t>(spec.document.size());
  int64_t own = all;
  table_.with([&](const Table& table) {
    for (const auto& [key, versions] : table.models) {
      for (const auto& [number, model] : versions) {
        const auto bytes = static_cast<int64_t>(model->spec().document.size());
        all += bytes;
        if (key.first == spec.principal) own += bytes;
      }
    }
  });
  if (own > most / kPartOfPrincipal) {
    throw core::Error("limit_reached",
                      fmt::format("documents of your models would have {} bytes, at most {} are kept: bind arrays in "
                                  "place of large values, or delete versions",
                                  own, most / kPartOfPrincipal));
  }
  if (all > most)
    throw core::Error("overloaded", "documents of models fill the memory that there is for them").with_retry_after(60);
}

void ModelStore::claim_name(const ModelSpec& spec) {
  table_.with([&](Table& table) {
    if (!spec.is_shared) return;
    Shared& shared = table.shared.try_emplace(spec.name, Shared{spec.principal, {}}).first->second;
    if (shared.principal != spec.principal)
      throw core::Error("name_taken", "another principal shares a model '" + spec.name + "'");
    ++shared.puts;
  });
}

void ModelStore::end_claim(const ModelSpec& spec) {
  table_.with([&](Table& table) {
    if (!spec.is_shared) return;
    const auto shared = table.shared.find(spec.name);
    --shared->second.puts;
    erase_if_free(table, shared);
  });
}

void ModelStore::erase_if_free(Table& table, SharedPlace shared) {
  if (shared->second.versions.empty() && shared->second.puts == 0) table.shared.erase(shared);
}

void ModelStore::insert(const ModelRef& model) {
  table_.with([&](Table& table) {
    const ModelSpec& spec = model->spec();
    table.models[{spec.principal, spec.name}][spec.version] = model;
    if (!spec.is_shared) return;
    Shared& shared = table.shared.try_emplace(spec.name, Shared{spec.principal, {}}).first->second;
    if (shared.principal == spec.principal) shared.versions[spec.version] = model;
  });
}

void ModelStore::drop(const ModelRef& model) {
  const ModelSpec& spec = model->spec();
  table_.with([&](Table& table) {
    const auto found = table.models.find({spec.principal, spec.name});
    if (found == table.models.end()) return;
    found->second.erase(spec.version);
    if (found->second.empty()) table.models.erase(found);
    const auto shared = table.shared.find(spec.name);
    if (shared == table.shared.end() || shared->second.principal != spec.principal) return;
    shared->second.versions.erase(spec.version);
    erase_if_free(table, shared);
  });
}

void ModelStore::warm(const ModelRef& model, const core::WaiterRef& waiter) const {
  if (model->spec().warms_up) model->batcher().warm_up(waiter);
}

std::pair<ModelRef, bool> ModelStore::put(ModelSpec given, const core::WaiterRef& waiter) {
  const Versions known = own_versions(given.name, given.principal);
  if (!known.empty()) {
    const ModelRef& last = known.rbegin()->second;
    if (last->spec().document == given.document && last->spec().program_id == given.program_id) return {last, false};
  }
  require_room(given);
  given.created = clock_.wall();
  // Nobody but this knows of it until it is inserted: only then its version is known.
  const auto shared_spec = std::make_shared<ModelSpec>(std::move(given));
  ModelSpec& spec = *shared_spec;
  const std::vector<arrays::ArrayRef> bound = bound_arrays(spec);
  for (const arrays::ArrayRef& array : bound) {
    arrays_.require_usable(array);
    if (array->info().durability != storage::Durability::kDurable)
      throw core::Error("invalid_request", "array '" + array->info().id +
                                               "' is in memory only, and a model outlives the "
                                               "server: bind a durable one");
  }
  auto model = std::make_shared<Model>(shared_spec, services_);
  claim_name(spec);
  std::unique_ptr<const BoundArrays> kept;
  try {
    warm(model, waiter);  // finds what is wrong with it before anything is stored
    catalog_.write([&](storage::Transaction& transaction) {
      if (transaction.count_of(storage::Counted::kModels, spec.principal) >= kMostVersions)
        throw core::Error("limit_reached", fmt::format("a principal has at most {} versions of models", kMostVersions));
      if (!transaction.has_program_content(spec.program_id))
        throw core::Error("not_found", "there is no program '" + spec.program_id + "'");
      spec.version = transaction.last_model_version(spec.principal, spec.name) + 1;
      kept = std::make_unique<const BoundArrays>(arrays_, bound);
      transaction.insert_model(
          {spec.principal, spec.name, spec.version, spec.program_id, spec.document, true, spec.created});
    });
  } catch (...) {
    end_claim(spec);
    throw;
  }
  model->keep(std::move(kept));
  model->set_status({ModelState::kReady, ""});
  insert(model);
  end_claim(spec);
  return {model, true};
}

ModelStore::Versions ModelStore::own_versions(std::string_view name, std::string_view principal) const {
  return table_.with([&](const Table& table) {
    const auto own = table.models.find({std::string(principal), std::string(name)});
    if (own != table.models.end()) return own->second;
    return Versions();
  });
}

ModelStore::Versions ModelStore::versions_to_change(std::string_view name, std::optional<int64_t> version,
                                                    std::string_view principal) const {
  if (find(name, version, principal)->spec().principal != principal)
    throw core::Error("forbidden", fmt::format("'{}' is another principal's model", name));
  return own_versions(name, principal);
}

void ModelStore::remove(std::string_view name, std::optional<int64_t> version, std::string_view principal) {
  for (const auto& [number, model] : versions_to_change(name, version, principal)) {
    if (version && *version != number) continue;
    catalog_.write([&, n = number](storage::Transaction& t) { t.delete_model(principal, name, n); },
                   storage::Space::kFrees);
    model->set_status({ModelState::kUnavailable, "it was deleted"});
    drop(model);
  }
}

void ModelStore::unload(std::string_view name, std::string_view principal) {
  const Versions versions = versions_to_change(name, std::nullopt, principal);
  catalog_.write([&](storage::Transaction& transaction) {
    for (const auto& [number, model] : versions) transaction.set_model_loaded(principal, name, number, false);
  });
  for (const auto& [number, model] : versions) model->set_status({ModelState::kUnavailable, "unloaded"});
}

void ModelStore::load(std::string_view name, std::string_view principal, const core::WaiterRef& waiter) {
  const Versions versions = versions_to_change(name, std::nullopt, principal);
  for (const auto& [number, model] : versions) {
    if (model->spec().program == nullptr)
      throw core::Error("model_not_loaded", fmt::format("failed to load '{}': {}", name, model->status().reason));
    warm(model, waiter);
  }
  catalog_.write([&](storage::Transaction& transaction) {
    for (const auto& [number, model] : versions) transaction.set_model_loaded(principal, name, number, true);
  });
  for (const auto& [number, model] : versions) model->set_status({ModelState::kReady, ""});
}

ModelSpec ModelStore::spec_of_row(const storage::ModelRow& row, bool is_shared) {
  ModelSpec out;
  out.principal = row.principal;
  out.name = row.name;
  out.program_id = row.program;
  out.document = row.document;
  out.is_shared = is_shared;
  return out;
}

void ModelStore::recover(const Decoder& decoder) {
  for (const storage::ModelRow& row : catalog_.read([](storage::Reader& reader) { return reader.models(); })) {
    std::optional<ModelSpec> spec;
    std::unique_ptr<const BoundArrays> kept;
    Model::Status status{row.is_loaded ? ModelState::kLoading : ModelState::kUnavailable,
                         row.is_loaded ? "" : "unloaded"};
    try {
      ModelSpec decoded = decoder.spec(row);
      kept = std::make_unique<const BoundArrays>(arrays_, bound_arrays(decoded));
      spec = std::move(decoded);
    } catch (const core::Error& error) {
      status = {ModelState::kUnavailable, error.detail()};
    } catch (const std::exception&) {
      status = {ModelState::kUnavailable, kOurFault};
    }
    if (!spec) spec = spec_of_row(row, decoder.is_shared(row));
    spec->version = row.version;
    spec->created = row.created;
    const auto model = std::make_shared<Model>(std::make_shared<const ModelSpec>(std::move(*spec)), services_);
    model->keep(std::move(kept));
    model->set_status(status);
    insert(model);
    if (status.state != ModelState::kLoading) continue;
    fibers_.start([this, model](const core::WaiterRef& waiter) { finish_loading(model, waiter); });
  }
}

void ModelStore::finish_loading(const ModelRef& model, const core::WaiterRef& waiter) const {
  while (model->status().state == ModelState::kLoading) {
    if (auto status = try_to_load(model, waiter)) return model->end_loading(std::move(*status));
    waiter->wait(clock_.steady() + kMemoryWait);
  }
}

std::optional<Model::Status> ModelStore::try_to_load(const ModelRef& model, const core::WaiterRef& waiter) const {
  try {
    warm(model, waiter);
    return Model::Status{ModelState::kReady, ""};
  } catch (const core::Error& error) {
    if (error.code() == core::ErrorCode("memory_full")) return std::nullopt;
    return Model::Status{ModelState::kUnavailable, error.detail()};
  } catch (const std::exception&) {
    return Model::Status{ModelState::kUnavailable, kOurFault};
  }
}

bool ModelStore::is_settled() const {
  return table_.with([](const Table& table) {
    return std::all_of(table.models.begin(), table.models.end(), [](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(),
                         [](const auto& version) { return version.second->status().state != ModelState::kLoading; });
    });
  });
}

}  // namespace meshd::models
