// Values of sessions as files: what clients feed to programs and reply to them, and what programs tell.
#include <fmt/core.h>

#include <cstring>

#include "api/codecs/value.h"
#include "service/effects/infeed_entry.h"
#include "tests/support/eventually.h"
#include "tests/unit/routes/files.h"
#include "tests/unit/routes/in_process.h"

namespace meshd::testing {
namespace {

using nlohmann::json;
using tensor::DType;

const tensor::TensorType kTwo{DType::kFloat32, {2}};
const std::string kNpyMedia = "Content-Type: application/x-npy", kOpenMedia = "Content-Type: application/octet-stream";
const std::string kFormMedia = "Content-Type: multipart/form-data; boundary=b0undary";

std::string floats(const std::vector<float>& values) { return bytes_of(values); }

template <typename T>
void put(std::string& out, size_t place, T bits) {
  if (out.size() >= (place + 1) * sizeof(bits)) std::memcpy(out.data() + place * sizeof(bits), &bits, sizeof(bits));
}

// Elements whose bits differ from byte to byte; of floats the first two are a NaN with a payload and -0.0.
std::string awkward_bytes(const tensor::TensorType& type) {
  std::string out(static_cast<size_t>(tensor::byte_count(type)), '\0');
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(0x81 + 37 * i);
  switch (tensor::part_of(type.dtype)) {
    case DType::kFloat64:
      put(out, 0, uint64_t{0x7ff4'dead'beef'0001});
      put(out, 1, uint64_t{1} << 63);
      break;
    case DType::kFloat32:
      put(out, 0, uint32_t{0x7fa1'2345});
      put(out, 1, uint32_t{1} << 31);
      break;
    case DType::kFloat16:
      put(out, 0, uint16_t{0x7d01});
      put(out, 1, uint16_t{0x8000});
      break;
    case DType::kBfloat16:
      put(out, 0, uint16_t{0x7fa1});
      put(out, 1, uint16_t{0x8000});
      break;
    default:
      break;
  }
  api::clean_elements(type.dtype, std::as_writable_bytes(std::span(out)));
  return out;
}

class SessionValues : public ::testing::Test {
 protected:
  SessionValues()
      : session_("/v1/sessions/" + server_.ask("POST", "/v1/sessions", "{}").json()["id"].get<std::string>()) {}

  Answer feed(const std::string& query, const std::string& body, const std::vector<std::string>& fields) {
    return server_.ask("POST", session_ + "/infeed" + query, body, fields);
  }
  Answer feed_form(const json& document, const std::vector<File>& files, std::vector<std::string> fields = {},
                   const std::string& query = {}) {
    fields.push_back(kFormMedia);
    return feed(query, form_of(document, files), fields);
  }
  // The entry of a queue as it is kept.
  effects::InfeedEntry kept(const std::string& queue, int64_t number) {
    const std::string id = session_.substr(session_.rfind('/') + 1);
    const auto rows =
        server_.catalog().read([&](storage::Reader& reader) { return reader.infeeds(id, queue, number - 1, 1); });
    EXPECT_EQ(rows.size(), 1U);
    return rows.empty() ? effects::InfeedEntry() : effects::infeed_from_text(queue, number, rows[0].content);
  }
  // "float32[2] float32[3]"
  static std::string types_of(const std::vector<tensor::DenseValue>& values) {
    std::string out;
    for (const tensor::DenseValue& value : values) {
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", tensor::name(value.type.dtype),
                         tensor::to_string(std::span<const int64_t>(value.type.dims)));
    }
    return out;
  }
  static std::string bytes_in(const tensor::DenseValue& value) {
    return {reinterpret_cast<const char*>(value.bytes().data()), value.bytes().size()};
  }

  InProcess server_;
  const std::string session_;
};

TEST_F(SessionValues, file_alone_is_an_entry) {
  const FileArray a{"a", kTwo, floats({1, 2})}, b{"b", {DType::kInt8, {}}, "c"};
  const std::vector<std::pair<std::string, std::string>> files = {
      {npy_file(a.type, a.bytes), "float32[2]"},
      {npz_file({b, a}), "float32[2] int8[]"},
      {safetensors_file({b, a}), "float32[2] int8[]"},
      {npz_file({}), ""},
  };
  int64_t number = 0;
  for (const auto& [file, types] : files) {
    // With a type, and as curl --data-binary sends it.
    for (const std::string& field : {kOpenMedia, std::string("Content-Type: application/x-www-form-urlencoded")}) {
      const Answer made = feed("?queue=q", file, {field});
      EXPECT_EQ(made.status, 201) << made.body;
      EXPECT_EQ(made.json(), json({{"queue", "q"}, {"number", ++number}}));
      const effects::InfeedEntry entry = kept("q", number);
      EXPECT_EQ(types_of(entry.values), types);
      if (!types.empty()) {
        EXPECT_EQ(bytes_in(entry.values.at(0)), a.bytes);
      }
    }
  }
}

TEST_F(SessionValues, forms_name_their_files) {
  const json document = {
      {"queue", "q"},
      {"values",
       {{{"part", "x"}}, {{"part", "w"}, {"member", "b"}}, {{"part", "r"}, {"dtype", "int8"}, {"shape", {2}}}}}};
  const std::vector<File> files = {{"x", npy_file(kTwo, floats({1, 2}))},
                                   {"w", npz_file({{"a", kTwo, floats({3, 4})}, {"b", kTwo, floats({5, 6})}})},
                                   {"r", "PK"}};
  ASSERT_EQ(feed_form(document, files).status, 201);
  const effects::InfeedEntry entry = kept("q", 1);
  EXPECT_EQ(types_of(entry.values), "float32[2] float32[2] int8[2]");
  EXPECT_EQ(bytes_in(entry.values[1]), floats({5, 6}));
  const json parts = {
      {"parts", {{{"device", 0}, {"values", {{{"part", "x"}}}}}, {{"device", 1}, {"values", {{{"part", "x"}}}}}}}};
  ASSERT_EQ(feed_form(parts, files, {}, "?queue=p").status, 201);
  EXPECT_EQ(bytes_in(kept("p", 1).parts.at(1).values.at(0)), floats({1, 2}));
}

TEST_F(SessionValues, every_dtype_keeps_its_bits) {
  int64_t number = 0;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    for (const tensor::Dims& dims : {tensor::Dims{}, tensor::Dims{3}, tensor::Dims{2, 0}, tensor::Dims{5, 1}}) {
      const tensor::TensorType type{row.dtype, dims};
      const std::string bytes = awkward_bytes(type);
      const std::string npy = npy_file(type, bytes), zip = npz_file({{"x", type, bytes}});
      const auto expect = [&](const Answer& made) {
        ASSERT_EQ(made.status, 201) << row.name << made.body;
        const effects::InfeedEntry entry = kept("", ++number);
        ASSERT_EQ(entry.values.size(), 1U);
        EXPECT_EQ(entry.values[0].type, type);
        EXPECT_EQ(bytes_in(entry.values[0]), bytes) << row.name;
      };
      const bool is_open = tensor::is_void_in_numpy(row.dtype);
      const std::string name(row.name);
      expect(feed(is_open ? "?dtype=" + name : "", npy, {kNpyMedia}));
      expect(feed(is_open ? "?dtype_for=x=" + name : "", zip, {kOpenMedia}));
      json value = {{"part", "x"}};
      if (is_open) value["dtype"] = name;
      expect(feed_form({{"values", {value}}}, {{"x", npy}}));
      if (!row.safetensors.empty()) expect(feed("", safetensors_file({{"x", type, bytes}}), {kOpenMedia}));
      std::string shape;
      for (const int64_t size : dims) shape += (shape.empty() ? "" : ",") + std::to_string(size);
      expect(feed("?dtype=" + name + "&shape=" + shape, bytes,
                  bytes.empty() ? std::vector<std::string>{} : std::vector{kOpenMedia}));
    }
  }
}

TEST_F(SessionValues, mistakes_in_files_have_their_codes) {
  const std::string npy = npy_file(kTwo, floats({1, 2})), zip = npz_file({{"a", kTwo, floats({1, 2})}});
  const std::string open = npy_file({DType::kFloat8E4M3FN, {1}}, "a");
  std::string many_ones = "1";
  for (int i = 0; i < 64; ++i) many_ones += ",1";
  const std::vector<std::tuple<std::string, std::string, std::string, std::string>> wrong = {
      {"", npy.substr(0, 100), kNpyMedia, "400 malformed_body"},
      {"", npy + "x", kNpyMedia, "400 malformed_body"},
      {"", zip.substr(0, 150), kOpenMedia, "400 malformed_body"},
      {"", npy, "Content-Type: application/zip", "400 malformed_body"},
      {"", open, kNpyMedia, "422 unsupported_dtype"},
      {"", npz_file({{"a", {DType::kInt4, {1}}, "a"}}), kOpenMedia, "422 unsupported_dtype"},
      {"?dtype=float32", open, kNpyMedia, "422 unsupported_dtype"},
      {"?dtype=int8", npy, kNpyMedia, "422 invalid_query /dtype"},
      {"?shape=3", npy, kNpyMedia, "422 invalid_query /shape"},
      {"?dtype=int8&dtype_for=b=int4&dtype_for=a=int8", zip, kOpenMedia,
       "422 invalid_query /dtype /dtype_for /dtype_for"},
      {"?dtype_for=a", zip, kOpenMedia, "422 invalid_query"},
      {"?dtype_for=a=int4&dtype_for=a=int8", zip, kOpenMedia, "422 invalid_query"},
      {"?dtype=float33", npy, kNpyMedia, "422 invalid_query"},
      {"?number=0", npy, kNpyMedia, "422 invalid_query"},
      {"?queue=" + std::string(256, 'q'), npy, kNpyMedia, "422 invalid_query"},
      {"?line=q", npy, kNpyMedia, "422 invalid_query "},
      {"", "raw", kOpenMedia, "422 invalid_query /dtype /shape"},
      {"?dtype=int8", "raw", kOpenMedia, "422 invalid_query /shape"},
      {"?dtype=int8&shape=4", "raw", kOpenMedia, "400 malformed_body"},
      {"?dtype=uint8&shape=" + many_ones, "r", kOpenMedia, "422 invalid_array"},
      {"?dtype=int8&shape=0,999999999999999,999999999999999", "", kOpenMedia, "422 invalid_array"},
      {"", "\x80\x04\x95pickle", kOpenMedia, "422 unsupported_format"},
      {"", "ML\xefR bytecode", kOpenMedia, "415 unsupported_media_type"},
      {"", "raw", "Content-Type: text/plain", "415 unsupported_media_type"},
      {"", "raw", "Content-Type: application/json; a, text/plain", "415 unsupported_media_type"},
      {"", R"({"values": []})", "Content-Type: application/x-www-form-urlencoded", "415 unsupported_media_type"},
      {"?dtype=int8&shape=2", R"({"values": []})", "Content-Type: application/json", "422 invalid_query /dtype /shape"},
  };
  for (const auto& [query, body, field, problem] : wrong)
    EXPECT_EQ(feed(query, body, {field}).problem(), problem) << query << " " << field;
  EXPECT_EQ(server_.ask("GET", session_ + "/infeed").json()["items"], json::array());
}

TEST_F(SessionValues, mistakes_in_forms_name_the_value) {
  const std::string npy = npy_file(kTwo, floats({1, 2})), open = npy_file({DType::kFloat8E4M3FN, {1}}, "a");
  const auto problem = [&](const json& value, const File& file) {
    return feed_form({{"values", {{{"part", "ok"}}, value}}}, {file, {"ok", npy}}).problem();
  };
  const std::string at = "422 invalid_request /values/1/";
  EXPECT_EQ(problem({{"part", "x"}}, {"y", npy}), at + "part");
  EXPECT_EQ(problem({{"part", "x"}}, {"x", "raw"}), at + "part");
  EXPECT_EQ(problem({{"part", "x"}, {"dtype", "int8"}}, {"x", "raw"}), at + "shape");
  EXPECT_EQ(problem({{"part", "x"}, {"shape", {3}}}, {"x", "raw"}), at + "dtype");
  EXPECT_EQ(problem({{"part", "x"}, {"dtype", "int8"}}, {"x", npy}), at + "dtype");
  EXPECT_EQ(problem({{"part", "x"}, {"dtype", "int8"}, {"shape", {0, int64_t{1} << 40, int64_t{1} << 40}}}, {"x", ""}),
            at + "part");
  EXPECT_EQ(problem({{"part", "x"}}, {"x", open}), at + "part");
  EXPECT_EQ(problem({{"part", "x"}, {"member", "m"}}, {"x", npy}), at + "member");
  EXPECT_EQ(problem({{"part", "x"}, {"base64", ""}}, {"x", npy}), at + "base64");
  EXPECT_EQ(problem({{"job", "job_1"}, {"result", 0}}, {"x", npy}), at + "job");
  EXPECT_EQ(feed("", json({{"values", {{{"part", "x"}}}}}).dump(), {}).problem(), "422 invalid_request /values/0/part");
  EXPECT_EQ(
      feed_form({{"queue", "q"}, {"number", 1}, {"values", json::array()}}, {}, {}, "?queue=q&number=1").problem(),
      "422 invalid_request /queue /number");
  std::string untyped = form_of({{"values", json::array()}}, {});
  untyped.replace(untyped.find("application/json"), 16, "text/plain");
  EXPECT_EQ(feed("", untyped, {kFormMedia}).problem(), "415 unsupported_media_type");
}

TEST_F(SessionValues, entry_that_comes_again_is_appended_once) {
  const std::string npy = npy_file(kTwo, floats({1, 2})), other = npy_file(kTwo, floats({1, 3}));
  const std::vector<std::string> keyed = {kNpyMedia, "Idempotency-Key: k"};
  EXPECT_EQ(feed("?queue=q", npy, keyed).json()["number"], 1);
  const Answer again = feed("?queue=q", npy, keyed);
  EXPECT_EQ(again.header("Idempotency-Replayed"), "true");
  EXPECT_EQ(again.json()["number"], 1);
  EXPECT_EQ(feed("?queue=q", other, keyed).problem(), "422 idempotency_key_reused");
  EXPECT_EQ(feed("?queue=r", npy, keyed).problem(), "422 idempotency_key_reused");
  // The same bytes as another kind of file.
  const std::string size = "?queue=q&dtype=uint8&shape=" + std::to_string(npy.size());
  EXPECT_EQ(feed(size, npy, {kOpenMedia, "Idempotency-Key: raw"}).status, 201);
  EXPECT_EQ(feed(size, npy, {kNpyMedia, "Idempotency-Key: raw"}).problem(), "422 idempotency_key_reused");
  // By its number.
  EXPECT_EQ(feed("?queue=q&number=3", npy, {kNpyMedia}).status, 201);
  EXPECT_EQ(feed("?queue=q&number=3", npy, {kNpyMedia}).status, 200);
  EXPECT_EQ(feed("?queue=q&number=3", other, {kNpyMedia}).problem(), "409 conflict");
  EXPECT_EQ(feed("?queue=q&number=5", npy, {kNpyMedia}).problem(), "409 conflict");
  // A form has another boundary each time.
  const json document = {{"queue", "f"}, {"values", {{{"part", "x"}}}}};
  EXPECT_EQ(feed("", form_of(document, {{"x", npy}}, "one"),
                 {"Content-Type: multipart/form-data; boundary=one", "Idempotency-Key: f"})
                .status,
            201);
  const Answer form = feed("", form_of(document, {{"x", npy}}, "two"),
                           {"Content-Type: multipart/form-data; boundary=two", "Idempotency-Key: f"});
  EXPECT_EQ(form.header("Idempotency-Replayed"), "true") << form.body;
}

TEST_F(SessionValues, entries_belong_to_their_principal) {
  const std::string npy = npy_file(kTwo, floats({1, 2}));
  EXPECT_EQ(feed("", npy, {kNpyMedia, "X-Principal: bob"}).problem(), "404 not_found");
  const std::string array = server_.ask("POST", "/v1/arrays", npy, {kNpyMedia, "X-Principal: bob"}).json()["id"];
  EXPECT_EQ(feed_form({{"values", {{{"part", "x"}}, {{"array", array}}}}}, {{"x", npy}}).problem(),
            "404 not_found /values/1");
  ASSERT_EQ(server_.ask("DELETE", session_).status, 204);
  EXPECT_EQ(feed("", npy, {kNpyMedia}).problem(), "404 not_found");
  EXPECT_EQ(feed_form({{"values", {{{"part", "x"}}}}}, {{"x", npy}}).problem(), "404 not_found");
}

TEST_F(SessionValues, too_much_is_refused) {
  const std::string large(static_cast<size_t>(api::body_limit(api::BodyPolicy::kValues)) + 1, 'x');
  EXPECT_EQ(feed("", large, {kOpenMedia}).problem(), "413 body_too_large");
  EXPECT_EQ(feed("", large, {kFormMedia}).problem(), "413 body_too_large");
  // A head alone makes no memory.
  EXPECT_EQ(feed("", npy_file({DType::kUint8, {int64_t{1} << 40}}, ""), {kNpyMedia}).problem(), "400 malformed_body");
  EXPECT_EQ(feed("?dtype=uint8&shape=1099511627776", "x", {kOpenMedia}).problem(), "400 malformed_body");
}

// Takes a 5x3 value that is in two parts by rows (3 and 2 of them), and gives it: to a queue, too.
constexpr std::string_view kTakesSharded = R"(
func.func @main(%t: !stablehlo.token {jax.token = true}) -> (tensor<5x3xf32>) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "in"}> {mhlo.sharding = "{{devices=[2,1]<=[2]}, {maximal device=0}}"} : (!stablehlo.token) -> (tensor<5x3xf32>, !stablehlo.token)
  %1 = "stablehlo.outfeed"(%0#0, %0#1) <{outfeed_config = "out"}> : (tensor<5x3xf32>, !stablehlo.token) -> !stablehlo.token
  return %0#0 : tensor<5x3xf32>
})";

TEST_F(SessionValues, sharded_infeed_takes_a_file_whole_and_a_form_in_parts) {
  const tensor::TensorType whole{DType::kFloat32, {5, 3}}, first{DType::kFloat32, {3, 3}},
      rest{DType::kFloat32, {2, 3}};
  const std::string bytes = awkward_bytes(whole);
  const json run = {{"program", {{"text", kTakesSharded}}}, {"arguments", json::array()}, {"num_partitions", 2}};
  const auto given = [&] {
    return server_.ask("POST", session_ + "/jobs", run.dump(), {"Accept: application/x-npy"}).body;
  };
  ASSERT_EQ(feed("?queue=in", npy_file(whole, bytes), {kNpyMedia}).status, 201);
  EXPECT_EQ(given(), npy_file(whole, bytes));
  const json parts = {
      {"queue", "in"},
      {"parts", {{{"device", 0}, {"values", {{{"part", "a"}}}}}, {{"device", 1}, {"values", {{{"part", "b"}}}}}}}};
  const Answer made =
      feed_form(parts, {{"a", npy_file(first, bytes.substr(0, 36))}, {"b", npy_file(rest, bytes.substr(36))}});
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(given(), npy_file(whole, bytes));
  const Answer told = server_.ask("GET", session_ + "/outfeed?queue=out", "", {"Accept: application/zip"});
  EXPECT_EQ(told.body, npz_file({{"1.0", whole, bytes}, {"2.0", whole, bytes}}));
}

// A callback that gives values of these types.
std::string asks_for(const std::string& types) {
  const bool are_several = types.find(',') != std::string::npos;
  const std::string count = are_several ? ":2" : "";
  return "func.func @main(%n: tensor<i32>) -> (" + types + ") {\n  %u" + count +
         " = stablehlo.custom_call @xla_ffi_python_cpu_callback(%n) {has_side_effect = true, mhlo.backend_config = "
         "{index = 0 : ui64}} : (tensor<i32>) -> " +
         (are_several ? "(" + types + ")" : types) + "\n  return " + (are_several ? "%u#0, %u#1" : "%u") + " : " +
         types + "\n}";
}

class CallbackReplies : public SessionValues {
 protected:
  // A job that asks, and where its request is.
  struct Asked {
    std::string job, request;
  };
  Asked ask(const std::string& types) {
    const json body = {{"program", {{"text", asks_for(types)}}},
                       {"arguments", {7}},
                       {"callbacks", {{"0", {{"effect", "callback"}, {"live", true}}}}},
                       {"results", {{"encoding", "array"}}}};
    const Answer made = server_.ask("POST", session_ + "/jobs", body.dump(), {"Prefer: respond-async"});
    EXPECT_EQ(made.status, 202) << made.body;
    const json open = server_.ask("GET", session_ + "/callbacks?wait=20&after=" + std::to_string(last_)).json();
    EXPECT_EQ(open["items"].size(), 1U) << open;
    last_ = open["items"][0]["number"];
    return {made.json()["id"], session_ + "/callbacks/" + std::to_string(last_)};
  }
  // The bytes of the job's result.
  std::string result(const Asked& asked, size_t number = 0) {
    const json job = server_.ask("GET", "/v1/jobs/" + asked.job + "?wait=20").json();
    EXPECT_EQ(job["state"], "done") << job;
    const std::string array = job["answer"]["results"][number]["array"];
    return server_.ask("GET", "/v1/arrays/" + array + "/data").body;
  }
  void withdraw(const Asked& asked) {
    server_.ask("DELETE", "/v1/jobs/" + asked.job);
    EXPECT_EQ(server_.ask("GET", "/v1/jobs/" + asked.job + "?wait=20").json()["state"], "cancelled");
  }

