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
#include <utility>
#include <vector>

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
  struct Member {
    std::string name;
    tensor::DenseValue value;
  };
  /// Memory for a value of this type, before it is made.
  void hold(const tensor::TensorType& type);
  tensor::DenseValue new_value(const tensor::TensorType& type);
  tensor::DenseValue copy_of(const tensor::TensorType& type, std::string_view bytes);
  /// The arrays of a file of several, which is read once.
  const std::vector<Member>& members_of(const FormPart& part, bool is_zip, std::optional<tensor::DType> wanted);
  std::vector<Member> read_zip(std::string_view data, std::optional<tensor::DType> wanted);
  std::vector<Member> read_safetensors(std::string_view data);
  tensor::DenseValue read_npy(std::string_view data, std::optional<tensor::DType> wanted);

  const std::vector<FormPart> parts_;
  tensor::BufferPool& pool_;
  core::MemoryReservation* memory_;
  /// By the part, and the dtype that was given to members that do not say theirs.
  std::map<std::pair<std::string, std::string>, std::vector<Member>> members_;
};

/// The same where there may be no form (null): notes that, then.
std::optional<tensor::DenseValue> read_part(const PartRef& wanted, const tensor::TensorType* expected, FormFiles* files,
                                            const std::string& pointer, core::Diagnostics& wrong);

}  // namespace meshd::api
