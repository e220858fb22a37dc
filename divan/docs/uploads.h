// Contents of attachments that are too large for one transaction.
//
// Their chunks are written in transactions of their own, before that of the document, which makes them a
// content of the database (contents.h). Until then they are an upload: a marker in front of its chunks says
// so, and a row outside of the database has its state and lets it be found. An upload that is neither
// used nor continued is removed: at once by the process that has abandoned it, otherwise after a while by any
// process.
//
// Keys (docs/keyspace.md): ("db", number, 6, 2, id), ("uploads", number, id).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>

#include "divan/base/async_semaphore.h"
#include "divan/base/change_tracker.h"
#include "divan/base/digest.h"
#include "divan/base/mutex.h"
#include "divan/base/rng.h"
#include "divan/base/worker_loop.h"
#include "divan/docs/attachment.h"
#include "divan/docs/stored_content.h"

namespace divan::docs {

class Uploads;

/// Identifies an upload in a store.
struct UploadKey {
  std::int64_t database = 0;  ///< its number
  std::string id{};
  auto operator<=>(const UploadKey&) const = default;
};

/// An upload whose process has not renewed it for this time is removed. Each process measures the time on its
/// monotonic clock, from when it first sees the row's value, so setting the system clock does not end one.
inline constexpr Duration kUploadTimeout = std::chrono::minutes(10);

/// The content of an attachment that is being written. If it is destroyed before it has become a content, it
/// is abandoned. Not thread-safe, except the destructor.
class Upload {
 public:
  /// To a database. `uploads` must outlive it. Is compressed with `level` (Compression::level_for()), unless
  /// that does not make its first bytes smaller.
  Upload(Uploads& uploads, std::string database, int level);
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Encodes the next bytes: whole chunks (kv::kChunkBytes), except at the end.
  EncodedChunks encode(std::string_view bytes) const;
  /// Writes the next chunks. Can be repeated in another transaction. Throws not_found if the database has
  /// been deleted, and timeout (408) if the upload was removed since this process could not renew it for
  /// kUploadTimeout.
  void write(kv::Transaction& tx, const EncodedChunks& chunks);
  /// Must be called when write() of these chunks is committed.
  void written(const EncodedChunks& chunks);

  /// Must be called in the transaction that makes its chunks those of a content, to which they belong from
  /// then on. Throws as write().
  void finish(kv::Transaction& tx, const Database& database) const;

  bool is_compressed() const { return level_ > 0; }
  /// The length and digests of what was written.
  std::uint64_t length() const { return length_; }
  std::string md5() const { return md5_.value(); }
  Content content() const;

 private:
  // Returns how often the upload was renewed.
  std::int64_t check_open(kv::Transaction& tx, const Database& database) const;

  Uploads& uploads_;
  const std::string database_;
  const std::string id_;
  std::optional<std::int64_t> number_;  // of the database, after the first write()
  int level_;                           // 0 from the first written() on if it is not compressed
  std::uint32_t chunks_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::uint32_t crc32_ = 0;  // if it is compressed
  Digest md5_{Digest::Algorithm::md5};
  Digest sha256_{Digest::Algorithm::sha256};
  const std::shared_ptr<std::atomic<bool>> is_content_ = std::make_shared<std::atomic<bool>>(false);
};

/// The uploads of a store. Thread-safe. The constructor's references must outlive it.
class Uploads {
 public:
  Uploads(kv::Database& store, Catalog& catalog, const Clock& clock, Rng& rng);
  Uploads(const Uploads&) = delete;
  Uploads& operator=(const Uploads&) = delete;

  /// Starts the thread that removes abandoned uploads.
  void start() { loop_.start(); }

  /// The bytes of each upload that should be in memory before they are written, a multiple of
  /// kv::kChunkBytes: fewer if there are more uploads.
  std::size_t piece_bytes() const;

  /// Each write() and its commit need a permit, since until then the bytes are in memory several times.
  AsyncSemaphore& writes() { return writes_; }
  /// A permit is held while contents are compressed, so that other requests get processor time.
  AsyncSemaphore& compressions() { return compressions_; }

  /// Renews the uploads of this process, removes abandoned ones, and returns the number of these. Call on one
  /// thread only: that of start() if that was called.
  std::size_t collect();

 private:
  friend class Upload;

  void hold(const UploadKey& key);
  void release(const UploadKey& key, bool is_content);
  static void renew(kv::Transaction& tx, const UploadKey& key);
  std::set<UploadKey> read_all();
  bool is_stale(kv::Transaction& tx, const UploadKey& key);
  static void remove(kv::Transaction& tx, const UploadKey& key);

  kv::Database& store_;
  Catalog& catalog_;
  const Clock& clock_;
  Rng& rng_;
  std::atomic<std::size_t> active_ = 0;
  AsyncSemaphore writes_;
  AsyncSemaphore compressions_;

  Mutex mutex_{MutexRank::uploads, "Uploads::mutex_"};  // protects the members below
  std::set<UploadKey> held_;                            // of this process
  std::vector<UploadKey> abandoned_;

  // Of collect().
  ChangeTracker<UploadKey> observed_;  // the rows of uploads
  MonotonicTime next_round_;

  WorkerLoop loop_;  // calls collect()
};

/// Sets the attachment's source to a complete upload.
void set_upload(IncomingAttachment& attachment, std::shared_ptr<const Upload> upload);

/// If `key` is the marker of an upload in a database, returns the key of the row outside of it.
std::optional<std::string> upload_row_of_marker(std::string_view key);

/// The upload of a row outside of databases; nullopt if this is another row. Throws an internal error if it
/// is damaged.
std::optional<UploadKey> read_upload_row(std::string_view key, std::string_view value);

}  // namespace divan::docs
