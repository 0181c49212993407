#include "service/jobs/job_runner.h"

#include <algorithm>
#include <set>

#include "service/compile/specialised.h"
#include "service/core/error.h"
#include "service/core/ids.h"
#include "service/jobs/job.h"

namespace meshd::jobs {
namespace {

using storage::JobState;

double milliseconds_since(core::SteadyTime start, core::SteadyTime now) {
  return std::chrono::duration<double, std::milli>(now - start).count();
}

bool has_ordered_effects(const compile::Plan& plan) {
  return std::any_of(plan.effects.begin(), plan.effects.end(),
                     [](const compile::PlanEffect& effect) { return effect.point.ordered; });
}

// Entries for queues that the program does not take from are a mistake.
void check_feeds(const std::vector<effects::Feed>& feeds, const compile::Plan& plan) {
  core::Diagnostics wrong;
  std::set<std::string> queues;
  for (const compile::PlanEffect& effect : plan.effects) {
    if (effect.point.form == partition::EffectForm::kInfeed) queues.insert(effect.point.queue);
  }
  std::string known;
  for (const std::string& queue : queues) known += (known.empty() ? "'" : ", '") + queue + "'";
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (queues.contains(feeds[i].queue)) continue;
    wrong.add("/infeed/" + std::to_string(i) + "/queue",
              "the program takes nothing from queue '" + feeds[i].queue + "'" +
                  (known.empty() ? "; it has no infeed" : "; it takes from " + known));
  }
  wrong.throw_if_any("invalid_request");
}

}  // namespace

JobRunner::JobRunner(storage::Store& store, arrays::ArrayStore& arrays, compile::Compiler& compiler,
                     device::Engine& engine, sessions::SessionStore& sessions, effects::EffectLog& log,
                     effects::FeedStore& feeds, effects::QuestionStore& questions, const core::Clock& clock,
                     RunnerOptions options)
    : store_(store),
      arrays_(arrays),
      compiler_(compiler),
      engine_(engine),
      sessions_(sessions),
      log_(log),
      feeds_(feeds),
      questions_(questions),
      clock_(clock),
      options_(options) {
  for (int i = 0; i < options_.background_threads; ++i) threads_.emplace_back([this] { work(); });
}

