// Bodies of several parts (RFC 2046, section 5.1), complete in memory.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace divan::http {

/// A part of a body. The views are valid as long as the body.
struct BodyPart {
  std::vector<std::pair<std::string_view, std::string_view>> headers;
  std::string_view body;

  /// The value of the first field of this name, without the white space around it.
  std::optional<std::string_view> header(std::string_view name) const;
  /// The `filename` of Content-Disposition (RFC 2183, section 2.3).
  std::optional<std::string> file_name() const;
};

/// The parameter of a header field: that of `multipart/related; boundary="abc"` named `boundary` is abc.
/// Names are case-insensitive.
std::optional<std::string> field_parameter(std::string_view field, std::string_view name);

/// Returns true if the value of a Content-Type, or an element of an Accept, is this type, with any
/// parameters.
bool is_media_type(std::string_view field, std::string_view type);

/// The parts of a body with this boundary. Throws bad_request if it is malformed, has no end, or has more
/// than kMaxParts parts.
inline constexpr std::size_t kMaxParts = 10'000;
std::vector<BodyPart> parse_multipart(std::string_view body, std::string_view boundary);

/// Writes a body of several parts. Not thread-safe.
class MultipartWriter {
 public:
  /// `boundary` must not occur in any part: use a random one, 1 to 70 letters and digits.
  MultipartWriter(std::string& out, std::string boundary) : out_(out), boundary_(std::move(boundary)) {}

  /// Begins a part; its bytes are then to be appended to `out`. `type` is the value of its Content-Type.
  void begin_part(std::string_view type);
  /// The same with a `filename`, which may have any characters, and the length of what follows.
  void begin_file(std::string_view type, std::string_view file_name, std::uint64_t length);
  /// Ends the body.
  void end();

 private:
  void begin();

  std::string& out_;
  const std::string boundary_;
  bool has_parts_ = false;
};

}  // namespace divan::http
