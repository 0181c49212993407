#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "service/core/ids.h"
#include "service/jobs/stored/stored_job.h"
#include "service/jobs/stored/stored_job_words.h"
#include "service/mesh/mesh_document.h"

namespace meshd::jobs {
namespace {

// Collects the document of one request and the bytes that it refers to.
class StoredJobWriter {
  using Document = nlohmann::ordered_json;

 public:
  StoredJob write(const JobRequest& request) {
    Document out;
    out["version"] = kStoredJobVersion;
    out["program"] = program(request);
    out["arguments"] = Document::array();
    for (const Argument& given : request.arguments) out["arguments"].push_back(argument(given));
    add_placement(request, out);
    add_effects(request, out);
    add_results(request, out);
    if (request.donate) out["donate"] = *request.donate;
    if (request.strict_donation) out["strict_donation"] = true;
    for (const ArrayUpdate& update : request.updates) {
      Document& one = out["updates"].emplace_back(Document{{"argument", update.argument}, {"result", update.result}});
      if (update.version) one["version"] = *update.version;
    }
    // The column has the moment at which the time is up; this says that there is one of the request's own.
    if (request.deadline) out["deadline_ms"] = request.deadline->count();
    if (request.profile) out["profile"] = true;
    if (request.nonfinite.nans) out["find_nans"] = true;
    if (request.nonfinite.infinities) out["find_infinities"] = true;
    out_.document = out.dump();
    return std::move(out_);
  }

 private:
  int64_t place(std::span<const std::byte> bytes) {
    const int64_t at = out_.byte_count;
    if (!bytes.empty()) out_.bytes.push_back(bytes);
    out_.byte_count += static_cast<int64_t>(bytes.size());
    return at;
  }

  static Document type_of(const tensor::TensorType& type) {
    return {{"dtype", tensor::name(type.dtype)}, {"dims", Document(type.dims)}};
  }

  Document value(const tensor::DenseValue& given) {
    Document out = type_of(given.type);
    out["at"] = place(given.bytes());
    return out;
  }
  Document values(const std::vector<tensor::DenseValue>& given) {
    Document out = Document::array();
    for (const tensor::DenseValue& one : given) out.push_back(value(one));
    return out;
  }

  static Document stored_array(const arrays::ArrayRef& array, const std::optional<std::vector<arrays::Slice>>& slices,
                               std::string of_job = {}) {
    Document out{{"array", array->info().id}};
    // A restart forgets what is promised: the row of that job then says whether it was made.
    if (of_job.empty()) of_job = array->promised_by();
    if (!of_job.empty()) out["of_job"] = of_job;
    if (!slices) return out;
    out["slices"] = Document::array();
    for (const arrays::Slice& slice : *slices) out["slices"].push_back({slice.start, slice.stop, slice.step});
    return out;
  }

  Document argument(const Argument& given) {
    if (const auto* own = std::get_if<tensor::DenseValue>(&given)) return value(*own);
    const auto& stored = std::get<ArrayArgument>(given);
    return stored_array(stored.array, stored.slices, stored.of_job);
  }

  static Document mesh_document(const mesh::Mesh& mesh) { return Document::parse(mesh::to_document(mesh)); }

  static Document trace_input(const numpy::Input& input) {
    if (const auto* array = std::get_if<numpy::Input::ArrayType>(&input.value)) {
      Document out = type_of(array->type);
      if (array->weak) out["weak"] = true;
      return out;
    }
    if (const auto* fixed = std::get_if<numpy::Input::Static>(&input.value)) {
      Document out = Document::object();
      if (const auto* flag = std::get_if<bool>(fixed)) out["bool"] = *flag;
      if (const auto* number = std::get_if<int64_t>(fixed)) out["int"] = *number;
      // As its bits: JSON has no NaN, and no sign of zero to rely on.
      if (const auto* real = std::get_if<double>(fixed)) out["float_bits"] = std::bit_cast<uint64_t>(*real);
      if (const auto* text = std::get_if<std::string>(fixed)) out["text"] = *text;
      return out;  // None has no field
    }
    Document items = Document::array();
    if (const auto* list = std::get_if<numpy::Input::List>(&input.value)) {
      for (const numpy::Input& item : *list) items.push_back(trace_input(item));
      return {{input.is_list ? "list" : "tuple", std::move(items)}};
    }
    for (const auto& [key, item] : std::get<numpy::Input::Dict>(input.value))
      items.push_back(Document::array({key, trace_input(item)}));
    return {{"dict", std::move(items)}};
  }

