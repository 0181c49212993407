#include "api/client/documents/listing.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "api/client/transfer/download.h"

namespace meshd::client {
namespace {

constexpr const char* kPage = "1000";

/// Letters of UTF-8, each taken for one column of the terminal.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

Json get_document(Connection& connection, const std::string& target) {
  return Json::parse(connection.send({.target = target}).body);
}

Json all_items(Connection& connection, const std::string& path, Query query) {
  Json items = Json::array();
  query.add("limit", kPage);
  for (std::string cursor;;) {
    Query page = query;
    page.add_given("cursor", cursor);
    Json list = get_document(connection, path + page.text());
    for (Json& item : list.at("items")) items.push_back(std::move(item));
    const Json next = list.value("next", Json());
    if (!next.is_string()) return items;
    cursor = next.get<std::string>();
  }
}

void print_items(const CommonOptions& options, const Json& items, const std::vector<Column>& columns) {
  if (options.is_json) {
    print(Json{{"items", items}}.dump() + "\n");
    return;
  }
  if (items.empty() && ::isatty(STDOUT_FILENO) == 0) return;
  std::vector<std::vector<std::string>> rows(1);
  for (const Column& column : columns) rows[0].emplace_back(column.heading);
  for (const Json& item : items) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const Column& column : columns) row.push_back(column.text(item));
  }
  std::vector<size_t> widths(columns.size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width_of(row[i]), ' ');
      line += (i > 0 ? "  " : "") + (columns[i].is_number ? pad + row[i] : row[i] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  print(out);
}

void print_document(const CommonOptions& options, const Json& shown) {
  if (options.is_json) {
    print(shown.dump() + "\n");
    return;
  }
  std::string out;
  for (const auto& [name, value] : shown.items()) {
    out += fmt::format("{}: {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  print(out);
}

std::string field_text(const Json& item, const char* name) {
  const auto found = item.find(name);
  if (found == item.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::string time_text(const Json& item, const char* name) {
  constexpr size_t kToSeconds = 19;
  std::string text = field_text(item, name).substr(0, kToSeconds);
  std::replace(text.begin(), text.end(), 'T', ' ');
  return text;
}

}  // namespace meshd::client
