// Excerpts of a program's text in errors; exceptions as errors.
#include "service/core/error.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "service/core/error_of.h"

namespace meshd::core {
namespace {

Error at(int line, int column, std::string pointer = {}) {
  return Error("program_syntax", "wrong", {{std::move(pointer), "wrong", line, column}});
}

std::string excerpt(std::string_view text, int line, int column) {
  Error error = at(line, column);
  return error.with_text(text, {}).diagnostics().at(0).excerpt;
}

TEST(ErrorText, caret_stands_below_the_column) {
  EXPECT_EQ(excerpt("one\n  two three\nfour", 2, 7), "  two three\n      ^");
  EXPECT_EQ(excerpt("one", 1, 1), "one\n^");
  EXPECT_EQ(excerpt("one", 1, 4), "one\n   ^") << "behind the last character";
  EXPECT_EQ(excerpt("\ta b", 1, 4), "\ta b\n\t  ^") << "tabs stay tabs";
  EXPECT_EQ(excerpt("\xC3\xB6\xC3\xB6 x", 1, 6), "\xC3\xB6\xC3\xB6 x\n   ^") << "columns are bytes, carets characters";
}

TEST(ErrorText, places_that_the_text_does_not_have_have_no_excerpt) {
  EXPECT_EQ(excerpt("one", 2, 1), "");
  EXPECT_EQ(excerpt("one", 1, 9), "");
  EXPECT_EQ(excerpt("one", 0, 0), "");
  EXPECT_EQ(excerpt("", 1, 1), "");
}

TEST(ErrorText, long_line_is_cut_around_its_column) {
  const std::string line = std::string(1000, 'a') + "X" + std::string(1000, 'b');
  const std::string found = excerpt(line, 1, 1001);
  const size_t end = found.find('\n');
  EXPECT_EQ(end, 160U);
  EXPECT_EQ(found[found.find('^') - end - 1], 'X');
  // Where every character has two bytes, none is cut in half.
  std::string umlauts;
  for (int i = 0; i < 500; ++i) umlauts += "\xC3\xB6";
  const std::string cut = excerpt(umlauts, 1, 502);
  EXPECT_EQ(cut.front(), '\xC3');
  EXPECT_EQ(cut[cut.find('\n') - 1], '\xB6');
}

TEST(ErrorText, first_pointer_and_excerpt_stay) {
  Error error = at(1, 1);
  error.with_text("inner", "/program/text").with_text("outer", "/program");
  EXPECT_EQ(error.diagnostics().at(0).pointer, "/program/text");
  EXPECT_EQ(error.diagnostics().at(0).excerpt, "inner\n^");
  Error without_place("invalid_request", "wrong", {{"", "wrong"}});
  EXPECT_EQ(without_place.with_text("text", "/program").diagnostics().at(0).pointer, "");
  EXPECT_THROW(in_text("text", "/text", []() -> int { throw at(1, 1); }), Error);
}

TEST(ErrorOf, is_the_error_itself_or_names_what_was_thrown) {
  const auto of = [](const auto& thrown) { return error_of(std::make_exception_ptr(thrown), "no memory", "failed"); };
  EXPECT_EQ(of(Error("array_lost", "it is gone")).code().word(), "array_lost");
  EXPECT_EQ(of(std::bad_alloc()).code().word(), "memory_exceeded");
  EXPECT_EQ(of(std::bad_alloc()).detail(), "no memory");
  EXPECT_EQ(of(std::runtime_error("why")).code().word(), "internal");
  EXPECT_EQ(of(std::runtime_error("why")).detail(), "failed");
  EXPECT_EQ(of(std::runtime_error("why")).internal(), "why");
}

}  // namespace
}  // namespace meshd::core
