// Files that are part of the program. The build makes them with Node.js (cmake/DivanDashboard.cmake); without
// it there are none.
#pragma once

#include <span>

#include "divan/api/static_files.h"

namespace divan::app {

/// The dashboard's (web/).
std::span<const api::EmbeddedFile> dashboard_files();
/// openapi.json, the description of the HTTP API (docs/openapi/).
std::span<const api::EmbeddedFile> openapi_files();

}  // namespace divan::app
