// The log of each session: dense, in order, never changed.
#include <fmt/core.h>

#include "service/core/planted_bugs.h"
#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

EffectRow read_effect(const Statement& row) {
  EffectRow effect;
  std::optional<int64_t> step, number;
  row.read(effect.session, effect.sequence, effect.job, step, effect.kind, effect.name, effect.ordered,
           effect.shard_index, effect.values, number);
  effect.step = step.value_or(-1);
  effect.is_queued = number.has_value();
  effect.number = number.value_or(0);
  return effect;
}

bool same_content(const EffectRow& a, const EffectRow& b) {
  return a.session == b.session && a.kind == b.kind && a.name == b.name && a.ordered == b.ordered &&
         a.shard_index == b.shard_index && a.values == b.values && a.is_queued == b.is_queued;
}

}  // namespace

std::vector<EffectRow> Reader::effects(std::string_view session, int64_t after, int64_t limit, const AdmitRow& admit) {
  check_limit(limit);
  Statement rows = connection_->statement(
      "SELECT session, sequence, job, step, kind, name, ordered, shard_index, data, number FROM effects "
      "WHERE session = ?1 AND sequence > ?2 AND session NOT IN deleted_sessions ORDER BY sequence LIMIT ?3");
  return collect_rows<EffectRow>(rows.bind(session, after, limit), admit, read_effect);
}

bool Reader::has_effects_of_job(std::string_view session, std::string_view job, int64_t step) {
  return connection_->statement("SELECT 1 FROM effects WHERE session = ?1 AND job = ?2 AND step >= ?3 LIMIT 1")
      .bind(session, job, step)
      .step();
}

std::vector<EffectRow> Reader::outgoing(std::string_view session, std::string_view queue, int64_t after, int64_t limit,
                                        const AdmitRow& admit) {
  check_limit(limit);
  Statement rows = connection_->statement(
      "SELECT session, sequence, job, step, kind, name, ordered, shard_index, data, number FROM effects "
      "WHERE session = ?1 AND name = ?2 AND number > ?3 AND session NOT IN deleted_sessions ORDER BY number LIMIT ?4");
  return collect_rows<EffectRow>(rows.bind(session, queue, after, limit), admit, read_effect);
}

void Transaction::append_effects(std::string_view session, std::span<EffectRow> rows) {
  std::string wrong_session;
  if (core::is_planted(core::PlantedBug::kDeliverToWrongSession)) {
    Statement last = connection_->statement("SELECT max(id) FROM sessions");
    if (last.bind().step()) session = wrong_session = last.text(0);
  }
  Statement counter = connection_->statement("SELECT last_sequence FROM sessions WHERE id = ?1");
  if (!counter.bind(session).step()) {
    throw core::Error("not_found", "there is no session '" + std::string(session) + "'");
  }
  const int64_t before = counter.integer(0);
  int64_t last = before;
  Statement known = connection_->statement(
      "SELECT session, sequence, job, step, kind, name, ordered, shard_index, data, number FROM effects "
      "WHERE session = ?1 AND job = ?2 AND step = ?3");
  Statement keyed = connection_->statement(
      "INSERT INTO effects(session, sequence, job, step, kind, name, ordered, shard_index, data, number) "
      "VALUES(?1, ?2, ?3, nullif(?4, -1), ?5, ?6, ?7, ?8, ?9, nullif(?10, 0))");
  Statement place = connection_->statement(
      "SELECT coalesce(max(number), 0) FROM effects WHERE session = ?1 AND name = ?2 AND number IS NOT NULL");
  for (EffectRow& row : rows) {
    row.session = session;
    if (row.step >= 0 && known.bind(row.session, row.job, row.step).step()) {
      const EffectRow found = read_effect(known);
      if (!same_content(found, row)) {
        throw core::Error(
            "nondeterministic_job",
            fmt::format("effect {} of job '{}' differs from the one its run before has logged", row.step, row.job));
      }
      row.sequence = found.sequence;
      row.number = found.number;
      continue;
    }
    if (core::is_planted(core::PlantedBug::kSkipSequenceNumber) && last % 5 == 4) ++last;
    row.sequence = ++last;
    row.number = row.is_queued && place.bind(row.session, row.name).step() ? place.integer(0) + 1 : 0;
    keyed.bind(row.session, row.sequence, row.job, row.step, row.kind, row.name, row.ordered, row.shard_index,
               Bytes{row.values}, row.number);
    keyed.run();
  }
  if (last == before) return;
  connection_->statement("UPDATE sessions SET last_sequence = ?2 WHERE id = ?1").bind(session, last).run();
}

void Transaction::mark_end(std::string_view session, std::string_view job, JobState how, std::string_view code) {
  if (session.empty() || !has_effects_of_job(session, job)) return;
  EffectRow row;
  row.job = job;
  row.kind = to_string(how);
  row.name = code;
  append_effects(session, std::span(&row, 1));
}

}  // namespace meshd::storage
