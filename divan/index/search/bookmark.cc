#include "divan/index/search/bookmark.h"

#include <charconv>
#include <optional>

#include "divan/base/bytes.h"
#include "divan/base/error.h"

namespace divan::index::search {
namespace {

// No index has so many documents.
constexpr double kMaxStatistic = 1e15;

std::optional<double> double_of(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end) return std::nullopt;
  return value;
}

}  // namespace

void write(json::Writer& writer, const SortValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) {
    writer.string(*text);
  } else if (const auto* const number = std::get_if<double>(&value)) {
    std::string digits;
    json::append_double(digits, *number);
    writer.raw(digits);
  } else {
    writer.null();
  }
}

std::string Bookmark::encode() const {
  std::string text;
  json::Writer writer(text);
  writer.begin_array().number(static_cast<std::int64_t>(number)).begin_array();
  for (const double value : statistics) write(writer, value);
  writer.end_array();
  for (const auto& value : values) write(writer, value);
  writer.end_array();
  return to_base64url(text);
}

Bookmark Bookmark::decode(std::string_view text) {
  const auto reject = [&]() {
    throw bad_request("Invalid bookmark: " + json::quoted(utf8_prefix(text, 100)));
  };
  Bookmark bookmark;
  const auto bytes = from_base64url(text);
  if (!bytes || !json::is_compact(*bytes)) reject();
  std::size_t index = 0;
  const bool is_array = json::for_each_element(*bytes, [&](std::string_view element) {
    if (index == 0) {
      const auto document = json::int_value(element);
      if (!document || *document < 0) reject();
      bookmark.number = static_cast<DocumentNumber>(*document);
    } else if (index == 1) {
      const bool are_numbers = json::for_each_element(element, [&](std::string_view text_of_number) {
        const auto value = double_of(text_of_number);
        if (!value || *value < 0 || *value > kMaxStatistic) reject();
        bookmark.statistics.push_back(*value);
        return true;
      });
      if (!are_numbers) reject();
    } else if (auto string = json::string_value(element)) {
      bookmark.values.emplace_back(*std::move(string));
    } else if (const auto value = double_of(element)) {
      bookmark.values.emplace_back(*value);
    } else if (element == "null") {
      bookmark.values.emplace_back();
    } else {
      reject();
    }
    ++index;
    return true;
  });
  if (!is_array || index < 2) reject();
  return bookmark;
}

}  // namespace divan::index::search
