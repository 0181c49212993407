// Forms with files: what curl and browsers send, and what is cut short or twisted.
#include "api/codecs/files/form.h"

#include <gtest/gtest.h>

#include "service/core/error.h"

namespace meshd::api {
namespace {

constexpr std::string_view kType = "multipart/form-data; boundary=xyz";

std::string refusal(std::string_view body, std::string_view type = kType) {
  try {
    read_form(type, body);
  } catch (const core::Error& error) {
    return std::string(error.code().word()) + ": " + error.detail();
  }
  return "";
}

TEST(Form, parts_are_as_they_were_sent) {
  const std::string bytes("\x93NUMPY\0\r\n--xy\r\n--\r\n", 20);
  const std::string body =
      "preamble\r\n--xyz\r\nContent-Disposition: form-data; name=\"request\"\r\nContent-Type: application/json; "
      "charset=utf-8\r\n\r\n{}\r\n--xyz  \r\ncontent-disposition: form-data; filename=\"a \\\"b\\\"; name=c.npy\"; "
      "name=x\r\nX-Other: 1\r\n\r\n" +
      bytes + "\r\n--xyz\r\nContent-Disposition: form-data; name=empty\r\n\r\n\r\n--xyz--\r\nepilogue --xyz";
  const auto parts = read_form("multipart/form-data; charset=utf-8; Boundary=\"xyz\"", body);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "request");
  EXPECT_EQ(parts[0].media_type, "application/json");
  EXPECT_EQ(parts[0].data, "{}");
  EXPECT_EQ(parts[1].name, "x");
  EXPECT_EQ(parts[1].filename, "a \"b\"; name=c.npy");
  EXPECT_EQ(parts[1].data, bytes);
  EXPECT_EQ(parts[2].data, "");
}

TEST(Form, the_file_is_the_part_of_that_name) {
  const std::string other = "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
  const std::string file =
      "--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"b\"\r\nContent-Type: "
      "application/x-npy\r\n\r\n2\r\n";
  const std::string body = other + file + "--xyz--";
  const FormPart found = file_of_form(kType, body);
  EXPECT_EQ(found.data, "2");
  EXPECT_EQ(found.filename, "b");
  EXPECT_EQ(found.media_type, "application/x-npy");
  try {
    file_of_form(kType, other + "--xyz--");
    ADD_FAILURE() << "a form without a file";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.detail(), "the form has no part named file");
  }
}

TEST(Form, every_form_that_is_cut_short_is_refused) {
  const std::string body =
      "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--xyz\r\nContent-Disposition: form-data; "
      "name=\"b\"\r\n\r\n2\r\n--xyz--";
  EXPECT_EQ(refusal(body), "");
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_EQ(refusal(body.substr(0, size)).substr(0, 14), "malformed_body") << body.substr(0, size);
}

TEST(Form, mistakes_are_named) {
  const std::string part = "--xyz\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n";
  EXPECT_EQ(refusal(part + part + "--xyz--"), "malformed_body: the form has two parts named 'a'");
  EXPECT_EQ(refusal("--xyz\r\nContent-Type: text/plain\r\n\r\n1\r\n--xyz--"),
            "malformed_body: the form has a part without a name");
  EXPECT_EQ(refusal("--xyz\r\nno head\r\n\r\n1\r\n--xyz--"),
            "malformed_body: the form has a part with a head that is none");
  EXPECT_EQ(refusal("--xyz--"), "malformed_body: the form has no part");
  EXPECT_EQ(refusal("{}"), "malformed_body: the form does not end with its boundary");
  const std::string none = "malformed_body: multipart/form-data without a boundary of 1 to 70 characters";
  EXPECT_EQ(refusal(part + "--xyz--", "multipart/form-data"), none);
  EXPECT_EQ(refusal(part + "--xyz--", "multipart/form-data; boundary="), none);
  EXPECT_EQ(refusal(part + "--xyz--", "multipart/form-data; boundary=" + std::string(71, 'x')), none);
}

}  // namespace
}  // namespace meshd::api
