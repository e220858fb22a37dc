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
  for (const auto& field : fields) {
    Node* node = &root_;
    for (auto& name : selector::parse_path(field)) {
      const auto [number, is_new] = node->numbers.try_emplace(name, node->children.size());
      if (is_new) node->children.emplace_back().name = std::move(name);
      node = &node->children[number->second];
    }
    node->is_wanted = true;
  }
}

void Projection::append(std::string_view document, std::string& out) const {
  if (!append(root_, document, out)) out += "{}";
}

// The values of the node's children, by their numbers; empty if there is none.
std::vector<std::string_view> Projection::find_children(const Node& node, std::string_view value) {
  std::vector<std::string_view> found(node.children.size());
  const auto add = [&](std::string_view name, std::string_view child) {
    if (const auto number = node.numbers.find(name); number != node.numbers.end())
      found[number->second] = child;
  };
  json::for_each_member(value, [&](std::string_view raw_name, std::string_view child) {
    const bool has_escapes = raw_name.find('\\') != std::string_view::npos;
    has_escapes ? add(json::unescape(raw_name), child) : add(raw_name, child);
    return true;
  });
  std::size_t index = 0;
  json::for_each_element(value, [&](std::string_view child) {
    add(std::to_string(index++), child);
    return true;
  });
  return found;
}

// Returns false, and appends nothing, if the value has none of the fields.
bool Projection::append(const Node& node, std::string_view value, std::string& out) {
  if (node.is_wanted) {
    out += value;
    return true;
  }
  const auto found = find_children(node, value);
  const std::size_t begin = out.size();
  bool is_empty = true;
  out += '{';
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].empty()) continue;
    const Node& child = node.children[i];
    const std::size_t before = out.size();
    if (!is_empty) out += ',';
    json::append_string(out, child.name);
    out += ':';
    if (append(child, found[i], out)) {
      is_empty = false;
    } else {
      out.resize(before);
    }
  }
  if (is_empty) {
    out.resize(begin);
  } else {
    out += '}';
  }
  return !is_empty;
}

}  // namespace divan::mango
