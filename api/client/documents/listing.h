// Lists of the API: all of their pages as one document, or as a table for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/client/text/json.h"
#include "api/client/transfer/connection.h"

namespace meshd::client {

/// The items of all pages of a list; `query` without limit and cursor.
Json all_items(Connection& connection, const std::string& path, Query query = {});
/// The document of a GET.
Json get_document(Connection& connection, const std::string& target);

/// A column of a table: its heading, and its text of an item.
struct Column {
  std::string_view heading;
  std::string (*text)(const Json& item);
  bool is_number = false;  ///< aligned on the right
};
/// Prints {"items": [...]} with --json, else a table. Without items the table is its headings, on a terminal alone.
void print_items(const CommonOptions& options, const Json& items, const std::vector<Column>& columns);
/// Prints a document with --json, else its fields, a line each.
void print_document(const CommonOptions& options, const Json& document);
/// The text of a field: a string as it is, other values as JSON; empty where there is none.
std::string field_text(const Json& item, const char* name);
/// "2026-11-25 18:00:55" of an RFC 3339 time of a field.
std::string time_text(const Json& item, const char* name);

}  // namespace meshd::client
