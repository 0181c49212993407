// JSON as it comes from outside: lists of numbers read in bulk mean what they mean value by value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "api/json/schema.h"

namespace meshd::api {
namespace {

std::string written(const Json& json) {
  if (json.as<std::nullptr_t>() != nullptr) return "null";
  if (const auto* yes = json.as<bool>()) return *yes ? "true" : "false";
  if (const auto* text = json.as<std::string>()) return quote(*text);
  std::string out;
  if (const auto* number = json.as<JsonNumber>()) {
    if (number->kind == JsonNumber::Kind::kSigned) append_integer(out, number->i);
    if (number->kind == JsonNumber::Kind::kUnsigned) append_unsigned(out, number->u);
    if (number->kind == JsonNumber::Kind::kFloat) append_double(out, number->f);
    return out;
  }
  if (const auto* object = json.as<JsonObject>()) {
    for (const auto& [name, value] : *object) out += (out.empty() ? "" : ",") + quote(name) + ":" + written(value);
    return "{" + out + "}";
  }
  json.each([&](size_t i, const Json& item) {
    out += (i == 0 ? "" : ",") + written(item);
    return true;
  });
  return "[" + out + "]";
}

std::string error_of(const std::string& text, const JsonLimits& limits = {}) {
  try {
    Json::parse(text, limits);
  } catch (const core::Error& error) {
    return std::to_string(error.diagnostics().at(0).line) + ": " + error.detail();
  }
  return "none";
}

TEST(Json, long_lists_are_what_short_ones_are) {
  for (const std::string text :
       {"[1,2,3,4,5,6,7,8,9]", "[1.5,-2.0,3e3,-0.0,1e-300,0.1,7.25,8.0,9.0]",
        "{\"a\":[[1,2,3,4,5,6,7,8],[9]],\"b\":[]}", "[1,2.5,3,4,5,6,7,8,-9]",
        "{\"[\":\"[1,2,3,4,5,6,7,8]\",\"c\":[0,0,0,0,0,0,0,0]}", "[1,2,3,4,5,6,7,8,18446744073709551615]",
        "[1,2,3,4,5,6,7,8,null]", "[[],[1,2,3,4,5,6,7,8],[[]]]"}) {
    std::string expected = text;
    for (const auto& [from, to] : {std::pair{"3e3", "3000.0"}, {"18446744073709551615", "\"18446744073709551615\""}}) {
      if (const size_t at = expected.find(from); at != std::string::npos)
        expected.replace(at, std::string(from).size(), to);
    }
    EXPECT_EQ(written(Json::parse(text)), expected);
  }
}

TEST(Json, space_between_numbers_is_passed_over) {
  EXPECT_EQ(written(Json::parse(" [ 1 ,\n 2 , 3,\t4,\r5, 6, 7, 8 ] ")), "[1,2,3,4,5,6,7,8]");
}

TEST(Json, random_lists_keep_every_number) {
  std::mt19937_64 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    std::string text;
    const auto count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ',';
      if (random() % 2 == 0) {
        append_double(text, std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100));
      } else {
        text += std::to_string(static_cast<int64_t>(random() % 1000) - 500);
      }
    }
    text = "[" + text + "]";
    EXPECT_EQ(written(Json::parse(text)), text);
  }
}

TEST(Json, what_is_no_number_is_refused_in_long_lists_too) {
  for (const std::string bad : {"01", "1.", ".5", "+1", "0x10", "NaN", "1e", "--1", "1 2", ""}) {
    EXPECT_NE(error_of("[1,2,3,4,5,6,7,8," + bad + "]"), "none") << bad;
  }
  EXPECT_NE(error_of("[1,2,3,4,5,6,7,8"), "none");
  EXPECT_NE(error_of("[1,2,3,4,5,6,7,8}"), "none");
  EXPECT_NE(error_of("[1,2,3,4,5,6,7,8]]"), "none");
}

TEST(Json, errors_behind_long_lists_name_their_line) {
  EXPECT_THAT(error_of("{\"a\": [1,\n2,\n3,4,5,6,7,8,9],\n\"b\": nul}"), testing::StartsWith("4: "));
  EXPECT_THAT(error_of("{\"a\": [1,2,3,4,5,6,7,8,9],\n\"a\": 1}"), testing::HasSubstr("occurs twice"));
}

TEST(Json, limits_count_the_numbers_of_lists) {
  EXPECT_EQ(error_of("[1,2,3,4,5,6,7,8,9]", {64, 20}), "none");
  EXPECT_THAT(error_of("[[1,2,3,4,5,6,7,8,9],[1,2,3,4,5,6,7,8,9],[1,2,3,4,5,6,7,8,9]]", {64, 20}),
              testing::HasSubstr("more than 20 values"));
}