  int64_t last_ = 0;
};

TEST_F(CallbackReplies, files_are_replies) {
  const FileArray a{"arr_0", kTwo, floats({1, 2})}, b{"arr_1", {DType::kInt8, {3}}, "abc"};
  for (const std::string& file : {npz_file({b, a}), safetensors_file({b, a})}) {
    const Asked asked = ask("tensor<2xf32>, tensor<3xi8>");
    const Answer done = server_.ask("POST", asked.request, file, {kOpenMedia});
    EXPECT_EQ(done.status, 200) << done.body;
    EXPECT_EQ(done.json()["state"], "answered");
    EXPECT_EQ(result(asked, 0), a.bytes);
    EXPECT_EQ(result(asked, 1), b.bytes);
    // The same reply again, as a form.
    const json document = {{"values", {{{"part", "w"}, {"member", "arr_0"}}, {{"part", "r"}}}}};
    EXPECT_EQ(server_.ask("POST", asked.request, form_of(document, {{"w", file}, {"r", b.bytes}}), {kFormMedia}).status,
              200);
    EXPECT_EQ(server_.ask("POST", asked.request, npz_file({a, {"arr_1", b.type, "abd"}}), {kOpenMedia}).problem(),
              "409 conflict");
  }
}

TEST_F(CallbackReplies, every_dtype_keeps_its_bits) {
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    for (const tensor::Dims& dims : {tensor::Dims{3}, tensor::Dims{0, 2}}) {
      const tensor::TensorType type{row.dtype, dims};
      const std::string bytes = awkward_bytes(type), types = "tensor<" + tensor::to_string(type) + ">";
      // Void types of NumPy are what the callback expects.
      for (const auto& [body, field] :
           {std::pair(npy_file(type, bytes), kNpyMedia), std::pair(bytes, kOpenMedia),
            std::pair(npz_file({{"x", type, bytes}}), kOpenMedia),
            std::pair(form_of({{"values", {{{"part", "x"}}}}}, {{"x", npy_file(type, bytes)}}), kFormMedia)}) {
        const Asked asked = ask(types);
        const Answer done = server_.ask("POST", asked.request, body, {field});
        ASSERT_EQ(done.status, 200) << types << done.body;
        EXPECT_EQ(result(asked), bytes) << types;
      }
    }
  }
}

TEST_F(CallbackReplies, as_many_bytes_as_expected_are_raw_whatever_they_begin_with) {
  const Asked asked = ask("tensor<4xi8>");
  const std::string zip_magic = "PK\x03\x04";
  EXPECT_EQ(server_.ask("POST", asked.request, zip_magic, {"Content-Type: application/zip"}).problem(),
            "400 malformed_body");
  EXPECT_EQ(server_.ask("POST", asked.request, zip_magic, {kOpenMedia}).status, 200);
  EXPECT_EQ(result(asked), zip_magic);
}

TEST_F(CallbackReplies, mistakes_have_their_codes) {
  const Asked asked = ask("tensor<2xf32>, tensor<3xi8>");
  const std::string two = npy_file(kTwo, floats({1, 2}));
  const FileArray a{"a", kTwo, floats({1, 2})};
  const auto problem = [&](const std::string& body, const std::string& field) {
    return server_.ask("POST", asked.request, body, {field}).problem();
  };
  EXPECT_EQ(problem(two, kNpyMedia), "422 invalid_request /values");
  EXPECT_EQ(problem(npz_file({a, {"b", kTwo, floats({1, 2})}}), kOpenMedia), "422 invalid_request /values/1");
  EXPECT_EQ(problem("12345678", kOpenMedia), "400 malformed_body");
  EXPECT_EQ(problem("12345678", "Content-Type: text/plain"), "415 unsupported_media_type");
  const auto form = [&](const json& value) {
    return problem(form_of({{"values", {value, {{"part", "x"}}}}}, {{"x", "abc"}, {"y", two}}), kFormMedia);
  };
  EXPECT_EQ(form({{"part", "z"}}), "422 invalid_request /values/0/part");
  EXPECT_EQ(form({{"part", "x"}}), "422 invalid_request /values/0/part");
  EXPECT_EQ(form({{"part", "y"}, {"dtype", "int8"}}), "422 invalid_request /values/0/dtype");
  EXPECT_EQ(form({{"part", "y"}, {"array", "arr_1"}}), "422 invalid_request /values/0/array");
  EXPECT_EQ(form({{"part", "y"}, {"data", {1, 2}}}), "422 invalid_request /values/0/data");
  EXPECT_EQ(problem(json({{"values", {{{"part", "y"}}, {1, 2, 3}}}}).dump(), "Content-Type: application/json"),
            "422 invalid_request /values/0/part");
  EXPECT_EQ(server_.ask("POST", asked.request + "?queue=q", two, {kNpyMedia}).problem(), "422 invalid_query ");
  EXPECT_EQ(server_.ask("POST", asked.request, two, {kNpyMedia, "X-Principal: bob"}).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("POST", session_ + "/callbacks/99", two, {kNpyMedia}).problem(), "404 not_found");
  EXPECT_EQ(server_.ask("GET", asked.request).json()["state"], "open");
  withdraw(asked);
  const std::string late = npz_file({a, {"b", {DType::kInt8, {3}}, "abc"}});
  EXPECT_EQ(server_.ask("POST", asked.request, late, {kOpenMedia}).problem(), "409 job_finished");
}

TEST_F(CallbackReplies, answers_of_a_run_come_from_its_files) {
  const json document = {
      {"program", {{"text", asks_for("tensor<2xf32>, tensor<3xi8>")}}},
      {"arguments", {7}},
      {"callbacks", {{"0", {{"effect", "callback"}, {"answers", {{{{"part", "x"}}, {{"part", "y"}}}}}}}}},
      {"results", {{"encoding", "base64"}}}};
  const std::string bytes = awkward_bytes(kTwo);
  const std::vector<File> files = {{"x", npy_file(kTwo, bytes)}, {"y", npy_file({DType::kInt8, {3}}, "abc")}};
  const Answer run =
      server_.ask("POST", "/v1/run", form_of(document, files), {kFormMedia, "Accept: application/x-npz"});
  EXPECT_EQ(run.status, 200) << run.body;
  EXPECT_EQ(run.body, npz_file({{"0", kTwo, bytes}, {"1", {DType::kInt8, {3}}, "abc"}}));
  EXPECT_EQ(server_.ask("POST", "/v1/run", form_of(document, {files[0]}), {kFormMedia}).problem(),
            "422 invalid_request /callbacks/0/answers/0/1/part");
}

// Parts of an array that the server asks its client for: 5 rows over two devices are 3 and 2.
TEST_F(CallbackReplies, parts_of_an_array_are_files) {
  const std::string mesh =
      server_.ask("POST", "/v1/meshes", R"({"axis_names": ["x"], "devices": [0, 1]})").json()["id"];
  const tensor::TensorType whole{DType::kBfloat16, {5, 3}};
  const std::string bytes = awkward_bytes(whole);
  const json body = {{"shape", {5, 3}}, {"dtype", "bfloat16"},
                     {"mesh", mesh},    {"spec", {{"x"}, json::array()}},
                     {"pull", "each"},  {"session", session_.substr(session_.rfind('/') + 1)}};
  const Answer made = server_.ask("POST", "/v1/arrays:assemble", body.dump());
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string at = session_ + "/callbacks/";
  EXPECT_EQ(server_.ask("POST", at + "1", bytes.substr(0, 12), {kOpenMedia}).problem(), "400 malformed_body");
  EXPECT_EQ(server_.ask("POST", at + "1", bytes.substr(0, 18), {kOpenMedia}).status, 200);
  EXPECT_EQ(server_.ask("POST", at + "2", npy_file({whole.dtype, {2, 3}}, bytes.substr(18)), {kNpyMedia}).status, 200);
  EXPECT_EQ(server_.ask("GET", "/v1/arrays/" + made.json()["id"].get<std::string>() + "/data").body, bytes);
}

// Takes an entry of `in`, gives it to `out` and logs it.
std::string passes_on(const std::string& type) {
  return R"(func.func @main(%t: !stablehlo.token {jax.token = true}) -> (!stablehlo.token {jax.token = true}) {
  %0:2 = "stablehlo.infeed"(%t) <{infeed_config = "in"}> : (!stablehlo.token) -> ()" +
         type + R"(, !stablehlo.token)
  %1 = "stablehlo.outfeed"(%0#0, %0#1) <{outfeed_config = "out"}> : ()" +
         type + R"(, !stablehlo.token) -> !stablehlo.token
  %2 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%1, %0#0, %0#0) {backend_config = "", has_side_effect = true,
    mhlo.backend_config = {index = 0 : ui64}} : (!stablehlo.token, )" +
         type + ", " + type + R"() -> !stablehlo.token
  return %2 : !stablehlo.token
})";
}

