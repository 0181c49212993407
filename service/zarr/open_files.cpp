#include "service/zarr/open_files.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "service/core/error.h"
#include "service/core/locked.h"

namespace meshd::zarr {
namespace {

constexpr int kRetryForFiles = 5;

}  // namespace

struct OpenFiles::Counts {
  struct Held {
    int64_t all = 0;
    std::map<std::string, int64_t> by_principal;
  };
  core::Locked<Held> held;
};

class HeldFiles {
 public:
  HeldFiles(std::shared_ptr<OpenFiles::Counts> counts, std::string principal, int64_t files)
      : counts_(std::move(counts)), principal_(std::move(principal)), files_(files) {}
  ~HeldFiles() {
    counts_->held.with([&](OpenFiles::Counts::Held& held) {
      held.all -= files_;
      const auto own = held.by_principal.find(principal_);
      if (own != held.by_principal.end() && (own->second -= files_) == 0) held.by_principal.erase(own);
    });
  }
  HeldFiles(const HeldFiles&) = delete;
  HeldFiles& operator=(const HeldFiles&) = delete;

 private:
  const std::shared_ptr<OpenFiles::Counts> counts_;
  const std::string principal_;
  const int64_t files_;
};

OpenFiles::OpenFiles(int64_t most, int64_t principals_part)
    : most_(most), most_of_principal_(most / principals_part), counts_(std::make_shared<Counts>()) {}

FileCharge OpenFiles::charge(const std::string& principal, int64_t files) {
  if (files > most_of_principal_) {
    throw core::Error(
        "limit_reached",
        fmt::format("mesh and spec: the array has {} shards on the disk, each an open file until it is committed, and "
                    "pending arrays of one principal may hold {} files open; expected a placement with fewer shards, "
                    "or durability=memory",
                    files, most_of_principal_));
  }
  counts_->held.with([&](Counts::Held& held) {
    const auto found = held.by_principal.find(principal);
    const int64_t own = found == held.by_principal.end() ? 0 : found->second;
    if (files > most_of_principal_ - own) {
      throw core::Error("limit_reached",
                        fmt::format("mesh and spec: the array has {} shards on the disk, each an open file until it is "
                                    "committed; pending arrays of this principal hold {} files open, at most {} are "
                                    "allowed; commit or delete some of them",
                                    files, own, most_of_principal_))
          .with_retry_after(kRetryForFiles);
    }
    if (files > most_ - held.all) {
      throw core::Error("overloaded", "large pending arrays of all principals hold as many files open as they may")
          .with_retry_after(kRetryForFiles);
    }
    held.all += files;
    held.by_principal[principal] = own + files;
  });
  return std::make_shared<HeldFiles>(counts_, principal, files);
}

}  // namespace meshd::zarr
