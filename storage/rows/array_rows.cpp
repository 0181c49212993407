// Arrays, their shards, and donation.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "storage/rows/row_words.h"
#include "storage/rows/transaction.h"

namespace meshd::storage {
namespace {

constexpr char kSelectById[] =
    "SELECT id, principal, session, name, dtype, shape, mesh, sharding, durability, state, version, bytes, committed, "
    "reserved_by, reason, created, holds_name, attributes FROM arrays WHERE id = ?1";

// "2,3" for shape (2, 3), empty for rank 0.
std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t dim : shape) {
    if (!text.empty()) text += ',';
    text += std::to_string(dim);
  }
  return text;
}

std::vector<int64_t> read_shape(std::string_view text) {
  std::vector<int64_t> shape;
  while (!text.empty()) {
    int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc()) throw core::Error("storage_failed", "the database is damaged").with_internal("a shape");
    shape.push_back(dim);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return shape;
}

ArrayRow read_array(const Statement& row) {
  ArrayRow array;
  const auto shape = [&](const Statement& from, int column) { array.shape = read_shape(from.view(column)); };
  row.read(array.id, array.principal, array.session, array.name, array.dtype, shape, array.mesh, array.sharding,
           in_words(kDurabilities, array.durability), in_words(kArrayStates, array.state), array.version, array.bytes,
           array.committed, array.reserved_by, array.reason, array.created, array.holds_name, array.attributes);
  return array;
}

ShardRow read_shard(const Statement& row) { return {row.text(0), row.integer(1), blob_at(row, 2)}; }

// The first text behind all that begin with the prefix, as bytes: UTF-8 has no byte 0xFF. Empty for an empty one.
std::string behind_prefix(std::string_view prefix) {
  std::string out(prefix);
  if (!out.empty()) out.back() = static_cast<char>(static_cast<unsigned char>(out.back()) + 1);
  return out;
}

const std::string kBehindAll = "\xff";

// What keeps `job` from taking the array, if anything.
void check_takeable(const std::optional<ArrayRow>& array, std::string_view id, std::string_view job) {
  const std::string name = "array '" + std::string(id) + "'";
  if (!array) throw core::Error("not_found", "there is no " + name);
  if (array->state == ArrayState::kDonated) throw core::Error("array_donated", name + " was donated already");
  if (array->state == ArrayState::kLost) throw core::Error("array_lost", name + " is lost: " + array->reason);
  if (array->state == ArrayState::kPending) throw core::Error("conflict", name + " has no data yet");
  if (!array->reserved_by.empty() && array->reserved_by != job) {
    throw core::Error("array_in_use", name + " is reserved by another job that donates it");
  }
}

}  // namespace

std::optional<ArrayRow> Reader::array(std::string_view id) {
  Statement row = connection_->statement(kSelectById);
  if (!row.bind(id).step()) return std::nullopt;
  return read_array(row);
}

std::optional<ArrayRow> Reader::array(std::string_view id, std::string_view principal) {
  std::optional<ArrayRow> found = array(id);
  if (found && found->principal != principal) return std::nullopt;
  return found;
}

std::optional<ArrayRow> Reader::array_by_name(std::string_view name, std::string_view principal) {
  Statement row = connection_->statement(
      "SELECT id, principal, session, name, dtype, shape, mesh, sharding, durability, state, version, bytes, "
      "committed, reserved_by, reason, created, holds_name, attributes FROM arrays "
      "WHERE principal = ?1 AND name = ?2 AND name != '' "
      "ORDER BY state IN ('ready', 'pending') DESC, holds_name DESC, id DESC LIMIT 1");
  if (!row.bind(principal, name).step()) return std::nullopt;
  return read_array(row);
}

std::vector<NamedArray> Reader::arrays_with_prefix(std::string_view principal, std::string_view prefix, int64_t limit) {
  Statement rows = connection_->statement(
      "SELECT name, id, state = 'ready' FROM arrays WHERE principal = ?1 AND name != '' AND name >= ?2 AND name < ?3 "
      "ORDER BY name, state IN ('ready', 'pending') DESC, holds_name DESC, id DESC LIMIT ?4");
  const std::string end = prefix.empty() ? kBehindAll : behind_prefix(prefix);
  rows.bind(principal, prefix, end, limit);
  std::vector<NamedArray> out;
  while (rows.step()) out.push_back({rows.text(0), rows.text(1), rows.integer(2) != 0});
  return out;
}

