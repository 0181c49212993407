#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "service/arrays/regions/region.h"
#include "service/core/error.h"
#include "service/jobs/dependency.h"
#include "service/jobs/stored/stored_job.h"
#include "service/jobs/stored/stored_job_words.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {
namespace {

core::Error unreadable(const std::string& why) {
  return core::Error("internal", "a stored job cannot be read").with_internal(why);
}

// The bytes behind a document, wherever they are.
class StoredBytes {
 public:
  StoredBytes(const storage::JobRow& row, storage::Store& store) : inline_(row.request) {
    inline_.remove_prefix(std::min(inline_.find(kEndOfDocument), inline_.size()));
    if (!inline_.empty()) inline_.remove_prefix(1);
    size_ = row.bytes ? row.bytes->length : static_cast<int64_t>(inline_.size());
    if (row.bytes) blob_.emplace(store.blobs().open(*row.bytes));
  }

  // Throws for what is not within.
  void read(int64_t at, std::span<std::byte> out) const {
    if (at < 0 || at > size_ || static_cast<int64_t>(out.size()) > size_ - at)
      throw unreadable("bytes beyond the end of those that are kept");
    if (out.empty()) return;
    if (blob_) return blob_->read(at, out);
    std::memcpy(out.data(), inline_.data() + at, out.size());
  }
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  std::string_view inline_;
  std::optional<storage::BlobReader> blob_;
  int64_t size_ = 0;
};

class StoredJobReader {
  using Document = nlohmann::json;

 public:
  StoredJobReader(const storage::JobRow& row, const StoredJobSources& sources)
      : row_(row), sources_(sources), bytes_(row, sources.store) {}

  JobRequest read(const Document& in) {
    JobRequest out;
    out.principal = row_.principal;
    out.session = row_.session;
    read_program(in.at("program"), out);
    for (const Document& given : in.at("arguments")) out.arguments.push_back(argument(given));
    read_placement(in, out);
    read_effects(in, out);
    read_results(in, out);
    out.donate = optional<std::vector<int64_t>>(in, "donate");
    out.strict_donation = in.value("strict_donation", false);
    each(in, "updates", [&](const Document& one) {
      out.updates.push_back(
          {one.at("argument").get<size_t>(), one.at("result").get<size_t>(), optional<int64_t>(one, "version")});
    });
    if (const auto time = optional<int64_t>(in, "deadline_ms")) out.deadline = std::chrono::milliseconds(*time);
    out.profile = in.value("profile", false);
    out.nonfinite = {.nans = in.value("find_nans", false), .infinities = in.value("find_infinities", false)};
    return out;
  }

 private:
  template <typename T>
  static std::optional<T> optional(const Document& in, const char* field) {
    const auto found = in.find(field);
    return found == in.end() ? std::nullopt : std::optional(found->template get<T>());
  }
  static void each(const Document& in, const char* field, const std::function<void(const Document&)>& read) {
    const auto found = in.find(field);
    if (found != in.end()) std::for_each(found->begin(), found->end(), read);
  }

  static tensor::TensorType type_of(const Document& in) {
    const auto dtype = tensor::dtype_from_name(in.at("dtype").get<std::string>());
    if (!dtype) throw unreadable("an unknown dtype");
    tensor::TensorType type{*dtype, in.at("dims").get<tensor::Dims>()};
    if (std::any_of(type.dims.begin(), type.dims.end(), [](int64_t dim) { return dim < 0; }))
      throw unreadable("a negative size");
    return type;
  }

  static int64_t size_of(const tensor::TensorType& type) {
    try {
      return tensor::byte_count(type);
    } catch (const core::Error&) {
      throw unreadable("a type that is larger than any");
    }
  }

  tensor::DenseValue value(const Document& in) {
    const tensor::TensorType type = type_of(in);
    const auto at = in.at("at").get<int64_t>();
    // Before memory is taken for it: the row may be damaged.
    if (size_of(type) > bytes_.size()) throw unreadable("a value that is larger than what is kept");
    tensor::DenseValue out = tensor::new_dense(type, sources_.pool);
    bytes_.read(at, out.buffer->bytes());
    return out;
  }

