// Jobs and idempotency records.
#include <fmt/core.h>

#include <array>
#include <charconv>
#include <limits>

#include "service/core/ids.h"
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

JobRow read_job(const Statement& row) {
  JobRow job;
  const auto result_arrays = [&](const Statement& from, int column) {
    job.result_arrays = core::split_ids(from.text(column));
  };
  row.read(job.id, job.session, job.principal, job.program, job.number, in_words(kJobStates, job.state), job.attempt,
           job.error_code, job.error_detail, job.created, job.started, job.finished, job.deadline, job.request,
           job.answer, result_arrays, job.request_version);
  if (!row.is_null(17)) job.bytes = blob_at(row, 17);
  if (!row.is_null(20)) job.environment = row.integer(20);
  return job;
}

FinishedJob read_finished_job(const Statement& row) { return {row.text(0), row.time(1), row.integer(2)}; }

int64_t read_number(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  throw core::Error("invalid_query", "cursor is not one that this list gave");
}

// Deletes the oldest keys, ?2 at most, but for those of jobs that are not over. Callers keep the text for good.
std::string drop_keys(const std::string& which) {
  return "DELETE FROM idempotency WHERE rowid IN (SELECT k.rowid FROM idempotency k WHERE " + which +
         " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.principal = k.principal AND j.id = k.made "
         "AND j.state IN ('queued', 'running')) ORDER BY k.created LIMIT ?2)";
}

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// What a list of jobs is found by. Each kind has an index in its order, so that a page costs its rows, however many
// jobs there are. A second filter (a state with a program, a program with a session) is tested row by row.
enum class ListedBy : uint8_t { kTime, kState, kProgram, kSession, kSessionState };

// ?1 principal or session, ?2 time or number, ?3 id or principal, ?4 program, ?5 limit, ?6 state.
const char* listed_jobs(ListedBy by) {
  static const auto select = [](const std::string& condition) {
    return "SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created, "
           "started, finished, deadline, '', '', result_arrays, 0, NULL, 0, 0, NULL FROM jobs WHERE " +
           condition + " LIMIT ?5";
  };
  static const std::string of_principal =
      "principal = ?1 AND (created, id) < (?2, ?3) AND (session IS NULL OR session NOT IN deleted_sessions) ";
  static const std::string of_session =
      "session = ?1 AND number < ?2 AND principal = ?3 AND (?4 = '' OR program = ?4) AND session NOT IN "
      "deleted_sessions ";
  static const std::string by_time = " ORDER BY created DESC, id DESC";
  static const std::array<std::string, 5> statements = {
      select(of_principal + "AND ?4 = '' AND ?6 = ''" + by_time),
      select(of_principal + "AND ?4 = '' AND state = ?6" + by_time),
      select(of_principal + "AND program = ?4 AND (?6 = '' OR state = ?6)" + by_time),
      select(of_session + "AND ?6 = '' ORDER BY number DESC"),
      select(of_session + "AND state = ?6 ORDER BY number DESC"),
  };
  return statements[static_cast<size_t>(by)].c_str();
}

constexpr size_t kStateCount = kJobStates.size();

// One statement for each state that jobs get to. Kept for good: their addresses name them.
const char* job_update(JobState to) {
  static const auto statements = [] {
    std::array<std::string, kStateCount> out;
    for (size_t i = 0; i < kStateCount; ++i) {
      out[i] =
          "UPDATE jobs SET state = ?2, attempt = ?3, error_code = ?4, error_detail = ?5, started = ?6, finished = ?7, "
          "deadline = ?8, answer = ?9, request = iif(?11, x'', request), blob = iif(?11, NULL, blob), "
          "environment = ?12 WHERE id = ?1 AND principal = ?10 AND state IN " +
          states_before(static_cast<JobState>(i));
    }
    return out;
  }();
  return statements[static_cast<size_t>(to)].c_str();
}

std::string state_word(const std::optional<JobState>& state) {
  return state ? std::string(to_string(*state)) : std::string();
}

}  // namespace

std::optional<JobRow> Reader::job(std::string_view id, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created, started, "
      "finished, deadline, request, answer, result_arrays, request_version, blob, blob_length, blob_checksum, "
      "environment FROM jobs WHERE principal = ?1 AND id = ?2 "
      "AND (session IS NULL OR session NOT IN deleted_sessions)");
  if (!row.bind(principal, id).step()) return std::nullopt;
  return read_job(row);
}

std::optional<JobRow> Reader::job_head(std::string_view id, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created, started, "
      "finished, deadline, '', '', result_arrays, 0, NULL, 0, 0, NULL FROM jobs WHERE principal = ?1 AND id = ?2 "
      "AND (session IS NULL OR session NOT IN deleted_sessions)");
  if (!row.bind(principal, id).step()) return std::nullopt;
  return read_job(row);
}

