// Queries, headers, ranges, content codings and problem documents.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "api/fields/content_encoder.h"
#include "api/fields/ranges.h"
#include "api/http/characters.h"
#include "api/http/http.h"
#include "api/http/problem.h"
#include "service/core/error.h"

namespace meshd::api {
namespace {

TEST(Query, parameters_keep_order_and_are_decoded) {
  const Query query = Query::parse("a=1&&b=%26+x&a=2&c&=d");
  EXPECT_EQ("& x", query.get("b"));
  EXPECT_EQ("", query.get("c"));
  EXPECT_EQ((std::vector<std::string_view>{"1", "2"}), query.all("a"));
  EXPECT_THROW((void)query.get("a"), core::Error);
  EXPECT_EQ(std::nullopt, query.get("z"));
}

TEST(Query, integers_are_strict) {
  const Query query = Query::parse("a=7&b=+7&c=7.0&d=&e=-3&f=99999999999999999999");
  EXPECT_EQ(7, query.integer("a", 0, 1, 10));
  EXPECT_EQ(5, query.integer("z", 5, 1, 10));
  EXPECT_EQ(-3, query.integer("e", 0, -5, 10));
  for (const char* name : {"b", "c", "d", "e", "f"})
    EXPECT_THROW((void)query.integer(name, 0, 1, 10), core::Error) << name;
}

TEST(Query, unknown_parameters_are_named_together) {
  constexpr std::string_view kKnown[] = {"slice"};
  try {
    Query::parse("slice=1&x=1&y=2").require_known(kKnown);
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(2U, error.diagnostics().size());
  }
}

TEST(Headers, names_compare_without_case_and_values_cannot_split) {
  Headers headers;
  headers.add("ETag", "\"a\"");
  headers.add("Via", "1");
  headers.add("via", "2");
  EXPECT_EQ("\"a\"", headers.get("etag"));
  EXPECT_EQ("1, 2", headers.joined("VIA"));
  headers.set("vIa", "3");
  EXPECT_EQ("3", headers.joined("Via"));
  EXPECT_THROW(headers.add("A", "b\r\nC: d"), core::Error);
  EXPECT_THROW(headers.add("A b", "c"), core::Error);
}

TEST(Percent, encoding_and_decoding_are_inverse) {
  std::string all;
  for (int c = 1; c < 128; ++c) all += static_cast<char>(c);
  all += "\xe2\x82\xac";
  EXPECT_EQ(all, percent_decode(percent_encode(all)));
  EXPECT_EQ("a%2Fb%20c", percent_encode("a/b c"));
}

TEST(Utf8, edges_of_the_encoding) {
  for (const char* good :
       {"", "a", "\xc2\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

Request ranged_request(const std::string& range) {
  Request request;
  request.method = "GET";
  request.headers.add("Range", range);
  return request;
}

TEST(Ranges, every_answer_lies_inside) {
  for (int64_t size = 0; size < 5; ++size) {
    for (const std::string first : {"", "0", "1", "4", "5", "99999999999999999999"}) {
      for (const std::string last : {"", "0", "1", "4", "5", "99999999999999999999"}) {
        std::optional<ByteRange> range;
        try {
          range = requested_range(ranged_request("bytes=" + first + "-" + last), size, "");
        } catch (const core::Error& error) {
          EXPECT_EQ(core::ErrorCode("range_not_satisfiable"), error.code());
          continue;
        }
        if (!range) continue;
        EXPECT_GE(range->first, 0);
        EXPECT_GT(range->count, 0);
        EXPECT_LE(range->first + range->count, size) << first << "-" << last;
      }
    }
  }
}

TEST(Ranges, pieces_are_cut_at_the_range) {
  const std::string text = "0123456789";
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t first = 0; first < 10; ++first) {
    for (size_t last = first; last < 10; ++last) {
      const Response response =
          ranged(ranged_request("bytes=" + std::to_string(first) + "-" + std::to_string(last)), "text/plain",
                 {{bytes.first(3), bytes.subspan(3, 0), bytes.subspan(3, 4), bytes.subspan(7)}, nullptr}, "");
      EXPECT_EQ(206, response.status);
      std::string out;
      for (const auto& piece : std::get<MemoryPieces>(response.body).pieces) {
        out.append(reinterpret_cast<const char*>(piece.data()), piece.size());
      }
      EXPECT_EQ(text.substr(first, last - first + 1), out);
    }
  }
}

TEST(ContentEncoder, what_is_coded_while_it_is_sent_holds_a_coder_or_stays_as_it_is) {
  const std::string text(1 << 20, 'x');
  Request request;
  request.headers.add("Accept-Encoding", "zstd");
  const auto answer = [&] {
    return memory(200, "application/octet-stream", {{std::as_bytes(std::span<const char>(text))}, nullptr});
  };
  const auto ledger = core::MemoryLedger::create(int64_t{5} << 20);  // answers: 4 MiB
  const auto coded_with = [&](core::MemoryReservation& memory) {
    Response response = answer();
    encode_content(request, response, false, memory);
    return response.headers.has("Content-Encoding");
  };
  std::vector<core::MemoryReservation> held;
  for (int i = 0; i < 2; ++i) {
    held.emplace_back(ledger, core::MemoryAccount::kAnswers);
    EXPECT_TRUE(coded_with(held.back()));
  }
  core::MemoryReservation none(ledger, core::MemoryAccount::kAnswers);
  EXPECT_FALSE(coded_with(none));
  held.clear();
  EXPECT_EQ(0, ledger->held_bytes());
}

TEST(Problem, document_has_all_members) {
  core::Error error("invalid_request", "2 fields are wrong", {{"/shape/0", "must be positive"}, {"", "here", 3, 7}});
  error.with_internal("secret").with_retry_after(9);
  const Response response = problem(error, "req-1", "/v2/models/m/infer");
  EXPECT_EQ(422, response.status);
  EXPECT_EQ("application/problem+json", response.headers.get("Content-Type"));
  EXPECT_EQ("9", response.headers.get("Retry-After"));
  const std::string& body = std::get<std::string>(response.body);
  EXPECT_EQ(std::string::npos, body.find("secret"));
  const auto document = nlohmann::json::parse(body);
  EXPECT_EQ("/docs/errors#invalid_request", document["type"]);
  EXPECT_EQ(422, document["status"]);
  EXPECT_EQ("req-1", document["instance"]);
  EXPECT_EQ("invalid_request", document["code"]);
  EXPECT_EQ("2 fields are wrong", document["error"]);
  EXPECT_EQ("/shape/0", document["errors"][0]["pointer"]);
  EXPECT_FALSE(document["errors"][0].contains("line"));
  EXPECT_EQ(7, document["errors"][1]["column"]);
}

TEST(Problem, what_is_no_error_of_ours_says_nothing_of_itself) {
  const Response response = problem(std::make_exception_ptr(std::runtime_error("path /secret")), "req-1", "/");
  EXPECT_EQ(500, response.status);
  EXPECT_EQ(std::string::npos, std::get<std::string>(response.body).find("secret"));
  EXPECT_EQ(503, problem(std::make_exception_ptr(std::bad_alloc()), "req-1", "/").status);
}

TEST(Problem, text_that_is_not_utf8_is_mended) {
  const Response response = problem(core::Error("invalid_request", "got '\xff'"), "req-1");
  EXPECT_TRUE(is_utf8(std::get<std::string>(response.body)));
}

}  // namespace
}  // namespace meshd::api
