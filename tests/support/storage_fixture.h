// What storage tests start from: a folder, the real files and clock, a store, and short ways to make rows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/clock.h"
#include "service/core/error.h"
#include "storage/store.h"
#include "tests/support/temp_folder.h"

namespace meshd::testing {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline core::WallTime at(int64_t microseconds) { return core::WallTime(std::chrono::microseconds(microseconds)); }

inline storage::SessionRow session_row(std::string id, std::string principal = "ann") {
  storage::SessionRow row;
  row.id = std::move(id);
  row.principal = std::move(principal);
  row.created = at(1);
  row.document = "{}";
  return row;
}

inline storage::JobRow job_row(std::string id, std::string session = {}, int64_t number = 0) {
  storage::JobRow row;
  row.id = std::move(id);
  row.session = std::move(session);
  row.principal = "ann";
  row.number = number;
  row.request = "request";
  row.created = at(2);
  return row;
}

inline storage::ArrayRow array_row(std::string id, storage::ArrayState state = storage::ArrayState::kReady) {
  storage::ArrayRow row;
  row.id = std::move(id);
  row.principal = "ann";
  row.dtype = "float32";
  row.shape = {2, 3};
  row.state = state;
  row.bytes = 24;
  row.created = at(3);
  return row;
}

inline storage::EffectRow effect_row(std::string job, int64_t step, std::string values) {
  storage::EffectRow row;
  row.job = std::move(job);
  row.step = step;
  row.kind = "log";
  row.name = "loss";
  row.values = std::move(values);
  return row;
}

/// Opens a store in `folder` that must not fail fatally.
class OpenStore {
 public:
  explicit OpenStore(const std::string& folder, const std::string& vfs = {})
      : files_(storage::real_file_system()),
        store_(std::make_unique<storage::Store>(
            storage::StoreOptions{folder, vfs, [this](const std::string& reason) { fatal_ = reason; }}, *files_,
            clock_)) {}
  storage::Store* operator->() { return store_.get(); }
  storage::Store& operator*() { return *store_; }
  [[nodiscard]] const std::string& fatal() const { return fatal_; }

 private:
  std::unique_ptr<storage::FileSystem> files_;
  core::SystemClock clock_;
  std::string fatal_;
  std::unique_ptr<storage::Store> store_;
};

/// One blob with these bytes, durable but in no row.
inline storage::CommittedBlob put_blob(storage::BlobStore& blobs, const std::string& name, std::string_view bytes) {
  storage::BlobWriter writer = blobs.begin(name, static_cast<int64_t>(bytes.size()));
  writer.write(0, as_bytes(bytes));
  return writer.commit();
}

inline std::string read_blob(const storage::BlobStore& blobs, const storage::BlobRef& ref) {
  std::string text(static_cast<size_t>(ref.length), '\0');
  blobs.read(ref, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// The word of the core::Error that `f` throws; "" when it throws none.
template <typename F>
std::string error_word(F&& f) {
  try {
    f();
  } catch (const core::Error& error) {
    return std::string(error.code().word());
  }
  return {};
}

}  // namespace meshd::testing
