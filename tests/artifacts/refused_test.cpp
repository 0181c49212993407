// What is no artifact, or one that is damaged, is refused and says where.
#include <gtest/gtest.h>

#include "service/core/error.h"
#include "service/core/memory_ledger.h"
#include "service/program/bytecode/artifact.h"
#include "service/program/bytecode/byte_reader.h"
#include "tests/artifacts/artifact_files.h"
#include "tests/artifacts/canonical_text.h"
#include "tests/support/mutate.h"

namespace meshd::test {
namespace {

using namespace std::string_view_literals;

core::Error error_of(std::string_view bytes) {
  try {
    program::read_artifact(bytes);
  } catch (const core::Error& error) {
    return error;
  }
  return {"internal", "the artifact was read"};
}

TEST(Refused, files_that_are_known_by_name) {
  const std::pair<std::string, std::string_view> files[] = {
      {std::string("PK\x03\x04\x14\0\0\0model/data.pkl"sv), "TorchScript"},
      {std::string("\x08\x01\x12\x80\x10\x0a\x12\x0a\x05serve"sv), "SavedModel"},
      {std::string("\x08\x08\x12\x07pytorch\x1a\x03"
                   "1.9"sv),
       "ONNX"},
      {std::string("\x0a\x05jit_f\x12\x04main"sv), "HLO"},
      {std::string("\x1c\0\0\0TFL3\0\0\0\0"sv), "Lite"},
      {std::string("\x89HDF\r\n\x1a\n\0\0"sv), "HDF5"},
      {std::string("\x1f\x8b\x08\0\0\0\0\0"sv), "gzip"},
      {std::string("\x80\x04\x95\x05\0\0\0\0\0\0\0\x8c\x01x\x94."sv), "pickle"},
  };
  for (const auto& [bytes, name] : files) {
    const core::Error error = error_of(bytes);
    EXPECT_EQ(error.code().word(), "unsupported_format") << name;
    EXPECT_NE(error.detail().find(name), std::string::npos) << error.detail();
  }
}

TEST(Refused, anything_else_says_what_is_expected) {
  for (const std::string_view bytes : {""sv, "ML\1"sv, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"sv}) {
    const core::Error error = error_of(bytes);
    EXPECT_EQ(error.code().word(), "program_syntax");
    EXPECT_NE(error.detail().find("jax.export"), std::string::npos) << error.detail();
  }
}

TEST(Refused, newer_versions_of_the_format) {
  const core::Error error = error_of("ML\xefR\x81\0"sv);
  EXPECT_EQ(error.code().word(), "unsupported_format");
  EXPECT_NE(error.detail().find("version 64"), std::string::npos) << error.detail();
}

TEST(ByteReader, varints_are_of_one_to_nine_bytes) {
  program::ByteReader reader("\x03\xfe\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv);
  EXPECT_EQ(reader.varint(), 1U);
  EXPECT_EQ(reader.varint(), 16383U);
  EXPECT_EQ(reader.varint(), UINT64_MAX);
  EXPECT_THROW(reader.varint(), core::Error);  // a second byte is missing
  program::ByteReader signs("\x01\x03\x05\x00\xff\xff\xff\xff\xff\xff\xff\xff"sv);
  EXPECT_EQ(signs.signed_varint(), 0);
  EXPECT_EQ(signs.signed_varint(), -1);
  EXPECT_EQ(signs.signed_varint(), 1);
  EXPECT_EQ(signs.signed_varint(), INT64_MIN);
}

TEST(Hostile, truncations_are_refused_with_their_place) {
  constexpr size_t kStep = 13;
  constexpr size_t kMagic = 4;  // less than that is text
  int64_t refused = 0;
  size_t start = 0;
  for (const ArtifactPair& pair : artifact_pairs()) {
    for (size_t size = kMagic + start++ % kStep; size < pair.artifact.size(); size += kStep * 3) {
      const core::Error error = error_of(std::string_view(pair.artifact).substr(0, size));
      ASSERT_NE(error.code().word(), "internal") << pair.name << " of " << size << " bytes";
      ++refused;
    }
  }
  EXPECT_GT(refused, 5000);
}

TEST(Hostile, mutations_are_read_or_refused) {
  std::vector<ArtifactPair> seeds = artifact_pairs();
  for (ArtifactPair& each : exports()) seeds.push_back(std::move(each));
  const std::string nine("\0\xff\xff\xff\xff\xff\xff\xff\x7f"sv);
  testing::Mutator mutator(
      20260701, {"\x01", "\x03", "\xff", std::string(1, '\0'), "ML\xefR", nine, nine + nine, "\xfe\xff", "\x80"});
  std::mt19937_64 choose(11);
  constexpr int kRuns = 40'000;
  int read = 0;
  int refused = 0;
  for (int i = 0; i < kRuns; ++i) {
    const std::string& seed = seeds[choose() % seeds.size()].artifact;
    std::string bytes = seed;
    // Few bytes are changed in half of the runs, so that damage is found late.
    if (i % 2 == 0) {
      for (uint64_t n = 1 + choose() % 3; n > 0; --n) bytes[choose() % bytes.size()] = static_cast<char>(choose());
    } else {
      bytes = mutator.mutate(std::move(bytes), seeds[choose() % seeds.size()].artifact);
    }
    try {
      const std::string text = program::read_artifact(bytes).text;
      ++read;
      try {
        canonical_text(text);
      } catch (const core::Error& error) {
        ASSERT_NE(error.code().word(), "internal") << error.detail();
      }
    } catch (const core::Error& error) {
      ++refused;
      ASSERT_NE(error.code().word(), "internal") << error.detail();
    }
  }
  EXPECT_GT(read, kRuns / 20);
  EXPECT_GT(refused, kRuns / 20);
}

TEST(Hostile, tables_are_held_before_they_are_made) {
  const auto ledger = core::MemoryLedger::create(int64_t{64} << 20);
  core::MemoryReservation memory(ledger, core::MemoryAccount::kRequests);
  const ArtifactPair pair = artifact_pairs().at(0);
  const std::string text = program::read_artifact(pair.artifact, &memory).text;
  EXPECT_GE(memory.bytes(), static_cast<int64_t>(text.size()));
  EXPECT_LT(memory.bytes(), static_cast<int64_t>(4 * text.size() + (1 << 20)));
  const auto small = core::MemoryLedger::create(int64_t{64} << 10);
  core::MemoryReservation little(small, core::MemoryAccount::kRequests);
  EXPECT_THROW(program::read_artifact(pair.artifact, &little), core::Error);
  EXPECT_EQ(little.bytes(), 0);
}

}  // namespace
}  // namespace meshd::test
