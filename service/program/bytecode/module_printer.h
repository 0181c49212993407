// Prints the ops of a bytecode file as a module in MLIR's generic form, one op a line, as they are read: no op is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/program/bytecode/ir_tables.h"
#include "service/program/bytecode/vhlo_ops.h"

namespace meshd::program {

/// What becomes of a module while it is printed.
struct PrintOptions {
  /// The number of the platform that the program runs on, among those that it was exported for: takes the place of
  /// @main's first argument where that is "_platform_index".
  std::optional<int64_t> platform_index;
};

/// One thread, one module.
class ModulePrinter {
 public:
  ModulePrinter(const BytecodeFile& file, IrTables& tables, MemoryUse& memory, TextWriter& out, PrintOptions options)
      : file_(file), tables_(tables), memory_(memory), out_(out), options_(options) {}

  /// Throws program_syntax with the place, unsupported_*.
  void print();

 private:
  /// A value of the scope: its type, and what it is called: argument or result number `number`, and which of the
  /// results of a pack (-1: the only one).
  struct Value {
    TypeIndex type = 0;
    int32_t number = -1;  ///< -1: not defined yet
    int32_t of_pack = -1;
    bool is_argument = false;
  };
  /// Values that the ops of a region can see: those of the regions around it, up to one that is isolated.
  struct Scope {
    std::vector<Value> values;
  };
  /// Values of one region, which have their places in the scope before they are defined.
  struct RegionValues {
    size_t next = 0;
    size_t end = 0;
  };
  struct Operation {
    std::string name;  ///< as it is printed
    NamedIndices inherent;
    NamedIndices discardable;
    std::vector<TypeIndex> results;
    std::vector<size_t> operands;
    bool is_vhlo = false;
    bool is_function = false;
    bool drops_argument = false;  ///< @main without its first argument
  };

  void op(ByteReader& reader, Scope& scope, RegionValues& values, int depth, bool in_function);
  void read_attributes(ByteReader& reader, Operation& out, const BytecodeOpName& name, uint8_t mask);
  void read_properties(ByteReader& reader, Operation& out, const BytecodeOpName& name);
  void region(ByteReader& reader, Scope& scope, int depth, const Operation& around);
  void block(ByteReader& reader, Scope& scope, RegionValues& values, int depth, const Operation& around);
  void skip_use_lists(ByteReader& reader, size_t values) const;
  void define(ByteReader& reader, Scope& scope, RegionValues& values, Value value);
  void print_value(const Value& value);
  void print_inherent(const Operation& op);
  void print_discardable(const Operation& op);
  void print_function_entry(std::string_view name, AttributeIndex value);
  [[nodiscard]] bool takes_platform(const Operation& function);
  void indent(int depth);

  const BytecodeFile& file_;
  IrTables& tables_;
  MemoryUse& memory_;
  TextWriter& out_;
  const PrintOptions options_;
  int32_t argument_count_ = 0;
  int32_t result_count_ = 0;
};

}  // namespace meshd::program
