#include "service/warmup/compile_record.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "service/sharding/tensor_sharding.h"
#include "service/tensor/dtype.h"
#include "service/warmup/byte_archive.h"

namespace meshd::warmup {
namespace {

constexpr std::string_view kVersion = "meshd compile record 2\n";
constexpr std::string_view kVersion1 = "meshd compile record 1\n";  // all of lowerings that are fused

}  // namespace

template <typename Archive>
void archive(Archive& a, tensor::TensorType& type) {
  std::string dtype(Archive::kReads ? "" : tensor::name(type.dtype));
  archive_all(a, dtype, type.dims);
  if constexpr (Archive::kReads) {
    const std::optional<tensor::DType> known = tensor::dtype_from_name(dtype);
    if (!known) throw_damaged("a dtype is not known");
    type.dtype = *known;
    for (const int64_t dim : type.dims) {
      if (dim < 0) throw_damaged("a dimension has no size");
    }
  }
}

template <typename Archive>
void archive(Archive& a, tensor::DenseValue& value) {
  archive(a, value.type);
  std::string bytes;
  if constexpr (!Archive::kReads)
    bytes.assign(reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size());
  archive(a, bytes);
  if constexpr (Archive::kReads) {
    if (tensor::byte_count(value.type) != static_cast<int64_t>(bytes.size()))
      throw_damaged("a value has another size than its type");
    value = tensor::dense_copy(value.type, std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
}

template <typename Archive>
void archive(Archive& a, mesh::Axis& axis) {
  archive_all(a, axis.name, axis.size);
}

template <typename Archive>
void archive(Archive& a, mesh::AxisType& type) {
  archive_enum(a, type, mesh::AxisType::kManual);
}

template <typename Archive>
void archive(Archive& a, mesh::Mesh& mesh) {
  archive_all(a, mesh.axes, mesh.device_ids, mesh.axis_types);
  if constexpr (Archive::kReads) {
    const int64_t positions = mesh.position_count();  // throws where a size is at fault
    const auto fits = [](size_t found, size_t wanted) { return found == 0 || found == wanted; };
    if (positions < 1 || !fits(mesh.axis_types.size(), mesh.axes.size()) ||
        !(fits(mesh.device_ids.size(), static_cast<size_t>(positions)) || mesh.is_maximal()))
      throw_damaged("a mesh is at fault");
  }
}

template <typename Archive>
void archive(Archive& a, mesh::MeshRef& mesh) {
  std::optional<mesh::Mesh> value;
  if (mesh != nullptr) value = *mesh;
  archive(a, value);
  if constexpr (Archive::kReads) mesh = value ? std::make_shared<const mesh::Mesh>(std::move(*value)) : nullptr;
}

template <typename Archive>
void archive(Archive& a, sharding::AxisRef& axis) {
  archive_all(a, axis.axis, axis.pre, axis.size);
}

template <typename Archive>
void archive(Archive& a, sharding::DimSharding& dim) {
  archive_all(a, dim.axes, dim.open, dim.priority);
}

template <typename Archive>
void archive(Archive& a, sharding::TensorSharding& sharding) {
  archive_all(a, sharding.mesh_name, sharding.mesh, sharding.dims, sharding.replicated, sharding.unreduced);
  archive_enum(a, sharding.unreduced_kind, sharding::ReductionKind::kMin);
  if constexpr (Archive::kReads) {
    if (sharding.mesh == nullptr) throw_damaged("a sharding has no mesh");
    sharding::verify(sharding, sharding.rank());
  }
}

template <typename Archive>
void archive(Archive& a, numpy::Input::ArrayType& type) {
  archive_all(a, type.type, type.weak);
}

template <typename Archive>
void archive(Archive& a, numpy::Input& input) {
  const typename Archive::Depth nested(a);
  archive_all(a, input.value, input.is_list);
}

template <typename Archive>
void archive(Archive& a, compile::TraceStep& step) {
  archive_all(a, step.inputs.positional, step.inputs.keywords, step.mesh);
}

template <typename Archive>
void archive(Archive& a, compile::StaticStep& step) {
  archive(a, step.values);
}

template <typename Archive>
void archive(Archive& a, compile::SpecialiseStep& step) {
  archive(a, step.arguments);
}

template <typename Archive>
void archive(Archive& a, CompileRecord& record) {
  archive_all(a, record.format, record.text, record.derivation, record.request.mesh, record.request.device_count,
              record.request.in_shardings, record.request.out_shardings, record.request.donate);
}

CompileRecord record_of(const compile::ParsedProgram& parsed, const compile::LowerRequest& request) {
  return {parsed.format, parsed.text, parsed.derivation, request};
}

int64_t record_bytes(const compile::ParsedProgram& parsed) {
  return static_cast<int64_t>(parsed.text.size()) + compile::static_bytes(parsed.derivation);
}

std::string encode(CompileRecord record) {
  ByteWriter writer;
  archive(writer, record);
  archive(writer, record.request.is_unfused);
  return std::string(kVersion) + writer.take();
}

CompileRecord decode_record(std::string_view bytes) {
  const bool is_first = bytes.starts_with(kVersion1);
  if (!is_first && !bytes.starts_with(kVersion)) throw_damaged("it is of another version");
  ByteReader reader(bytes.substr(kVersion.size()));
  CompileRecord record;
  archive(reader, record);
  if (!is_first) archive(reader, record.request.is_unfused);
  if (!reader.is_at_end()) throw_damaged("more follows");
  return record;
}

compile::LoweredRef compile_record(compile::Compiler& compiler, const CompileRecord& record) {
  struct Step {
    compile::Compiler& compiler;
    compile::ParsedRef program;
    void operator()(const compile::TraceStep& step) {
      program = compiler.trace(program, step.inputs, step.mesh ? std::optional(*step.mesh) : std::nullopt);
    }
    void operator()(const compile::StaticStep& step) { program = compiler.with_static(program, step.values); }
    void operator()(const compile::SpecialiseStep& step) { program = compiler.specialise(program, step.arguments); }
  };
  Step step{compiler, compiler.parse(record.format, record.text)};
  for (const compile::DerivationStep& done : record.derivation) std::visit(step, done);
  return compiler.lower(step.program, record.request);
}

}  // namespace meshd::warmup
