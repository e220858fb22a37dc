// The interface of indexes. An index is a definition in a design document, and a mapping of documents to
// rows. Views, spatial and full-text indexes implement this interface; building, resuming,
// fencing and progress are implemented once, on top of it (builder.h).
//
// An index is identified by its signature, a digest of everything that its rows depend on. Definitions with
// the same content therefore share one index whatever their names, and a changed definition is a different
// index.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "divan/docs/changes.h"
#include "divan/docs/keys.h"

namespace divan::index {

/// A document to be indexed: the last revision, with its change.
struct SourceDocument {
  docs::Change change;
  // With _id, _rev and, unless they are empty, _conflicts and _deleted_conflicts; empty if the document is
  // deleted.
  std::string json{};

  // The rest is for indexes that need it (Index::reads_history()).
  kv::Versionstamp exists_since{};  // of the winner (docs::Leaf); zero if a purge left nothing
  // Of a deleted document: the bodies of the winner, and of the last of its ancestors that is not deleted, if
  // it is stored; otherwise {}.
  std::string tombstone{"{}"}, last_body{"{}"};
};

/// The keys of an index of a database: ("db", number, 7, signature, part, ...).
class IndexKeys {
 public:
  IndexKeys(const docs::Database& database, std::string_view signature) {
    database.keys().packer(prefix_, docs::Section::indexes).bytes(signature);
  }
  std::string state() const { return part(0); }
  /// The records stored below the key of the state.
  enum class Record : int {
    failures = 1,            ///< of its builds (failures.h)
    left_out_documents = 2,  ///< counters of left-out documents and rows (left_out.h)
    left_out_rows = 3,
    left_out = 4,  ///< records of left-out rows, by document
  };
  /// The key of a record, or the prefix of the keys of such records.
  std::string record(Record record) const {
    std::string key = state();
    kv::tuple::Packer(key).integer(static_cast<int>(record));
    return key;
  }
  /// The prefix of all keys of a part. Parts from 1 are defined by the kind.
  std::string part(int number) const {
    std::string key = prefix_;
    kv::tuple::Packer(key).integer(number);
    return key;
  }
  kv::KeyRange all() const { return kv::below(prefix_); }

 private:
  std::string prefix_;
};

/// The state of an index to which documents are written.
struct IndexedSoFar {
  std::int64_t behind = 0;  // approximate number of missing changes, including those being written
  bool all_new = false;     // none of the documents is in the index
};

/// The rows of a batch of documents before they are written. An index has one writer: what is prepared
/// remains valid until it is written, as long as that transaction finds the index's sequence unchanged.
class MappedBatch {
 public:
  virtual ~MappedBatch() = default;

  /// The number of documents.
  virtual std::size_t documents() const = 0;

  /// Computes how the documents from index `first` change the index, compared with their previous rows.
  /// Returns the index of the first document that is left for another transaction: it stops when a
  /// transaction is full. The result is `first` if the document takes several transactions, of which this is
  /// not the last. Must be called outside of transactions: it may take seconds.
  virtual std::size_t prepare(kv::Database& store, const IndexKeys& keys, std::size_t first,
                              const IndexedSoFar& so_far) = 0;

  /// Runs `transaction`, which calls write(); may run it again if it throws. Throws what the last run throws.
  virtual void commit(const std::function<void()>& transaction) { transaction(); }

  /// Writes what was prepared. Can be called again if the transaction is retried.
  virtual void write(kv::Transaction& tx, const IndexKeys& keys) const = 0;

  /// The number of rows.
  virtual std::size_t rows() const { return 0; }

  /// The number of documents for which a function failed.
  virtual std::size_t failures() const { return 0; }
};

/// A piece of work on an index other than its documents' rows, prepared like a batch.
class IndexWork {
 public:
  virtual ~IndexWork() = default;
  /// Writes the piece. Can be called again if the transaction is retried.
  virtual void write(kv::Transaction& tx, const IndexKeys& keys) const = 0;
};

/// How the functions of an index run during a build.
struct BuildLimits {
  bool urgent = false;      // uses the capacity reserved for urgent calls, as long as they are fast
  bool waited_for = false;  // a query waits for the build
  /// Called, on any thread, when urgent calls turn out to be slow; may throw.
  std::function<void()> on_slow = {};
  std::stop_token stop = {};  // ends running calls
};

/// An index was changed otherwise than by its builds, or its definition was. The build begins again.
class IndexChanged : public Error {
 public:
  IndexChanged() : Error(409, "conflict", "Another writer has changed the index.") {}
};

class Index;
using IndexPtr = std::shared_ptr<const Index>;

/// An index of a design document. Immutable, hence thread-safe.
class Index {
 public:
  virtual ~Index() = default;

  /// The type of its jobs, for example "views".
  virtual std::string_view kind() const = 0;
  /// kSignatureBytes.
  virtual const std::string& signature() const = 0;
  /// The id of the design document.
  virtual const std::string& design_document() const = 0;
  /// Its name in the design document; empty if it is all that the design document defines of its kind.
  virtual std::string_view name() const { return {}; }