  Document program(const JobRequest& request) {
    Document out;
    if (request.program_id.empty()) {
      const std::string& text = request.program->text;
      out["format"] = request.program->format;
      out["bytes"] = text.size();
      out["at"] = place(std::as_bytes(std::span(text)));
    } else {
      out["id"] = request.program_id;
    }
    for (const auto& [position, given] : request.statics)
      out["static"].push_back(Document::array({position, value(given)}));
    if (request.trace) {
      Document& trace = out["trace"];
      trace["positional"] = Document::array();
      for (const numpy::Input& input : request.trace->inputs.positional)
        trace["positional"].push_back(trace_input(input));
      for (const auto& [name, input] : request.trace->inputs.keywords)
        trace["keywords"].push_back(Document::array({name, trace_input(input)}));
      if (request.trace->mesh) trace["mesh"] = mesh_document(*request.trace->mesh);
    }
    return out;
  }

  static Document specs(const std::vector<std::optional<NamedSpec>>& given) {
    Document out = Document::array();
    for (const std::optional<NamedSpec>& spec : given) {
      Document& one = out.emplace_back(nullptr);
      if (!spec) continue;
      one = Document{{"dims", Document(spec->dims)}};
      if (!spec->mesh_name.empty()) one["mesh"] = spec->mesh_name;
      if (spec->parts) one["parts"] = *spec->parts;
    }
    return out;
  }

  static void add_placement(const JobRequest& request, Document& out) {
    if (request.mesh) out["mesh"] = mesh_document(*request.mesh);
    for (const auto& [name, mesh] : request.meshes) out["meshes"][name] = mesh_document(mesh);
    if (request.least_loaded) out["least_loaded"] = true;
    if (!request.in_specs.empty()) out["in_specs"] = specs(request.in_specs);
    if (!request.out_specs.empty()) out["out_specs"] = specs(request.out_specs);
    if (request.num_partitions) out["num_partitions"] = *request.num_partitions;
    if (request.local_num_partitions) out["local_num_partitions"] = *request.local_num_partitions;
    if (request.as_process) out["as_process"] = *request.as_process;
    if (request.reshard) out["reshard"] = true;
  }

  // Values of an infeed entry; those that are copies of stored arrays are kept as what they are copies of.
  Document fed_values(const JobRequest& request, const std::vector<tensor::DenseValue>& given, size_t entry,
                      std::optional<size_t> part) {
    Document out = Document::array();
    for (size_t i = 0; i < given.size(); ++i) {
      const FedArray* fed = nullptr;
      for (const FedArray& one : request.fed_arrays) {
        if (one.entry == entry && one.part == part && one.value == i) fed = &one;
      }
      out.push_back(fed == nullptr ? value(given[i]) : stored_array(fed->array, fed->slices));
    }
    return out;
  }

  void add_effects(const JobRequest& request, Document& out) {
    for (const auto& [index, binding] : request.callbacks) {
      Document& one = out["callbacks"].emplace_back(
          Document{{"index", index}, {"kind", binding.kind->name}, {"name", binding.name}});
      if (binding.live) one["live"] = true;
      for (const auto& answer : binding.answers) one["answers"].push_back(values(answer));
    }
    for (size_t i = 0; i < request.infeeds.size(); ++i) {
      const effects::InfeedEntry& entry = request.infeeds[i];
      Document& one = out["infeeds"].emplace_back(Document{{"queue", entry.queue}});
      if (entry.partitions > 0) one["partitions"] = entry.partitions;
      one["values"] = fed_values(request, entry.values, i, std::nullopt);
      for (size_t p = 0; p < entry.parts.size(); ++p) {
        one["parts"].push_back(
            {{"device", entry.parts[p].device}, {"values", fed_values(request, entry.parts[p].values, i, p)}});
      }
    }
    if (request.effects) out["effects"] = storage::to_string(*request.effects);
  }

  static void add_results(const JobRequest& request, Document& out) {
    out["results"] = kResultModes[static_cast<size_t>(request.results)];
    if (request.durability == storage::Durability::kMemory) out["durability"] = storage::to_string(request.durability);
    if (!request.result_names.empty()) out["result_names"] = request.result_names;
    if (request.form.base64) out["answer_base64"] = true;
    if (!request.form.result_tree.empty()) out["answer_tree"] = request.form.result_tree;
  }

  StoredJob out_;
};

}  // namespace

StoredJob to_stored_job(const JobRequest& request) { return StoredJobWriter().write(request); }

storage::PendingBlobs keep_stored_job(const StoredJob& job, storage::JobRow& row, storage::Store& store,
                                      const core::Clock& clock) {
  row.request_version = kStoredJobVersion;
  row.request = job.document;
  storage::PendingBlobs blobs(store);
  if (job.byte_count <= kMostInRow) {
    row.request.reserve(job.document.size() + 1 + static_cast<size_t>(job.byte_count));
    row.request += kEndOfDocument;
    for (const std::span<const std::byte> piece : job.bytes)
      row.request.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return blobs;
  }
  blobs.begin(core::new_id("request", clock) + ".bytes", job.byte_count);
  int64_t at = 0;
  for (const std::span<const std::byte> piece : job.bytes) {
    blobs.write(0, at, piece);
    at += static_cast<int64_t>(piece.size());
  }
  row.bytes = blobs.sync().front();
  return blobs;
}

}  // namespace meshd::jobs