class EffectFiles : public SessionValues {
 protected:
  // An outfeed of this value and a log of it twice.
  void tell(const tensor::TensorType& type, const std::string& bytes) {
    const std::string open =
        tensor::is_void_in_numpy(type.dtype) ? "&dtype=" + std::string(tensor::name(type.dtype)) : "";
    ASSERT_EQ(feed("?queue=in" + open, npy_file(type, bytes), {kNpyMedia}).status, 201);
    const json body = {{"program", {{"text", passes_on("tensor<" + tensor::to_string(type) + ">")}}},
                       {"arguments", json::array()},
                       {"callbacks", {{"0", {{"effect", "log"}, {"name", "both"}}}}}};
    const Answer run = server_.ask("POST", session_ + "/jobs", body.dump());
    ASSERT_EQ(run.status, 200) << run.body;
  }
  Answer get(const std::string& path, const std::string& media, std::vector<std::string> fields = {}) {
    if (!media.empty()) fields.push_back("Accept: " + media);
    return server_.ask("GET", session_ + path, "", fields);
  }
};

const std::string kZipMedia = "application/zip", kSafetensorsMedia = "application/x-safetensors";

TEST_F(EffectFiles, every_dtype_keeps_its_bits) {
  int64_t number = 0;
  for (const tensor::DTypeRow& row : tensor::kDTypeTable) {
    for (const tensor::Dims& dims : {tensor::Dims{}, tensor::Dims{3}, tensor::Dims{0, 2}}) {
      const tensor::TensorType type{row.dtype, dims};
      const std::string bytes = awkward_bytes(type);
      tell(type, bytes);
      const std::string before = std::to_string(number++), log = std::to_string(2 * number);
      const std::string queue = "/outfeed?queue=out&after=" + before;
      EXPECT_EQ(get(queue, "application/x-npy").body, npy_file(type, bytes)) << row.name;
      EXPECT_EQ(get(queue, kZipMedia).body, npz_file({{std::to_string(number) + ".0", type, bytes}}));
      const std::vector<FileArray> both = {{log + ".0", type, bytes}, {log + ".1", type, bytes}};
      const std::string last = "/effects?after=" + std::to_string(2 * number - 1);
      EXPECT_EQ(get(last, kZipMedia).body, npz_file(both));
      const Answer tensors = get(last, kSafetensorsMedia);
      if (row.safetensors.empty()) {
        EXPECT_EQ(tensors.problem(), "406 not_acceptable") << row.name;
      } else {
        EXPECT_EQ(tensors.body, safetensors_file(both));
      }
    }
  }
}