  /// Returns true if ken keeps the index up to date without requests.
  virtual bool automatic() const = 0;

  /// The same index, whose functions run within these limits.
  virtual IndexPtr within(const BuildLimits& limits) const = 0;

  /// Computes the rows of documents: of at least the first one, and perhaps not of all if it takes long or
  /// the rows are too many for memory. Must be called outside of transactions: it may take seconds. Throws
  /// divan::Error, with the function's name, if the index cannot be built; the error is FunctionFailed if
  /// a function repeatedly exceeded its limits.
  virtual std::unique_ptr<MappedBatch> map(std::span<const SourceDocument> documents) const = 0;

  /// When the rows are up to date, the other data of the index are written in pieces: returns the next piece,
  /// or null if there is none. With `resume_only`, returns null unless a piece was written before: such work
  /// must be finished before rows change again. Must be called outside of transactions.
  virtual std::unique_ptr<IndexWork> more_work(kv::Database& store, const IndexKeys& keys,
                                               bool resume_only) const = 0;
  /// Returns true if there is such a piece.
  virtual bool needs_work(kv::Transaction& tx, const IndexKeys& keys) const = 0;

  /// Returns true if documents must have the members of SourceDocument about their history.
  virtual bool reads_history() const { return false; }

  /// Returns true if ken may write a few changes without a job (small_build.h): map() takes microseconds for
  /// a document, and more_work() has nothing to do.
  virtual bool allows_small_builds() const { return false; }

  /// Called in the transaction that begins a build. Returns the index's sequence, and writes it if there is
  /// none.
  virtual kv::Versionstamp begin(kv::Transaction& tx, const docs::Database& database,
                                 const IndexKeys& keys) const;
};

/// A kind of index. Thread-safe.
class Kind {
 public:
  virtual ~Kind() = default;

  /// Also the member of design documents that defines its indexes.
  virtual std::string_view name() const = 0;

  /// Returns false if its indexes have no rows to be queried: they serve no queries while their replacements
  /// are built, and can not be rebuilt.
  virtual bool has_rows() const { return true; }

  /// The signatures of indexes that must not be removed although no design document may define them at the
  /// moment. Reads a snapshot.
  virtual std::vector<std::string> kept(kv::Transaction&, const docs::Database&) const { return {}; }

  /// The indexes of this kind that a design document defines; empty if there are none or the language is not
  /// supported. Throws divan::Error (400) if it is malformed. `database`: the design document's database;
  /// null if the indexes are only inspected, and neither built nor queried.
  virtual std::vector<IndexPtr> indexes(const std::string& design_id, std::string_view body,
                                        const docs::Database* database = nullptr) const = 0;

  /// Throws divan::Error (400) unless the design document's functions can be compiled. Must be called outside
  /// of transactions: it may take seconds. Calls `checkpoint`, if not empty, between functions.
  virtual void check(const std::string& design_id, std::string_view body,
                     const docs::Checkpoint& checkpoint) const = 0;
};

/// Returns false if the `autoupdate` of a design document, which is false or such as {"views": false},
/// disables automatic builds by ken of its indexes of this kind.
bool builds_itself(std::string_view body, std::string_view kind);

/// The bytes of a signature.
inline constexpr std::size_t kSignatureBytes = 16;

/// All kinds of index.
using Kinds = std::vector<std::shared_ptr<const Kind>>;

/// The design documents of a database with their winners, sorted by id. Reads a snapshot.
std::vector<std::pair<std::string, docs::Leaf>> design_documents(kv::Transaction& tx,
                                                                 const docs::Database& database);

/// The indexes of one design document. If it is malformed for a kind, logs that and omits the kind.
std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                                 const std::string& design_id, const docs::Leaf& winner);

/// All indexes of all design documents of a database. Logs malformed design documents, and omits them.
std::vector<IndexPtr> indexes_of(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds);

/// The index with this signature that the design document defines or, if it no longer does, that another one
/// defines; null if there is none.
IndexPtr find_index(kv::Transaction& tx, const docs::Database& database, const Kinds& kinds,
                    std::string_view design_id, std::string_view signature);

/// Makes the transaction conflict with concurrent changes of the database's design documents.
void watch_design_documents(kv::Transaction& tx, const docs::Database& database);

/// An index cannot be built because a function exceeds its limits.
class FunctionFailed : public Error {
 public:
  explicit FunctionFailed(std::string reason) : Error(500, "map_function_failed", std::move(reason)) {}
};

/// The sequence of an index: it contains all changes up to it. nullopt until its first build has begun, and
/// after its rows were removed.
std::optional<kv::Versionstamp> find_sequence(kv::Transaction& tx, const IndexKeys& keys,
                                              kv::Isolation isolation = kv::Isolation::serializable);
/// The same; zero for an index that was never built.
kv::Versionstamp read_sequence(kv::Transaction& tx, const IndexKeys& keys,
                               kv::Isolation isolation = kv::Isolation::serializable);
void write_sequence(kv::Transaction& tx, const IndexKeys& keys, const kv::Versionstamp& sequence);

}  // namespace divan::index
