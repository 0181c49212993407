#include "service/hosts/rank_disks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "service/core/error.h"

namespace meshd::hosts {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;  // with one message

[[noreturn]] void throw_only_read() { throw core::Error("internal", "a file of another rank is only read"); }

}  // namespace

class RankDisks::RankFile final : public storage::File {
 public:
  RankFile(RankDisks& disks, int rank, uint64_t file, int64_t size)
      : disks_(disks), rank_(rank), file_(file), size_(size) {}
  ~RankFile() override {
    DiskRequest close;
    close.what = DiskRequest::What::kClose;
    close.file = file_;
    disks_.messages_.send_surely(rank_, Control::kDisk, close);
  }

  [[nodiscard]] size_t read_at(int64_t offset, std::span<std::byte> out) const override {
    size_t done = 0;
    while (done < out.size()) {
      DiskRequest read;
      read.what = DiskRequest::What::kRead;
      read.file = file_;
      read.offset = offset + static_cast<int64_t>(done);
      const size_t wanted = std::min(kReadBytes, out.size() - done);
      read.length = static_cast<int64_t>(wanted);
      const DiskAnswer answer = disks_.ask(rank_, std::move(read));
      const size_t got = std::min(wanted, answer.bytes.size());
      if (got > 0) std::memcpy(out.data() + done, answer.bytes.data(), got);
      done += got;
      if (got < wanted) break;
    }
    return done;
  }
  [[nodiscard]] int64_t size() const override { return size_; }
  void write_at(int64_t /*offset*/, std::span<const std::byte> /*bytes*/) override { throw_only_read(); }
  void reserve(int64_t /*size*/) override { throw_only_read(); }
  void start_writeback() noexcept override {}
  void sync() override { throw_only_read(); }

 private:
  RankDisks& disks_;
  const int rank_;
  const uint64_t file_;
  const int64_t size_;
};

std::vector<DiskAnswer> RankDisks::ask(std::vector<std::pair<int, DiskRequest>> requests) {
  std::vector<uint64_t> numbers;
  // Whatever ends this call, nobody waits for the answers any more.
  struct Forget {
    RankDisks& disks;
    const std::vector<uint64_t>& numbers;
    ~Forget() {
      const std::lock_guard held(disks.mutex_);
      for (const uint64_t number : numbers) disks.answers_.erase(number);
    }
  } const forget{*this, numbers};
  {
    const std::lock_guard held(mutex_);
    for (auto& [rank, request] : requests) {
      request.number = ++last_number_;
      numbers.push_back(request.number);
      answers_[request.number];
    }
  }
  for (auto& [rank, request] : requests) tell(rank, std::move(request));
  std::vector<DiskAnswer> out;
  std::unique_lock held(mutex_);
  const auto is_complete = [&] {
    return std::all_of(numbers.begin(), numbers.end(), [&](uint64_t number) { return answers_[number].has_value(); });
  };
  there_.wait_for(held, patience_, is_complete);
  std::optional<core::Error> error;
  for (size_t i = 0; i < numbers.size(); ++i) {
    std::optional<DiskAnswer> answer = std::move(answers_[numbers[i]]);
    if (!answer) {
      answer.emplace();
      answer->error =
          core::Error("storage_failed", fmt::format("rank {} does not answer for its disk", requests[i].first));
    }
    if (answer->error && !error) error = answer->error;
    out.push_back(std::move(*answer));
  }
  if (error) throw std::move(*error);
  return out;
}

DiskAnswer RankDisks::ask(int rank, DiskRequest request) {
  std::vector<std::pair<int, DiskRequest>> one;
  one.emplace_back(rank, std::move(request));
  return std::move(ask(std::move(one)).front());
}

void RankDisks::answered(DiskAnswer answer) {
  const std::lock_guard held(mutex_);
  const auto found = answers_.find(answer.number);
  if (found == answers_.end()) return;  // nobody waits for it any more
  found->second = std::move(answer);
  there_.notify_all();
}

std::vector<storage::StoredBlob> RankDisks::list() {
  std::vector<std::pair<int, DiskRequest>> requests;
  for (int rank = 1; rank < rank_count_; ++rank) requests.emplace_back(rank, DiskRequest{});
  std::vector<DiskAnswer> answers = ask(std::move(requests));
  std::vector<storage::StoredBlob> out;
  for (size_t i = 0; i < answers.size(); ++i) {
    for (device::ShardFile& file : answers[i].files) {
      if (storage::blob_rank(file.name) == static_cast<int>(i) + 1) out.push_back({std::move(file.name), file.length});
    }
  }
  return out;
}

std::unique_ptr<storage::File> RankDisks::open(const std::string& name) {
  const int rank = storage::blob_rank(name);
  if (!has_rank(rank)) return nullptr;
  DiskRequest open;
  open.what = DiskRequest::What::kOpen;
  open.name = name;
  const DiskAnswer answer = ask(rank, std::move(open));
  if (answer.file == 0) return nullptr;
  return std::make_unique<RankFile>(*this, rank, answer.file, answer.length);
}

int64_t RankDisks::remove(std::span<const std::string> names) {
  std::map<int, DiskRequest> by_rank;
  for (const std::string& name : names) {
    const int rank = storage::blob_rank(name);
    if (!has_rank(rank)) continue;
    by_rank[rank].what = DiskRequest::What::kRemove;
    by_rank[rank].names.push_back(name);
  }
  std::vector<std::pair<int, DiskRequest>> requests;
  for (auto& [rank, request] : by_rank) requests.emplace_back(rank, std::move(request));
  int64_t removed = 0;
  for (const DiskAnswer& answer : ask(std::move(requests))) removed += answer.length;
  return removed;
}

}  // namespace meshd::hosts
