// What an index is: a definition that stands in a design document, and a way from documents to the rows that
// they make in it. Views, and later full-text and spatial indexes, implement this; building, resuming,
// fencing and progress are written once, against it (builder.h).
//
// An index is known by its signature, a digest of everything that its rows depend on. So indexes of the same
// content are one index whatever their names are, and an index whose definition changed is another one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "divan/docs/changes.h"
#include "divan/docs/keys.h"

namespace divan::index {

/// A document on its way into an index: the last revision, at its place in the changes.
struct SourceDocument {
  docs::Change change;
  // With _id, _rev and, where there are any, _conflicts and _deleted_conflicts; empty if it is deleted.
  std::string json;
};

/// Where an index of a database is in the store: ("db", number, 7, signature, part, ...).
class IndexKeys {
 public:
  IndexKeys(const docs::Database& database, std::string_view signature) {
    database.keys().packer(prefix_, docs::Section::indexes).bytes(signature);
  }
  std::string state() const { return part(0); }
  /// What stands beside the state, below its key.
  enum class Record : int {
    failures = 1,            ///< of its builds (failures.h)
    left_out_documents = 2,  ///< counters of what it lacks (left_out.h)
    left_out_rows = 3,
    left_out = 4,  ///< what it lacks, by document
  };
  /// The key of a record, or the beginning of the keys of such records.
  std::string record(Record record) const {
    std::string key = state();
    kv::tuple::Packer(key).integer(static_cast<int>(record));
    return key;
  }
  /// The beginning of all keys of a part. Parts from 1 on are the kind's own.
  std::string part(int number) const {
    std::string key = prefix_;
    kv::tuple::Packer(key).integer(number);
    return key;
  }
  kv::KeyRange all() const { return kv::below(prefix_); }

 private:
  std::string prefix_;
};

/// What is known of an index that documents are written to.
struct IndexedSoFar {
  std::int64_t behind = 0;  // about how many changes it lacks, those to be written included
  bool all_new = false;     // none of the documents is in it
};

/// The rows that a batch of documents makes, before they are written. An index has one writer: what is
/// prepared stays right until it is written, as long as the transaction that does so finds the index's
/// sequence where it was.
class MappedBatch {
 public:
  virtual ~MappedBatch() = default;

  /// How many documents these are the rows of.
  virtual std::size_t documents() const = 0;

  /// Works out what the documents from number `first` on change in the index, in place of the rows that they
  /// made before, and answers the number of the first document that it leaves for another transaction: it
  /// stops when one has enough. That is `first` if the document takes several transactions, of which this is
  /// not the last one. Outside of any transaction: it may take seconds.
  virtual std::size_t prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                              const IndexedSoFar& so_far) = 0;

  /// Writes what was prepared. Repeatable.
  virtual void write(kv::Transaction& tx, const IndexKeys& keys) const = 0;

  /// How many rows there are.
  virtual std::size_t rows() const { return 0; }

  /// Documents for which a function failed.
  virtual std::size_t failures() const { return 0; }
};

/// A piece of work on an index beside its documents' rows, prepared like a batch.
class IndexWork {
 public:
  virtual ~IndexWork() = default;
  /// Repeatable.
  virtual void write(kv::Transaction& tx, const IndexKeys& keys) const = 0;
};

/// How functions of an index run that is being built.
struct BuildLimits {
  bool urgent = false;                 // in what is reserved for that, as long as they are quick
  bool waited_for = false;             // by a query
  std::function<void()> on_slow = {};  // called, by any thread, when they turn out not to be; may throw
  std::stop_token stop = {};           // ends what runs
};

class Index;
using IndexPtr = std::shared_ptr<const Index>;

/// An index of a design document. Immutable, hence thread-safe.
class Index {
 public:
  virtual ~Index() = default;

  /// "views": the type of its jobs.
  virtual std::string_view kind() const = 0;
  /// 16 bytes.
  virtual const std::string& signature() const = 0;
  /// The id of the design document.
  virtual const std::string& design_document() const = 0;

  /// Whether ken keeps it up to date without being asked.
  virtual bool automatic() const = 0;

  /// The same index, whose functions run within these limits.
  virtual IndexPtr within(const BuildLimits& limits) const = 0;

  /// Works out the rows of documents, perhaps of fewer than it was given, from the first on, but at least of
  /// one: when it takes long, or when the rows are too many to be kept. Outside of any transaction: it may
  /// take seconds. Throws divan::Error if the index cannot be built, naming the function; `kFunctionFailed`
  /// if a function runs into its limits again and again.
  virtual std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const = 0;

  /// What else the index keeps is made in pieces when its rows are up to date: the next piece, or null if
  /// there is none. With `resume_only`, not the first one: what was begun is to be finished before rows
  /// change again. Outside of any transaction.
  virtual std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                               bool resume_only) const = 0;
  /// Whether there is such a piece.
  virtual bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const = 0;
};

/// A kind of index. Thread-safe.
class Kind {
 public:
  virtual ~Kind() = default;

  virtual std::string_view name() const = 0;

  /// The indexes of this kind that a design document defines; none if it has none or is in a language that
  /// nobody here speaks. Throws divan::Error (400) if it is malformed. `database`: whose design document it
  /// is; null if the indexes are only looked at.
  virtual std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                        const docs::Database* database = nullptr) const = 0;

  /// Throws divan::Error (400) unless the design document's functions can be compiled. Outside of any
  /// transaction: it may take seconds. Calls `checkpoint`, if there is one, between two functions.
  virtual void check(const std::string& design_id, std::string_view body,
                     const docs::Checkpoint& checkpoint) const = 0;
};

/// The kinds of index that there are.
using Kinds = std::vector<std::unique_ptr<const Kind>>;

/// The design documents of a database: ids and winners, in the order of the ids. Reads a snapshot.
std::vector<std::pair<std::string, docs::Leaf>> design_documents(kv::Transaction& tx,
                                                                 const docs::Database& database);

/// The indexes of one of them. Kinds to which it is malformed are left out, with a line in the log.
std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                                 const std::string& design_id, const docs::Leaf& winner);

/// All indexes of all design documents of a database. Design documents that are malformed are left out, with
/// a line in the log.
std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds);

/// The index of this signature that the design document defines or, if it does not any more, another one
/// does; or nothing.
IndexPtr find_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                    std::string_view design_id, std::string_view signature);

/// Makes a change of the database's design documents at the same time a conflict.
void watch_design_documents(kv::Transaction& tx, const docs::Database& database);

/// Removes the rows of indexes that no design document defines any more, but for those that answer until
/// their successor is built (answering.h); answers how many there were.
std::size_t remove_unused(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds);

/// The name of the error of an index whose function does not end, say.
inline constexpr std::string_view kFunctionFailed = "map_function_failed";

/// How far an index is: all changes up to this sequence are in it. Zero for one that was never built.
kv::Versionstamp read_sequence(kv::Transaction& tx, const IndexKeys& keys,
                               kv::Isolation isolation = kv::Isolation::serializable);
void write_sequence(kv::Transaction& tx, const IndexKeys& keys, const kv::Versionstamp& sequence);

}  // namespace divan::index
