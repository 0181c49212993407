// Sessions and their callback requests.
#include <fmt/core.h>

#include <utility>

#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

SessionRow read_session(const Statement& row) {
  SessionRow session;
  row.read(session.id, session.principal, session.name, in_words(kSessionStates, session.state),
           in_words(kOnErrors, session.on_error), session.created, session.closed, session.next_job_number,
           session.last_sequence, session.document, session.halted_by, in_words(kEffectModes, session.effects));
  return session;
}

CallbackRow read_callback(const Statement& row) {
  CallbackRow callback;
  row.read(callback.session, callback.number, callback.job, callback.call, callback.request, callback.answer,
           callback.created);
  return callback;
}

/// What is left of a transaction that removes rows: others wait for it, and it is in memory until it commits.
struct RemovalRoom {
  int64_t rows = 500;
  int64_t bytes = 1 << 20;

  [[nodiscard]] bool is_left() const { return rows > 0 && bytes > 0; }
  void take(int64_t row_bytes) {
    --rows;
    bytes -= row_bytes;
  }
};

/// Rows of a session that have a number: how to find key and bytes of some, and how to remove one by its key.
constexpr std::pair<const char*, const char*> kRowsOfSession[] = {
    {"SELECT number, length(request) + coalesce(length(answer), 0) FROM callbacks WHERE session = ?1 LIMIT ?2",
     "DELETE FROM callbacks WHERE session = ?1 AND number = ?2"},
    {"SELECT sequence, length(data) FROM effects WHERE session = ?1 LIMIT ?2",
     "DELETE FROM effects WHERE session = ?1 AND sequence = ?2"},
    {"SELECT rowid, length(content) FROM infeed_entries WHERE session = ?1 LIMIT ?2",
     "DELETE FROM infeed_entries WHERE session = ?1 AND rowid = ?2"},
};

core::Error no_session(std::string_view id) { return {"not_found", "there is no session '" + std::string(id) + "'"}; }

}  // namespace

std::optional<SessionRow> Reader::session(std::string_view id) {
  Statement row = connection_->statement(
      "SELECT id, principal, name, state, on_error, created, closed, next_job_number, last_sequence, document, "
      "halted_by, effects FROM sessions WHERE id = ?1 AND id NOT IN deleted_sessions");
  if (!row.bind(id).step()) return std::nullopt;
  return read_session(row);
}

std::optional<SessionRow> Reader::session(std::string_view id, std::string_view principal) {
  std::optional<SessionRow> found = session(id);
  if (found && found->principal != principal) return std::nullopt;
  return found;
}

Page<SessionRow> Reader::sessions(std::string_view principal, const PageRequest& page) {
  check_limit(page.limit);
  Statement rows = connection_->statement(
      "SELECT id, principal, name, state, on_error, created, closed, next_job_number, last_sequence, document, "
      "halted_by, effects FROM sessions WHERE principal = ?1 AND id > ?2 AND id NOT IN deleted_sessions ORDER BY id "
      "LIMIT ?3");
  rows.bind(principal, page.cursor, page.limit + 1);
  return collect_page<SessionRow>(rows, page, read_session, [](const SessionRow& row) { return row.id; });
}

std::optional<CallbackRow> Reader::callback(std::string_view session, int64_t number, const AdmitRow& admit) {
  Statement row = connection_->statement(
      "SELECT session, number, job, call, request, answer, created FROM callbacks "
      "WHERE session = ?1 AND number = ?2 AND session NOT IN deleted_sessions");
  if (!row.bind(session, number).step() || is_refused(row, admit, 0)) return std::nullopt;
  return read_callback(row);
}

std::vector<CallbackRow> Reader::callbacks_of_job(std::string_view job) {
  Statement rows = connection_->statement(
      "SELECT session, number, job, call, request, answer, created FROM callbacks WHERE job = ?1 ORDER BY call");
  return collect_rows<CallbackRow>(rows.bind(job), {}, read_callback);
}

