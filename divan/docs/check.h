// Checks the catalog and the documents of all databases, for `divan verify`.
#pragma once

#include <map>
#include <set>

#include "divan/docs/catalog.h"
#include "divan/docs/check_consistency.h"
#include "divan/docs/check_contents.h"
#include "divan/docs/uploads.h"
#include "divan/kv/check.h"

namespace divan::docs {

/// Verifies that every row is valid; that leaves, bodies, changes and counters of a database are consistent;
/// and that every row belongs to a database in the catalog. Does not check indexes. Not thread-safe.
class Check final : public kv::RowCheck {
 public:
  /// `version` is the store's. The findings must outlive the check.
  Check(kv::Version version, kv::Findings& findings) : version_(version), findings_(findings) {}

  bool row(std::string_view key, std::string_view value) override;
  void finish(kv::RowSource& rows) override;

  /// Accepts rows of a database number that is not in the catalog. Must be called before finish().
  void allow_orphans(std::int64_t number) { orphans_.insert(number); }

  /// The name of the database with this number; nullopt if there is none. Must be called after finish().
  std::optional<std::string> name_of(std::int64_t number) const;

  struct Summary {
    std::string name;
    std::int64_t docs = 0;
    std::int64_t deleted = 0;
    std::int64_t bytes = 0;
  };
  /// The databases, by name. Must be called after finish().
  const std::vector<Summary>& databases() const { return databases_; }

 private:
  // The totals of a database's rows.
  struct Tally {
    std::int64_t docs = 0;
    std::int64_t deleted = 0;
    std::int64_t bytes = 0;
    OldSizes old;
    std::map<std::string, std::int64_t> counters;
    kv::RowSum expected_bodies, bodies;    // digests of versionstamp, chunks, bytes
    kv::RowSum expected_changes, changes;  // digests of Change
    kv::RowSum expected_conflicts, conflicts;
    std::int64_t attachment_bytes = 0;
    kv::RowSum expected_attachments, attachments;  // digests of a body's versionstamp, number of attachments
    kv::RowSum expected_references, references;    // MD5 of a content for each attachment
    kv::RowSum expected_contents, contents;        // MD5, id, length and SHA-256 of contents
    kv::RowSum referenced_contents, all_contents;  // MD5
    std::int64_t purge_records = 0;
    bool is_partitioned = false;  // its setting says so
    bool may_validate = false;    // it has a design document, or a list of those that validate
    // In a database that is being restored, the last local document may be incomplete.
    kv::Findings locals;
  };

  bool database_row(std::string_view key, std::string_view value);
  void config_row(std::string_view rest, std::string_view value);
  void stats_row(std::string_view rest, std::string_view value);
  void leaf_row(std::string_view rest, std::string_view value);
  void expect_body(const kv::Versionstamp& sequence, std::uint64_t chunks, std::uint64_t bytes,
                   std::uint64_t attachments);
  void body_row(std::string_view rest, std::string_view value);
  void change_row(std::string_view rest, std::string_view value);
  void local_row(std::string_view rest, std::string_view value);
  // Returns false if they are damaged.
  bool count_attachments(std::string_view body);
  void attachment_row(std::string_view rest, std::string_view value);
  void purge_row(std::string_view rest, std::string_view value);
  void chunk_row(std::string_view prefix, std::string_view rest, std::string_view value);
  void check_version(const kv::Versionstamp& stamp);
  // Called at the end of a section, document or value.
  void end_section();
  void end_document();
  void end_value();
  void end_content();

  void check_catalog();
  void compare(const Summary& database, std::int64_t number, const Tally& tally, kv::RowSource& rows);

  const kv::Version version_;
  kv::Findings& findings_;
  std::map<std::string, CatalogRow> catalog_;
  std::int64_t next_number_ = 0;
  std::set<std::int64_t> orphans_;
  std::map<std::int64_t, Tally> tallies_;
  std::vector<Summary> databases_;
  std::set<UploadKey> uploads_;  // with a marker, and without the row outside of the database

  // The position of the current row.
  std::int64_t number_ = -1;
  Tally* tally_ = nullptr;
  std::int64_t section_ = -1;
  std::optional<DocumentRows> document_;
  std::optional<kv::ChunkedValue> value_;  // a body or a local document
  std::optional<ContentChunks> content_;
};

}  // namespace divan::docs
