// xapian TEXTS QUERIES DIRECTORY: full-text search with Xapian, as a peer of bench/search.mjs.
//
// TEXTS has lines with a number, a tab and words; QUERIES lines with "and", "phrase" or "prefix" and words.
// Prints a line with the processor time of the build in seconds, and one for each query: microseconds and the
// number of results.
#include <sys/resource.h>
#include <xapian.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / 1e6; };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void build(const std::string& texts, const std::string& directory) {
  Xapian::WritableDatabase database(directory + "/built", Xapian::DB_CREATE_OR_OVERWRITE);
  std::ifstream file(texts);
  for (std::string line; std::getline(file, line);) {
    Xapian::Document document;
    std::istringstream words(line.substr(line.find('\t') + 1));
    Xapian::termpos position = 0;
    for (std::string word; words >> word;) document.add_posting(word, ++position);
    database.add_document(document);
  }
  database.commit();
  Xapian::Database(directory + "/built").compact(directory + "/compact");
}

Xapian::Query parse(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  std::vector<std::string> terms;
  for (std::string word; words >> word;) terms.push_back(word);
  if (kind == "prefix") return Xapian::Query(Xapian::Query::OP_WILDCARD, terms.at(0));
  const auto op = kind == "phrase" ? Xapian::Query::OP_PHRASE : Xapian::Query::OP_AND;
  return Xapian::Query(op, terms.begin(), terms.end());
}

int main(int, char** arguments) {
  const double before = cpu_seconds();
  build(arguments[1], arguments[3]);
  std::cout << cpu_seconds() - before << '\n';
  const Xapian::Database database(std::string(arguments[3]) + "/compact");
  std::ifstream queries(arguments[2]);
  for (std::string line; std::getline(queries, line);) {
    const double began = cpu_seconds();
    Xapian::Enquire enquire(database);
    enquire.set_query(parse(line));
    const auto results = enquire.get_mset(0, 25, database.get_doccount());
    std::cout << (cpu_seconds() - began) * 1e6 << ' ' << results.get_matches_estimated() << '\n';
  }
}
