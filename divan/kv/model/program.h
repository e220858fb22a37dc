// Random transactions over a few keys, so that they often conflict.
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
  std::string begin, end;         // of a range; `begin` is the key of what has one key
  RangeOptions options;           // the isolation is that of all reads
  std::size_t visited = 0;        // of scan: the visitor stops after so many rows; 0: it does not
  std::string value;
  AtomicOp op = AtomicOp::add;

  bool is_read() const { return kind <= Kind::scan; }
};

Operation random_operation(Rng& rng);

/// One of the few keys that all operations are about.
std::string random_key(Rng& rng);

/// Returns what `fn` returns, or the name of the error that it throws.
template <class Fn>
std::string answer_of(Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) { return std::string(error.name()); }
}

/// The seeds of a test's histories: consecutive ones from a random one on, `usual` or with DIVAN_LONG=1
/// `many` of them; or the one in DIVAN_SEED, `again` times.
struct Seeds {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  bool is_chosen = false;

  std::uint64_t at(std::uint64_t i) const { return is_chosen ? first : first + i; }
};
Seeds seeds(std::uint64_t usual, std::uint64_t many, std::uint64_t again);

/// Performs the operation. Returns its result or the error's name as text.
std::string perform(Transaction& tx, const Operation& operation);

/// For people.
std::string describe(const Operation& operation);
std::string shown(const std::optional<std::string>& value);

/// Commits. Returns "committed" or the error's name.
std::string commit(Transaction& tx);

/// All rows.
std::string contents(Database& database);

}  // namespace divan::kv::model