JobRunner::~JobRunner() {
  {
    const std::lock_guard held(mutex_);
    stopping_ = true;
  }
  stop_running(Stop::kAll);
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void JobRunner::check_updates(Job& job) {
  const JobRequest& wanted = job.request;
  for (const Argument& argument : wanted.arguments) {
    if (const auto* stored = std::get_if<ArrayArgument>(&argument)) job.uses.reads.insert(stored->array->info().id);
  }
  core::Diagnostics wrong;
  std::set<size_t> results;
  for (size_t i = 0; i < wanted.updates.size(); ++i) {
    const ArrayUpdate& update = wanted.updates[i];
    const std::string pointer = "/update/" + std::to_string(i);
    const auto* stored = update.argument < wanted.arguments.size()
                             ? std::get_if<ArrayArgument>(&wanted.arguments[update.argument])
                             : nullptr;
    if (stored == nullptr || stored->slices) {
      wrong.add(pointer + "/argument", "expected the position of an argument that is a whole stored array");
      continue;
    }
    const auto& given = job.lowered->plan->results;
    if (update.result >= given.size()) {
      wrong.add(pointer + "/result", "the program has " + std::to_string(given.size()) + " results, there is no " +
                                         std::to_string(update.result));
      continue;
    }
    const arrays::ArrayInfo& info = stored->array->info();
    const tensor::TensorType& type = given[update.result].parameter.global_type;
    if (type != info.type) {
      wrong.add(pointer + "/result", "is tensor<" + tensor::to_string(type) + ">, array '" + info.id + "' is tensor<" +
                                         tensor::to_string(info.type) + ">");
    }
    if (!job.uses.updates.insert(info.id).second)
      wrong.add(pointer + "/argument", "array '" + info.id + "' is updated twice");
    if (!results.insert(update.result).second) wrong.add(pointer + "/result", "stands in another update, too");
  }
  wrong.throw_if_any("invalid_request");
}

JobRunner::JobRef JobRunner::prepare(JobRequest request) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  const JobRequest& wanted = job->request;
  job->timings.parse_ms = wanted.parse_ms;
  // Replicas are what pmap makes of a program; here a program has one (behaviour S41).
  if (wanted.program->module->num_replicas > 1) {
    throw core::Error("not_implemented", "the program is for " + std::to_string(wanted.program->module->num_replicas) +
                                             " replicas; replicas and partitions together are not implemented");
  }
  const size_t expected = wanted.program->arguments.size();
  if (wanted.arguments.size() != expected) {
    throw core::Error("invalid_argument",
                      "the program takes " + std::to_string(expected) + " arguments, the request brings " +
                          std::to_string(wanted.arguments.size()),
                      {{"/arguments", "expected " + std::to_string(expected) + " entries"}});
  }
  core::Diagnostics wrong;
  std::vector<tensor::TensorType> types;
  for (size_t i = 0; i < expected; ++i) {
    const tensor::TensorType& type = wanted.program->argument(i).type.tensor;
    tensor::TensorType given;
    if (const auto* value = std::get_if<InlineArgument>(&wanted.arguments[i])) {
      given = value->type;
    } else {
      const auto& argument = std::get<ArrayArgument>(wanted.arguments[i]);
      arrays_.require_usable(argument.array);
      given = argument.array->info().type;
      if (argument.slices) given.dims = arrays::slice_dims(*argument.slices);
    }
    types.push_back(given);
    if (!compile::fits(given, type)) {
      wrong.add("/arguments/" + std::to_string(i),
                "expected tensor<" + tensor::to_string(type) + ">, got tensor<" + tensor::to_string(given) + ">");
    }
  }
  wrong.throw_if_any("invalid_argument");

  core::SteadyTime start = clock_.steady();
  job->placement = place_job(wanted, engine_.options().device_count);
  job->lowered = compiler_.lower(compile::specialised(wanted.program, types), job->placement.lower);
  job->timings.lower_ms = milliseconds_since(start, clock_.steady());
  start = clock_.steady();
  if (!compiler_.bind(job->lowered, job->placement.devices) && options_.on_compile != nullptr) {
    CompileNote note{wanted.program->module->name, static_cast<int64_t>(job->placement.devices.size()), {}};
    for (const tensor::TensorType& type : types)
      note.arguments += (note.arguments.empty() ? "" : ", ") + tensor::to_string(type);
    options_.on_compile(note);
  }
  job->timings.bind_ms = milliseconds_since(start, clock_.steady());
  if (wanted.strict_donation && !job->lowered->warnings.empty()) {
    throw core::Error("donation_unusable", job->lowered->warnings.front());
  }
  job->bindings = effects::check_bindings(wanted.callbacks, *job->lowered->plan, !wanted.session.empty());
  check_updates(*job);
  check_feeds(wanted.feeds, *job->lowered->plan);
  job->is_ordered = has_ordered_effects(*job->lowered->plan);
  for (const int64_t position : job->lowered->donated) {
    const auto* argument = std::get_if<ArrayArgument>(&wanted.arguments[static_cast<size_t>(position)]);
    if (argument != nullptr && !argument->slices) job->donated.push_back(argument->array);
  }
  // The same array donated and used again cannot be (behaviour P20).
  for (const arrays::ArrayRef& array : job->donated) {
    const auto uses = std::count_if(wanted.arguments.begin(), wanted.arguments.end(), [&](const Argument& argument) {
      const auto* stored = std::get_if<ArrayArgument>(&argument);
      return stored != nullptr && stored->array == array;
    });
    if (job->uses.updates.contains(array->info().id))
      throw core::Error("invalid_argument", "array '" + array->info().id + "' is donated and updated by the same job");
    if (uses > 1)
      throw core::Error("invalid_argument",
                        "array '" + array->info().id + "' is donated and used by another argument of the same job");
  }
  return job;
}