std::optional<JobRow> Reader::job_of_session(std::string_view session, std::string_view id) {
  const std::optional<SessionRow> row = this->session(session);
  return row ? job(id, row->principal) : std::nullopt;
}

std::optional<JobRow> Reader::next_job_of_session(std::string_view session, int64_t after_number) {
  Statement row = connection_->statement(
      "SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created, started, "
      "finished, deadline, '', '', result_arrays, 0, NULL, 0, 0, NULL FROM jobs "
      "WHERE session = ?1 AND number > ?2 AND session NOT IN deleted_sessions ORDER BY number LIMIT 1");
  if (!row.bind(session, after_number).step()) return std::nullopt;
  return read_job(row);
}

Page<JobRow> Reader::jobs(std::string_view principal, const JobFilter& filter, const PageRequest& page) {
  check_limit(page.limit);
  const std::string state = state_word(filter.state);
  if (!filter.session.empty()) {
    const int64_t before = page.cursor.empty() ? kEnd : read_number(page.cursor);
    Statement rows = connection_->statement(listed_jobs(state.empty() ? ListedBy::kSession : ListedBy::kSessionState));
    rows.bind(filter.session, before, principal, filter.program, page.limit + 1, state);
    return collect_page<JobRow>(rows, page, read_job, [](const JobRow& row) { return std::to_string(row.number); });
  }
  // The cursor is "time/id".
  int64_t time = kEnd;
  std::string_view id;
  if (!page.cursor.empty()) {
    const size_t slash = page.cursor.find('/');
    time = read_number(std::string_view(page.cursor).substr(0, slash));
    if (slash != std::string::npos) id = std::string_view(page.cursor).substr(slash + 1);
  }
  Statement rows = connection_->statement(listed_jobs(!filter.program.empty() ? ListedBy::kProgram
                                                      : state.empty()         ? ListedBy::kTime
                                                                              : ListedBy::kState));
  rows.bind(principal, time, id, filter.program, page.limit + 1, state);
  return collect_page<JobRow>(rows, page, read_job, [](const JobRow& row) {
    return fmt::format("{}/{}", row.created.time_since_epoch().count(), row.id);
  });
}

Page<JobRow> Reader::queued_jobs(const PageRequest& page) {
  check_limit(page.limit);
  // The cursor is "session/number/id/principal"; without session the first part is empty, which sorts first.
  std::string_view session = page.cursor;
  std::string_view id;
  std::string_view principal;
  int64_t number = -1;
  if (!page.cursor.empty()) {
    const size_t first = page.cursor.find('/');
    const size_t second = first == std::string::npos ? first : page.cursor.find('/', first + 1);
    const size_t third = second == std::string::npos ? second : page.cursor.find('/', second + 1);
    if (third == std::string::npos) throw core::Error("invalid_query", "cursor is not one that this list gave");
    session = session.substr(0, first);
    number = read_number(std::string_view(page.cursor).substr(first + 1, second - first - 1));
    id = std::string_view(page.cursor).substr(second + 1, third - second - 1);
    principal = std::string_view(page.cursor).substr(third + 1);
  }
  Statement rows = connection_->statement(
      "SELECT id, session, principal, program, number, state, attempt, error_code, error_detail, created, started, "
      "finished, deadline, '', '', result_arrays, 0, NULL, 0, 0, NULL FROM jobs WHERE state = 'queued' "
      "AND (session IS NULL OR session NOT IN deleted_sessions) "
      "AND (coalesce(session, ''), number, id, principal) > (?1, ?2, ?3, ?4) "
      "ORDER BY coalesce(session, ''), number, id, principal LIMIT ?5");
  rows.bind(session, number, id, principal, page.limit + 1);
  return collect_page<JobRow>(rows, page, read_job, [](const JobRow& row) {
    return fmt::format("{}/{}/{}/{}", row.session, row.number, row.id, row.principal);
  });
}

void Transaction::insert_job(const JobRow& row) {
  {
    // Ids of jobs of deleted sessions are free, whether their rows have gone or not.
    Statement hidden =
        connection_->statement("SELECT 1 FROM jobs WHERE principal = ?1 AND id = ?2 AND session IN deleted_sessions");
    if (hidden.bind(row.principal, row.id).step()) delete_job(row.id, row.principal);
  }
  const BlobRef bytes = row.bytes.value_or(BlobRef());
  connection_
      ->statement(
          "INSERT INTO jobs(id, session, principal, program, number, state, attempt, error_code, error_detail, "
          "created, started, finished, deadline, request, answer, result_arrays, request_version, blob, blob_length, "
          "blob_checksum, environment) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, "
          "?17, ?18, ?19, ?20, ?21)")
      .bind(row.id, OrNull{row.session}, row.principal, OrNull{row.program}, row.number, to_string(row.state),
            row.attempt, row.error_code, row.error_detail, row.created, row.started, row.finished, row.deadline,
            Bytes{row.request}, Bytes{row.answer}, core::join_ids(row.result_arrays), row.request_version,
            OrNull{bytes.name}, bytes.length, static_cast<int64_t>(bytes.checksum), row.environment)
      .run();
}

