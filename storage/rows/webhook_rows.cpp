// Webhooks.
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

/// Columns in the order of read_webhook(). Callers keep the text for good: its address is the key of the statement.
std::string select_webhooks(const std::string& which) {
  return "SELECT id, principal, session, url, secret, effects, jobs, state, sequence, pending, job_number, failures, "
         "failing_since, last_error, created FROM webhooks WHERE " +
         which;
}

WebhookRow read_webhook(const Statement& row) {
  WebhookRow out;
  row.read(out.id, out.principal, out.session, out.url, out.secret, out.wants_effects, out.wants_jobs,
           in_words(kWebhookStates, out.state), out.sequence, out.pending, out.job_number, out.failures,
           out.failing_since, out.last_error, out.created);
  return out;
}

}  // namespace

std::optional<WebhookRow> Reader::webhook(std::string_view id) {
  static const std::string sql = select_webhooks("id = ?1");
  Statement row = connection_->statement(sql.c_str());
  if (!row.bind(id).step()) return std::nullopt;
  return read_webhook(row);
}

Page<WebhookRow> Reader::webhooks(std::string_view principal, std::string_view session, const PageRequest& page) {
  check_limit(page.limit);
  static const std::string sql =
      select_webhooks("principal = ?1 AND id > ?2 AND (?3 = '' OR session = ?3) ORDER BY id LIMIT ?4");
  Statement rows = connection_->statement(sql.c_str());
  rows.bind(principal, page.cursor, session, page.limit + 1);
  return collect_page<WebhookRow>(rows, page, read_webhook, [](const WebhookRow& row) { return row.id; });
}

std::vector<WebhookRow> Reader::webhooks_after(std::string_view after, int64_t limit) {
  static const std::string sql = select_webhooks("id > ?1 ORDER BY id LIMIT ?2");
  Statement rows = connection_->statement(sql.c_str());
  return collect_rows<WebhookRow>(rows.bind(after, limit), {}, read_webhook);
}

void Transaction::insert_webhook(const WebhookRow& row) {
  connection_
      ->statement(
          "INSERT INTO webhooks(id, principal, session, url, secret, effects, jobs, state, sequence, pending, "
          "job_number, failures, failing_since, last_error, created) "
          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")
      .bind(row.id, row.principal, row.session, row.url, row.secret, row.wants_effects, row.wants_jobs,
            to_string(row.state), row.sequence, row.pending, row.job_number, row.failures, row.failing_since,
            row.last_error, row.created)
      .run();
}

bool Transaction::update_webhook(const WebhookRow& row) {
  connection_
      ->statement(
          "UPDATE webhooks SET state = ?2, sequence = ?3, pending = ?4, job_number = ?5, failures = ?6, "
          "failing_since = ?7, last_error = ?8 WHERE id = ?1")
      .bind(row.id, to_string(row.state), row.sequence, row.pending, row.job_number, row.failures, row.failing_since,
            row.last_error)
      .run();
  return connection_->changes() == 1;
}

bool Transaction::delete_webhook(std::string_view id) {
  connection_->statement("DELETE FROM webhooks WHERE id = ?1").bind(id).run();
  return connection_->changes() == 1;
}

}  // namespace meshd::storage
