// Programs by content: text, format and trees are what a program is; names and docs are each principal's own.
#include <gtest/gtest.h>

#include "service/registry/registry.h"
#include "tests/support/storage_fixture.h"

namespace meshd::testing {
namespace {

using registry::ProgramNames;
using registry::ProgramRegistry;
using registry::StoredProgram;

constexpr std::string_view kText =
    "module @twice {\n"
    "  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
    "    %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n"
    "    return %0 : tensor<4xf32>\n"
    "  }\n"
    "}\n";

class Programs : public ::testing::Test {
 protected:
  std::pair<StoredProgram, bool> put(const ProgramNames& names = {}, const std::string& principal = "ann",
                                     const std::string& text = std::string(kText)) {
    return programs_.put("stablehlo", text, names, principal);
  }
  static std::string text_number(int i) {
    return "func.func @main(%arg0: tensor<" + std::to_string(i) + "xf32>) -> tensor<" + std::to_string(i) +
           "xf32> {\n  return %arg0 : tensor<" + std::to_string(i) + "xf32>\n}\n";
  }

  TempFolder folder_{TempFolder::Where::kMemory};
  OpenStore store_{folder_.path()};
  core::SystemClock clock_;
  compile::Compiler compiler_{1, 4};
  ProgramRegistry programs_{store_->catalog(), compiler_, clock_, 3};
};

TEST_F(Programs, same_text_posted_again_is_the_same_program_under_its_first_name) {
  const auto [first, fresh] = put({"first", "doubles", "", ""});
  EXPECT_TRUE(fresh);
  const auto [again, fresh_again] = put({"second", "", "", ""});
  EXPECT_FALSE(fresh_again);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.name, "first");
  EXPECT_EQ(again.doc, "doubles");
  ASSERT_NE(again.parsed, nullptr);
  EXPECT_EQ(again.parsed->module->main().arguments.size(), 1U);
}

TEST_F(Programs, large_one_that_is_not_kept_counts_while_somebody_has_it) {
  constexpr int64_t kBytes = int64_t{2} << 20;
  const std::string id = put({}, "ann", std::string(kText) + "// " + std::string(kBytes, 'x')).first.id;
  const auto ledger = core::MemoryLedger::create(int64_t{5} << 20);  // requests: 4 MiB
  compile::Compiler compiler(1, 4, kBytes);                          // too small for it
  ProgramRegistry programs(store_->catalog(), compiler, clock_, 3, ledger);
  {
    const StoredProgram first = programs.get(id, "ann");
    EXPECT_GE(ledger->held_bytes(), kBytes);
    const int64_t held = ledger->held_bytes();
    EXPECT_EQ(programs.get(id, "ann").parsed, first.parsed) << "there is one";
    EXPECT_EQ(ledger->held_bytes(), held);
    core::MemoryReservation others(ledger, core::MemoryAccount::kRequests);
    ASSERT_TRUE(others.try_grow_beyond(kBytes));
    const std::string other = put({}, "ann", std::string(kText) + "// " + std::string(kBytes, 'y')).first.id;
    EXPECT_EQ(error_word([&] { programs.get(other, "ann"); }), "memory_full");
  }
  EXPECT_EQ(ledger->held_bytes(), 0);
}

TEST_F(Programs, removed_one_is_gone_however_often_it_was_asked_for) {
  const std::string id = put({"a", "", "[\"*\"]", ""}).first.id;
  put({"b", "", "[\"*\"]", ""}, "bob");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(programs_.get(id, "ann").name, "a");
  EXPECT_EQ(programs_.get(id, "bob").name, "b");
  programs_.remove(id, "ann");
  EXPECT_EQ(error_word([&] { programs_.get(id, "ann"); }), "not_found");
  EXPECT_EQ(programs_.get(id, "bob").name, "b");
  put({"again", "", "[\"*\"]", ""});
  EXPECT_EQ(programs_.get(id, "ann").name, "again");
}

TEST_F(Programs, asked_for_again_when_its_parsed_form_left_the_cache) {
  const std::string id = put().first.id;
  const auto first = programs_.get(id, "ann").parsed.get();
  EXPECT_EQ(programs_.get(id, "ann").parsed.get(), first);
  for (int i = 1; i < 9; ++i) compiler_.parse("stablehlo", text_number(i));
  const StoredProgram again = programs_.get(id, "ann");
  ASSERT_NE(again.parsed, nullptr);
  EXPECT_EQ(again.parsed->id, id);
  EXPECT_EQ(again.name, "twice");
}

TEST_F(Programs, without_a_name_it_has_the_modules) { EXPECT_EQ(put().first.name, "twice"); }

TEST_F(Programs, trees_are_part_of_what_a_program_is) {
  const StoredProgram plain = put().first;
  const StoredProgram tree = put({"", "", "[\"*\"]", "{\"y\":\"*\"}"}).first;
  EXPECT_NE(tree.id, plain.id);
  EXPECT_NE(put({"", "", "", "[\"*\"]"}).first.id, put({"", "", "[\"*\"]", ""}, "bob").first.id);
  const StoredProgram found = programs_.get(tree.id, "ann");
  EXPECT_EQ(found.in_tree, "[\"*\"]");
  EXPECT_EQ(found.out_tree, "{\"y\":\"*\"}");
  EXPECT_EQ(programs_.get(plain.id, "ann").in_tree, "");
}

TEST_F(Programs, program_is_seen_by_those_who_posted_it_under_the_name_that_each_gave) {
  const std::string id = put({"anns", "anns words", "", ""}).first.id;
  EXPECT_EQ(error_word([&] { programs_.get(id, "bob"); }), "not_found");
  EXPECT_EQ(error_word([&] { programs_.remove(id, "bob"); }), "not_found");
  EXPECT_TRUE(programs_.list("bob", {}).items.empty());
  const auto [bobs, fresh] = put({}, "bob");
  EXPECT_TRUE(fresh) << "that somebody else has it must not show";
  EXPECT_EQ(bobs.id, id);
  EXPECT_EQ(bobs.name, "twice");
  EXPECT_EQ(bobs.doc, "");
  programs_.remove(id, "ann");
  EXPECT_EQ(error_word([&] { programs_.get(id, "ann"); }), "not_found");
  EXPECT_EQ(programs_.get(id, "bob").name, "twice");
}

TEST_F(Programs, text_that_is_no_program_leaves_no_row) {
  EXPECT_EQ(error_word([&] { put({}, "ann", "func.func @main("); }), "invalid_program");
  EXPECT_EQ(error_word([&] { programs_.put("onnx", std::string(kText), {}, "ann"); }), "unsupported_format");
  EXPECT_TRUE(programs_.list("ann", {}).items.empty());
}

TEST_F(Programs, program_that_the_compiler_has_evicted_is_read_from_its_row) {
  ProgramRegistry unlimited(store_->catalog(), compiler_, clock_);
  const std::string id = unlimited.put("stablehlo", text_number(1), {}, "ann").first.id;
  for (int i = 2; i < 8; ++i) unlimited.put("stablehlo", text_number(i), {}, "ann");
  ASSERT_EQ(compiler_.find(id), nullptr) << "the cache keeps four";
  EXPECT_EQ(unlimited.get(id, "ann").parsed->text, text_number(1));
}

TEST_F(Programs, limit_is_each_principals_and_refuses_before_anything_is_kept) {
  for (int i = 1; i <= 3; ++i) put({}, "ann", text_number(i));
  EXPECT_EQ(error_word([&] { put(); }), "limit_reached");
  EXPECT_EQ(programs_.list("ann", {}).items.size(), 3U);
  EXPECT_FALSE(put({}, "ann", text_number(2)).second) << "one that is there is no new one";
  EXPECT_TRUE(put({}, "bob").second);
}

TEST_F(Programs, deleted_program_of_an_unfinished_job_is_there_for_the_job_alone) {
  const std::string id = put({"secret", "", "", ""}).first.id;
  storage::JobRow job = job_row("job_1");
  job.program = id;
  store_->catalog().write([&](storage::Transaction& transaction) { transaction.insert_job(job); });
  programs_.remove(id, "ann");
  EXPECT_EQ(error_word([&] { programs_.get(id, "ann"); }), "not_found");
  const StoredProgram kept = programs_.get_for_accepted_job(id);
  EXPECT_EQ(kept.parsed->text, kText);
  EXPECT_EQ(kept.name, "twice") << "the name that its principal gave is gone with the row";
  job.state = storage::JobState::kDone;
  store_->catalog().write([&](storage::Transaction& transaction) { EXPECT_TRUE(transaction.update_job(job)); });
  EXPECT_EQ(error_word([&] { programs_.get_for_accepted_job(id); }), "not_found");
}

TEST_F(Programs, lists_come_in_pages_without_texts) {
  for (int i = 1; i <= 3; ++i) put({}, "ann", text_number(i));
  std::set<std::string> seen;
  storage::PageRequest page{2, ""};
  int pages = 0;
  do {
    const auto found = programs_.list("ann", page);
    for (const StoredProgram& each : found.items) {
      EXPECT_TRUE(seen.insert(each.id).second) << each.id << " twice";
      EXPECT_EQ(each.parsed, nullptr);
    }
    page.cursor = found.next;
    ++pages;
  } while (!page.cursor.empty());
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_EQ(pages, 2);
}

}  // namespace
}  // namespace meshd::testing
