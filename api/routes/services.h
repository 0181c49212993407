// What handlers call: one reference for each service, built once in api/app.
#pragma once

#include <string>

#include "service/arrays/array_store.h"
#include "service/compile/pipeline.h"
#include "service/core/clock.h"
#include "service/core/memory_ledger.h"
#include "service/device/engine.h"
#include "service/effects/callback_store.h"
#include "service/effects/effect_log.h"
#include "service/effects/infeed_queues.h"
#include "service/jobs/commit/idempotency_keys.h"
#include "service/jobs/job_runner.h"
#include "service/mesh/processes.h"
#include "service/models/model_store.h"
#include "service/registry/registry.h"
#include "service/sessions/session_store.h"
#include "service/uploads/upload_store.h"
#include "service/warmup/warmup.h"
#include "service/webhooks/dispatcher.h"
#include "service/webhooks/webhook_store.h"
#include "service/zarr/node_store.h"

namespace meshd::api {

struct Services {
  const core::Clock& clock;
  core::MemoryLedgerRef memory;
  tensor::BufferPool& pool;
  compile::Compiler& compiler;
  warmup::Warmup& warmup;
  device::Executor& engine;  ///< what runs are submitted to
  arrays::ArrayStore& arrays;
  uploads::UploadStore& uploads;
  registry::MeshRegistry& meshes;
  registry::ProgramRegistry& programs;
  sessions::SessionStore& sessions;
  effects::EffectLog& log;
  effects::InfeedQueues& infeeds;
  effects::CallbackStore& callbacks;
  jobs::JobRunner& jobs;
  jobs::IdempotencyKeys keys;
  mesh::Processes processes;  ///< labels of the devices
  models::ModelStore& models;
  webhooks::WebhookStore& webhooks;
  webhooks::Dispatcher& deliveries;
  zarr::NodeStore& zarr;
};

}  // namespace meshd::api