TEST_F(EffectFiles, rest_of_the_answer_is_beside_the_file) {
  tell(kTwo, floats({1, 2}));
  tell(kTwo, floats({3, 4}));
  json page = get("/effects?limit=2&encoding=none", "").json();
  EXPECT_EQ(page["items"][1]["values"],
            json::parse(R"([{"dtype": "float32", "shape": [2]}, {"dtype": "float32", "shape": [2]}])"));
  const Answer file = get("/effects?limit=2", "application/x-npz");
  EXPECT_EQ(file.header("Content-Type"), kZipMedia);
  EXPECT_EQ(file.body,
            npz_file({{"1.0", kTwo, floats({1, 2})}, {"2.0", kTwo, floats({1, 2})}, {"2.1", kTwo, floats({1, 2})}}));
  EXPECT_EQ(json::parse(file.header("Meshd-Answer")), page);
  EXPECT_EQ(file.header("Link"), "<" + session_ + "/effects?after=2&limit=2>; rel=\"next\"");
  EXPECT_EQ(file.header("Vary"), "Accept, Accept-Encoding");
  EXPECT_EQ(get("/effects", "").header("Vary").substr(0, 6), "Accept");
  // Documents that do not fit into a field are had without elements.
  for (int i = 0; i < 10; ++i) tell(kTwo, floats({5, 6}));
  const Answer long_page = get("/effects", kZipMedia);
  EXPECT_EQ(long_page.status, 200);
  EXPECT_EQ(long_page.header("Meshd-Answer"), "");
  EXPECT_EQ(get("/effects?encoding=none", "").json()["items"].size(), 24U);
  // A part of it, as of any file.
  const Answer part = get("/effects?limit=2", kZipMedia, {"Range: bytes=0-3"});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, file.body.substr(0, 4));
}

