#include "service/uploads/append.h"

#include <fmt/core.h>

#include <algorithm>

#include "service/core/error.h"

namespace meshd::uploads {

Append::Append(UploadStore& store, UploadRef upload, core::WaiterRef waiter, Sealing sealing,
               std::optional<int64_t> begin)
    : store_(store), upload_(std::move(upload)), sealing_(sealing), blobs_(store.storage()) {
  upload_->state.with([&](Upload::State& state) {
    if (state.is_gone) throw core::Error("not_found", "there is no upload '" + upload_->id + "'");
    if (state.is_done) {
      throw core::Error("upload_completed",
                        fmt::format("upload '{}' is complete{}", upload_->id,
                                    state.result.empty() ? "" : "; what it made is at " + state.result));
    }
    if (state.is_taken) throw other_appends();
    if (begin && *begin != state.offset) {
      throw core::Error("upload_offset_mismatch",
                        fmt::format("the upload is at byte {}, the request begins at {}", state.offset, *begin));
    }
    state.is_taken = true;
    state.is_interrupted = false;
    state.appender = std::move(waiter);
  });
}

Append::~Append() {
  if (sealing_ == Sealing::kAsTheyFill) {
    try {
      seal();
    } catch (const std::exception&) {
      // What could not be sealed has not come: the client asks for the offset before it goes on.
    }
  }
  upload_->state.with([&](Upload::State& state) {
    if (charged_ > sealed_) state.charge.shrink(charged_ - sealed_);
    state.is_taken = false;
    state.appender = nullptr;
  });
}

void Append::stop_receiving() {
  upload_->state.with([](Upload::State& state) { state.appender = nullptr; });
}

void Append::begin_part() {
  const auto [offset, parts] =
      upload_->state.with([](const Upload::State& state) { return std::pair(state.offset, state.part_count); });
  if (parts + static_cast<int64_t>(part_bytes_.size()) >= store_.limits().most_parts) {
    throw core::Error("limit_reached",
                      fmt::format("the upload came in {} pieces, more are not taken; begin it anew and "
                                  "send more at once",
                                  parts));
  }
  blobs_.begin(fmt::format("{}.o{}.w{}", upload_->id, offset + unsealed_, store_.next_part()),
               store_.limits().part_bytes);
  part_bytes_.push_back(0);
  part_begun_ = store_.clock().steady();
}

void Append::write(std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  upload_->state.with([&](Upload::State& state) {
    if (state.is_interrupted) throw core::Error("malformed_body", "another request has taken the upload over");
    const int64_t end = state.offset + unsealed_ + size;
    if (state.length && end > *state.length) {
      throw core::Error(
          "upload_length_mismatch",
          fmt::format("a length of {} bytes was declared for the upload; this request has more", *state.length));
    }
    if (end > store_.limits().most_bytes) {
      throw core::Error("body_too_large", fmt::format("at most {} bytes are taken", store_.limits().most_bytes));
    }
    if (!state.length) {  // else it is charged already
      state.charge.grow(size);
      charged_ += size;
    }
    state.touched = store_.clock().steady();
  });
  while (!bytes.empty()) {
    if (part_bytes_.empty() || part_bytes_.back() == store_.limits().part_bytes) begin_part();
    const int64_t room = store_.limits().part_bytes - part_bytes_.back();
    const auto piece = bytes.first(static_cast<size_t>(std::min<int64_t>(room, static_cast<int64_t>(bytes.size()))));
    blobs_.write(part_bytes_.size() - 1, part_bytes_.back(), piece);
    part_bytes_.back() += static_cast<int64_t>(piece.size());
    unsealed_ += static_cast<int64_t>(piece.size());
    bytes = bytes.subspan(piece.size());
    const bool is_old = store_.clock().steady() - part_begun_ >= store_.limits().part_time;
    if (sealing_ == Sealing::kAsTheyFill && (part_bytes_.back() == store_.limits().part_bytes || is_old)) seal();
  }
}

int64_t Append::seal() {
  const int64_t before = upload_->state.with([](const Upload::State& state) { return state.offset; });
  if (unsealed_ == 0) return before;
  blobs_.end_at(part_bytes_.size() - 1, part_bytes_.back());
  const std::vector<storage::BlobRef> stored = blobs_.sync();
  std::vector<storage::UploadPartRow> rows;
  int64_t at = before;
  for (const storage::BlobRef& blob : stored) {
    rows.push_back({upload_->id, at, blob});
    at += blob.length;
  }
  store_.storage().catalog().write([&](storage::Transaction& transaction) {
    for (const storage::UploadPartRow& row : rows) transaction.insert_upload_part(row);
  });
  blobs_.keep();
  blobs_ = storage::PendingBlobs(store_.storage());
  upload_->state.with([&](Upload::State& state) {
    state.offset = at;
    state.part_count += static_cast<int64_t>(rows.size());
  });
  sealed_ += unsealed_;
  unsealed_ = 0;
  part_bytes_.clear();
  return at;
}

}  // namespace meshd::uploads
