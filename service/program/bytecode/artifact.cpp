#include "service/program/bytecode/artifact.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "service/program/bytecode/exported.h"
#include "service/program/bytecode/module_printer.h"

namespace meshd::program {
namespace {

/// A field of a protocol buffer whose value is text or a message, as its first bytes have it: key and length.
bool begins_with_field(std::string_view bytes, uint8_t number, std::string_view value) {
  constexpr uint8_t kLengthDelimited = 2;
  return bytes.size() > 2 + value.size() && static_cast<uint8_t>(bytes[0]) == (number << 3 | kLengthDelimited) &&
         static_cast<uint8_t>(bytes[1]) >= value.size() && bytes.substr(2).starts_with(value);
}

/// True for `text` among the first bytes.
bool has_early(std::string_view bytes, std::string_view text) {
  constexpr size_t kEarly = 4096;
  return bytes.substr(0, kEarly).find(text) != std::string_view::npos;
}

/// Files that are known by their first bytes, and what to send instead of them.
struct KnownFile {
  std::string_view what;
  std::string_view instead;
  bool (*is_one)(std::string_view bytes);
};
constexpr KnownFile kKnownFiles[] = {
    {"a TorchScript or PyTorch file (a zip archive)",
     "export the model with torch_xla.stablehlo.exported_program_to_stablehlo and send its bytecode",
     [](std::string_view bytes) { return bytes.starts_with("PK\x03\x04"); }},
    {"a SavedModel of TensorFlow",
     "take the module out of it: with jax2tf send jax.export's serialisation of the same function, else "
     "tf.mlir.experimental.convert_function and its StableHLO text",
     // saved_model_schema_version = 1, then meta_graphs
     [](std::string_view bytes) { return bytes.starts_with("\x08\x01\x12") && has_early(bytes, "\x12"); }},
    {"an ONNX model",
     "convert it to StableHLO, for example with onnx-mlir or through jax, and send its bytecode or text",
     // ir_version 1 to 15, then producer_name or an opset
     [](std::string_view bytes) {
       return bytes.size() > 4 && bytes[0] == '\x08' && bytes[1] >= 1 && bytes[1] <= 15 && bytes[2] == '\x12' &&
              (has_early(bytes, "onnx") || has_early(bytes, "pytorch"));
     }},
    {"an HLO module as a protocol buffer",
     "send StableHLO: jax.jit(f).lower(x).as_text(), or stablehlo.serialize_portable_artifact",
     // HloModuleProto: name, then entry_computation_name; HloProto has that in its field 1
     [](std::string_view bytes) {
       return begins_with_field(bytes, 1, "jit_") || begins_with_field(bytes, 1, "xla_") ||
              begins_with_field(bytes, 1, "main");
     }},
    {"a TensorFlow Lite model", "send the StableHLO that it was converted from",
     [](std::string_view bytes) { return bytes.size() > 8 && bytes.substr(4, 4) == "TFL3"; }},
    {"an HDF5 file", "send the program alone, as StableHLO; arrays travel by /v1/arrays",
     [](std::string_view bytes) { return bytes.starts_with("\x89HDF\r\n"); }},
    {"a gzip file", "unpack it, or send it with Content-Encoding: gzip",
     [](std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }},
    {"a Python pickle", "send what jax.export.export(f)(x).serialize() gives, without a pickle around it",
     [](std::string_view bytes) {
       return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5 && bytes.back() == '.';
     }},
};

/// No artifact is without control characters: counts, lengths and offsets have some early on.
bool is_text(std::string_view bytes) {
  constexpr size_t kLooked = 1024;
  const std::string_view looked = bytes.substr(0, kLooked);
  return !looked.empty() && std::none_of(looked.begin(), looked.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f';
  });
}

}  // namespace

ArtifactProgram read_artifact(std::string_view bytes, core::MemoryReservation* memory) {
  BytecodeOptions options;
  options.memory = memory;
  if (is_bytecode(bytes)) return {text_of_bytecode(bytes, options), {}, {}};
  if (std::optional<Exported> exported = read_exported(bytes, memory)) {
    options.platform_index = exported->platform_index;
    return {text_of_bytecode(exported->module, options), std::move(exported->in_tree), std::move(exported->out_tree)};
  }
  for (const KnownFile& known : kKnownFiles) {
    if (!known.is_one(bytes)) continue;
    throw core::Error("unsupported_format",
                      fmt::format("the bytes are {}, which is not read here: {}", known.what, known.instead));
  }
  if (is_text(bytes)) return {std::string(bytes), {}, {}};
  throw core::Error("program_syntax",
                    "the bytes are no artifact: neither MLIR bytecode, which begins with 'ML\xefR', nor what "
                    "jax.export.Exported.serialize() gives");
}

bool is_bytecode(std::string_view bytes) { return bytes.starts_with(kBytecodeMagic); }

std::string text_of_bytecode(std::string_view bytes, const BytecodeOptions& options) {
  MemoryUse text_memory(options.memory);
  TextWriter out(options.limit_bytes, text_memory);
  {
    MemoryUse memory(options.memory);
    const BytecodeFile file(bytes, memory);
    IrTables tables(file, memory);
    ModulePrinter(file, tables, memory, out, {options.platform_index}).print();
  }
  text_memory.keep();
  return std::move(out).take();
}

}  // namespace meshd::program