TEST_F(EffectFiles, encoding_says_how_elements_stand_in_json) {
  tell(kTwo, floats({1, 2}));
  const auto keys = [&](const std::string& path) {
    const json value = get(path, "").json()["items"][0]["values"][0];
    std::string out;
    for (const auto& [key, ignored] : value.items()) out += (out.empty() ? "" : " ") + key;
    return out;
  };
  for (const std::string& path : {std::string("/effects?"), std::string("/outfeed?queue=out&")}) {
    EXPECT_EQ(keys(path), "data dtype shape");
    EXPECT_EQ(keys(path + "encoding=json"), "data dtype shape");
    EXPECT_EQ(keys(path + "encoding=base64"), "base64 dtype shape");
    EXPECT_EQ(keys(path + "encoding=none"), "dtype shape");
    EXPECT_EQ(get(path + "encoding=raw", "").problem(), "422 invalid_query");
    EXPECT_EQ(get(path + "encoding=none", kZipMedia).problem(), "406 not_acceptable");
    EXPECT_EQ(get(path + "encoding=base64", kZipMedia).status, 200);
  }
}

TEST_F(EffectFiles, file_of_one_array_takes_one_value) {
  EXPECT_EQ(get("/effects", "application/x-npy").problem(), "406 not_acceptable");
  EXPECT_EQ(get("/effects", kZipMedia).body, npz_file({})) << "nothing yet";
  EXPECT_EQ(get("/effects", kSafetensorsMedia).body, safetensors_file({}));
  tell(kTwo, floats({1, 2}));
  EXPECT_EQ(get("/effects?limit=1", "application/x-npy").body, npy_file(kTwo, floats({1, 2})));
  EXPECT_EQ(get("/effects?after=1", "application/x-npy").problem(), "406 not_acceptable") << "two values";
  EXPECT_EQ(get("/effects", "application/x-npy").problem(), "406 not_acceptable");
  EXPECT_EQ(get("/effects?after=1", "application/x-npy, application/zip;q=0.5").problem(), "406 not_acceptable");
  EXPECT_EQ(get("/effects", "text/html").header("Content-Type"), "application/json");
  EXPECT_EQ(get("/effects", "*/*").header("Content-Type"), "application/json");
}

