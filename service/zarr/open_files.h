// Files that pending arrays hold open, by principal. A principal may hold a part of what all may hold together, so that
// none keeps the others from writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace meshd::zarr {

/// Open files of one array, in the counts of its principal; given back when the last copy is destroyed or reset.
class HeldFiles;
using FileCharge = std::shared_ptr<HeldFiles>;

/// Any thread. Charges may outlive it.
class OpenFiles {
 public:
  /// `most`: of all principals together; one may have this part of them.
  OpenFiles(int64_t most, int64_t principals_part);

  /// Counts them, before they are opened. Throws limit_reached where the principal may not have so many, overloaded
  /// where others have what is missing; then nothing is counted. Of several at once, those that fit are counted and no
  /// more.
  [[nodiscard]] FileCharge charge(const std::string& principal, int64_t files);

 private:
  friend class HeldFiles;
  struct Counts;
  const int64_t most_;
  const int64_t most_of_principal_;
  std::shared_ptr<Counts> counts_;
};

}  // namespace meshd::zarr
