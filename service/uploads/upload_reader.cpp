#include "service/uploads/upload_reader.h"

#include <algorithm>

namespace meshd::uploads {

UploadReader::UploadReader(UploadStore& store, const Upload& upload) : store_(store.storage()) {
  parts_ = store_.catalog().read([&](storage::Reader& reader) { return reader.upload_parts(upload.id); });
  for (const storage::UploadPartRow& part : parts_) total_ += part.blob.length;
}

size_t UploadReader::read_parts(std::span<std::byte> out) {
  while (!part_ || in_part_ == part_->length()) {
    part_.reset();
    if (next_ == parts_.size()) return 0;
    part_.emplace(store_.blobs().open(parts_[next_++].blob));
    in_part_ = 0;
  }
  const auto count = std::min<int64_t>(part_->length() - in_part_, static_cast<int64_t>(out.size()));
  part_->read(in_part_, out.first(static_cast<size_t>(count)));
  in_part_ += count;
  return static_cast<size_t>(count);
}

// A read of a blob checks each page that it touches: small reads go through one page in memory.
size_t UploadReader::read_some(std::span<std::byte> out) {
  if (out.empty()) return 0;
  constexpr auto kPage = static_cast<size_t>(storage::BlobStore::kPageBytes);
  size_t count = 0;
  if (in_page_ == page_.size() && out.size() >= kPage) {
    count = read_parts(out);
  } else {
    if (in_page_ == page_.size()) {
      page_.resize(kPage);
      page_.resize(read_parts(page_));
      in_page_ = 0;
    }
    count = std::min(out.size(), page_.size() - in_page_);
    std::copy_n(page_.begin() + static_cast<std::ptrdiff_t>(in_page_), count, out.begin());
    in_page_ += count;
  }
  read_ += static_cast<int64_t>(count);
  return count;
}

}  // namespace meshd::uploads
