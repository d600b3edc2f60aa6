// Link: what is derived from a model's members().
#include "rensa/links/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "rensa/core/error.h"

namespace rensa {

namespace {

/// Shows each member to one of three functions; all children are walked into.
template <class OnParameter, class OnPersistent, class OnNumber> class Walk final : public Visitor {
 public:
  Walk(OnParameter on_parameter, OnPersistent on_persistent, OnNumber on_number)
      : on_parameter_(std::move(on_parameter)),
        on_persistent_(std::move(on_persistent)),
        on_number_(std::move(on_number)) {}
  void operator()(const char*, Parameter& parameter) override {
    if (parameter.defined()) on_parameter_(parameter);
  }
  void operator()(const char*, Link& child) override { child.members(*this); }
  void operator()(const char*, Persistent& persistent) override { on_persistent_(persistent); }
  void operator()(const char*, std::int64_t& persistent) override { on_number_(persistent); }

 private:
  OnParameter on_parameter_;
  OnPersistent on_persistent_;
  OnNumber on_number_;
};

constexpr auto ignore = [](auto&) {};

/// The members of one link, its parameters and its children each sorted by name.
class Level final : public Visitor {
 public:
  explicit Level(Link& link) {
    link.members(*this);
    sort(parameters);
    sort(children);
  }
  void operator()(const char* name, Parameter& parameter) override {
    if (parameter.defined()) parameters.emplace_back(name, &parameter);
  }
  void operator()(const char* name, Link& child) override { children.emplace_back(name, &child); }
  void operator()(const char*, Persistent&) override {}
  void operator()(const char*, std::int64_t&) override {}

  std::vector<std::pair<const char*, Parameter*>> parameters;
  std::vector<std::pair<const char*, Link*>> children;

 private:
  template <class T> static void sort(std::vector<std::pair<const char*, T*>>& members) {
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return std::strcmp(a.first, b.first) < 0; });
  }
};

void collect(Link& link, std::vector<ParameterRef>& params) {
  Level level(link);
  for (const auto& [name, parameter] : level.parameters) params.push_back(parameter->ref());
  for (const auto& [name, child] : level.children) collect(*child, params);
}

void collect(Link& link, const std::string& prefix, std::vector<NamedParameter>& params) {
  Level level(link);
  for (const auto& [name, parameter] : level.parameters) {
    params.push_back({prefix + name, parameter->ref()});
  }
  for (const auto& [name, child] : level.children) collect(*child, prefix + name + "/", params);
}

void collect(Link& link, const std::string& prefix,
             std::vector<std::pair<std::string, Link*>>& links) {
  for (const auto& [name, child] : Level(link).children) {
    links.emplace_back(prefix + name, child);
    collect(*child, prefix + name + "/", links);
  }
}

/// Every leaf member with its path, in the order of members().
struct Members final : Visitor {
  explicit Members(Link& link) { link.members(*this); }
  void operator()(const char* name, Parameter& p) override {
    if (p.defined()) parameters.push_back({prefix + name, p.ref()});
  }
  void operator()(const char* name, Persistent& p) override {
    persistents.emplace_back(prefix + name, &p);
  }
  void operator()(const char* name, std::int64_t& n) override {
    numbers.emplace_back(prefix + name, &n);
  }
  void operator()(const char* name, Link& child) override {
    std::string outer = std::exchange(prefix, prefix + name + "/");
    child.members(*this);
    prefix = std::move(outer);
  }
  std::string prefix = "/";
  std::vector<NamedParameter> parameters;
  std::vector<std::pair<std::string, Persistent*>> persistents;
  std::vector<std::pair<std::string, std::int64_t*>> numbers;
};

template <class List, class Path>
void check_same_members(const char* operation, const List& mine, const List& theirs, Path path) {
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i < mine.size() && i < theirs.size() && path(mine[i]) == path(theirs[i])) continue;
    throw ValueError(fmt::format("{}: the links differ in structure: {} and {}", operation,
                                 i < mine.size() ? path(mine[i]) : "nothing",
                                 i < theirs.size() ? path(theirs[i]) : "nothing"));
  }
}

