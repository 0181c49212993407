// Who looks at the calls that storage makes into the system: it may let one fail, and is told of those that did not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace meshd::testing {

enum class FaultKind { kIo, kNoSpace };

/// Any thread. Files are named by path; both SQLite's and the blobs' come by.
class SystemWatcher {
 public:
  virtual ~SystemWatcher() = default;
  /// Before each call: true makes it fail.
  [[nodiscard]] virtual bool fails(const std::string& operation) = 0;
  /// How it fails.
  [[nodiscard]] virtual FaultKind kind() const { return FaultKind::kIo; }

  virtual void created(const std::string& /*path*/) {}
  virtual void wrote(const std::string& /*path*/, int64_t /*offset*/, std::span<const std::byte> /*bytes*/) {}
  virtual void resized(const std::string& /*path*/, int64_t /*size*/) {}
  virtual void synced(const std::string& /*path*/) {}
  virtual void renamed(const std::string& /*from*/, const std::string& /*to*/) {}
  virtual void removed(const std::string& /*path*/) {}
  virtual void synced_folder(const std::string& /*path*/) {}
};

}  // namespace meshd::testing
