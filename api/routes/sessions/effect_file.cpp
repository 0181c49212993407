#include "api/routes/sessions/effect_file.h"

#include <fmt/core.h>

#include <memory>
#include <utility>
#include <vector>

#include "service/arrays/regions/region.h"

namespace meshd::api {
namespace {

// A value as a region of an array, which keeps `held` and the value's bytes alive.
std::shared_ptr<arrays::GatherReader> region_of(const tensor::DenseValue& value,
                                                std::shared_ptr<core::MemoryReservation> held) {
  struct Kept {
    std::shared_ptr<core::MemoryReservation> memory;
    arrays::GatherReader reader;
  };
  const tensor::Dims& dims = value.type.dims;
  auto kept = std::make_shared<Kept>(Kept{std::move(held),
                                          {arrays::unsharded_layout(dims), tensor::size_bytes(value.type.dtype),
                                           arrays::ShardBuffers{value.buffer}, arrays::full_slices(dims)}});
  return {kept, &kept->reader};
}

}  // namespace

WantedValues::WantedValues(const Request& request) : file(file_beside_json(request)), encoding(encoding_of(request)) {
  if (file == nullptr) return;
  if (encoding == ValueEncoding::kNone) {
    throw core::Error("not_acceptable",
                      fmt::format("Accept asks for the values as {}, and encoding=none says that none come with the "
                                  "answer; leave one of the two out",
                                  file->media));
  }
  encoding = ValueEncoding::kNone;
}

Response send_values(const Request& request, Services& services, std::span<const NumberedValues> entries,
                     const FormRow& file, const std::string& answer) {
  auto held = std::make_shared<core::MemoryReservation>(services.memory, core::MemoryAccount::kAnswers);
  std::vector<FileEntry> arrays;
  int64_t bytes = 0;
  for (const NumberedValues& entry : entries) {
    for (size_t i = 0; i < entry.values.size(); ++i) {
      const tensor::DenseValue& value = entry.values[i];
      bytes = core::checked_add(bytes, tensor::byte_count(value.type));
      arrays.push_back({fmt::format("{}.{}", entry.number, i), value.type, region_of(value, held)});
    }
  }
  if (file.form == DataForm::kNpy && arrays.size() != 1) {
    throw core::Error("not_acceptable",
                      arrays.empty() ? std::string("a .npy file holds one array, and none is there yet; ask again, or "
                                                   "accept application/zip, of which a file may be empty")
                                     : fmt::format("a .npy file holds one array, here are {}; name one entry by after "
                                                   "and limit=1, or accept application/zip or "
                                                   "application/x-safetensors",
                                                   arrays.size()));
  }
  held->grow(bytes);
  Response response = send_file(request, std::move(arrays), file.form, ZipMethod::kStored, "");
  response.held_bytes = bytes;
  note_answer(response, answer_field(answer));
  return response;
}

}  // namespace meshd::api