TEST_F(EffectFiles, sharded_outfeeds_are_entries_of_their_devices) {
  constexpr std::string_view kEach = R"(module { sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<2xf32>) {
      %t = stablehlo.create_token : !stablehlo.token
      %u = "stablehlo.outfeed"(%b, %t) <{outfeed_config = "out"}> : (tensor<2xf32>, !stablehlo.token) -> !stablehlo.token
      sdy.return %b : tensor<2xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  } })";
  const tensor::TensorType whole{DType::kFloat32, {4}};
  const std::string bytes = awkward_bytes(whole);
  const json body = {
      {"program", {{"text", kEach}}}, {"arguments", {{{"part", "x"}}}}, {"results", {{"encoding", "none"}}}};
  const Answer run = server_.ask("POST", session_ + "/jobs", form_of(body, {{"x", bytes}}), {kFormMedia});
  ASSERT_EQ(run.status, 200) << run.body;
  const json items = get("/outfeed?queue=out&encoding=none", "").json()["items"];
  ASSERT_EQ(items.size(), 2U);
  const std::string first = items[0]["device"] == 0 ? bytes.substr(0, 8) : bytes.substr(8);
  const std::string second = items[0]["device"] == 0 ? bytes.substr(8) : bytes.substr(0, 8);
  EXPECT_EQ(get("/outfeed?queue=out", kSafetensorsMedia).body,
            safetensors_file({{"1.0", kTwo, first}, {"2.0", kTwo, second}}));
}

