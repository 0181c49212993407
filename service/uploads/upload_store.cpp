#include "service/uploads/upload_store.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/ids.h"

namespace meshd::uploads {
namespace {

// How often one that waits for another request's end looks.
constexpr std::chrono::milliseconds kLook{2};

core::Error no_upload(std::string_view id) {
  return {"not_found", fmt::format("there is no upload '{}': it was cancelled, its time is over, or it never was", id)};
}

void require_size(int64_t bytes, const UploadLimits& limits) {
  if (bytes <= limits.most_bytes) return;
  throw core::Error("body_too_large",
                    fmt::format("the upload has {} bytes, at most {} are taken", bytes, limits.most_bytes));
}

}  // namespace

core::Error other_appends() {
  return core::Error("upload_in_use", "another request is appending to the upload or completing it")
      .with_retry_after(1);
}

UploadStore::UploadStore(storage::Store& store, quotas::ArrayLedger& ledger, const core::Clock& clock,
                         UploadLimits limits)
    : store_(store), ledger_(ledger), clock_(clock), limits_(limits) {
  std::vector<std::pair<storage::UploadRow, std::vector<storage::UploadPartRow>>> found;
  store_.catalog().read([&](storage::Reader& reader) {
    for (storage::UploadRow& row : reader.uploads()) {
      auto parts = reader.upload_parts(row.id);
      found.emplace_back(std::move(row), std::move(parts));
    }
  });
  for (auto& [row, parts] : found) {
    auto upload = std::make_shared<Upload>(row.id, row.principal, std::move(row.request));
    upload->state.with([&](Upload::State& state) {
      state.length = row.length;
      state.is_done = row.is_done;
      state.result = row.result;
      state.touched = clock_.steady();
      state.part_count = static_cast<int64_t>(parts.size());
      for (const auto& part : parts) state.offset = part.offset + part.blob.length;
      if (state.is_done) {
        state.offset = state.length.value_or(0);
        done_.with([&](Done& done) { done[row.principal].push_back(upload); });
        return;
      }
      const int64_t bytes = std::max(state.offset, state.length.value_or(0));
      ledger_.count(row.principal, {1, bytes});
      state.charge = ledger_.counted(row.principal, bytes);
    });
    table_.with([&](Table& table) { table.emplace(row.id, std::move(upload)); });
  }
}

UploadRef UploadStore::create(const std::string& principal, std::string request, std::optional<int64_t> length) {
  if (length) require_size(*length, limits_);
  const int64_t open = table_.with([&](const Table& table) {
    return std::count_if(table.begin(), table.end(), [&](const auto& entry) {
      return entry.second->principal == principal &&
             !entry.second->state.with([](const Upload::State& state) { return state.is_done; });
    });
  });
  quotas::require_below(open, limits_.most_open, principal, "uploads");
  auto upload = std::make_shared<Upload>(core::new_id("upl", clock_), principal, std::move(request));
  quotas::ArrayCharge charge = ledger_.charge(principal, length.value_or(0));
  const storage::UploadRow row = upload->state.with([&](Upload::State& state) {
    state.length = length;
    state.touched = clock_.steady();
    state.charge = std::move(charge);
    return row_of(*upload, state);
  });
  store_.catalog().write([&](storage::Transaction& transaction) { transaction.insert_upload(row); });
  table_.with([&](Table& table) { table.emplace(upload->id, upload); });
  return upload;
}

UploadRef UploadStore::find(std::string_view id, std::string_view principal) {
  const UploadRef found = table_.with([&](const Table& table) -> UploadRef {
    const auto entry = table.find(id);
    return entry == table.end() ? nullptr : entry->second;
  });
  if (found == nullptr || found->principal != principal) throw no_upload(id);
  if (found->state.with([](const Upload::State& state) { return state.is_gone; })) throw no_upload(id);
  return found;
}

UploadStatus UploadStore::status(const UploadRef& upload) const {
  return upload->state.with([&](const Upload::State& state) {
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - state.touched);
    return UploadStatus{state.offset, state.length, state.is_done, state.result,
                        std::max(limits_.max_age - age, std::chrono::seconds(0))};
  });
}

