#include "api/routes/arrays/array_file.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

#include "api/codecs/files/npy.h"
#include "api/codecs/files/safetensors.h"
#include "api/fields/accept.h"
#include "api/routes/arrays/array_stream.h"

namespace meshd::api {
namespace {

constexpr FormRow kForms[] = {
    {DataForm::kRaw, "raw", "application/octet-stream", {}, ".bin"},
    {DataForm::kNpy, "npy", "application/x-npy", {"application/npy"}, ".npy"},
    {DataForm::kNpz, "npz", "application/zip", {"application/x-npz", "application/npz"}, ".npz"},
    {DataForm::kSafetensors, "safetensors", "application/x-safetensors", {"application/safetensors"}, ".safetensors"},
    {DataForm::kJson, "json", "application/json", {}, ".json"},
    {DataForm::kBase64, "base64", "application/json", {}, ".json"},
};

constexpr size_t kPiece = 256 * 1024;

std::string member_name(const FileEntry& entry) { return entry.name + ".npy"; }

// A .npz whose members are deflated while it is sent.
class DeflatedFile {
 public:
  explicit DeflatedFile(std::vector<FileEntry> entries) : entries_(std::move(entries)), input_(kPiece) {
    // Level 6 is zlib's own choice; .npz readers need raw deflate.
    if (deflateInit2(&deflater_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~DeflatedFile() { deflateEnd(&deflater_); }
  DeflatedFile(const DeflatedFile&) = delete;
  DeflatedFile& operator=(const DeflatedFile&) = delete;

  // BodySource::pull.
  size_t pull(std::span<std::byte> out) {
    while (ready_.size() == sent_ && !finished_) {
      ready_.clear();
      sent_ = 0;
      advance();
    }
    const size_t count = std::min(out.size(), ready_.size() - sent_);
    std::memcpy(out.data(), ready_.data() + sent_, count);
    sent_ += count;
    return count;
  }

 private:
  // Puts the next bytes into ready_.
  void advance() {
    if (next_ == entries_.size()) {
      ready_ = writer_.finish();
      finished_ = true;
      return;
    }
    const FileEntry& entry = entries_[next_];
    if (!in_member_) {
      const std::string head = write_npy_head(entry.type);
      ready_ = writer_.begin_deflated(
          member_name(entry), core::checked_add(static_cast<int64_t>(head.size()), entry.region->total_bytes()));
      in_member_ = true;
      deflated_ = 0;
      crc_ = 0;
      deflateReset(&deflater_);
      deflate_more(std::as_bytes(std::span<const char>(head)), Z_NO_FLUSH);
      return;
    }
    const size_t got = entry.region->read(input_);
    deflate_more(std::span<const std::byte>(input_).first(got), got == 0 ? Z_FINISH : Z_NO_FLUSH);
    if (got > 0) return;
    ready_ += writer_.end_deflated(deflated_, crc_);
    in_member_ = false;
    ++next_;
  }

  void deflate_more(std::span<const std::byte> bytes, int flush) {
    crc_ = zip_crc(crc_, bytes);
    deflater_.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    deflater_.avail_in = static_cast<uInt>(bytes.size());
    do {
      const size_t before = ready_.size();
      ready_.resize(before + kPiece);
      deflater_.next_out = reinterpret_cast<unsigned char*>(ready_.data() + before);
      deflater_.avail_out = static_cast<uInt>(kPiece);
      deflate(&deflater_, flush);
      const size_t made = kPiece - deflater_.avail_out;
      ready_.resize(before + made);
      deflated_ += static_cast<int64_t>(made);
    } while (deflater_.avail_out == 0);
  }

  std::vector<FileEntry> entries_;
  std::vector<std::byte> input_;
  std::string ready_;
  size_t sent_ = 0, next_ = 0;
  bool in_member_ = false, finished_ = false;
  z_stream deflater_{};
  int64_t deflated_ = 0;
  uint32_t crc_ = 0;
  ZipWriter writer_;
};

uint32_t crc_of(const std::string& head, arrays::GatherReader& region) {
  uint32_t crc = zip_crc(0, std::as_bytes(std::span<const char>(head)));
  std::vector<std::byte> piece(kPiece);
  for (size_t got = region.read(piece); got > 0; got = region.read(piece))
    crc = zip_crc(crc, std::span<const std::byte>(piece).first(got));
  region.seek(0);
  return crc;
}

}  // namespace

std::span<const FormRow> data_forms() { return kForms; }

const FormRow& form_row(DataForm form) {
  return *std::find_if(std::begin(kForms), std::end(kForms), [&](const FormRow& row) { return row.form == form; });
}

std::string list_forms(std::string_view FormRow::*column) {
  std::string out;
  for (const FormRow& row : kForms) {
    if (out.find(row.*column) == std::string::npos) out += (out.empty() ? "" : ", ") + std::string(row.*column);
  }
  return out;
}

const FormRow* preferred_form(const Request& request, std::span<const DataForm> offered) {
  std::vector<std::string_view> medias;
  std::vector<const FormRow*> rows;
  for (const DataForm form : offered) {
    const FormRow& row = form_row(form);
    for (const std::string_view media : {row.media, row.also_named[0], row.also_named[1]}) {
      if (media.empty()) continue;
      medias.push_back(media);
      rows.push_back(&row);
    }
  }
  const auto best = preferred_media(request, medias);
  return best ? rows[*best] : nullptr;
}

ZipMethod zip_method_of(const Request& request, DataForm form) {
  const auto word = request.query.get("compression");
  if (!word || *word == "stored") return ZipMethod::kStored;
  if (*word != "deflate") throw core::Error("invalid_query", "compression: expected stored or deflate");
  if (form != DataForm::kNpz) throw core::Error("invalid_query", "compression: deflate is for format=npz");
  return ZipMethod::kDeflated;
}

Response send_file(const Request& request, std::vector<FileEntry> entries, DataForm form, ZipMethod method,
                   const std::string& etag) {
  if (method == ZipMethod::kDeflated) {
    // What cannot be written is refused before the first byte is sent.
    ZipWriter names;
    for (const FileEntry& entry : entries) {
      static_cast<void>(write_npy_head(entry.type));
      static_cast<void>(names.begin_stored(member_name(entry), 0, 0));
    }
    auto file = std::make_shared<DeflatedFile>(std::move(entries));
    Response response = generated(200, form_row(form).media,
                                  {std::nullopt, [file](std::span<std::byte> out) { return file->pull(out); }});
    if (!etag.empty()) response.headers.set("ETag", etag);
    return response;
  }
  ArrayStream stream;
  if (form == DataForm::kNpy) {
    stream.add(write_npy_head(entries.front().type));
    stream.add(std::move(entries.front().region));
    return std::move(stream).respond(request, form_row(form).media, etag);
  }
  if (form == DataForm::kSafetensors) {
    std::vector<NamedTensor> tensors;
    for (const FileEntry& entry : entries) tensors.push_back({entry.name, entry.type, 0});
    stream.add(write_safetensors_head(tensors));
    for (FileEntry& entry : entries) stream.add(std::move(entry.region));
    return std::move(stream).respond(request, form_row(form).media, etag);
  }
  ZipWriter writer;
  for (FileEntry& entry : entries) {
    std::string head = write_npy_head(entry.type);
    const int64_t bytes = core::checked_add(static_cast<int64_t>(head.size()), entry.region->total_bytes());
    const uint32_t crc = crc_of(head, *entry.region);
    stream.add(writer.begin_stored(member_name(entry), bytes, crc) + head);
    stream.add(std::move(entry.region));
  }
  stream.add(writer.finish());
  return std::move(stream).respond(request, form_row(form).media, etag);
}

}  // namespace meshd::api
