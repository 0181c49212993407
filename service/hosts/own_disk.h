// The disk of a rank that is not 0: blobs of the shards that it was told to store, in its own folder below the data
// folder that all ranks are given (storage/blobs/rank_blobs.h). Rank 0 has the rows that name them; it asks for their
// bytes, and says which are to go.
//
// The folder belongs to one mesh, whose name is in it: ranks that start with another rank 0 would be told to remove
// what its rows do not name.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "service/hosts/protocol.h"
#include "service/tensor/buffer.h"
#include "storage/blobs/blob_store.h"
#include "storage/file_system.h"

namespace meshd::hosts {

/// Any thread; one of its own does the work, in order.
class OwnDisk {
 public:
  /// Throws storage_failed when another process has the folder, or another mesh.
  OwnDisk(storage::FileSystem& files, const std::string& data_folder, int rank, const std::string& mesh,
          storage::FatalHandler fatal);
  /// What was asked for before is done.
  ~OwnDisk();

  struct ToWrite {
    std::string name;
    tensor::BufferRef buffer;
    int64_t bytes = 0;
  };
  /// `shards`: of a kWrite. `answer` is called on the disk's thread.
  void serve(DiskRequest request, std::vector<ToWrite> shards, std::function<void(DiskAnswer)> answer);
  /// Fills the buffer from the file, checked; then calls `then`, with the error if it cannot be read.
  void read(device::ShardFile file, tensor::BufferRef buffer, int64_t bytes,
            std::function<void(std::optional<core::Error>)> then);

 private:
  DiskAnswer answer_to(const DiskRequest& request, const std::vector<ToWrite>& shards);
  void later(std::function<void()> task);
  void work();

  std::unique_ptr<storage::FileLock> lock_;
  std::unique_ptr<storage::BlobStore> blobs_;
  std::map<uint64_t, std::unique_ptr<storage::File>> open_;  // the thread alone
  uint64_t last_file_ = 0;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace meshd::hosts
