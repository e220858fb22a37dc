// The data of stop_words.h: for each language words, with a space after each.
#pragma once

#include <string_view>

namespace divan::text {

extern const std::string_view kArabicStopWords;
extern const std::string_view kArmenianStopWords;
extern const std::string_view kBasqueStopWords;
extern const std::string_view kBrazilianStopWords;
extern const std::string_view kBulgarianStopWords;
extern const std::string_view kCatalanStopWords;
extern const std::string_view kCjkStopWords;
extern const std::string_view kCzechStopWords;
extern const std::string_view kDanishStopWords;
extern const std::string_view kDutchStopWords;
extern const std::string_view kEnglishStopWords;
extern const std::string_view kFinnishStopWords;
extern const std::string_view kFrenchStopWords;
extern const std::string_view kGalicianStopWords;
extern const std::string_view kGermanStopWords;
extern const std::string_view kGreekStopWords;
extern const std::string_view kHindiStopWords;
extern const std::string_view kHungarianStopWords;
extern const std::string_view kIndonesianStopWords;
extern const std::string_view kIrishStopWords;
extern const std::string_view kItalianStopWords;
extern const std::string_view kLatvianStopWords;
extern const std::string_view kNorwegianStopWords;
extern const std::string_view kPersianStopWords;
extern const std::string_view kPortugueseStopWords;
extern const std::string_view kRomanianStopWords;
extern const std::string_view kRussianStopWords;
extern const std::string_view kSpanishStopWords;
extern const std::string_view kSwedishStopWords;
extern const std::string_view kThaiStopWords;
extern const std::string_view kTurkishStopWords;

}  // namespace divan::text