void JobRunner::accept(Job& job, bool background) {
  const JobRequest& request = job.request;
  job.accepted = clock_.steady();
  job.row.id = request.id.empty() ? core::new_id("job", clock_) : request.id;
  job.row.session = request.session;
  job.row.principal = request.principal;
  job.row.state = background ? JobState::kQueued : JobState::kRunning;
  job.row.created = clock_.wall();
  if (!background) job.row.started = job.row.created;
  job.has_row = background || !request.session.empty() || !request.idempotency_key.empty();
  arrays_.reserve(job.donated, job.row.id);
  if (!job.has_row) return;
  job.row.request = request.document;
  if (request.deadline) job.row.deadline = job.row.created + *request.deadline;
  if (!request.session.empty()) job.line = sessions_.line(request.session);
  bool entered = false;
  try {
    store_.catalog().write([&](storage::Transaction& transaction) {
      if (!request.session.empty()) job.row.number = transaction.next_job_number(request.session);
      transaction.insert_job(job.row);
      keep_arguments(job);
      for (const arrays::ArrayRef& array : job.donated) {
        if (array->info().durability == storage::Durability::kDurable)
          transaction.reserve_array(array->info().id, job.row.id);
      }
      if (!request.idempotency_key.empty()) {
        job.key.principal = request.principal;
        job.key.route = request.idempotency_route;
        job.key.key = request.idempotency_key;
        job.key.fingerprint = request.idempotency_fingerprint;
        job.key.job = job.row.id;
        job.key.created = job.row.created;
        if (!transaction.insert_idempotency(job.key)) {
          throw core::Error("idempotency_in_progress", "another request with this Idempotency-Key came first");
        }
      }
      // The writer's thread sees jobs in the order of their numbers: so does the line.
      if (job.line != nullptr) {
        job.line->enter(job.row.number, job.is_ordered, job.uses);
        entered = true;
      }
    });
  } catch (...) {
    if (entered) job.line->leave(job.row.number);
    free_arguments(job);
    arrays_.release(job.donated, job.row.id);
    throw;
  }
}

// Runs on storage's writer thread, with the job's row.
void JobRunner::keep_arguments(Job& job) {
  for (const Argument& argument : job.request.arguments) {
    if (const auto* stored = std::get_if<ArrayArgument>(&argument)) job.to_read.push_back(stored->array);
  }
  arrays_.keep_for_job(job.to_read, job.request.session);
}

void JobRunner::free_arguments(Job& job) { arrays_.job_has_read(std::exchange(job.to_read, {}), job.request.session); }

void JobRunner::leave(Job& job) {
  free_arguments(job);
  if (job.line != nullptr) job.line->leave(job.row.number);
  {
    const std::lock_guard held(mutex_);
    live_.erase(job.row.id);
  }
  {
    const std::lock_guard held(job.mutex);
    job.over = true;
  }
  changed_.notify_all();
}

JobResult JobRunner::run(JobRequest request, const ResultEncoder& encode, const std::function<bool()>& gone) {
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw core::Error("draining", "the server is shutting down").with_retry_after(2);
  }
  JobRef job = prepare(std::move(request));
  job->encode = encode;
  accept(*job, false);
  return finish(job, gone);
}

JobResult JobRunner::finish(const JobRef& job, const std::function<bool()>& gone) {
  {
    const std::lock_guard held(mutex_);
    live_.emplace(job->row.id, job);
    ++counters_.running;
  }
  try {
    JobResult result = execute(job, gone);
    const std::lock_guard held(mutex_);
    --counters_.running;
    ++counters_.done;
    counters_.run_seconds += result.timings.run_ms / 1000;
    counters_.queue_seconds += result.timings.queue_ms / 1000;
    counters_.commit_seconds += result.timings.commit_ms / 1000;
    counters_.effects_appended += static_cast<int64_t>(result.effects.size());
    return result;
  } catch (const core::Error& error) {
    fail(*job, error);
    throw;
  } catch (const std::exception& error) {
    fail(*job, core::Error("internal", "the job failed on our side").with_internal(error.what()));
    throw;
  }
}