int64_t Transaction::environment_id(std::string_view text) {
  connection_->statement("INSERT OR IGNORE INTO environments(text) VALUES(?1)").bind(text).run();
  Statement row = connection_->statement("SELECT id FROM environments WHERE text = ?1");
  return row.bind(text).step() ? row.integer(0) : 0;
}

std::string Reader::environment(int64_t id) {
  Statement row = connection_->statement("SELECT text FROM environments WHERE id = ?1");
  return row.bind(id).step() ? row.text(0) : std::string();
}

bool Transaction::update_job(const JobRow& row) {
  connection_->statement(job_update(row.state))
      .bind(row.id, to_string(row.state), row.attempt, row.error_code, row.error_detail, row.started, row.finished,
            row.deadline, Bytes{row.answer}, row.principal, is_over(row.state), row.environment)
      .run();
  if (connection_->changes() == 0) {
    Statement known = connection_->statement("SELECT 1 FROM jobs WHERE principal = ?1 AND id = ?2");
    if (known.bind(row.principal, row.id).step()) return false;
    throw core::Error("not_found", "there is no job '" + row.id + "'");
  }
  if (row.bytes && is_over(row.state)) dropped_blobs_.push_back(row.bytes->name);
  if (!row.program.empty() && is_over(row.state)) collect_program(row.program);
  return true;
}

void Transaction::request_cancel(std::string_view id, std::string_view principal) {
  connection_->statement("UPDATE jobs SET cancel_requested = 1 WHERE principal = ?1 AND id = ?2")
      .bind(principal, id)
      .run();
}

bool Reader::is_cancel_requested(std::string_view id, std::string_view principal) {
  Statement row =
      connection_->statement("SELECT 1 FROM jobs WHERE principal = ?1 AND id = ?2 AND cancel_requested != 0");
  return row.bind(principal, id).step();
}

bool Transaction::delete_job(std::string_view id, std::string_view principal) {
  std::string session;
  std::string program;
  {
    Statement row = connection_->statement("SELECT session, program, blob FROM jobs WHERE principal = ?1 AND id = ?2");
    if (!row.bind(principal, id).step()) return false;
    session = row.text(0);
    program = row.text(1);
    if (!row.is_null(2)) dropped_blobs_.push_back(row.text(2));
  }
  release_arrays(id, principal);
  connection_->statement("DELETE FROM callbacks WHERE job = ?1 AND session = ?2").bind(id, session).run();
  connection_->statement("DELETE FROM jobs WHERE id = ?1 AND principal = ?2").bind(id, principal).run();
  if (!program.empty()) collect_program(program);
  return true;
}

std::optional<JobState> Reader::job_state(std::string_view id, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT state FROM jobs WHERE principal = ?1 AND id = ?2 "
      "AND (session IS NULL OR session NOT IN deleted_sessions)");
  if (!row.bind(principal, id).step()) return std::nullopt;
  return from_word<JobState>(kJobStates, row.view(0));
}

int64_t Reader::job_bytes(std::string_view id, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT ifnull(length(request), 0) + ifnull(length(answer), 0) FROM jobs WHERE principal = ?1 AND id = ?2");
  return row.bind(principal, id).step() ? row.integer(0) : 0;
}

std::optional<std::string> Reader::next_with_finished_jobs(std::optional<std::string_view> after) {
  // The first principal may be "", whose jobs nobody's token names.
  Statement row = connection_->statement(
      "SELECT min(principal) FROM jobs WHERE finished IS NOT NULL AND (?1 = 0 OR principal > ?2)");
  if (!row.bind(static_cast<int64_t>(after.has_value()), after.value_or("")).step() || row.is_null(0))
    return std::nullopt;
  return row.text(0);
}

std::optional<FinishedJob> Reader::finished_job(std::string_view principal, int64_t newer) {
  Statement row = connection_->statement(
      "SELECT id, finished, length(answer) FROM jobs WHERE principal = ?1 AND finished IS NOT NULL "
      "ORDER BY finished DESC, id DESC LIMIT 1 OFFSET ?2");
  if (!row.bind(principal, newer).step()) return std::nullopt;
  return read_finished_job(row);
}