void Reader::require_free_name(std::string_view principal, std::string_view name, bool is_unique,
                               std::span<const std::string> leaving) {
  if (name.empty()) return;
  // Each finds its rows by an index of its own; who holds the name is one row of arrays_holding_names.
  static constexpr const char* kHolder =
      "SELECT id, dtype, shape, version, holds_name FROM arrays WHERE principal = ?1 AND name = ?2 AND name != '' "
      "AND state IN ('ready', 'pending') AND holds_name = 1";
  static constexpr const char* kAll =
      "SELECT id, dtype, shape, version, holds_name FROM arrays WHERE principal = ?1 AND name = ?2 AND name != '' "
      "AND state IN ('ready', 'pending') ORDER BY holds_name DESC, id DESC";
  Statement rows = connection_->statement(is_unique ? kAll : kHolder);
  rows.bind(principal, name);
  while (rows.step()) {
    const std::string id = rows.text(0);
    if (std::find(leaving.begin(), leaving.end(), id) != leaving.end()) continue;
    const std::string shape = rows.text(2);
    throw core::Error("name_taken", fmt::format("the name '{}' is {} array {}, {}[{}], version {}", name,
                                                rows.integer(4) != 0 ? "held by" : "also that of", id, rows.text(1),
                                                shape, rows.integer(3)));
  }
}

Page<ArrayRow> Reader::arrays(std::string_view principal, const ArrayFilter& filter, const PageRequest& page) {
  check_limit(page.limit);
  Statement rows = connection_->statement(
      "SELECT id, principal, session, name, dtype, shape, mesh, sharding, durability, state, version, bytes, "
      "committed, reserved_by, reason, created, holds_name, attributes FROM arrays WHERE principal = ?1 AND id > ?2 "
      "AND (?3 = '' OR session = ?3) AND (?4 = '' OR name = ?4) AND (?5 = '' OR (name >= ?5 AND name < ?6)) "
      "ORDER BY id LIMIT ?7");
  const std::string end = behind_prefix(filter.prefix);
  rows.bind(principal, page.cursor, filter.session, filter.name, filter.prefix, end, page.limit + 1);
  return collect_page<ArrayRow>(rows, page, read_array, [](const ArrayRow& row) { return row.id; });
}

std::vector<ShardRow> Reader::shards(std::string_view array) {
  Statement rows = connection_->statement(
      "SELECT array, shard_index, blob, length, checksum FROM shards WHERE array = ?1 "
      "ORDER BY shard_index");
  rows.bind(array);
  std::vector<ShardRow> shards;
  while (rows.step()) shards.push_back(read_shard(rows));
  return shards;
}

bool Reader::names_blob(std::string_view blob) {
  return connection_->statement("SELECT 1 FROM shards WHERE blob = ?1 LIMIT 1").bind(blob).step() ||
         connection_->statement("SELECT 1 FROM upload_parts WHERE blob = ?1 LIMIT 1").bind(blob).step() ||
         connection_->statement("SELECT 1 FROM jobs WHERE blob = ?1 LIMIT 1").bind(blob).step();
}

void Transaction::insert_array(const ArrayRow& row) {
  require_free_name(row.principal, row.name, row.holds_name, {});
  connection_
      ->statement(
          "INSERT INTO arrays(id, principal, session, name, dtype, shape, mesh, sharding, durability, state, version, "
          "bytes, committed, reserved_by, reason, created, holds_name, attributes) "
          "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)")
      .bind(row.id, row.principal, row.session, row.name, row.dtype, shape_text(row.shape), row.mesh, row.sharding,
            to_string(row.durability), to_string(row.state), row.version, row.bytes, row.committed,
            OrNull{row.reserved_by}, row.reason, row.created, row.holds_name, row.attributes)
      .run();
}

void Transaction::update_array(const ArrayRow& row) {
  const std::optional<ArrayRow> before = array(row.id);
  if (!before) throw core::Error("not_found", "there is no array '" + row.id + "'");
  connection_
      ->statement(
          "UPDATE arrays SET session = ?2, name = ?3, dtype = ?4, shape = ?5, mesh = ?6, sharding = ?7, "
          "durability = ?8, state = ?9, version = ?10, bytes = ?11, committed = ?12, reason = ?13, "
          "holds_name = holds_name AND ?9 IN ('ready', 'pending') "
          "WHERE id = ?1")
      .bind(row.id, row.session, row.name, row.dtype, shape_text(row.shape), row.mesh, row.sharding,
            to_string(row.durability), to_string(row.state), row.version, row.bytes, row.committed, row.reason)
      .run();
  if (before->mesh != row.mesh) collect_mesh(before->mesh);
}