/// The id that a client chose, held from the look at what is there until the job's row is, so that of two requests with
/// one id one is refused before it reserves anything. Nothing for requests without an id.
class JobRunner::Claim {
 public:
  Claim(JobRunner& runner, std::string id) : runner_(runner), id_(std::move(id)) {
    if (id_.empty()) return;
    {
      const std::lock_guard held(runner_.mutex_);
      if (runner_.live_.contains(id_) || !runner_.claimed_.insert(id_).second) throw taken();
    }
    const auto row = runner_.store_.catalog().read([&](storage::Reader& reader) { return reader.job(id_); });
    if (!row) return;
    release();
    throw taken();
  }
  ~Claim() {
    if (!id_.empty()) release();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

 private:
  [[nodiscard]] core::Error taken() const {
    return core::Error("precondition_failed",
                       "there is a job '" + id_ + "' already; read it, or choose another id for another job");
  }
  void release() {
    const std::lock_guard held(runner_.mutex_);
    runner_.claimed_.erase(id_);
  }

  JobRunner& runner_;
  std::string id_;
};

std::string JobRunner::start(JobRequest request, ResultEncoder encode) {
  const std::string session = request.session;
  const Claim claim(*this, request.id);
  {
    const std::lock_guard held(mutex_);
    if (stopping_) throw core::Error("draining", "the server is shutting down").with_retry_after(2);
    if (static_cast<int64_t>(waiting_.size()) >= options_.queue_limit) {
      throw core::Error("queue_full", "too many jobs are waiting").with_retry_after(1);
    }
    if (!session.empty() && waiting_of_session_[session] >= options_.session_queue_limit) {
      throw core::Error("queue_full", "too many jobs of this session are waiting").with_retry_after(1);
    }
  }
  JobRef job = prepare(std::move(request));
  job->encode = std::move(encode);
  accept(*job, true);
  enqueue(job);
  return job->row.id;
}

void JobRunner::enqueue(const JobRef& job) {
  job->in_background = true;
  {
    const std::lock_guard held(mutex_);
    live_.emplace(job->row.id, job);
    ++waiting_of_session_[job->row.session];
    ++counters_.waiting;
    // Jobs of one session start in the order of their numbers, whatever order their threads came here in.
    const auto behind = std::find_if(waiting_.begin(), waiting_.end(), [&](const JobRef& other) {
      return !job->row.session.empty() && other->row.session == job->row.session && other->row.number > job->row.number;
    });
    waiting_.insert(behind, job);
  }
  changed_.notify_all();
}

void JobRunner::work() {
  for (;;) {
    JobRef job;
    {
      std::unique_lock held(mutex_);
      changed_.wait(held, [&] {
        return stopping_ || (!waiting_.empty() && busy_ - waiting_background_ < options_.background_threads);
      });
      if (stopping_) return;
      ++busy_;
      job = std::move(waiting_.front());
      waiting_.pop_front();
      if (--waiting_of_session_[job->row.session] == 0) waiting_of_session_.erase(job->row.session);
      --counters_.waiting;
    }
    job->row.state = JobState::kRunning;
    job->row.started = clock_.wall();
    store_.catalog().write_async([row = job->row](storage::Transaction& transaction) { transaction.update_job(row); },
                                 [](const std::exception_ptr&) {});
    try {
      finish(job, nullptr);
    } catch (const std::exception&) {
      // fail() has put it into the job's row
    }
    {
      const std::lock_guard held(mutex_);
      --busy_;
    }
    changed_.notify_all();
  }
}

void JobRunner::barrier(const std::string& session) { sessions_.line(session)->wait_idle(); }

void JobRunner::drain(std::chrono::milliseconds time) {
  {
    std::unique_lock held(mutex_);
    stopping_ = true;
    changed_.notify_all();
    held.unlock();
    stop_running(Stop::kWaiting);
    held.lock();
    changed_.wait_for(held, time, [&] { return counters_.running == 0; });
  }
  stop_running(Stop::kAll);
}

void JobRunner::stop_running(Stop which) {
  std::vector<JobRef> left;
  {
    const std::lock_guard held(mutex_);
    for (const auto& [id, job] : live_) left.push_back(job);
  }
  for (const JobRef& job : left) {
    const std::lock_guard held(job->mutex);
    if (which == Stop::kWaiting && !job->waits) continue;
    job->stopped = true;
    if (job->run != nullptr) job->run->cancel(core::Error("draining", "the server is shutting down"));
  }
}

bool JobRunner::is_stopping() const {
  const std::lock_guard held(mutex_);
  return stopping_;
}

JobCounters JobRunner::counters() const {
  const std::lock_guard held(mutex_);
  JobCounters counters = counters_;
  counters.queue_limit = options_.queue_limit;
  return counters;
}

}  // namespace meshd::jobs
