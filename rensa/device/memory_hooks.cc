// The memory hooks that print and that attribute.
#include "rensa/device/memory_hooks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rensa/device/pool_options.h"

namespace rensa {

namespace {

std::vector<std::string>& labels() {
  thread_local std::vector<std::string> stack;
  return stack;
}

/// The function that an address lies in, or file+offset where its name is not exported.
std::string name_of(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return fmt::format("{}", address);
  if (info.dli_sname) {
    int status = 0;
    char* plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = status == 0 ? plain : info.dli_sname;
    std::free(plain);
    return name;
  }
  std::string_view file = info.dli_fname ? info.dli_fname : "?";
  file.remove_prefix(std::min(file.size(), file.rfind('/') + 1));
  return fmt::format("{}+{:#x}", file,
                     static_cast<char*>(address) - static_cast<char*>(info.dli_fbase));
}

}  // namespace

DebugPrintHook::DebugPrintHook() : out_(&std::cout) {}

void DebugPrintHook::print(const char* what, const MemoryEvent& event) {
  *out_ << fmt::format(
      "{{\"hook\": \"{}\", \"device\": \"{}\", \"size\": {}, \"rounded_size\": {}, "
      "\"data\": \"{}\"}}\n",
      what, event.device.str(), event.size, event.rounded_size, event.data);
}

MemoryLabel::MemoryLabel(std::string name) { labels().push_back(std::move(name)); }
MemoryLabel::~MemoryLabel() { labels().pop_back(); }

struct LineProfileHook::Impl {
  struct Node {
    std::int64_t used = 0, acquired = 0;
    std::map<std::string, std::unique_ptr<Node>> children;
  };

  LineProfileOptions options;
  Node root;
  std::unordered_map<void*, std::string> names;

  void add(std::int64_t used, std::int64_t acquired) {
    for (Node* node : path()) {
      node->used += used;
      node->acquired += acquired;
    }
  }

  /// From the root over the labels and the callers, the outermost first.
  std::vector<Node*> path() {
    std::vector<Node*> nodes{&root};
    auto descend = [&](const std::string& name) {
      auto& child = nodes.back()->children[name];
      if (!child) child = std::make_unique<Node>();
      nodes.push_back(child.get());
    };
    for (const std::string& label : labels()) descend(label);
    if (options.callers) {
      for (const std::string& name : callers()) descend(name);
    }
    return nodes;
  }

  std::vector<std::string> callers() {
    std::array<void*, 64> frames;
    int count = backtrace(frames.data(), static_cast<int>(frames.size()));
    std::vector<std::string> shown;
    for (int i = 0; i < count && std::ssize(shown) < options.max_depth; ++i) {
      void* frame = frames[static_cast<std::size_t>(i)];
      auto [known, fresh] = names.try_emplace(frame);
      // A frame holds where its call returns to: one byte before is still in the caller.
      if (fresh) known->second = name_of(static_cast<char*>(frame) - 1);
      if (!options.hidden.empty() && known->second.starts_with(options.hidden)) continue;
      shown.push_back(known->second);
    }
    std::reverse(shown.begin(), shown.end());
    return shown;
  }

  static void write(const Node& node, int depth, std::string& text) {
    std::vector<std::pair<std::string_view, const Node*>> children;
    for (const auto& [name, child] : node.children) children.emplace_back(name, child.get());
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.second->used > b.second->used; });
    for (const auto& [name, child] : children) {
      text += fmt::format("{:{}}{} ({}, {})\n", "", 2 * depth, name, readable_bytes(child->used),
                          readable_bytes(child->acquired));
      write(*child, depth + 1, text);
    }
  }
};

LineProfileHook::LineProfileHook(LineProfileOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
}
LineProfileHook::~LineProfileHook() = default;

void LineProfileHook::alloc_postprocess(const MemoryEvent& event) {
  impl_->add(0, event.rounded_size);
}
void LineProfileHook::malloc_postprocess(const MemoryEvent& event) {
  impl_->add(event.rounded_size, 0);
}

std::string LineProfileHook::report() const {
  std::string text =
      fmt::format("(asked of the pool, asked of the driver)\nall ({}, {})\n",
                  readable_bytes(impl_->root.used), readable_bytes(impl_->root.acquired));
  Impl::write(impl_->root, 1, text);
  return text;
}

void LineProfileHook::reset() { impl_->root = {}; }

}  // namespace rensa