TEST_F(EffectFiles, entries_without_values_have_no_array) {
  constexpr std::string_view kFails =
      R"(func.func @main(%t: !stablehlo.token {jax.token = true}) -> (!stablehlo.token {jax.token = true}) {
  %c = stablehlo.constant dense<7> : tensor<i32>
  %1 = "stablehlo.outfeed"(%c, %t) <{outfeed_config = "out"}> : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
  %2:2 = "stablehlo.infeed"(%1) <{infeed_config = "in"}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)
  return %2#1 : !stablehlo.token
})";
  ASSERT_EQ(feed("?queue=in", npy_file(kTwo, floats({1, 2})), {kNpyMedia}).status, 201);
  const json body = {{"program", {{"text", kFails}}}, {"arguments", json::array()}};
  EXPECT_EQ(server_.ask("POST", session_ + "/jobs", body.dump()).problem().substr(0, 20), "422 invalid_argument");
  const Answer file = get("/effects", kZipMedia);
  EXPECT_EQ(file.body, npz_file({{"1.0", {DType::kInt32, {}}, bytes_of(std::vector<int32_t>{7})}}));
  const json items = json::parse(file.header("Meshd-Answer"))["items"];
  EXPECT_EQ(items[1]["effect"], "failed");
  EXPECT_EQ(items[1]["values"], json::array());
}