TEST(Json, limits_count_what_is_not_packed) {
  const JsonLimits limits{64, 1000, 10};
  EXPECT_NO_THROW(Json::parse("[1,2,3,4,5,6,7,8,9,10,11,12,13,14]", limits));
  EXPECT_NO_THROW(Json::parse("[[],[],[],[],[],[],[],[],[]]", limits));
  EXPECT_THROW(Json::parse("[[],[],[],[],[],[],[],[],[],[]]", limits), core::Error);
  EXPECT_THROW(Json::parse(R"(["a",true,null,"a",true,null,"a",true,null,1])", limits), core::Error);
}

struct Ranges {
  std::vector<int64_t> a, b;
};

struct Optionals {
  std::optional<std::string> name;
  std::optional<std::vector<int64_t>> sizes;
  std::optional<OneOrMore<int64_t>> numbers;
};

}  // namespace

template <>
Schema<Ranges> make_schema() {
  return {"Ranges", {{"a", &Ranges::a, {.low = 0, .high = 5}}, {"b", &Ranges::b, {.low = 0, .high = 5}}}};
}

template <>
Schema<Optionals> make_schema() {
  return {"Optionals",
          {{"name", &Optionals::name}, {"sizes", &Optionals::sizes, {.low = 0}}, {"numbers", &Optionals::numbers}}};
}

