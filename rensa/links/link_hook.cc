// Hooks of links.
#include "rensa/links/link_hook.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/device/renewal.h"

namespace rensa {

namespace {
/// Of the scopes around, the outermost first.
thread_local std::vector<LinkHook*> hooks_of_thread;
}  // namespace

std::vector<HookedLink::Named> HookedLink::parameters() const {
  struct List final : Visitor {
    void parameter(std::string_view name, Parameter& p) override {
      found.push_back({std::string(name), &p});
    }
    void link(std::string_view, Link&) override {}
    void group(std::string_view, const Members&) override {}
    std::vector<Named> found;
  } list;
  Members(link).show(list);
  return std::move(list.found);
}

HookedCall::~HookedCall() {
  while (!replaced_.empty()) {
    static_cast<Variable&>(*replaced_.back().parameter) = replaced_.back().original;
    replaced_.pop_back();
  }
}

Parameter& HookedCall::place(std::string_view name) {
  if (parameters_.empty()) parameters_ = link_.parameters();
  auto found = std::ranges::find(parameters_, name, &HookedLink::Named::name);
  if (found != parameters_.end()) return *found->parameter;
  throw ValueError(
      fmt::format("a hook of {}: it has no parameter \"{}\"", link_.link.type_name(), name));
}

void HookedCall::replace(std::string_view name, const Variable& value) {
  Parameter& parameter = place(name);
  replaced_.push_back({&parameter, parameter});
  static_cast<Variable&>(parameter) = value;
}

LinkHooks::LinkHooks(const LinkHooks& other) {
  for (const auto& hook : other.hooks_) hooks_.push_back(hook->clone());
}
LinkHooks& LinkHooks::operator=(const LinkHooks& other) { return *this = LinkHooks(other); }

std::vector<std::string> LinkHooks::names() const {
  std::vector<std::string> names;
  for (const auto& hook : hooks_) names.push_back(hook->name());
  return names;
}

void LinkHooks::members(Visitor& v) {
  for (const auto& hook : hooks_) hook->members(v);
}

void LinkHooks::add(std::unique_ptr<LinkHook> hook, const HookedLink& link) {
  for (const auto& known : hooks_) {
    if (known->name() != hook->name()) continue;
    throw ValueError(
        fmt::format("add_hook: {} has a hook \"{}\" already", link.link.type_name(), hook->name()));
  }
  hook->added(link);
  hooks_.push_back(std::move(hook));
  renew_recordings();
}

void LinkHooks::remove(std::string_view name, const HookedLink& link) {
  auto found = std::ranges::find_if(hooks_, [&](const auto& hook) { return hook->name() == name; });
  if (found == hooks_.end()) {
    throw ValueError(
        fmt::format("delete_hook: {} has no hook \"{}\"", link.link.type_name(), name));
  }
  (*found)->deleted(link);
  hooks_.erase(found);
  renew_recordings();
}

Variable LinkHooks::call(const HookedLink& link, const Variables& x,
                         const std::function<Variable()>& forward) const {
  HookedCall call(link, x);
  std::vector<LinkHook*> called = hooks_of_thread;
  for (const auto& hook : hooks_) called.push_back(hook.get());
  std::size_t begun = 0, ended = 0;
  try {
    for (; begun < called.size(); ++begun) called[begun]->forward_preprocess(call);
    Variable y = forward();
    while (ended < begun) called[ended++]->forward_postprocess(call, y);
    return y;
  } catch (...) {
    while (ended < begun) called[ended++]->forward_failed(call);
    throw;
  }
}

constinit std::atomic<int> LinkHookScope::count_ = 0;

LinkHookScope::LinkHookScope(LinkHook& hook) {
  hooks_of_thread.push_back(&hook);
  ++count_;
}

LinkHookScope::~LinkHookScope() {
  hooks_of_thread.pop_back();
  --count_;
}

bool LinkHookScope::is_open() { return any() && !hooks_of_thread.empty(); }

HookedCall::HookedCall(const HookedLink& link, const Variables& x) : link_(link), x_(x) {}

LinkHooks::LinkHooks(LinkHooks&&) noexcept = default;
LinkHooks& LinkHooks::operator=(LinkHooks&&) noexcept = default;
LinkHooks::~LinkHooks() = default;

}  // namespace rensa
