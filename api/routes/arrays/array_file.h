// Forms of arrays' data, and downloads of archives of several arrays: safetensors and .npz.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/files/zip.h"
#include "api/http/http.h"
#include "service/arrays/regions/region.h"

namespace meshd::api {

/// The forms that an array's data has.
enum class DataForm : uint8_t { kRaw, kNpy, kNpz, kSafetensors, kJson, kBase64 };

/// A form, one row each; the first is the default of downloads.
struct FormRow {
  DataForm form;
  std::string_view name;                       ///< of ?format=
  std::string_view media;                      ///< of the response
  std::array<std::string_view, 2> also_named;  ///< other media types that select it
  std::string_view suffix;                     ///< of the file
};
std::span<const FormRow> data_forms();
const FormRow& form_row(DataForm form);
/// A column of all rows: "raw, npy, ...".
std::string list_forms(std::string_view FormRow::*column);
/// The form among `offered` that the request's Accept prefers: the first without Accept; null where it takes none.
const FormRow* preferred_form(const Request& request, std::span<const DataForm> offered);

/// One array of a file: all of it or a region.
struct FileEntry {
  std::string name;
  tensor::TensorType type;
  std::shared_ptr<arrays::GatherReader> region;
};

/// ?compression=stored or deflate; deflate is for .npz only (invalid_query).
ZipMethod zip_method_of(const Request& request, DataForm form);

/// The entries in one file of `form` (kSafetensors, kNpz or, of one entry, kNpy), from the shards' memory; with byte
/// ranges on request, but not of deflated files. `etag` may be empty. Throws not_acceptable for dtypes that the format
/// has no name for, and names that it cannot hold.
Response send_file(const Request& request, std::vector<FileEntry> entries, DataForm form, ZipMethod method,
                   const std::string& etag);

}  // namespace meshd::api
