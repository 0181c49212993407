#include "service/program/bytecode/artifact.h"

#include "service/program/bytecode/module_printer.h"

namespace meshd::program {

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
