#include "divan/docs/uploads.h"

#include <algorithm>
#include <functional>
#include <thread>

#include "divan/base/bytes.h"
#include "divan/base/check.h"
#include "divan/base/error.h"
#include "divan/base/log.h"
#include "divan/docs/keys.h"
#include "divan/kv/chunks.h"
#include "divan/kv/tuple.h"

namespace divan::docs {
namespace {

using kv::tuple::Packer;
using kv::tuple::Reader;

// Between two renewals of this process's uploads, and two searches for stale ones.
constexpr Duration kRoundInterval = std::chrono::minutes(1);

// The memory of all uploads together, unless there are so many that each has one chunk.
constexpr std::size_t kMemoryBytes = 16 << 20;
constexpr std::size_t kMaxPieceChunks = 10;

// Enough that a sync of the store is for many of them.
constexpr std::size_t kMaxWrites = 16;

std::string all_rows() {
  std::string key;
  Packer(key).string("uploads");
  return key;
}

std::string row_key(std::int64_t database, std::string_view id) {
  std::string key = all_rows();
  Packer(key).integer(database).bytes(id);
  return key;
}

// The value of the row outside of the database.
struct State {
  std::int64_t chunks = 0;
  std::int64_t renewals = 0;  // grows while the process of the upload is alive
};

std::string encode_state(const State& state) {
  std::string value;
  Packer(value).integer(state.chunks).integer(state.renewals);
  return value;
}

// That of a restored upload is empty: nobody continues it.
State decode(std::string_view value) {
  if (value.empty()) return {};
  Reader reader(value);
  const auto chunks = reader.take_int(), renewals = reader.take_int();
  if (!chunks || *chunks < 1 || !renewals || !reader.at_end())
    throw internal_error("the row of an upload is damaged");
  return {*chunks, *renewals};
}

std::optional<State> read_state(kv::Transaction& tx, std::int64_t database, std::string_view id) {
  const auto value = tx.get(row_key(database, id));
  return value ? std::optional(decode(*value)) : std::nullopt;
}

}  // namespace

Upload::Upload(Uploads& uploads, std::string database, int level)
    : uploads_(uploads),
      database_(std::move(database)),
      id_(from_hex(uploads.rng_.uuid()).value()),
      level_(level) {
  ++uploads_.active_;
}

Upload::~Upload() {
  --uploads_.active_;
  if (number_) uploads_.release({*number_, id_}, *is_content_);
}

std::int64_t Upload::check_open(kv::Transaction& tx, const Database& database) const {
  if (database.number() != number_.value_or(database.number())) throw not_found("Database does not exist.");
  const auto state = read_state(tx, database.number(), id_);
  if (chunks_ == 0) return 0;
  if (state && state->chunks == chunks_) return state->renewals;
  throw Error(408, "timeout", "The upload was removed, since its server could not renew it for too long.");
}

EncodedChunks Upload::encode(std::string_view bytes) const {
  DIVAN_CHECK(length_ % kv::kChunkBytes == 0, "an upload goes on after an incomplete chunk");
  return {bytes, level_, chunks_ == 0};
}

void Upload::write(kv::Transaction& tx, const EncodedChunks& chunks) {
  const auto database = uploads_.catalog_.open(tx, database_);
  const std::int64_t renewals = check_open(tx, database);
  if (!number_) uploads_.hold({database.number(), id_});
  number_ = database.number();
  const auto row = chunks.is_deflated() ? ContentRow::deflated_chunk : ContentRow::chunk;
  chunks.for_each([&](std::uint32_t chunk, std::string_view piece) {
    tx.set(database.keys().content_chunk(row, id_, chunks_ + chunk), piece);
  });
  if (chunks_ == 0) tx.set(database.keys().upload(id_), "");
  tx.set(row_key(database.number(), id_),
         encode_state({chunks_ + kv::chunk_count(chunks.bytes().size()), renewals}));
}

void Upload::written(const EncodedChunks& chunks) {
  const std::string_view bytes = chunks.bytes();
  if (!chunks.is_deflated()) level_ = 0;
  chunks_ += kv::chunk_count(bytes.size());
  length_ += bytes.size();
  stored_bytes_ += chunks.stored_bytes();
  md5_.add(bytes);
  sha256_.add(bytes);
  if (level_ > 0) crc32_ = add_crc32(crc32_, bytes);
}

Content Upload::content() const {
  Content content{.id = id_, .length = length_, .sha256 = sha256_.value()};
  if (level_ > 0) content.deflated = {stored_bytes_, crc32_};
  return content;
}

void Upload::finish(kv::Transaction& tx, const Database& database) const {
  DIVAN_CHECK(number_ && chunks_ > 0, "an upload is finished before it has begun");
  check_open(tx, database);
  tx.clear(database.keys().upload(id_));
  tx.clear(row_key(*number_, id_));
  tx.after_commit([is_content = is_content_] { *is_content = true; });
}

Uploads::Uploads(kv::Database& store, Catalog& catalog, const Clock& clock, Rng& rng)
    : store_(store),
      catalog_(catalog),
      clock_(clock),
      rng_(rng),
      writes_(kMaxWrites, MutexRank::upload_writes, "Uploads::writes_"),
      compressions_(std::max(1u, std::thread::hardware_concurrency() / 2), MutexRank::upload_writes,
                    "Uploads::compressions_"),
      loop_(clock, "uploads", [this] {
        collect();
        return next_round_;
      }) {}

std::size_t Uploads::piece_bytes() const {
  const std::size_t share = kMemoryBytes / std::max<std::size_t>(active_, 1) / kv::kChunkBytes;
  return std::clamp<std::size_t>(share, 1, kMaxPieceChunks) * kv::kChunkBytes;
}

void Uploads::hold(const UploadKey& key) {
  std::lock_guard lock(mutex_);
  held_.insert(key);
}

void Uploads::release(const UploadKey& key, bool is_content) {
  {
    std::lock_guard lock(mutex_);
    held_.erase(key);
    if (is_content) return;
    abandoned_.push_back(key);
  }
  loop_.notify();
}

void Uploads::renew(kv::Transaction& tx, const UploadKey& key) {
  auto state = read_state(tx, key.database, key.id);
  if (!state) return;  // it has become a content
  ++state->renewals;
  tx.set(row_key(key.database, key.id), encode_state(*state));
}

std::set<UploadKey> Uploads::read_all() {
  std::set<UploadKey> all;
  store_.run([&](kv::Transaction& tx) {
    all.clear();
    tx.scan(kv::below(all_rows()), {.isolation = kv::Isolation::snapshot},
            [&](std::string_view key, std::string_view value) {
              try {
                if (auto upload = read_upload_row(key, value)) all.insert(*std::move(upload));
              } catch (const Error& error) {
                log::error("Skipped {}: {}", kv::tuple::describe(key), error.reason());
              }
              return true;
            });
  });
  return all;
}

bool Uploads::is_stale(kv::Transaction& tx, const UploadKey& key) {
  const auto value = tx.get(row_key(key.database, key.id)).value_or("");
  return observed_.observe(key, value, clock_.now()) >= kUploadTimeout;
}

void Uploads::remove(kv::Transaction& tx, const UploadKey& key) {
  const std::string row = row_key(key.database, key.id);
  if (!tx.get(row)) return;  // it has become a content
  tx.clear(row);
  for (const auto kind : {ContentRow::chunk, ContentRow::deflated_chunk})
    tx.clear_range(DatabaseKeys(key.database).content_chunks(kind, key.id));
}

std::size_t Uploads::collect() {
  std::vector<UploadKey> abandoned;
  std::set<UploadKey> held;
  {
    std::lock_guard lock(mutex_);
    abandoned.swap(abandoned_);
    held = held_;
  }
  std::size_t removed = 0;
  // One that fails does not prevent the others; an abandoned one is then removed when it is stale.
  const auto run = [&](const UploadKey& key, const std::function<bool(kv::Transaction&)>& removes) {
    try {
      if (store_.run(removes)) ++removed;
    } catch (const std::exception& error) {
      log::error("Cannot renew or remove upload {} of database number {}: {}", to_hex(key.id), key.database,
                 error.what());
    }
  };
  for (const auto& key : abandoned) {
    run(key, [&](kv::Transaction& tx) {
      remove(tx, key);
      return true;
    });
  }
  if (clock_.now() < next_round_) return removed;
  next_round_ = clock_.now() + kRoundInterval;
  for (const auto& key : held) {
    run(key, [&](kv::Transaction& tx) {
      renew(tx, key);
      return false;
    });
  }
  const auto all = read_all();
  observed_.retain([&](const UploadKey& key) { return all.contains(key); });
  for (const auto& key : all) {
    if (held.contains(key)) continue;
    run(key, [&](kv::Transaction& tx) {
      const bool removes = is_stale(tx, key);
      if (removes) remove(tx, key);
      return removes;
    });
  }
  return removed;
}

void set_upload(IncomingAttachment& attachment, std::shared_ptr<const Upload> upload) {
  attachment.source = IncomingAttachment::Source::uploaded;
  attachment.data = {};
  attachment.md5 = upload->md5();
  attachment.sha256 = upload->content().sha256;
  attachment.length = upload->length();
  attachment.upload = std::move(upload);
}

std::optional<std::string> upload_row_of_marker(std::string_view key) {
  Reader reader(key);
  if (reader.take_string() != "db") return std::nullopt;
  const auto database = reader.take_int();
  if (!database || reader.take_int() != static_cast<int>(Section::attachments) ||
      reader.take_int() != static_cast<int>(ContentRow::chunk))
    return std::nullopt;
  const auto id = reader.take_bytes();
  if (!id || !reader.at_end()) return std::nullopt;
  return row_key(*database, *id);
}

std::optional<UploadKey> read_upload_row(std::string_view key, std::string_view value) {
  Reader reader(key);
  if (reader.take_string() != "uploads") return std::nullopt;
  const auto database = reader.take_int();
  auto id = reader.take_bytes();
  if (!database || !id || !reader.at_end()) throw internal_error("the row of an upload is damaged");
  decode(value);
  return UploadKey{*database, *std::move(id)};
}

}  // namespace divan::docs
