// Random transactions over a few keys, so that they get into each other's way all the time.
#pragma once

#include <string>
#include <vector>

#include "divan/base/rng.h"
#include "divan/kv/store.h"

namespace divan::kv::model {

/// One call of a transaction. A value.
struct Operation {
  enum class Kind {
    get,
    get_many,
    get_key,
    scan,
    set,
    clear,
    clear_range,
    atomic,
    stamped_key,
    stamped_value,
    read_conflict,
    write_conflict,
  };
  Kind kind = Kind::get;
  std::vector<std::string> keys;  // of get_many
  KeySelector begin, end;         // `begin.key` is the key where there is one
  RangeOptions options;           // the isolation is that of all reads
  std::string value;
  AtomicOp op = AtomicOp::add;

  bool is_read() const { return kind <= Kind::scan; }
};

struct ProgramOptions {
  bool stamps = true;  // with versionstamped keys and values
};

Operation random_operation(Rng& rng, const ProgramOptions& options = {});

/// Does the operation; answers what it gave, an error's name included, as text.
std::string perform(Transaction& tx, const Operation& operation);

/// For people.
std::string describe(const Operation& operation);

/// Commits; answers "committed" or the error's name.
std::string commit(Transaction& tx);

/// All rows.
std::string contents(Database& database);

}  // namespace divan::kv::model
