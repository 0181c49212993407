// The file of tokens: every form of a line, and what is refused with the line's number and without the token.
#include <gtest/gtest.h>

#include "api/app/access/token_file.h"
#include "service/core/error.h"
#include "service/core/ids.h"

namespace meshd::api {
namespace {

std::string refusal(std::string_view text) {
  try {
    static_cast<void>(TokenTable::parse(text));
  } catch (const core::Error& error) {
    return error.detail();
  }
  return {};
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(TokenFile, token_alone_is_the_principal_of_its_digest) {
  const TokenTable table = TokenTable::parse("s3cret\n");
  const auto found = table.find("s3cret");
  ASSERT_TRUE(found);
  EXPECT_EQ("tok_" + core::sha256_hex("s3cret").substr(0, 32), found->principal);
  EXPECT_EQ(Role::kUser, found->role);
  EXPECT_FALSE(table.find("s3cre"));
  EXPECT_FALSE(table.find(""));
}

TEST(TokenFile, names_roles_digests_comments_and_blanks_are_read) {
  const TokenTable table = TokenTable::parse("# who may\r\n\r\n  ann\told-token # until Friday\r\nann sha256:" +
                                             core::sha256_hex("new-token") + " reader\nroot a#b admin\n");
  EXPECT_EQ(3U, table.token_count());
  EXPECT_EQ("ann", table.find("old-token")->principal);
  EXPECT_EQ(Role::kUser, table.find("old-token")->role);
  EXPECT_EQ("ann", table.find("new-token")->principal);
  EXPECT_EQ(Role::kReader, table.find("new-token")->role);
  EXPECT_EQ(Role::kAdmin, table.find("a#b")->role);
  EXPECT_EQ((std::set<std::string>{"ann", "root"}), table.principals());
}

TEST(TokenFile, last_line_needs_no_newline) { EXPECT_TRUE(TokenTable::parse("a\nb").find("b")); }

TEST(TokenFile, wrong_lines_are_named_by_number_and_never_quoted) {
  const std::string digest(63, '0');
  for (const std::string& line :
       {std::string("ann topsecret owner"), std::string("ann topsecret user more"), std::string("an!n topsecret"),
        std::string("tok_0123 topsecret"), std::string("anonymous topsecret"), std::string(65, 'n') + " topsecret",
        "ann sha256:" + digest, "sha256:" + digest + "0", "ann sha256:" + std::string(64, 'G')}) {
    const std::string said = refusal("first\n" + line + "\n");
    EXPECT_TRUE(contains(said, "line 2 ")) << line << ": " << said;
    EXPECT_FALSE(contains(said, "topsecret")) << said;
  }
}

TEST(TokenFile, token_of_two_principals_or_roles_is_refused) {
  EXPECT_TRUE(contains(refusal("ann t\nbob t\n"), "line 2 of the tokens file: line 1 gives"));
  EXPECT_TRUE(contains(refusal("ann t\nann t reader\n"), "line 2"));
  EXPECT_TRUE(contains(refusal("t\nann sha256:" + core::sha256_hex("t") + "\n"), "line 2"));
  EXPECT_EQ("", refusal("ann t\nann t user\nt2\nt2\n"));
}

TEST(TokenFile, file_without_token_is_refused) {
  EXPECT_TRUE(contains(refusal(""), "no token"));
  EXPECT_TRUE(contains(refusal("# ann t\n\n"), "no token"));
}

}  // namespace
}  // namespace meshd::api
