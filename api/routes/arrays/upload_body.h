// Common parts of all uploads of arrays: their query parameters, and reading the body into shards.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/codecs/files/npy.h"
#include "api/http/http.h"
#include "api/routes/services.h"
#include "service/arrays/regions/region.h"
#include "service/jobs/job_request.h"

namespace meshd::api {

/// The query parameters of an upload.
struct UploadQuery {
  std::string name, mesh, session;
  std::optional<jobs::NamedSpec> spec;
  storage::Durability durability = storage::Durability::kDurable;
  std::optional<tensor::DType> dtype;
  std::optional<tensor::Dims> shape;
  bool refuses_uneven = false;
  bool is_unique = false;            ///< the array holds its name alone
  std::vector<std::string> leaving;  ///< NewArray::leaving; not of the query
};

/// The names of these parameters. A document of the body has its dtype and shape itself.
inline constexpr std::string_view kUploadParameters[] = {"name",  "mesh",  "spec",   "durability", "session",
                                                         "dtype", "shape", "uneven", "unique"};

/// A parameter that is true or false; false when it is missing. Throws invalid_query.
bool flag_of(const Request& request, std::string_view name);

/// ?dtype= and ?shape= of a body of one array. Throw invalid_query.
std::optional<tensor::DType> dtype_of_query(const Request& request);
std::optional<tensor::Dims> shape_of_query(const Request& request);
/// "name=value" of a parameter that says something of one array of a file, split at its last '='; `form` is what is
/// expected ("name=x,,y.z"). Throws invalid_query.
std::pair<std::string, std::string_view> named_entry(std::string_view entry, std::string_view parameter,
                                                     std::string_view form);
/// What the members of a .npz file are whose heads leave it open: ?dtype_for=name=float8_e4m3fn, by name. Throws
/// invalid_query.
using DTypesByName = std::map<std::string, tensor::DType, std::less<>>;
DTypesByName dtypes_by_name(const Request& request);

/// Reads it; parameters that are neither of these nor in `others` are refused (invalid_query).
UploadQuery read_upload_query(const Request& request, std::span<const std::string_view> others = {});

/// A pending array of this type, with the name and sharding of the query. Throws invalid_spec, invalid_array,
/// quota_exceeded, and not_found for a mesh or a session that the principal does not have.
arrays::ArrayRef begin_array(const UploadQuery& wanted, const tensor::TensorType& type, const Request& request,
                             Services& services, std::optional<storage::IdempotencyRow> key);

/// A body that holds one array: its type, and a reader at its first byte of data.
struct ArrayBody {
  tensor::TensorType type;
  ElementOrder order = ElementOrder::kC;
  BodyReader* reader = nullptr;
  std::shared_ptr<BodyReader> held;  ///< what `reader` is when the data does not come from the socket
  tensor::BufferRef dense;           ///< where a JSON body was read into, in C order; there is no `reader` then
};

/// The request's first bytes, kMagicBytes or all: the body is read from its beginning afterwards all the same.
std::string_view first_bytes(Request& request);

/// Opens a .npy file, raw bytes (whose type is `dtype` and `shape`, or else `expected`), a JSON VALUE, or a form
/// with one file. Where Content-Type leaves it open, the first bytes say whether it is a file (file_kinds.h). Inline
/// data of JSON is read into memory of the pool. With `expected`, sugar is taken in JSON (the type is not compared).
/// Throws malformed_body, invalid_query, invalid_array, unsupported_media_type, before or while it reads the head of
/// the data.
ArrayBody open_array_body(Request& request, tensor::BufferPool& pool, const std::optional<tensor::DType>& dtype,
                          const std::optional<tensor::Dims>& shape, const tensor::TensorType* expected = nullptr);

/// The array's bytes from the body straight into its shards; in Fortran order through a temporary, which is on the disk
/// from 16 MiB on. Small arrays are in memory while they come: `memory` holds their bytes as they come. Throws
/// malformed_body when the body ends before the array does, memory_full, and for a temporary quota_exceeded and
/// disk_full; bytes behind it are not read.
void fill_shards(BodyReader& body, const arrays::Array& array, arrays::NewShards& shards, ElementOrder order,
                 arrays::ArrayStore& store, core::MemoryReservation& memory);

/// The bytes of a body in the order in which they come, into `spool`. Throws malformed_body when it ends early.
void fill_spool(BodyReader& body, tensor::DType dtype, arrays::Spool& spool);

/// The entire body as shards of the array (ArrayStore::new_shards), and its end: JSON that fills the only shard has
/// been read into it. Throws as fill_shards, and malformed_body for bytes behind the data.
arrays::NewShards read_shards(const ArrayBody& body, const arrays::Array& array, arrays::ArrayStore& store,
                              core::MemoryReservation& memory);

/// The entire body as a dense value, and its end. Throws as read_shards.
tensor::BufferRef read_dense_body(const ArrayBody& body, tensor::BufferPool& pool);

/// The bytes of a dense value in C order, clean bools among them. Throws as fill_shards.
void read_dense(BodyReader& body, const tensor::TensorType& type, ElementOrder order, std::span<std::byte> out);

}  // namespace meshd::api
