// Documents with some of their fields.
#pragma once

#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "divan/selector/path.h"

namespace divan::mango {

/// An object that is built from fields: {"a.b": 1} is {"a":{"b":1}}. Not thread-safe.
class FieldTree {
 public:
  /// Sets a field to a JSON text. Path and text must outlive this object. A field below one that was set
  /// before has no effect, since its value is part of that.
  void set(const selector::Path& path, std::string_view value);
  void set(selector::Path&& path, std::string_view value) = delete;
  /// Appends the object. Its members are in the order in which they were set first.
  void append_to(std::string& out) const;

 private:
  struct Node {
    std::string_view name{};  // of a path
    std::string_view value{};
    std::list<Node> children{};
  };
  static void append(const Node& node, std::string& out);

  Node root_;
};

/// The wanted fields of documents. Immutable, hence thread-safe.
class Projection {
 public:
  /// Throws invalid_field_name (400).
  explicit Projection(const std::vector<std::string>& fields);
  /// Appends the document with those of the fields that it has, in the order of the fields. Reads the
  /// document once, however many fields there are.
  void append(std::string_view document, std::string& out) const;

 private:
  struct Node {
    std::string name{};
    bool is_wanted = false;  // the whole value
    std::vector<Node> children{};
    std::map<std::string, std::size_t, std::less<>> numbers{};  // of the children, by name
  };
  static std::vector<std::string_view> find_children(const Node& node, std::string_view value);
  static bool append(const Node& node, std::string_view value, std::string& out);

  Node root_;
};

}  // namespace divan::mango
