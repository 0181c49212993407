// Prints Shardy's attributes as text. They are within each other without their `#sdy.` there, so that what is within
// depends on where it is.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "service/program/bytecode/ir_tables.h"
#include "service/program/bytecode/sdy_encoding.h"

namespace meshd::program {

/// One thread.
class ShardingPrinter {
 public:
  ShardingPrinter(IrTables& tables, TextWriter& out) : tables_(tables), out_(out) {}

  /// #sdy.sharding<@mesh, [{"x"}, {?}]> and all others that are alone.
  void print(const AttributeNode& node);

 private:
  void sharding(const AttributeNode& node);
  void mesh(const AttributeNode& node);
  void axis(const AttributeNode& node);
  void dim(const AttributeNode& node);
  void rule(const AttributeNode& node);
  void all_to_all(const AttributeNode& node);
  void factors(const AttributeNode& node);
  void factor_list(std::string_view name, std::span<const int64_t> list);
  /// "quoted"
  void name(std::string_view text);
  /// The child of that number, which has this code. Throws program_syntax.
  const AttributeNode& child(const AttributeNode& node, size_t number, SdyCode code);
  /// Children of one code from number `first`, between brackets and commas.
  void list(const AttributeNode& node, size_t first, size_t count, std::string_view brackets, SdyCode code,
            void (ShardingPrinter::*item)(const AttributeNode&));
  void axes(const AttributeNode& node, size_t first, size_t count);

  IrTables& tables_;
  TextWriter& out_;
};

}  // namespace meshd::program
