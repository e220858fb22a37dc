// Long listings: written page by page, as fast as the client reads.
#pragma once

#include "divan/api/task.h"

namespace divan::api {

/// Where the pages of a JSON answer come from.
class PageSource {
 public:
  virtual ~PageSource() = default;
  /// Appends the next piece of the answer; false when it is complete.
  virtual bool next(std::string& out) = 0;
};

/// Answers with what a source gives. A short answer is sent whole, with its length; a long one is streamed,
/// and no more is read than the client has taken. A failure before the first page is an error answer; after
/// it, the connection is cut.
class PageStream : public Task {
 public:
  using Task::Task;

 protected:
  /// Makes the source, as soon as it can be made; nothing to wait for wake(), or when this has answered by
  /// itself. May set the answer's ETag.
  virtual std::unique_ptr<PageSource> open() = 0;
  void set_etag(std::string etag) { etag_ = std::move(etag); }
  bool step() final;

 private:
  std::string etag_;
  std::unique_ptr<PageSource> source_;
};

/// Starts a stream from a source that is there.
void stream_pages(const Context& context, CallPtr call, std::unique_ptr<PageSource> source);

}  // namespace divan::api
