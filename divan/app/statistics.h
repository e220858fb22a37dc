// Statistics with CouchDB's names (api/statistics.h) of the parts of a server, which must outlive them.
#pragma once

#include "divan/api/accounts.h"
#include "divan/api/statistics.h"
#include "divan/app/store.h"
#include "divan/js/pool.h"
#include "divan/updates/sequencer.h"

namespace divan::app {

void add_store_statistics(api::Statistics& statistics, const OpenStore& store);
void add_process_statistics(api::Statistics& statistics);
void add_document_statistics(api::Statistics& statistics, const docs::Catalog& catalog);
void add_password_statistics(api::Statistics& statistics, const api::Accounts& accounts);
void add_js_statistics(api::Statistics& statistics, const js::Pool& pool);
void add_updates_statistics(api::Statistics& statistics, const updates::Sequencer& sequencer);

}  // namespace divan::app