TEST_F(EffectFiles, files_belong_to_their_principal) {
  tell(kTwo, floats({1, 2}));
  for (const std::string& path : {std::string("/effects"), std::string("/outfeed?queue=out"), std::string("/callbacks"),
                                  std::string("/callbacks/1")})
    EXPECT_EQ(get(path, kZipMedia, {"X-Principal: bob"}).problem(), "404 not_found") << path;
  ASSERT_EQ(server_.ask("DELETE", session_).status, 204);
  EXPECT_EQ(get("/effects", kZipMedia).problem(), "404 not_found");
}

TEST_F(EffectFiles, file_holds_its_memory_until_it_is_gone) {
  const tensor::TensorType large{DType::kFloat32, {1 << 18}};
  tell(large, awkward_bytes(large));
  const int64_t before = server_.memory(core::MemoryAccount::kAnswers).peak_bytes;
  EXPECT_EQ(get("/outfeed?queue=out", "application/x-npy").body.size(), (size_t{1} << 20) + 128);
  EXPECT_GE(server_.memory(core::MemoryAccount::kAnswers).peak_bytes, std::max<int64_t>(before, 1 << 20));
  EXPECT_EQ(server_.memory(core::MemoryAccount::kAnswers).held_bytes, 0);
}

TEST_F(CallbackReplies, request_is_a_file) {
  const Asked asked = ask("tensor<2xf32>");
  const FileArray seven{std::to_string(last_) + ".0", {DType::kInt32, {}}, bytes_of(std::vector<int32_t>{7})};
  const Answer one = server_.ask("GET", asked.request, "", {"Accept: application/x-npy"});
  EXPECT_EQ(one.body, npy_file(seven.type, seven.bytes));
  const json document = json::parse(one.header("Meshd-Answer"));
  EXPECT_EQ(document["state"], "open");
  EXPECT_EQ(document["expected"], json::parse(R"([{"dtype": "float32", "shape": [2]}])"));
  EXPECT_EQ(document, server_.ask("GET", asked.request + "?encoding=none").json());
  const Answer all = server_.ask("GET", session_ + "/callbacks", "", {"Accept: application/zip"});
  EXPECT_EQ(all.body, npz_file({seven}));
  EXPECT_EQ(json::parse(all.header("Meshd-Answer"))["items"][0], document);
  const Answer done = server_.ask("POST", asked.request + "?encoding=none", floats({1, 2}), {kOpenMedia});
  EXPECT_EQ(done.json()["answer"], json::parse(R"([{"dtype": "float32", "shape": [2]}])"));
  EXPECT_EQ(server_.ask("GET", asked.request, "", {"Accept: application/x-npy"}).body,
            npy_file(seven.type, seven.bytes));
  EXPECT_EQ(result(asked), floats({1, 2}));
}

}  // namespace
}  // namespace meshd::testing
