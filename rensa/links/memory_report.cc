// MemoryReport: hooks of functions, of the pools and of the heap, and the table.
#include "rensa/links/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/function_node.h"
#include "rensa/device/heap_hook.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/pool_options.h"

namespace rensa {

struct MemoryReport::Impl final : FunctionHook, MemoryHook, HeapHook {
  /// The function (none: outside of functions), whether in its backward, and the link.
  using Who = std::tuple<std::string_view, bool, std::string_view>;
  struct Held {
    std::int64_t bytes = 0, blocks = 0;
  };

  Impl(Device device, const Link* model) : device_(device) {
    if (model) find_parameters(*model);
    peak_ = held_;
    peak_bytes_ = bytes_;
  }

  // --- functions: the outermost one counts ---

  void forward_preprocess(const FunctionNode& function, const Variables& inputs) override {
    Who who{function.name(), false, {}};
    for (const Variable& input : inputs) {
      if (std::get<2>(who).empty()) std::get<2>(who) = link_of(*input.node());
    }
    stack_.push_back(who);
  }
  void forward_postprocess(const FunctionNode&, const Variables&) override { stack_.pop_back(); }
  void backward_preprocess(const FunctionNode& function, const Variables&) override {
    Who who{function.name(), true, {}};
    for (const auto& input : function.inputs()) {
      if (std::get<2>(who).empty()) std::get<2>(who) = link_of(*input);
    }
    stack_.push_back(who);
  }
  void backward_postprocess(const FunctionNode&, const Variables&) override { stack_.pop_back(); }

  // --- memory ---

  void malloc_postprocess(const MemoryEvent& event) override {
    if (event.device == device_) take(event.data, event.rounded_size);
  }
  void free_postprocess(const MemoryEvent& event) override { give_back(event.data); }
  void heap_malloc(const void* data, std::int64_t nbytes) override {
    if (device_.is_cpu()) take(data, nbytes);
  }
  void heap_free(const void* data) override { give_back(data); }

  std::vector<Holder> holders() const {
    std::vector<Holder> all;
    for (const auto& [who, held] : peak_) {
      if (held.blocks == 0) continue;
      const auto& [function, backward, link] = who;
      all.push_back({std::string(function) + (backward ? ", backward" : ""), std::string(link),
                     held.bytes, held.blocks});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    return all;
  }
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void find_parameters(const Link& model) {
    model.check_members();
    for (const NamedParameter& named : model.namedparams()) {
      std::size_t end = named.path.rfind('/');
      paths_.push_back(std::make_unique<std::string>(end == 0 ? "/" : named.path.substr(0, end)));
      const std::string_view link = *paths_.back();
      links_.emplace(named.parameter.body().get(), link);
      parameters_.push_back(named.parameter);
      if (!named.parameter.is_initialized() || named.parameter.array().device() != device_)
        continue;
      Held& held = held_[{"parameter", false, link}];
      std::int64_t bytes = named.parameter.array().storage()->nbytes();
      held.bytes += bytes, bytes_ += bytes;
      ++held.blocks;
    }
  }

  /// The link of the parameter at `node`, or of the one that was cast to it.
  std::string_view link_of(const VariableNode& node) const {
    if (auto body = node.body.lock()) {
      auto found = links_.find(body.get());
      if (found != links_.end()) return found->second;
    }
    const FunctionNode* creator = node.creator.get();
    bool cast = creator && std::string_view(creator->name()) == "cast";
    return cast && !creator->inputs().empty() ? link_of(*creator->inputs()[0]) : "";
  }

  void take(const void* data, std::int64_t bytes) {
    Who who = stack_.empty() ? Who{} : stack_.front();
    blocks_[data] = {who, bytes};
    Held& held = held_[who];
    held.bytes += bytes, bytes_ += bytes;
    ++held.blocks;
    if (bytes_ <= peak_bytes_) return;
    peak_bytes_ = bytes_;
    peak_ = held_;
  }

  void give_back(const void* data) {
    auto found = blocks_.find(data);
    if (found == blocks_.end()) return;
    auto [who, bytes] = found->second;
    Held& held = held_[who];
    held.bytes -= bytes, bytes_ -= bytes;
    --held.blocks;
    blocks_.erase(found);
  }

  Device device_;
  std::vector<std::unique_ptr<std::string>> paths_;
  std::vector<ParameterRef> parameters_;  // so that no other one takes a body's address
  std::unordered_map<const VariableBody*, std::string_view> links_;
  std::vector<Who> stack_;
  std::unordered_map<const void*, std::pair<Who, std::int64_t>> blocks_;
  std::map<Who, Held> held_, peak_;
  std::int64_t bytes_ = 0, peak_bytes_ = 0;

  // The last members: what they tell of needs the others.
  FunctionHookScope functions_{*this};
  MemoryHookScope pools_{*this};
  HeapHookScope heap_{*this};
};

MemoryReport::MemoryReport(Device device) : impl_(std::make_unique<Impl>(device, nullptr)) {}
MemoryReport::MemoryReport(Device device, const Link& model)
    : impl_(std::make_unique<Impl>(device, &model)) {}
MemoryReport::~MemoryReport() = default;

std::vector<MemoryReport::Holder> MemoryReport::holders() const { return impl_->holders(); }
std::int64_t MemoryReport::peak_bytes() const { return impl_->peak_bytes(); }

std::string MemoryReport::str() const {
  std::vector<Holder> all = holders();
  std::string text =
      fmt::format("{:>12}  {:>7}  {:<40}  {}\n", "bytes", "blocks", "function", "link");
  for (const Holder& h : all) {
    text += fmt::format("{:>12}  {:>7}  {:<40}  {}\n", readable_bytes(h.bytes), h.blocks,
                        h.function.empty() ? "outside of functions" : h.function, h.link);
  }
  return text + fmt::format("{:>12}  at the peak\n", readable_bytes(peak_bytes()));
}

std::ostream& operator<<(std::ostream& os, const MemoryReport& report) {
  return os << report.str();
}

}  // namespace rensa
