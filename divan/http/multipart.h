// Bodies of several parts (RFC 2046, section 5.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "divan/http/message.h"

namespace divan::http {

/// The header fields of a part.
struct PartHeaders {
  std::vector<std::pair<std::string, std::string>> fields{};

  /// The value of the first field of this name, without the white space around it.
  std::optional<std::string_view> find(std::string_view name) const;
  /// The `filename` of Content-Disposition (RFC 2183, section 2.3).
  std::optional<std::string> file_name() const;
};

/// The parameter of a header field: that of `multipart/related; boundary="abc"` named `boundary` is abc.
/// Names are case-insensitive.
std::optional<std::string> field_parameter(std::string_view field, std::string_view name);

/// Returns true if the value of a Content-Type, or an element of an Accept, is this type, with any
/// parameters.
bool is_media_type(std::string_view field, std::string_view type);

inline constexpr std::size_t kMaxParts = 10'000;

/// Reads a body piece by piece. The result does not depend on how it is cut into pieces. Not thread-safe.
class MultipartReader {
 public:
  /// Throws bad_request unless the boundary has 1 to 70 characters.
  explicit MultipartReader(std::string_view boundary);

  /// Adds the next bytes of the body.
  void feed(std::string_view bytes);

  enum class Step {
    needs_input,  ///< feed() more bytes or, after the last ones, call check_complete()
    part,         ///< a part begins: headers()
    data,         ///< data() are the next bytes of the part
    part_end,
    end,  ///< what follows is ignored
  };
  /// Returns the next step. Throws bad_request if the body is malformed, or has more than kMaxParts parts.
  Step next();

  const PartHeaders& headers() const { return headers_; }
  /// Valid until the next call of next() or feed().
  std::string_view data() const { return data_; }

  /// Throws bad_request unless the body has ended.
  void check_complete() const;

 private:
  enum class State { preamble, headers, part, ended };

  std::optional<Step> next_text();
  std::optional<Step> take_text(std::size_t end);
  std::optional<Step> read_header();

  const std::string delimiter_;
  std::string buffer_;
  std::size_t at_ = 0;  // of `buffer_`: what is before was processed
  State state_ = State::preamble;
  std::size_t parts_ = 0;
  PartHeaders headers_;
  std::string_view data_;
};

/// Writes a body of several parts. Not thread-safe.
class MultipartWriter {
 public:
  /// `boundary` must not occur in any part: use a random one, 1 to 70 letters and digits.
  /// With `has_parts`, `out` goes on after parts that have been written.
  MultipartWriter(std::string& out, std::string boundary, bool has_parts = false)
      : out_(out), boundary_(std::move(boundary)), has_parts_(has_parts) {}

  /// Begins a part; its bytes are then to be appended to `out`. `type` is the value of its Content-Type.
  void begin_part(std::string_view type, const Headers& fields = {});
  /// The same with a `filename`, which may have any characters, and the length of what follows.
  void begin_file(std::string_view type, std::string_view file_name, std::uint64_t length);
  /// Ends the body.
  void end();

 private:
  void begin();

  std::string& out_;
  const std::string boundary_;
  bool has_parts_;
};

}  // namespace divan::http