std::vector<CallbackRow> Reader::open_callbacks(std::string_view session, int64_t after, int64_t limit,
                                                const AdmitRow& admit) {
  check_limit(limit);
  Statement rows = connection_->statement(
      "SELECT session, number, job, call, request, answer, created FROM callbacks "
      "WHERE session = ?1 AND number > ?2 AND session NOT IN deleted_sessions AND answer IS NULL AND NOT EXISTS "
      "(SELECT 1 FROM jobs WHERE jobs.id = callbacks.job "
      "AND jobs.session = callbacks.session AND jobs.state IN ('done', 'failed', 'cancelled')) ORDER BY number LIMIT "
      "?3");
  return collect_rows<CallbackRow>(rows.bind(session, after, limit), admit, read_callback);
}

void Transaction::insert_session(const SessionRow& row) {
  connection_
      ->statement(
          "INSERT INTO sessions(id, principal, name, state, on_error, created, closed, next_job_number, last_sequence, "
          "document, effects) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")
      .bind(row.id, row.principal, row.name, to_string(row.state), to_string(row.on_error), row.created, row.closed,
            row.next_job_number, row.last_sequence, row.document, to_string(row.effects))
      .run();
}

void Transaction::close_session(std::string_view id, core::WallTime time) {
  connection_
      ->statement("UPDATE sessions SET state = 'closed', closed = ?2 WHERE id = ?1 AND id NOT IN deleted_sessions")
      .bind(id, time)
      .run();
  if (connection_->changes() == 0) throw no_session(id);
}

void Transaction::set_session_document(std::string_view id, std::string_view document) {
  connection_->statement("UPDATE sessions SET document = ?2 WHERE id = ?1 AND id NOT IN deleted_sessions")
      .bind(id, document)
      .run();
  if (connection_->changes() == 0) throw no_session(id);
}

bool Transaction::halt_session(std::string_view id, int64_t job_number) {
  connection_
      ->statement(
          "UPDATE sessions SET state = 'halted', halted_by = min(?2, coalesce(halted_by, ?2)) "
          "WHERE id = ?1 AND on_error = 'halt' AND state != 'closed'")
      .bind(id, job_number)
      .run();
  return connection_->changes() == 1;
}

bool Transaction::is_halted_before(std::string_view id, int64_t job_number) {
  Statement row = connection_->statement("SELECT 1 FROM sessions WHERE id = ?1 AND halted_by < ?2");
  return row.bind(id, job_number).step();
}

void Transaction::resume_session(std::string_view id) {
  const std::optional<SessionRow> row = session(id);
  if (!row) throw no_session(id);
  if (row->state == SessionState::kClosed)
    throw core::Error("session_closed", "session '" + row->id + "' is closed and does not go on");
  connection_->statement("UPDATE sessions SET state = 'open', halted_by = NULL WHERE id = ?1").bind(id).run();
}

bool Transaction::delete_session(std::string_view id) {
  connection_->statement("INSERT OR IGNORE INTO deleted_sessions SELECT id FROM sessions WHERE id = ?1").bind(id).run();
  if (connection_->changes() == 0) return false;
  connection_->statement("DELETE FROM webhooks WHERE session = ?1").bind(id).run();
  remove_rows_of(id);
  return true;
}

bool Reader::has_deleted_sessions() {
  return connection_->statement("SELECT 1 FROM deleted_sessions LIMIT 1").bind().step();
}

void Transaction::remove_deleted_sessions() {
  std::string id;
  {
    Statement next = connection_->statement("SELECT id FROM deleted_sessions LIMIT 1");
    if (!next.bind().step()) return;
    id = next.text(0);
  }
  remove_rows_of(id);
}

