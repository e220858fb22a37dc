// The commands that look at a running server: tables for people, --json for programs.
#pragma once

#include "divan/app/connection.h"

namespace divan::app {

struct InspectOptions {
  ConnectionOptions connection;
  bool json = false;
};

void show_status(const InspectOptions& options);
/// Without a type: all types and their counts; with one: its jobs.
void show_jobs(const InspectOptions& options, const std::string& type);
void show_workers(const InspectOptions& options);
/// The feed of updates; with `follow` it goes on until the server or the user ends it.
void show_updates(const InspectOptions& options, bool follow);

}  // namespace divan::app