const std::string& path_of(const NamedParameter& p) { return p.path; }
template <class T> const std::string& path_of(const std::pair<std::string, T*>& p) {
  return p.first;
}

template <class List> void check_same(const char* operation, const List& mine, const List& theirs) {
  check_same_members(operation, mine, theirs, [](const auto& member) { return path_of(member); });
}

void copy_persistent(const Persistent& from, Persistent& to) {
  if (!from.defined()) return;
  if (!to.defined() || !(to.shape() == from.shape()) || to.dtype() != from.dtype()) {
    to = Persistent(from.copyto(to.defined() ? to.device() : from.device()));
  } else if (to.device() == from.device()) {
    to.assign(from);
  } else {
    to.assign(from.to(to.device()));
  }
}

}  // namespace

Link::Link(Link&& other) noexcept : anchor_(std::move(other.anchor_)) {
  if (anchor_) anchor_->link = this;
}

// The model that stood here is gone; the other one lives here from now on.
Link& Link::operator=(Link&& other) noexcept {
  if (this == &other) return *this;
  if (anchor_) anchor_->link = nullptr;
  anchor_ = std::move(other.anchor_);
  if (anchor_) anchor_->link = this;
  return *this;
}

Link::~Link() {
  if (anchor_) anchor_->link = nullptr;
}

std::shared_ptr<LinkAnchor> Link::anchor() {
  if (!anchor_) anchor_ = std::make_shared<LinkAnchor>(LinkAnchor{this});
  return anchor_;
}

std::vector<ParameterRef> Link::params() {
  std::vector<ParameterRef> params;
  collect(*this, params);
  return params;
}

std::vector<NamedParameter> Link::namedparams() {
  std::vector<NamedParameter> params;
  collect(*this, "/", params);
  return params;
}

std::vector<std::pair<std::string, Link*>> Link::namedlinks() {
  std::vector<std::pair<std::string, Link*>> links{{"/", this}};
  collect(*this, "/", links);
  return links;
}

std::int64_t Link::count_params() {
  std::int64_t count = 0;
  Walk walk([&](Parameter& p) { count += p.is_initialized() ? p.size() : 0; }, ignore, ignore);
  members(walk);
  return count;
}

void Link::move_to(Device device) {
  Walk walk([&](Parameter& p) { p.to_device(device); },
            [&](Persistent& p) {
              if (p.defined()) p = Persistent(p.to(device));
            },
            ignore);
  members(walk);
}

void Link::cleargrads() {
  Walk walk([](Parameter& p) { p.cleargrad(); }, ignore, ignore);
  members(walk);
}

void Link::addgrads(Link& other) {
  Members mine(*this), theirs(other);
  check_same("addgrads", mine.parameters, theirs.parameters);
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    mine.parameters[i].parameter.addgrad(theirs.parameters[i].parameter);
  }
}

void Link::copyparams(Link& other) {
  Members mine(*this), theirs(other);
  check_same("copyparams", mine.parameters, theirs.parameters);
  check_same("copyparams", mine.persistents, theirs.persistents);
  check_same("copyparams", mine.numbers, theirs.numbers);
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    const ParameterRef &to = mine.parameters[i].parameter, &from = theirs.parameters[i].parameter;
    if (to.is_initialized() && !from.is_initialized()) from.initialize(to.shape());
    to.copydata(from);
  }
  for (std::size_t i = 0; i < mine.persistents.size(); ++i) {
    copy_persistent(*theirs.persistents[i].second, *mine.persistents[i].second);
  }
  for (std::size_t i = 0; i < mine.numbers.size(); ++i) {
    *mine.numbers[i].second = *theirs.numbers[i].second;
  }
}

}  // namespace rensa
