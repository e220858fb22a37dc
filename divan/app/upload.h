// Uploads rows of a backup to a running server through /_restore (docs/storage.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/backup/format.h"
#include "divan/backup/restores.h"
#include "divan/http/client.h"

namespace divan::app {

/// A restore into a server. Rows are sent in pieces; a request without a response is sent again, since all
/// are idempotent. Not thread-safe. All functions throw the server's errors.
class Upload {
 public:
  /// Begins the restore. `header` and `version` are the backup's.
  Upload(http::Client& client, const Clock& clock, backup::Header header, kv::Version version,
         const std::vector<backup::RestoredDatabase>& databases);
  /// Cancels the restore unless it was finished. Without a connection, the server cancels it after a timeout.
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Adds the next row of the databases.
  void add(std::string_view key, std::string_view value);
  /// Ends the restore after the last row: the databases become visible.
  void finish();

 private:
  http::ClientResponse request(std::string_view method, const std::string& target, std::string_view body);
  void begin_piece();
  void send();
  void send(const std::string& piece);
  void send_halves(const std::string& piece, const http::ClientResponse& refusal);

  http::Client& client_;
  const Clock& clock_;
  const backup::Header header_;
  const kv::Version version_;
  std::string target_;
  std::size_t piece_bytes_ = 512 << 10;  // size at which a piece is sent; may be exceeded by a block of rows
  std::string piece_;
  std::optional<backup::Writer> writer_;
  std::int64_t next_ = 0;
  std::int64_t rows_ = 0;
  bool finished_ = false;
};

}  // namespace divan::app
