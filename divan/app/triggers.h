// `divan triggers`: the triggers of a database, as a table or, with --json, as JSON.
#pragma once

#include "divan/app/command_line.h"

namespace divan::app {

struct TriggersOptions {
  QueryOptions query{};
  std::string database;
};
void show_triggers(const TriggersOptions& options);

}  // namespace divan::app
