// Encoding of enumerators and lists in columns, and paging of lists of rows. Inside storage only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/core/error.h"
#include "storage/database/connection.h"
#include "storage/rows/reader.h"
#include "storage/rows/rows.h"

namespace meshd::storage {

// In the order of the enumerators.
inline constexpr std::array<std::string_view, 4> kArrayStates = {"pending", "ready", "donated", "lost"};
inline constexpr std::array<std::string_view, 2> kDurabilities = {"durable", "memory"};
inline constexpr std::array<std::string_view, 3> kSessionStates = {"open", "halted", "closed"};
inline constexpr std::array<std::string_view, 2> kOnErrors = {"continue", "halt"};
inline constexpr std::array<std::string_view, 2> kEffectModes = {"atomic", "streaming"};
inline constexpr std::array<std::string_view, 2> kWebhookStates = {"active", "disabled"};
inline constexpr std::array<std::string_view, 5> kJobStates = {"queued", "running", "done", "failed", "cancelled"};

/// The enumerator of a word in one of the tables above; nothing for others.
template <typename Enum, size_t kCount>
std::optional<Enum> find_word(const std::array<std::string_view, kCount>& words, std::string_view word) {
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i] == word) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// The same of a column, whose CHECK leaves no other word.
template <typename Enum, size_t kCount>
Enum from_word(const std::array<std::string_view, kCount>& words, std::string_view word) {
  if (const auto found = find_word<Enum>(words, word)) return *found;
  throw core::Error("storage_failed", "the database is damaged")
      .with_internal("unknown word in a column: " + std::string(word));
}

/// The same, for Statement::read().
template <typename Enum, size_t kCount>
auto in_words(const std::array<std::string_view, kCount>& words, Enum& value) {
  return [&words, &value](const Statement& row, int column) { value = from_word<Enum>(words, row.view(column)); };
}

/// "('queued', 'running')": the states from which jobs may get to this one, as a list of SQL.
std::string states_before(JobState to);

/// The blob that three columns name.
inline BlobRef blob_at(const Statement& row, int column) {
  return {row.text(column), row.integer(column + 1), static_cast<uint64_t>(row.integer(column + 2))};
}

/// Throws invalid_query for a limit outside of 1..kMaxPageSize.
void check_limit(int64_t limit);

/// Whether the row that a statement is at ends a list of so many rows before it.
inline bool is_refused(const Statement& statement, const AdmitRow& admit, size_t rows_before) {
  return admit && !admit(statement.size_bytes()) && rows_before > 0;
}

/// The rows of a statement, up to one that is not admitted.
template <typename Row, typename ReadRow>
std::vector<Row> collect_rows(Statement& statement, const AdmitRow& admit, ReadRow read_row) {
  std::vector<Row> rows;
  while (statement.step() && !is_refused(statement, admit, rows.size())) rows.push_back(read_row(statement));
  return rows;
}

/// Steps a statement that selects limit + 1 rows: the extra one, or one that is not admitted, shows that there is a
/// next page, whose cursor is made from the last row returned.
template <typename Row, typename ReadRow, typename MakeCursor>
Page<Row> collect_page(Statement& statement, const PageRequest& request, ReadRow read_row, MakeCursor make_cursor) {
  Page<Row> page;
  while (statement.step()) {
    if (static_cast<int64_t>(page.items.size()) == request.limit ||
        is_refused(statement, request.admit, page.items.size())) {
      page.next = make_cursor(page.items.back());
      break;
    }
    page.items.push_back(read_row(statement));
  }
  return page;
}

}  // namespace meshd::storage
