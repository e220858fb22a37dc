// Long listings: written page by page, as fast as the client reads.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "divan/api/routes.h"

namespace divan::api {

/// The source of the pages of a JSON response.
class PageSource {
 public:
  virtual ~PageSource() = default;
  /// Appends the next piece of the response, perhaps an empty one; returns false if it is complete.
  virtual bool next(std::string& out) = 0;
  /// The number of the database if next() searches a full-text or spatial index: it is then called on the
  /// threads for searches (function_threads.h).
  virtual std::optional<std::int64_t> searched_database() const { return std::nullopt; }
};

/// The pages of a query, which has the function next() of PageSource.
template <class Query>
class PagesOf final : public PageSource {
 public:
  template <class... Arguments>
  explicit PagesOf(Arguments&&... arguments) : query_(std::forward<Arguments>(arguments)...) {}
  bool next(std::string& out) override { return query_.next(out); }

 private:
  Query query_;
};

/// The pages of a query that searches an index of the database with this number.
template <class Query>
class SearchPagesOf final : public PageSource {
 public:
  template <class... Arguments>
  explicit SearchPagesOf(std::int64_t database, Arguments&&... arguments)
      : database_(database), query_(std::forward<Arguments>(arguments)...) {}
  bool next(std::string& out) override { return query_.next(out); }
  std::optional<std::int64_t> searched_database() const override { return database_; }

 private:
  const std::int64_t database_;
  Query query_;
};

/// Responds with the pages of a source. A short response is sent whole, with its length. A long one is
/// streamed, no faster than the client reads. `etag`, if it is not empty, is the response's ETag. Must be
/// called on a worker thread.
Async<RouteResult> stream_pages(const Context& context, Call& call, std::unique_ptr<PageSource> source,
                                std::string etag = {});
/// The same with another head, which has no body.
Async<RouteResult> stream_pages(const Context& context, Call& call, std::unique_ptr<PageSource> source,
                                http::Response head);

}  // namespace divan::api