void UploadStore::set_length(const UploadRef& upload, int64_t length) {
  require_size(length, limits_);
  const auto row = upload->state.with([&](Upload::State& state) -> std::optional<storage::UploadRow> {
    if (state.length && *state.length != length) {
      throw core::Error(
          "upload_length_mismatch",
          fmt::format("a length of {} bytes was declared for the upload; this request says {}", *state.length, length));
    }
    if (length < state.offset) {
      throw core::Error("upload_length_mismatch",
                        fmt::format("{} bytes have come, this request says {}", state.offset, length));
    }
    if (state.length) return std::nullopt;
    state.charge.grow(length - state.offset);
    state.length = length;
    return row_of(*upload, state);
  });
  if (!row) return;
  try {
    store_.catalog().write([&](storage::Transaction& transaction) { transaction.update_upload(*row); });
  } catch (...) {
    // What no row has was not told: the next request may say otherwise.
    upload->state.with([&](Upload::State& state) {
      state.length.reset();
      state.charge.shrink(length - state.offset);
    });
    throw;
  }
}

void UploadStore::interrupt(const UploadRef& upload, const core::WaiterRef& waiter, core::SteadyTime until) {
  for (;;) {
    const auto [is_taken, appender] = upload->state.with([](Upload::State& state) {
      state.is_interrupted = state.is_taken && state.appender != nullptr;
      return std::pair(state.is_taken, state.appender);
    });
    if (!is_taken) return;
    if (clock_.steady() >= until || waiter->is_abandoned()) {
      throw other_appends();
    }
    if (appender != nullptr) appender->abandon();
    waiter->wait(clock_.steady() + kLook);
  }
}

void UploadStore::give_charge(const UploadRef& upload) {
  upload->state.with([](Upload::State& state) { state.charge.release(); });
}

void UploadStore::take_charge_back(const UploadRef& upload) {
  upload->state.with([&](Upload::State& state) {
    ledger_.count(upload->principal, {1, state.offset});
    state.charge = ledger_.counted(upload->principal, state.offset);
  });
}

void UploadStore::finish(const UploadRef& upload, const std::string& result) {
  const storage::UploadRow row = upload->state.with([&](const Upload::State& state) {
    storage::UploadRow done = row_of(*upload, state);
    done.length = state.offset;
    done.is_done = true;
    done.result = result;
    return done;
  });
  const std::vector<UploadRef> over = done_.with([&](const Done& done) -> std::vector<UploadRef> {
    const auto own = done.find(upload->principal);
    if (own == done.end()) return {};
    const auto size = static_cast<int64_t>(own->second.size());
    return {own->second.begin(), own->second.begin() + std::clamp<int64_t>(size + 1 - limits_.most_done, 0, size)};
  });
  store_.catalog().write(
      [&](storage::Transaction& transaction) {
        transaction.drop_upload_parts(row.id);
        transaction.update_upload(row);
        for (const UploadRef& old : over) transaction.delete_upload(old->id);
      },
      storage::Space::kFrees);
  upload->state.with([&](Upload::State& state) {
    state.length = row.length;
    state.is_done = true;
    state.result = result;
    state.touched = clock_.steady();
    state.charge.release();
  });
  done_.with([&](Done& done) { done[upload->principal].push_back(upload); });
  for (const UploadRef& old : over) forget(old);
}

void UploadStore::remove(const UploadRef& upload) {
  upload->state.with([](Upload::State& state) {
    if (state.is_taken) throw other_appends();
    state.is_gone = true;
  });
  try {
    store_.catalog().write([&](storage::Transaction& transaction) { transaction.delete_upload(upload->id); },
                           storage::Space::kFrees);
  } catch (...) {
    upload->state.with([](Upload::State& state) { state.is_gone = false; });
    throw;
  }
  forget(upload);
}

void UploadStore::forget(const UploadRef& upload) {
  upload->state.with([](Upload::State& state) {
    state.is_gone = true;
    state.charge.release();
  });
  table_.with([&](Table& table) { table.erase(upload->id); });
  done_.with([&](Done& done) {
    const auto own = done.find(upload->principal);
    if (own != done.end() && std::erase(own->second, upload) > 0 && own->second.empty()) done.erase(own);
  });
}

void UploadStore::expire() {
  std::vector<UploadRef> over;
  table_.with([&](const Table& table) {
    for (const auto& [id, upload] : table) {
      upload->state.with([&, upload = upload](Upload::State& state) {
        if (state.is_taken || clock_.steady() - state.touched < limits_.max_age) return;
        state.is_gone = true;
        over.push_back(upload);
      });
    }
  });
  for (const UploadRef& upload : over) remove(upload);
}

storage::UploadRow UploadStore::row_of(const Upload& upload, const Upload::State& state) const {
  return {upload.id, upload.principal, upload.request, state.length, state.is_done, state.result, clock_.wall()};
}

}  // namespace meshd::uploads
