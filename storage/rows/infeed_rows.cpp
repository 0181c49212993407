// Infeed entries of sessions.
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {

std::vector<InfeedRow> Reader::infeeds(std::string_view session, std::string_view queue, int64_t after, int64_t limit) {
  check_limit(limit);
  Statement rows = connection_->statement(
      "SELECT session, queue, number, content, created FROM infeed_entries "
      "WHERE session = ?1 AND queue = ?2 AND number > ?3 AND session NOT IN deleted_sessions ORDER BY number LIMIT ?4");
  rows.bind(session, queue, after, limit);
  std::vector<InfeedRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.text(1), rows.integer(2), rows.text(3), rows.time(4)});
  return out;
}

std::vector<InfeedQueueRow> Reader::infeed_queues(std::string_view session) {
  Statement rows = connection_->statement(
      "SELECT q.queue, q.last, count(f.number), coalesce(sum(length(f.content)), 0) FROM infeed_queues q "
      "LEFT JOIN infeed_entries f ON f.session = q.session AND f.queue = q.queue "
      "WHERE q.session = ?1 AND q.session NOT IN deleted_sessions GROUP BY q.queue, q.last ORDER BY q.queue");
  rows.bind(session);
  std::vector<InfeedQueueRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2), rows.integer(3)});
  return out;
}

void Transaction::append_infeed(InfeedRow& row) {
  const std::optional<SessionRow> owner = session(row.session);
  if (!owner) throw core::Error("not_found", "there is no session '" + row.session + "'");
  if (owner->state == SessionState::kClosed) {
    throw core::Error("session_closed", "session '" + row.session + "' is closed and takes nothing");
  }
  connection_
      ->statement(
          "INSERT INTO infeed_queues(session, queue, last) VALUES(?1, ?2, 1) "
          "ON CONFLICT(session, queue) DO UPDATE SET last = last + 1")
      .bind(row.session, row.queue)
      .run();
  {
    Statement last = connection_->statement("SELECT last FROM infeed_queues WHERE session = ?1 AND queue = ?2");
    last.bind(row.session, row.queue).step();
    row.number = last.integer(0);
  }
  connection_
      ->statement("INSERT INTO infeed_entries(session, queue, number, created, content) VALUES(?1, ?2, ?3, ?4, ?5)")
      .bind(row.session, row.queue, row.number, row.created, Bytes{row.content})
      .run();
}

void Transaction::use_infeeds(std::string_view session, std::string_view queue, int64_t number) {
  connection_->statement("DELETE FROM infeed_entries WHERE session = ?1 AND queue = ?2 AND number <= ?3")
      .bind(session, queue, number)
      .run();
}

int64_t Transaction::drop_infeeds(std::string_view session, std::string_view queue) {
  Statement open =
      connection_->statement("SELECT id FROM jobs WHERE session = ?1 AND state IN ('queued', 'running') LIMIT 1");
  if (open.bind(session).step()) {
    throw core::Error("conflict", "job '" + open.text(0) +
                                      "' of this session is not over and may have taken from the queue; wait for it "
                                      "or cancel it first");
  }
  connection_->statement("DELETE FROM infeed_entries WHERE session = ?1 AND queue = ?2").bind(session, queue).run();
  return connection_->changes();
}

}  // namespace meshd::storage
