// Long listings: written page by page, as fast as the client reads.
#pragma once

#include "divan/api/task.h"

namespace divan::api {

/// The source of the pages of a JSON response.
class PageSource {
 public:
  virtual ~PageSource() = default;
  /// Appends the next piece of the response; returns false if it is complete.
  virtual bool next(std::string& out) = 0;
};

/// Responds with the pages of a source. A short response is sent whole, with its length. A long one is
/// streamed, no faster than the client reads. An error before the first page is an error response; after it,
/// the connection is closed.
class PageStream : public Task {
 public:
  using Task::Task;

 protected:
  /// Creates the source. Returns null to wait for wake(), or if this function has responded itself. May set
  /// the response's ETag.
  virtual std::unique_ptr<PageSource> open() = 0;
  void set_etag(std::string etag) { etag_ = std::move(etag); }
  bool step() final;

 private:
  std::string etag_;
  std::unique_ptr<PageSource> source_;
};

/// Starts a stream of an existing source.
void stream_pages(const Context& context, CallPtr call, std::unique_ptr<PageSource> source);

}  // namespace divan::api