  arrays::ArrayRef find_array(const Document& in) {
    const auto id = in.at("array").get<std::string>();
    try {
      return sources_.arrays.find_kept(id, row_.principal);
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode("array_lost") || !in.contains("of_job")) throw;
      const auto maker = sources_.store.catalog().read(
          [&](storage::Reader& reader) { return reader.job_head(in.at("of_job").get<std::string>(), row_.principal); });
      // One that is done has made it, in memory.
      if (!maker || maker->state == storage::JobState::kDone) throw;
      throw dependency_failed(id, *maker);
    }
  }

  ArrayArgument stored_array(const Document& in) {
    ArrayArgument out{find_array(in), std::nullopt, in.value("of_job", std::string())};
    if (!in.contains("slices")) return out;
    out.slices.emplace();
    for (const Document& slice : in.at("slices"))
      out.slices->push_back({slice.at(0).get<int64_t>(), slice.at(1).get<int64_t>(), slice.at(2).get<int64_t>()});
    return out;
  }

  Argument argument(const Document& in) {
    if (in.contains("array")) return stored_array(in);
    return value(in);
  }

  static mesh::Mesh mesh_of(const Document& in) { return mesh::from_document(in.dump()); }

  static numpy::Input trace_input(const Document& in) {
    if (in.contains("dtype")) return {numpy::Input::ArrayType{type_of(in), in.value("weak", false)}};
    if (in.contains("dict")) {
      numpy::Input::Dict items;
      for (const Document& item : in.at("dict"))
        items.emplace_back(item.at(0).get<std::string>(), trace_input(item.at(1)));
      return {std::move(items)};
    }
    if (in.contains("list") || in.contains("tuple")) {
      const bool is_list = in.contains("list");
      numpy::Input::List items;
      for (const Document& item : in.at(is_list ? "list" : "tuple")) items.push_back(trace_input(item));
      return {std::move(items), is_list};
    }
    numpy::Input::Static fixed;
    if (in.contains("bool")) fixed = in.at("bool").get<bool>();
    if (in.contains("int")) fixed = in.at("int").get<int64_t>();
    if (in.contains("float_bits")) fixed = std::bit_cast<double>(in.at("float_bits").get<uint64_t>());
    if (in.contains("text")) fixed = in.at("text").get<std::string>();
    return {std::move(fixed)};
  }

  void read_program(const Document& in, JobRequest& out) {
    if (in.contains("id")) {
      out.program_id = in.at("id").get<std::string>();
      out.program = sources_.programs.get_for_accepted_job(out.program_id).parsed;
    } else {
      const auto size = in.at("bytes").get<int64_t>();
      if (size < 0 || size > bytes_.size()) throw unreadable("a text that is longer than what is kept");
      std::string text(static_cast<size_t>(size), '\0');
      bytes_.read(in.at("at").get<int64_t>(), std::as_writable_bytes(std::span(text)));
      out.program = sources_.compiler.parse(in.at("format").get<std::string>(), text);
    }
    each(in, "static", [&](const Document& one) { out.statics.emplace(one.at(0).get<size_t>(), value(one.at(1))); });
    if (!out.statics.empty()) out.program = sources_.compiler.with_static(out.program, out.statics);
    if (!in.contains("trace")) return;
    const Document& trace = in.at("trace");
    TraceInputs& inputs = out.trace.emplace();
    each(trace, "positional", [&](const Document& one) { inputs.inputs.positional.push_back(trace_input(one)); });
    each(trace, "keywords", [&](const Document& one) {
      inputs.inputs.keywords.emplace_back(one.at(0).get<std::string>(), trace_input(one.at(1)));
    });
    if (trace.contains("mesh")) inputs.mesh = mesh_of(trace.at("mesh"));
    out.program = sources_.compiler.trace(out.program, inputs.inputs, inputs.mesh);
  }

  static std::vector<std::optional<NamedSpec>> specs(const Document& in, const char* field) {
    std::vector<std::optional<NamedSpec>> out;
    each(in, field, [&](const Document& one) {
      std::optional<NamedSpec>& spec = out.emplace_back();
      if (one.is_null()) return;
      spec.emplace();
      spec->dims = one.at("dims").get<std::vector<std::vector<std::string>>>();
      spec->mesh_name = one.value("mesh", std::string());
      spec->parts = optional<std::vector<int64_t>>(one, "parts");
    });
    return out;
  }

