// Arrays in the files of a form: .npy, .npz, safetensors, or raw bytes, read where a request names them.
//
// Example: curl -F 'request={"program": {"id": "prog_1"}, "arguments": [{"part": "x"}, {"part": "w", "member":
// "w1"}]};type=application/json' -F x=@x.npy -F w=@weights.npz sends three parts; the arguments are the array of x.npy
// and the member w1.npy of weights.npz.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/codecs/files/file_arrays.h"
#include "api/codecs/files/form.h"
#include "api/codecs/value.h"
#include "service/core/error.h"
#include "service/core/memory_ledger.h"
#include "service/tensor/dense_value.h"

namespace meshd::api {

/// The parts of one form. One thread.
class FormFiles {
 public:
  /// `parts` view a body that lives longer. Values are in memory of `pool`, of which `memory` holds as much first
  /// (null: it is not counted).
  FormFiles(std::vector<FormPart> parts, tensor::BufferPool& pool, core::MemoryReservation* memory);

  [[nodiscard]] const std::vector<FormPart>& parts() const { return parts_; }
  /// The array in memory that nobody else has. A part is a file by its declared type, its first bytes or its
  /// filename (resolve_file_kind); else it is raw bytes of what the program expects. Notes mistakes under `pointer` (no
  /// such part, or member; a wrong number of bytes; a file that is none) and gives nothing then. Throws memory_full.
  std::optional<tensor::DenseValue> read(const PartRef& wanted, const tensor::TensorType* expected,
                                         const std::string& pointer, core::Diagnostics& wrong);

 private:
  /// The arrays of a part, which is read once.
  const FileArrays& arrays_of(const FormPart& part, FileKind kind);
  /// The array of a file, or nothing (and a note).
  std::optional<tensor::DenseValue> read_file(const PartRef& wanted, const FileArrays& file,
                                              const tensor::TensorType* expected, const std::string& pointer,
                                              core::Diagnostics& wrong);
  std::optional<tensor::DenseValue> read_raw(const PartRef& wanted, std::string_view data,
                                             const tensor::TensorType* expected, const std::string& pointer,
                                             core::Diagnostics& wrong);

  const std::vector<FormPart> parts_;
  tensor::BufferPool& pool_;
  core::MemoryReservation* memory_;
  std::map<std::string, FileArrays> files_;  ///< by the part
};

/// The same where there may be no form (null): notes that, then.
std::optional<tensor::DenseValue> read_part(const PartRef& wanted, const tensor::TensorType* expected, FormFiles* files,
                                            const std::string& pointer, core::Diagnostics& wrong);

/// A value of a request: as read_value, or an array in a file of its form (FormValueInput). Notes mistakes and gives
/// nothing then.
std::optional<tensor::DenseValue> read_form_value(const Json& json, const tensor::TensorType* expected,
                                                  FormFiles* files, tensor::BufferPool& pool,
                                                  const std::string& pointer, core::Diagnostics& wrong);

}  // namespace meshd::api
