// Queries of a view: by its own route, and by list functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "divan/api/index_poll.h"
#include "divan/api/queries.h"
#include "divan/docs/reader.h"
#include "divan/index/views/view_index.h"

namespace divan::api {

/// The number up to which the changes that an index lacks are counted.
inline constexpr std::int64_t kMaxCountedChanges = 100'000;

/// A design document and its database.
struct ResolvedDesign {
  docs::Database database;
  docs::Leaf design;
  std::string body;
};

/// Throws not_found in CouchDB's words if the design document does not exist.
ResolvedDesign find_design(const Context& context, kv::Transaction& tx, const std::string& name,
                           const std::string& design_id);

/// The views of a design document.
struct ResolvedViews : ResolvedDesign {
  std::shared_ptr<const index::views::ViewIndex> index;  ///< null if it has no views
};

/// Throws as find_design().
ResolvedViews find_views(const Context& context, kv::Transaction& tx, const std::string& name,
                         const std::string& design_id);

/// One or several queries. With update=true they wait until their index has everything that was written
/// before they arrived. Not thread-safe. The references must outlive it.
class ViewQueries {
 public:
  /// Of the view `view` in `_design/{design}` of the database of the path.
  ViewQueries(const Context& context, Call& call, const std::string& design, std::string view,
              std::vector<index::views::ViewParams> queries, bool several);

  /// Waits until the rows can be read. Throws query_parse_error (400) if the parameters do not fit the view.
  Async<void> wait();

  /// After wait(). Empty unless the request is a GET.
  const std::string& etag() const { return etag_; }
  /// After wait().
  std::unique_ptr<PageSource> pages() const;

 private:
  bool open();
  std::shared_ptr<const index::views::ViewIndex> serving(kv::Transaction& tx,
                                                         const ResolvedViews& found) const;
  std::string etag_of(kv::Transaction& tx, const ResolvedViews& found, const index::views::ViewIndex& index,
                      const kv::Versionstamp& sequence) const;
  index::views::Update most_demanding() const;
  bool any(index::views::Update update) const;

  const Context& context_;
  Call& call_;
  const std::vector<index::views::ViewParams> queries_;
  const bool several_;
  const std::string name_;
  const std::string design_id_;
  const std::string view_name_;
  IndexPoll poll_;
  std::shared_ptr<const index::views::ViewIndex> index_;  // that serves the queries; set by open()
  kv::Versionstamp sequence_;                             // of the index
  std::string etag_;
};

}  // namespace divan::api
