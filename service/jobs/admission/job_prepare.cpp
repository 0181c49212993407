// From a request to a job that can run: shapes and types checked, devices and shardings chosen, the program lowered.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "service/compile/rewrite/specialised.h"
#include "service/core/error.h"
#include "service/jobs/admission/admission.h"
#include "service/jobs/admission/argument_count.h"

namespace meshd::jobs {
namespace {

sessions::EffectOrder order_of(const compile::Plan& plan, storage::EffectMode mode) {
  const auto any = [&](auto&& is_meant) { return std::any_of(plan.effects.begin(), plan.effects.end(), is_meant); };
  const bool has_ordered = any([](const compile::PlanEffect& effect) { return effect.point.ordered; });
  if (!has_ordered && !any([](const compile::PlanEffect& effect) { return effect.point.has_side_effect; }))
    return sessions::EffectOrder::kNone;
  if (mode == storage::EffectMode::kStreaming) return sessions::EffectOrder::kStreaming;
  return has_ordered ? sessions::EffectOrder::kOrdered : sessions::EffectOrder::kUnordered;
}

// Entries for queues that the program does not take from are a mistake.
void check_infeeds(const std::vector<effects::InfeedEntry>& infeeds, const compile::Plan& plan) {
  core::Diagnostics wrong;
  std::set<std::string> queues;
  for (const compile::PlanEffect& effect : plan.effects) {
    if (effect.point.form == partition::EffectForm::kInfeed) queues.insert(effect.point.queue);
  }
  std::string known;
  for (const std::string& queue : queues) known += (known.empty() ? "'" : ", '") + queue + "'";
  for (size_t i = 0; i < infeeds.size(); ++i) {
    if (queues.contains(infeeds[i].queue)) continue;
    wrong.add(fmt::format("/infeed/{}/queue", i),
              fmt::format("the program takes nothing from queue '{}'{}", infeeds[i].queue,
                          known.empty() ? "; it has no infeed" : "; it takes from " + known));
  }
  wrong.throw_if_any("invalid_request");
}

// Notes an update of an array by a result, and what is wrong with it. False: it names no array or no result.
bool check_update(const ArrayUpdate& update, const std::string& pointer, Job& job, core::Diagnostics& wrong) {
  const JobRequest& wanted = job.request;
  const auto* stored = update.argument < wanted.arguments.size()
                           ? std::get_if<ArrayArgument>(&wanted.arguments[update.argument])
                           : nullptr;
  if (stored == nullptr || stored->slices) {
    wrong.add(pointer + "/argument", "expected the position of an argument that is a whole stored array");
    return false;
  }
  const compile::Plan& plan = *job.lowered->plan;
  if (update.result >= plan.result_count()) {
    wrong.add(pointer + "/result",
              fmt::format("the program has {} results, there is no {}", plan.result_count(), update.result));
    return false;
  }
  const arrays::ArrayInfo& info = stored->array->info();
  const partition::LocalParameter& given = plan.results[update.result].parameter;
  const tensor::TensorType& type = given.global_type;
  if (!given.size_places.empty()) {
    wrong.add(pointer + "/result",
              fmt::format("has a size that depends on data: it cannot take the place of array '{}', which is "
                          "tensor<{}>; store it as a new one",
                          info.id, tensor::to_string(info.type)));
  } else if (type != info.type) {
    wrong.add(pointer + "/result", fmt::format("is tensor<{}>, array '{}' is tensor<{}>", tensor::to_string(type),
                                               info.id, tensor::to_string(info.type)));
  }
  if (!job.uses.updates.insert(info.id).second)
    wrong.add(pointer + "/argument", "array '" + info.id + "' is updated twice");
  return true;
}

// What the job reads and updates.
void note_uses(Job& job) {
  const JobRequest& wanted = job.request;
  for (const Argument& argument : wanted.arguments) {
    if (const auto* stored = std::get_if<ArrayArgument>(&argument)) job.uses.reads.insert(stored->array->info().id);
  }
  core::Diagnostics wrong;
  std::set<size_t> results;
  for (size_t i = 0; i < wanted.updates.size(); ++i) {
    const std::string pointer = fmt::format("/update/{}", i);
    const bool is_known = check_update(wanted.updates[i], pointer, job, wrong);
    if (is_known && !results.insert(wanted.updates[i].result).second)
      wrong.add(pointer + "/result", "is in another update, too");
  }
  wrong.throw_if_any("invalid_request");
}

}  // namespace

JobRef Admission::prepare(JobRequest request) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  const JobRequest& wanted = job->request;
  job->timings.parse_ms = wanted.parse_ms;
  // Replicas are what pmap makes of a program; here a program has one (behaviour S41).
  if (wanted.program->module->num_replicas > 1) {
    throw core::Error(
        "not_implemented",
        fmt::format("the program is for {} replicas; replicas and partitions together are not implemented",
                    wanted.program->module->num_replicas));
  }
  check_arguments(*job);
  lower(*job);
  job->bindings = effects::check_bindings(wanted.callbacks, *job->lowered->plan, !wanted.session.empty());
  note_uses(*job);
  check_infeeds(wanted.infeeds, *job->lowered->plan);
  if (!wanted.session.empty()) {
    job->effect_order =
        order_of(*job->lowered->plan, wanted.effects.value_or(sessions_.queue(wanted.session)->default_mode()));
  }
  note_donations(*job);
  return job;
}