  void read_placement(const Document& in, JobRequest& out) const {
    if (in.contains("mesh")) out.mesh = mesh_of(in.at("mesh"));
    if (in.contains("meshes")) {
      for (const auto& [name, mesh] : in.at("meshes").items()) out.meshes.emplace(name, mesh_of(mesh));
    }
    out.least_loaded = in.value("least_loaded", false);
    out.in_specs = specs(in, "in_specs");
    out.out_specs = specs(in, "out_specs");
    out.num_partitions = optional<int64_t>(in, "num_partitions");
    out.local_num_partitions = optional<int64_t>(in, "local_num_partitions");
    out.as_process = optional<int64_t>(in, "as_process");
    out.processes = sources_.processes;
    if (out.as_process) out.processes.check(*out.as_process);
    out.reshard = in.value("reshard", false);
  }

  std::vector<tensor::DenseValue> fed_values(const Document& in, JobRequest& out, std::optional<size_t> part) {
    std::vector<tensor::DenseValue> values;
    for (const Document& one : in) {
      if (one.contains("array")) {
        ArrayArgument given = stored_array(one);
        values.push_back(sources_.arrays.copy_dense(given.array, given.slices));
        out.fed_arrays.push_back(
            {std::move(given.array), std::move(given.slices), out.infeeds.size(), part, values.size() - 1});
      } else {
        values.push_back(value(one));
      }
    }
    return values;
  }

  void read_effects(const Document& in, JobRequest& out) {
    each(in, "callbacks", [&](const Document& one) {
      effects::Binding binding;
      const auto kind = one.at("kind").get<std::string>();
      binding.kind = effects::find_effect_kind(kind);
      if (binding.kind == nullptr) throw unreadable("an unknown kind of effect: " + kind);
      binding.name = one.at("name").get<std::string>();
      binding.live = one.value("live", false);
      each(one, "answers", [&](const Document& call) {
        auto& answer = binding.answers.emplace_back();
        for (const Document& item : call) answer.push_back(value(item));
      });
      out.callbacks.emplace(one.at("index").get<int64_t>(), std::move(binding));
    });
    each(in, "infeeds", [&](const Document& one) {
      effects::InfeedEntry entry;
      entry.queue = one.at("queue").get<std::string>();
      entry.partitions = one.value("partitions", int64_t{0});
      entry.values = fed_values(one.at("values"), out, std::nullopt);
      each(one, "parts", [&](const Document& part) {
        effects::InfeedPart made{part.at("device").get<int64_t>(), {}};
        made.values = fed_values(part.at("values"), out, entry.parts.size());
        entry.parts.push_back(std::move(made));
      });
      out.infeeds.push_back(std::move(entry));
    });
    if (in.contains("effects")) {
      const auto word = in.at("effects").get<std::string>();
      out.effects = storage::effect_mode_from(word);
      if (!out.effects) throw unreadable("effects: " + word);
    }
  }

  static void read_results(const Document& in, JobRequest& out) {
    const auto word = in.at("results").get<std::string>();
    const auto found = std::find(kResultModes.begin(), kResultModes.end(), word);
    if (found == kResultModes.end()) throw unreadable("results: " + word);
    out.results = static_cast<ResultMode>(found - kResultModes.begin());
    if (const auto durability = optional<std::string>(in, "durability")) {
      const auto known = storage::durability_from(*durability);
      if (!known) throw unreadable("durability: " + *durability);
      out.durability = *known;
    }
    out.result_names = in.value("result_names", std::vector<std::string>());
    out.form.base64 = in.value("answer_base64", false);
    out.form.result_tree = in.value("answer_tree", std::string());
  }

  const storage::JobRow& row_;
  const StoredJobSources& sources_;
  const StoredBytes bytes_;
};

}  // namespace

JobRequest read_stored_job(const storage::JobRow& row, const StoredJobSources& sources) {
  const std::string_view document = std::string_view(row.request).substr(0, row.request.find(kEndOfDocument));
  try {
    const auto in = nlohmann::json::parse(document);
    const auto version = in.at("version").get<int64_t>();
    if (version != kStoredJobVersion) throw unreadable(fmt::format("it has version {}", version));
    return StoredJobReader(row, sources).read(in);
  } catch (const nlohmann::json::exception& error) {
    throw unreadable(error.what());
  }
}

}  // namespace meshd::jobs