void Transaction::remove_rows_of(std::string_view session) {
  RemovalRoom room;
  for (const auto& [find, remove] : kRowsOfSession) {
    std::vector<int64_t> keys;
    {
      Statement rows = connection_->statement(find);
      rows.bind(session, room.rows);
      while (room.is_left() && rows.step()) {
        keys.push_back(rows.integer(0));
        room.take(rows.integer(1));
      }
    }
    Statement row = connection_->statement(remove);
    for (const int64_t key : keys) row.bind(session, key).run();
    if (!room.is_left()) return;
  }
  connection_
      ->statement(
          "DELETE FROM infeed_queues WHERE session = ?1 AND queue IN "
          "(SELECT queue FROM infeed_queues WHERE session = ?1 LIMIT ?2)")
      .bind(session, room.rows)
      .run();
  room.rows -= connection_->changes();
  std::vector<std::pair<std::string, std::string>> jobs;
  {
    Statement rows = connection_->statement(
        "SELECT id, principal, length(request) + length(answer) FROM jobs WHERE session = ?1 LIMIT ?2");
    rows.bind(session, room.rows);
    while (room.is_left() && rows.step()) {
      jobs.emplace_back(rows.text(0), rows.text(1));
      room.take(rows.integer(2));
    }
  }
  for (const auto& [id, principal] : jobs) delete_job(id, principal);
  if (!room.is_left()) return;
  for (const char* sql : {"DELETE FROM sessions WHERE id = ?1", "DELETE FROM deleted_sessions WHERE id = ?1"})
    connection_->statement(sql).bind(session).run();
}

int64_t Transaction::next_job_number(std::string_view session) {
  const std::optional<SessionRow> row = this->session(session);
  if (!row) throw no_session(session);
  if (row->state == SessionState::kClosed) {
    throw core::Error("session_closed", "session '" + row->id + "' is closed and takes no jobs");
  }
  connection_->statement("UPDATE sessions SET next_job_number = next_job_number + 1 WHERE id = ?1").bind(session).run();
  return row->next_job_number;
}

CallbackRow Transaction::insert_callback(const CallbackRow& row) {
  Statement before = connection_->statement(
      "SELECT session, number, job, call, request, answer, created FROM callbacks "
      "WHERE session = ?1 AND job = ?2 AND call = ?3");
  if (before.bind(row.session, row.job, row.call).step()) {
    CallbackRow found = read_callback(before);
    if (found.request == row.request) return found;
    throw core::Error(
        "nondeterministic_job",
        fmt::format("call {} of job '{}' makes another callback request than in the run before", row.call, row.job));
  }
  CallbackRow stored = row;
  {
    Statement last = connection_->statement(
        "UPDATE sessions SET last_callback = last_callback + 1 WHERE id = ?1 AND id NOT IN deleted_sessions "
        "RETURNING last_callback");
    if (!last.bind(row.session).step()) throw no_session(row.session);
    stored.number = last.integer(0);
    while (last.step()) continue;
  }
  stored.answer.reset();
  connection_
      ->statement("INSERT INTO callbacks(session, number, job, call, request, created) VALUES(?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(stored.session, stored.number, stored.job, stored.call, Bytes{stored.request}, stored.created)
      .run();
  return stored;
}

void Transaction::reply_to_callback(std::string_view session, int64_t number, std::string_view reply) {
  const std::optional<CallbackRow> row = callback(session, number);
  if (!row) throw core::Error("not_found", fmt::format("there is no callback request {} in this session", number));
  if (row->answer && *row->answer == reply) return;
  if (row->answer) throw core::Error("conflict", fmt::format("callback request {} has another reply already", number));
  connection_->statement("UPDATE callbacks SET answer = ?3 WHERE session = ?1 AND number = ?2")
      .bind(session, number, Bytes{reply})
      .run();
}

void Transaction::drop_open_callbacks(std::string_view asker) {
  connection_->statement("DELETE FROM callbacks WHERE job = ?1 AND answer IS NULL").bind(asker).run();
}

}  // namespace meshd::storage