std::optional<FinishedJob> Reader::finished_job_behind(std::string_view principal, int64_t answer_bytes) {
  Statement row = connection_->statement(
      // The innermost LIMIT keeps it a query of its own: else the window holds the answers, of which all are read.
      "SELECT id, finished, bytes FROM (SELECT id, finished, bytes, sum(bytes) OVER "
      "(ORDER BY finished DESC, id DESC ROWS UNBOUNDED PRECEDING) AS so_far FROM "
      "(SELECT id, finished, length(answer) AS bytes FROM jobs WHERE principal = ?1 AND finished IS NOT NULL LIMIT "
      "-1)) "
      "WHERE so_far - bytes >= ?2 ORDER BY finished DESC, id DESC LIMIT 1");
  if (!row.bind(principal, answer_bytes).step()) return std::nullopt;
  return read_finished_job(row);
}

std::vector<FinishedJob> Reader::finished_jobs(std::string_view principal, const FinishedJob& after,
                                               const FinishedJob& last, int64_t limit) {
  Statement rows = connection_->statement(
      "SELECT id, finished, length(answer) FROM jobs WHERE principal = ?1 AND finished IS NOT NULL "
      "AND (finished, id) > (?2, ?3) AND (finished, id) <= (?4, ?5) AND NOT EXISTS "
      "(SELECT 1 FROM idempotency WHERE idempotency.made = jobs.id AND idempotency.principal = jobs.principal) "
      "ORDER BY finished, id LIMIT ?6");
  rows.bind(principal, after.finished, after.id, last.finished, last.id, limit);
  std::vector<FinishedJob> found;
  while (rows.step()) found.push_back(read_finished_job(rows));
  return found;
}

std::optional<IdempotencyRow> Reader::idempotency(std::string_view principal, std::string_view route,
                                                  std::string_view key) {
  Statement row = connection_->statement(
      "SELECT fingerprint, made, created FROM idempotency "
      "WHERE principal = ?1 AND route = ?2 AND key = ?3");
  if (!row.bind(principal, route, key).step()) return std::nullopt;
  return IdempotencyRow{
      std::string(principal), std::string(route), std::string(key), row.text(0), row.text(1), row.time(2)};
}

bool Transaction::insert_idempotency(const IdempotencyRow& row) {
  connection_
      ->statement(
          "INSERT INTO idempotency(principal, route, key, fingerprint, made, created) VALUES(?1, ?2, ?3, ?4, ?5, ?6) "
          "ON CONFLICT DO NOTHING")
      .bind(row.principal, row.route, row.key, row.fingerprint, row.made, row.created)
      .run();
  return connection_->changes() == 1;
}

void Transaction::claim_key(const std::optional<IdempotencyRow>& row) {
  if (row && !insert_idempotency(*row))
    throw core::Error("idempotency_in_progress", "another request with this Idempotency-Key came first");
}

std::optional<core::WallTime> Reader::aged_until() {
  Statement row = connection_->statement("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'aged_until'");
  if (!row.bind().step()) return std::nullopt;
  return row.time(0);
}

void Transaction::set_aged_until(core::WallTime time) {
  connection_->statement("INSERT OR REPLACE INTO meta(key, value) VALUES('aged_until', CAST(?1 AS TEXT))")
      .bind(time)
      .run();
}

std::optional<MachineRatesRow> Reader::machine_rates() {
  Statement row = connection_->statement(
      "SELECT machine.value, CAST(bytes.value AS INTEGER), CAST(operations.value AS INTEGER) FROM meta AS machine "
      "JOIN meta AS bytes ON bytes.key = 'machine_bytes' "
      "JOIN meta AS operations ON operations.key = 'machine_operations' WHERE machine.key = 'machine'");
  if (!row.bind().step()) return std::nullopt;
  return MachineRatesRow{row.text(0), row.integer(1), row.integer(2)};
}

void Transaction::set_machine_rates(const MachineRatesRow& row) {
  connection_
      ->statement(
          "INSERT OR REPLACE INTO meta(key, value) VALUES('machine', ?1), ('machine_bytes', CAST(?2 AS TEXT)), "
          "('machine_operations', CAST(?3 AS TEXT))")
      .bind(row.machine, row.bytes, row.operations)
      .run();
}

int64_t Transaction::expire_idempotency(core::WallTime time, int64_t limit) {
  static const std::string sql = drop_keys("k.created < ?1");
  connection_->statement(sql.c_str()).bind(time, limit).run();
  return connection_->changes();
}

std::vector<KeyCount> Reader::principals_with_more_keys(int64_t count) {
  Statement rows = connection_->statement(
      "SELECT principal, count(*) FROM idempotency GROUP BY principal HAVING count(*) > ?1 ORDER BY principal");
  rows.bind(count);
  std::vector<KeyCount> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1)});
  return out;
}

int64_t Transaction::drop_oldest_keys(std::string_view principal, int64_t limit) {
  static const std::string sql = drop_keys("k.principal = ?1");
  connection_->statement(sql.c_str()).bind(principal, limit).run();
  return connection_->changes();
}

}  // namespace meshd::storage