void Transaction::drop_shards(std::string_view array) {
  for (const ShardRow& shard : shards(array)) dropped_blobs_.push_back(shard.blob.name);
  connection_->statement("DELETE FROM shards WHERE array = ?1").bind(array).run();
}

std::optional<std::string> Reader::next_with_gone_arrays(std::optional<std::string_view> after) {
  // The first principal may be "", as that of a server without tokens.
  Statement row =
      connection_->statement("SELECT min(principal) FROM arrays WHERE gone IS NOT NULL AND (?1 = 0 OR principal > ?2)");
  if (!row.bind(static_cast<int64_t>(after.has_value()), after.value_or("")).step() || row.is_null(0))
    return std::nullopt;
  return row.text(0);
}

bool Transaction::delete_array(std::string_view id) {
  const std::optional<ArrayRow> before = array(id);
  if (!before) return false;
  if (!before->reserved_by.empty()) {
    throw core::Error("array_in_use", "array '" + before->id + "' is reserved by a job that donates it");
  }
  drop_shards(id);
  connection_->statement("DELETE FROM arrays WHERE id = ?1").bind(id).run();
  collect_mesh(before->mesh);
  return true;
}

int64_t Transaction::age_gone_arrays(core::WallTime now, int64_t limit) {
  connection_
      ->statement(
          "UPDATE arrays SET gone = ?1 WHERE id IN "
          "(SELECT id FROM arrays WHERE state IN ('donated', 'lost') AND gone IS NULL LIMIT ?2)")
      .bind(now, limit)
      .run();
  return connection_->changes();
}

std::vector<std::string> Transaction::delete_gone_arrays(std::string_view principal,
                                                         std::optional<core::WallTime> before, int64_t kept,
                                                         int64_t limit) {
  std::vector<std::string> ids;
  if (before) {
    Statement rows = connection_->statement(
        "SELECT id FROM arrays WHERE principal = ?1 AND gone IS NOT NULL AND gone < ?2 AND reserved_by IS NULL "
        "ORDER BY gone, id LIMIT ?3");
    rows.bind(principal, *before, limit);
    while (rows.step()) ids.push_back(rows.text(0));
  }
  if (ids.empty() && kept > 0) {
    Statement rows = connection_->statement(
        "SELECT id FROM arrays WHERE principal = ?1 AND gone IS NOT NULL AND reserved_by IS NULL "
        "ORDER BY gone DESC, id DESC LIMIT ?3 OFFSET ?2");
    rows.bind(principal, kept, limit);
    while (rows.step()) ids.push_back(rows.text(0));
  }
  for (const std::string& id : ids) delete_array(id);
  return ids;
}

void Transaction::put_shard(const ShardRow& row) {
  Statement before = connection_->statement("SELECT blob FROM shards WHERE array = ?1 AND shard_index = ?2");
  if (before.bind(row.array, row.index).step()) dropped_blobs_.push_back(before.text(0));
  connection_
      ->statement(
          "INSERT OR REPLACE INTO shards(array, shard_index, blob, length, checksum) VALUES(?1, ?2, ?3, ?4, ?5)")
      .bind(row.array, row.index, row.blob.name, row.blob.length, static_cast<int64_t>(row.blob.checksum))
      .run();
}

void Transaction::reserve_array(std::string_view id, std::string_view job) {
  check_takeable(array(id), id, job);
  connection_->statement("UPDATE arrays SET reserved_by = ?2 WHERE id = ?1").bind(id, job).run();
}

int64_t Transaction::release_arrays(std::string_view job, std::string_view principal) {
  connection_->statement("UPDATE arrays SET reserved_by = NULL WHERE reserved_by = ?1 AND principal = ?2")
      .bind(job, principal)
      .run();
  return connection_->changes();
}

void Transaction::consume_array(std::string_view id, std::string_view job) {
  check_takeable(array(id), id, job);
  drop_shards(id);
  connection_
      ->statement(
          "UPDATE arrays SET state = 'donated', version = version + 1, reserved_by = NULL, reason = ?2, holds_name = 0 "
          "WHERE id = ?1")
      .bind(id, donated_reason(job))
      .run();
}

}  // namespace meshd::storage
