#include "divan/mango/projection.h"

#include <algorithm>

#include "divan/base/json.h"

namespace divan::mango {

void FieldTree::set(const selector::Path& path, std::string_view value) {
  Node* node = &root_;
  for (const auto& name : path) {
    if (!node->value.empty()) return;
    const auto found = std::ranges::find(node->children, name, &Node::name);
    node = found != node->children.end() ? &*found : &node->children.emplace_back(Node{.name = name});
  }
  node->value = value;
}

void FieldTree::append(const Node& node, std::string& out) {
  if (!node.value.empty()) {
    out += node.value;
    return;
  }
  out += '{';
  bool first = true;
  for (const auto& child : node.children) {
    if (!std::exchange(first, false)) out += ',';
    json::append_string(out, child.name);
    out += ':';
    append(child, out);
  }
  out += '}';
}

void FieldTree::append_to(std::string& out) const { append(root_, out); }

Projection::Projection(const std::vector<std::string>& fields) {
  for (const auto& field : fields) paths_.push_back(selector::parse_path(field));
}

void Projection::append(std::string_view document, std::string& out) const {
  FieldTree tree;
  for (const auto& path : paths_) {
    if (const auto value = selector::find_field(path, document)) tree.set(path, *value);
  }
  tree.append_to(out);
}

}  // namespace divan::mango
