// Rows of a backup on their way into a running server: the client of /_restore (docs/storage.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "divan/backup/format.h"
#include "divan/backup/restores.h"
#include "divan/http/client.h"

namespace divan::app {

/// A restore into a server, from its beginning to its end. Rows are sent piece by piece; a request without an
/// answer is sent again, for any of them can be. Not thread-safe. Its calls throw the server's errors.
class Upload {
 public:
  /// Begins it. `header` and `version` are the backup's.
  Upload(http::Client& client, const Clock& clock, backup::Header header, kv::Version version,
         const std::vector<backup::RestoredDatabase>& databases);
  /// Gives it up unless it was finished. Should the server be gone, it does so by itself.
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// The next row of the databases.
  void add(std::string_view key, std::string_view value);
  /// After the last row: the databases appear.
  void finish();

 private:
  http::ClientResponse request(std::string_view method, const std::string& target, std::string_view body);
  void pause(Duration duration);
  void begin_piece();
  void send();
  void send(const std::string& piece);
  void send_halves(const std::string& piece, const http::ClientResponse& refusal);

  http::Client& client_;
  const Clock& clock_;
  const backup::Header header_;
  const kv::Version version_;
  std::string target_;
  std::size_t piece_bytes_ = 512 << 10;  // at which a piece is sent; a block of rows may come on top
  std::string piece_;
  std::optional<backup::Writer> writer_;
  std::int64_t next_ = 0;
  std::int64_t rows_ = 0;
  bool finished_ = false;
};

}  // namespace divan::app
