// Metrics of the parts of a server. The parts must exist whenever Metrics::text() is called.
#pragma once

#include "divan/api/accounts.h"
#include "divan/app/store.h"
#include "divan/base/metrics.h"
#include "divan/events/bus.h"
#include "divan/jobs/queue.h"
#include "divan/js/pool.h"
#include "divan/updates/sequencer.h"

namespace divan::app {

void measure_store(Metrics& metrics, const OpenStore& store);
void measure_passwords(Metrics& metrics, const api::Accounts& accounts);
void measure_js(Metrics& metrics, const js::Pool& pool);
void measure_events(Metrics& metrics, const events::Bus& bus);
void measure_updates(Metrics& metrics, const updates::Sequencer& sequencer);
/// The number of jobs, by type and state.
void measure_jobs(Metrics& metrics, kv::Database& store, jobs::Queue& queue);

}  // namespace divan::app
