#include "service/hosts/own_disk.h"

#include <new>
#include <utility>

#include "storage/blobs/rank_blobs.h"

namespace meshd::hosts {
namespace {

core::Error error_of_disk(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const core::Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return core::Error("memory_full", "a rank has no memory to use its disk").with_retry_after(1);
  } catch (const std::exception& other) {
    return core::Error("storage_failed", "a rank cannot use its disk").with_internal(other.what());
  }
}

}  // namespace

OwnDisk::OwnDisk(storage::FileSystem& files, const std::string& data_folder, int rank, const std::string& mesh,
                 storage::FatalHandler fatal) {
  const std::string folder = storage::rank_folder(data_folder, rank);
  const std::string name = storage::name_of_mesh(files, data_folder, rank, mesh);
  if (name != mesh) {
    throw core::Error("storage_failed", "the folder '" + folder + "' has shards of mesh " + name +
                                            ", rank 0 has the rows of mesh " + mesh +
                                            "; start all ranks with the folders that they had, or with new ones");
  }
  lock_ = files.try_lock(folder + "/lock");
  if (lock_ == nullptr) throw core::Error("storage_failed", "the folder '" + folder + "' is in use by another meshd");
  blobs_ = std::make_unique<storage::BlobStore>(files, folder + "/blobs", std::move(fatal));
  files.sync_folder(folder);
  blobs_->remove_temporary_files();
  thread_ = std::thread([this] { work(); });
}

OwnDisk::~OwnDisk() {
  {
    const std::lock_guard held(mutex_);
    is_ending_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void OwnDisk::later(std::function<void()> task) {
  const std::lock_guard held(mutex_);
  tasks_.push_back(std::move(task));
  wake_.notify_one();
}

void OwnDisk::work() {
  while (true) {
    std::function<void()> task;
    {
      std::unique_lock held(mutex_);
      wake_.wait(held, [&] { return is_ending_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

void OwnDisk::serve(DiskRequest request, std::vector<ToWrite> shards, std::function<void(DiskAnswer)> answer) {
  later([this, request = std::move(request), shards = std::move(shards), answer = std::move(answer)] {
    DiskAnswer out;
    try {
      out = answer_to(request, shards);
    } catch (...) {
      out.error = error_of_disk(std::current_exception());
    }
    out.number = request.number;
    answer(std::move(out));
  });
}

DiskAnswer OwnDisk::answer_to(const DiskRequest& request, const std::vector<ToWrite>& shards) {
  DiskAnswer out;
  switch (request.what) {
    case DiskRequest::What::kList:
      for (storage::StoredBlob& blob : blobs_->list()) out.files.push_back({std::move(blob.name), blob.file_bytes, 0});
      break;
    case DiskRequest::What::kOpen:
      if (auto file = blobs_->open_file(request.name)) {
        out.file = ++last_file_;
        out.length = file->size();
        open_[out.file] = std::move(file);
      }
      break;
    case DiskRequest::What::kRead: {
      out.bytes.resize(static_cast<size_t>(request.length));
      const auto found = open_.find(request.file);
      if (found == open_.end()) throw core::Error("internal", "a file is not open");
      out.bytes.resize(found->second->read_at(request.offset,
                                              std::as_writable_bytes(std::span(out.bytes.data(), out.bytes.size()))));
      break;
    }
    case DiskRequest::What::kClose:
      open_.erase(request.file);
      break;
    case DiskRequest::What::kRemove:
      out.length = blobs_->remove_unnamed(request.names, [](const std::string&) { return false; });
      break;
    case DiskRequest::What::kWrite: {
      std::vector<storage::BlobWriter> writers;
      for (const ToWrite& shard : shards) {
        writers.push_back(blobs_->begin(shard.name, shard.bytes));
        writers.back().write(0, std::as_const(*shard.buffer).bytes().first(static_cast<size_t>(shard.bytes)));
      }
      for (const storage::CommittedBlob& blob : storage::commit_blobs(std::move(writers)))
        out.files.push_back({blob.ref.name, blob.ref.length, blob.ref.checksum});
      break;
    }
  }
  return out;
}

void OwnDisk::read(device::ShardFile file, tensor::BufferRef buffer, int64_t bytes,
                   std::function<void(std::optional<core::Error>)> then) {
  later([this, file = std::move(file), buffer = std::move(buffer), bytes, then = std::move(then)] {
    std::optional<core::Error> error;
    try {
      blobs_->read({file.name, file.length, file.checksum}, 0, buffer->bytes().first(static_cast<size_t>(bytes)));
    } catch (...) {
      error = error_of_disk(std::current_exception());
    }
    then(std::move(error));
  });
}

}  // namespace meshd::hosts