void Admission::check_arguments(Job& job) {
  const JobRequest& wanted = job.request;
  const size_t expected = wanted.program->arguments.size();
  if (wanted.arguments.size() != expected)
    check_argument_count(*wanted.program, std::vector<GivenArgument>(wanted.arguments.size()));
  core::Diagnostics wrong;
  std::vector<tensor::TensorType> types;
  for (size_t i = 0; i < expected; ++i) {
    const tensor::TensorType& type = wanted.program->argument(i).type.tensor;
    tensor::TensorType given;
    if (const auto* value = std::get_if<tensor::DenseValue>(&wanted.arguments[i])) {
      given = value->type;
    } else {
      const auto& argument = std::get<ArrayArgument>(wanted.arguments[i]);
      arrays_.require_usable(argument.array, wanted.session);
      given = argument.array->info().type;
      if (argument.slices) given.dims = arrays::slice_dims(*argument.slices);
    }
    types.push_back(given);
    if (!compile::fits(given, type)) {
      wrong.add(fmt::format("/arguments/{}", i),
                fmt::format("expected tensor<{}>, got tensor<{}>", tensor::to_string(type), tensor::to_string(given)));
    }
  }
  wrong.throw_if_any("invalid_argument");
  job.argument_types = std::move(types);
}

void Admission::lower(Job& job) {
  const JobRequest& wanted = job.request;
  core::SteadyTime start = clock_.steady();
  job.assignment = assign_devices(wanted, server_.device_count);
  job.lowered = compiler_.lower(compiler_.specialise(wanted.program, job.argument_types), job.assignment.lower);
  if (const size_t results = job.lowered->plan->result_count();
      !wanted.result_names.empty() && wanted.result_names.size() != results) {
    const std::string counts = fmt::format("{} names for {} results", wanted.result_names.size(), results);
    throw core::Error("invalid_request", counts, {{"/results/names", counts + R"(; "" is none)"}});
  }
  job.timings.lower_ms = core::milliseconds_between(start, clock_.steady());
  start = clock_.steady();
  if (!compiler_.count_binding(job.lowered, job.assignment.devices) && options_.on_compile != nullptr) {
    CompileNote note{wanted.program->module->name, static_cast<int64_t>(job.assignment.devices.size()), {}};
    for (const tensor::TensorType& type : job.argument_types)
      note.arguments += fmt::format("{}{}", note.arguments.empty() ? "" : ", ", tensor::to_string(type));
    options_.on_compile(note);
  }
  job.timings.bind_ms = core::milliseconds_between(start, clock_.steady());
  if (wanted.strict_donation && !job.lowered->warnings.empty()) {
    throw core::Error("donation_unusable", job.lowered->warnings.front());
  }
}

void Admission::note_donations(Job& job) {
  const JobRequest& wanted = job.request;
  for (const int64_t position : job.lowered->donated) {
    const auto* argument = std::get_if<ArrayArgument>(&wanted.arguments[static_cast<size_t>(position)]);
    if (argument != nullptr && !argument->slices) job.donated.push_back(argument->array);
  }
  // The same array donated and used again cannot be (behaviour P20).
  for (const arrays::ArrayRef& array : job.donated) {
    const auto uses = std::count_if(wanted.arguments.begin(), wanted.arguments.end(), [&](const Argument& argument) {
      const auto* stored = std::get_if<ArrayArgument>(&argument);
      return stored != nullptr && stored->array == array;
    });
    if (job.uses.updates.contains(array->info().id))
      throw core::Error("invalid_argument", "array '" + array->info().id + "' is donated and updated by the same job");
    if (uses > 1)
      throw core::Error("invalid_argument",
                        "array '" + array->info().id + "' is donated and used by another argument of the same job");
  }
}

}  // namespace meshd::jobs