namespace {

TEST(Schema, optional_field_that_cannot_be_read_has_no_value) {
  core::Diagnostics wrong;
  const auto read = read_json<Optionals>(Json::parse(R"({"name": 5, "sizes": [1, -1], "numbers": "a"})"), "", wrong);
  EXPECT_EQ(wrong.list().size(), 3U);
  EXPECT_FALSE(read.name || read.sizes || read.numbers);
}

TEST(Schema, entries_from_a_range_are_held_to_it) {
  core::Diagnostics wrong;
  const auto read = read_json<Ranges>(Json::parse(R"({"a": [1, 5, 6, -1], "b": [2, 3]})"), "/in", wrong);
  EXPECT_EQ(read.b, (std::vector<int64_t>{2, 3}));
  ASSERT_EQ(wrong.list().size(), 1U);
  EXPECT_EQ(wrong.list().front().pointer, "/in/a/2");
  EXPECT_EQ(wrong.list().front().detail, "expected a whole number from 0 to 5, got 6");
}

/// The code that parsing is refused with; "" when it is not.
std::string refusal_of(const std::string& text, core::MemoryReservation& memory) {
  try {
    Json::parse(text, {}, &memory);
  } catch (const core::Error& error) {
    return std::string(error.code().word());
  }
  return "";
}

/// A ledger whose account of requests has `bytes`.
core::MemoryLedgerRef ledger_of(int64_t bytes) { return core::MemoryLedger::create(bytes / 4 * 5); }

TEST(Json, values_are_held_before_they_are_made) {
  const std::string text = "[" + std::string(99'999 * 3, ' ') + "[]]";
  std::string lists = "[";
  for (int i = 0; i < 100'000; ++i) lists += "[],";
  lists += "0]";
  core::MemoryReservation enough(ledger_of(int64_t{1} << 30), core::MemoryAccount::kRequests);
  EXPECT_EQ(Json::parse(lists, {}, &enough).size(), 100'001U);
  EXPECT_GE(enough.bytes(), static_cast<int64_t>(100'000 * 2 * sizeof(Json)));
  core::MemoryReservation few(ledger_of(int64_t{4} << 20), core::MemoryAccount::kRequests);
  EXPECT_EQ(refusal_of(lists, few), "body_too_large");
  EXPECT_LE(few.bytes(), int64_t{4} << 20);
  core::MemoryReservation other(ledger_of(int64_t{4} << 20), core::MemoryAccount::kRequests);
  EXPECT_EQ(refusal_of(text, other), "");
}

TEST(Json, long_strings_are_read_as_the_parser_reads_them) {
  const std::string plain(300, 'x');
  const std::vector<std::string> pieces = {
      plain,   plain + R"(\n)" + plain, R"(\")" + plain,       plain + R"(\\)",       plain + "\xc3\xa9",
      "short", R"(\u0041)" + plain,     std::string(255, ']'), std::string(256, '['), ""};
  for (const std::string& name : pieces) {
    for (const std::string& value : pieces) {
      const std::string text = "{\"" + name + "\": [[\"" + value + "\", 1, \"" + name + "\"], [1,2,3,4,5,6,7,8,9], \"" +
                               value + "\"], \"last\": \"" + plain + "\"}";
      const auto expected = nlohmann::json::parse(text);
      const Json read = Json::parse(text);
      const std::string key = expected.items().begin().key() == "last" ? std::next(expected.items().begin()).key()
                                                                       : expected.items().begin().key();
      const Json* list = read.find(key);
      ASSERT_NE(list, nullptr) << text;
      EXPECT_EQ(*list->at(0).at(0).as<std::string>(), expected[key][0][0].get<std::string>());
      EXPECT_EQ(*list->at(0).at(2).as<std::string>(), expected[key][0][2].get<std::string>());
      EXPECT_EQ(list->at(1).size(), 9U);
      EXPECT_EQ(*list->at(2).as<std::string>(), expected[key][2].get<std::string>());
      EXPECT_EQ(*read.find("last")->as<std::string>(), plain);
    }
  }
}

TEST(Json, mistakes_behind_long_strings_have_their_line) {
  const std::string plain(1000, 'x');
  const std::vector<std::pair<std::string, int>> texts = {{"{\"a\": \"" + plain + "\",\n\"b\": nul}", 2},
                                                          {"[\"" + plain + "\",\n\n\"" + plain + "\" 1]", 3},
                                                          {"[\"" + plain + "\n\"]", 2},
                                                          {"[\"" + plain, 1},
                                                          {"[\"" + plain + "\\", 1}};
  for (const auto& [text, line] : texts) {
    try {
      Json::parse(text);
      ADD_FAILURE() << text;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code().word(), "malformed_json");
      ASSERT_EQ(error.diagnostics().size(), 1U);
      EXPECT_EQ(error.diagnostics().front().line, line) << text;
    }
  }
}

TEST(Json, long_names_that_stand_twice_are_refused) {
  const std::string name(400, 'n');
  core::MemoryReservation none;
  EXPECT_EQ(refusal_of("{\"" + name + "\": 1, \"" + name + "\": 2}", none), "malformed_json");
}

TEST(Json, elided_lists_are_held_too) {
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) text += "[1,2,3,4,5,6,7,8],";
  text += "0]";
  core::MemoryReservation few(ledger_of(int64_t{4} << 20), core::MemoryAccount::kRequests);
  EXPECT_EQ(refusal_of(text, few), "body_too_large");
  core::MemoryReservation one(ledger_of(int64_t{4} << 20), core::MemoryAccount::kRequests);
  std::string numbers = "[1";
  for (int i = 0; i < 100'000; ++i) numbers += ",1";
  EXPECT_EQ(Json::parse(numbers + "]", {}, &one).size(), 100'001U) << "one list costs its place, not its numbers";
}

TEST(Schema, every_mistake_is_told_with_the_nearest_name) {
  core::Diagnostics wrong;
  read_json<Ranges>(Json::parse(R"({"aa": 1, "b": ["x"], "quite": 2})"), "", wrong);
  std::vector<std::string> told;
  for (const core::Diagnostic& mistake : wrong.list()) told.push_back(mistake.pointer + " " + mistake.detail);
  EXPECT_THAT(told, testing::UnorderedElementsAre("/b/0 expected a whole number from 0 to 5, got a string",
                                                  "/aa is not a field that is known here; did you mean \"a\"?",
                                                  "/quite is not a field that is known here; \"a\" is known"))
      << "a misspelt name is one mistake: what it stands for is not missing as well";
}

TEST(Schema, what_is_written_is_read_back) {
  const Ranges out{{1, 2}, {}};
  EXPECT_EQ(to_json(out), R"({"a":[1,2],"b":[]})");
  core::Diagnostics wrong;
  EXPECT_EQ(read_json<Ranges>(Json::parse(to_json(out)), "", wrong).a, out.a);
  EXPECT_TRUE(wrong.empty());
}

TEST(Schema, integers_of_any_size_are_numbers) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(to_json(Ranges{{kMost}, {-kMost}}), R"({"a":[9223372036854775807],"b":[-9223372036854775807]})");
}

TEST(Schema, of_many_unknown_fields_the_first_are_listed) {
  std::string text = "{";
  for (int i = 0; i < 5000; ++i) text += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  core::Diagnostics wrong;
  read_json<Ranges>(Json::parse(text + "}"), "", wrong);
  EXPECT_EQ(wrong.list().size(), kMostMistakes);
}

}  // namespace
}  // namespace meshd::api
