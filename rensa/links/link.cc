// Link: what is derived from a model's members().
#include "rensa/links/link.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ostream>
#include <set>
#include <typeinfo>
#include <utility>

#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

/// Shows each parameter, persistent and state to a function; all children are walked into.
template <class OnParameter, class OnPersistent, class OnState> class Walk final : public Visitor {
 public:
  Walk(OnParameter on_parameter, OnPersistent on_persistent, OnState on_state)
      : on_parameter_(std::move(on_parameter)),
        on_persistent_(std::move(on_persistent)),
        on_state_(std::move(on_state)) {}
  void operator()(const char*, Parameter& parameter) override {
    if (!parameter.defined()) return;
    autograd::note_named(parameter);
    on_parameter_(parameter);
  }
  void operator()(const char*, Link& child) override { child.members(*this); }
  void operator()(const char*, Persistent& persistent) override { on_persistent_(persistent); }
  void operator()(const char*, std::int64_t&) override {}
  void operator()(const char*, State& state) override { on_state_(state); }

 private:
  OnParameter on_parameter_;
  OnPersistent on_persistent_;
  OnState on_state_;
};

constexpr auto ignore = [](auto&) {};

/// The members of one link; its parameters and its children each sorted by name.
class Level final : public Visitor {
 public:
  explicit Level(const Link& link) {
    link.show_members(*this);
    sort(parameters);
    sort(children);
  }
  void operator()(const char* name, Parameter& parameter) override {
    if (!parameter.defined()) return;
    autograd::note_named(parameter);
    parameters.emplace_back(name, &parameter);
  }
  void operator()(const char* name, Link& child) override { children.emplace_back(name, &child); }
  void operator()(const char*, Persistent&) override {}
  void operator()(const char*, std::int64_t&) override {}
  void operator()(const char*, State& state) override { states.push_back(&state); }

  std::vector<std::pair<const char*, Parameter*>> parameters;
  std::vector<std::pair<const char*, Link*>> children;
  std::vector<State*> states;

 private:
  template <class T> static void sort(std::vector<std::pair<const char*, T*>>& members) {
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return std::strcmp(a.first, b.first) < 0; });
  }
};

void collect(const Link& link, std::vector<ParameterRef>& params) {
  Level level(link);
  for (const auto& [name, parameter] : level.parameters) params.push_back(parameter->ref());
  for (const auto& [name, child] : level.children) collect(*child, params);
}

void collect(const Link& link, const std::string& prefix, std::vector<NamedParameter>& params) {
  Level level(link);
  for (const auto& [name, parameter] : level.parameters) {
    params.push_back({prefix + name, parameter->ref()});
  }
  for (const auto& [name, child] : level.children) collect(*child, prefix + name + "/", params);
}

template <class SomeLink>
void collect(const Link& link, const std::string& prefix,
             std::vector<std::pair<std::string, SomeLink*>>& links) {
  for (const auto& [name, child] : Level(link).children) {
    links.emplace_back(prefix + name, child);
    collect(*child, prefix + name + "/", links);
  }
}

/// Every leaf member with its path, in the order of members().
struct Members final : Visitor {
  explicit Members(const Link& link) { link.show_members(*this); }
  void operator()(const char* name, Parameter& p) override {
    if (p.defined()) parameters.push_back({prefix + name, p.ref()});
  }
  void operator()(const char* name, Persistent& p) override {
    persistents.emplace_back(prefix + name, &p);
  }
  void operator()(const char* name, std::int64_t& n) override {
    numbers.emplace_back(prefix + name, &n);
  }
  void operator()(const char*, State&) override {}
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

/// Finds what members() names twice.
class CheckedMembers final : public Visitor {
 public:
  explicit CheckedMembers(const Link& link) {
    seen_[&link] = "the model itself";
    link.show_members(*this);
  }
  void operator()(const char* name, Parameter& p) override {
    check_name(name);
    if (!p.defined()) return;
    autograd::note_named(p);
    check_place(p.body().get(), "parameter", name);
  }
  void operator()(const char* name, Persistent& p) override {
    check_name(name);
    check_place(&p, "persistent", name);
  }
  void operator()(const char* name, std::int64_t& n) override {
    check_name(name);
    check_place(&n, "number", name);
  }
  void operator()(const char* name, State& state) override {
    check_name(name);
    check_place(&state, "state", name);
  }
  void operator()(const char* name, Link& child) override {
    check_name(name);
    check_place(&child, "link", name);
    std::string outer = std::exchange(prefix_, prefix_ + name + "/");
    child.members(*this);
    prefix_ = std::move(outer);
  }

 private:
  void check_name(const char* name) {
    if (paths_.insert(prefix_ + name).second) return;
    throw ValueError(fmt::format(
        "members(): two members are named \"{}{}\"; give each a name of its own, files know them "
        "by it",
        prefix_, name));
  }
  void check_place(const void* member, const char* kind, const char* name) {
    auto [known, first] = seen_.try_emplace(member, "\"" + prefix_ + name + "\"");
    if (first) return;
    throw ValueError(fmt::format(
        "members(): the {} \"{}{}\" is {} again and would be updated and saved twice; name it once",
        kind, prefix_, name, known->second));
  }
  std::string prefix_ = "/";
  std::set<std::string> paths_;
  std::map<const void*, std::string> seen_;
};

std::array<std::string, 4> row_of(const std::string& path, const Array& a) {
  return {path, a.shape().str(), std::string(dtype_name(a.dtype())), std::to_string(a.size())};
}

/// "cpu", or "cuda:0 and cuda:1".
std::string devices_of(const std::vector<NamedParameter>& parameters) {
  std::set<Device> devices;
  for (const NamedParameter& p : parameters) devices.insert(p.parameter.device());
  std::vector<std::string> names;
  for (Device device : devices) names.push_back(device.str());
  return names.empty() ? "no device" : fmt::format("{}", fmt::join(names, " and "));
}

/// Columns side by side, the last one to the right.
std::string table(const std::vector<std::array<std::string, 4>>& rows) {
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < 4; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{}{:<{}}  {:<{}}  {:<{}}  {:>{}}", text.empty() ? "" : "\n", row[0],
                        widths[0], row[1], widths[1], row[2], widths[2], row[3], widths[3]);
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return text;
}

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
    to = Persistent(from.copy(to.defined() ? to.device() : from.device()));
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

std::shared_ptr<LinkAnchor> Link::anchor() const {
  if (!anchor_) anchor_ = std::make_shared<LinkAnchor>(LinkAnchor{self()});
  return anchor_;
}

std::vector<ParameterRef> Link::params() const {
  std::vector<ParameterRef> params;
  collect(*this, params);
  return params;
}

std::vector<NamedParameter> Link::namedparams() const {
  std::vector<NamedParameter> params;
  collect(*this, "/", params);
  return params;
}

std::vector<std::pair<std::string, Link*>> Link::namedlinks() {
  std::vector<std::pair<std::string, Link*>> links{{"/", this}};
  collect(*this, "/", links);
  return links;
}

std::vector<std::pair<std::string, const Link*>> Link::namedlinks() const {
  std::vector<std::pair<std::string, const Link*>> links{{"/", this}};
  collect(*this, "/", links);
  return links;
}

std::int64_t Link::count_params() const {
  std::int64_t count = 0;
  Walk walk([&](Parameter& p) { count += p.is_initialized() ? p.size() : 0; }, ignore, ignore);
  show_members(walk);
  return count;
}

void Link::check_members() const { CheckedMembers check(*this); }

std::string Link::type_name() const {
  int status = 0;
  char* text = abi::__cxa_demangle(typeid(*this).name(), nullptr, nullptr, &status);
  std::string name = text ? text : typeid(*this).name();
  std::free(text);
  for (const char* scope : {"rensa::links::", "rensa::", "(anonymous namespace)::"}) {
    for (std::size_t at; (at = name.find(scope)) != std::string::npos;) {
      name.erase(at, std::strlen(scope));
    }
  }
  return name;
}

std::string Link::str() const {
  Members all(*this);
  std::vector<std::array<std::string, 4>> rows{{"name", "shape", "dtype", "elements"}};
  for (const NamedParameter& p : all.parameters) {
    if (p.parameter.is_initialized()) rows.push_back(row_of(p.path, p.parameter.array()));
    else rows.push_back({p.path, "not initialized", "", ""});
  }
  std::int64_t total = count_params();
  for (const auto& [path, persistent] : all.persistents) {
    if (persistent->defined()) rows.push_back(row_of(path + " (persistent)", *persistent));
  }
  for (const auto& [path, number] : all.numbers) {
    rows.push_back({path + " (persistent)", std::to_string(*number), "int64", ""});
  }
  rows.push_back(
      {fmt::format("parameters on {}", devices_of(all.parameters)), "", "", std::to_string(total)});
  return type_name() + "\n" + table(rows);
}

std::ostream& operator<<(std::ostream& os, const Link& link) { return os << link.str(); }

void Link::throw_not_callable(const Variables& x, unsigned taken,
                              unsigned taken_if_not_const) const {
  std::string given, numbers;
  for (const Variable& v : x) {
    given += (given.empty() ? "" : ", ") +
             (v.defined() ? v.array().view().describe() : std::string("undefined"));
  }
  for (int n = 0; n < 8; ++n) {
    if (taken >> n & 1u) numbers += fmt::format("{}{}", numbers.empty() ? "" : " or ", n);
  }
  std::string text = fmt::format("{} was called with {} variable{} ({}), ", type_name(), x.size(),
                                 x.size() == 1 ? "" : "s", given);
  if (x.size() < 8 && taken_if_not_const >> x.size() & 1u) {
    throw NotImplementedError(
        text +
        "but the model is const and its operator() is not: end its declaration with `const`");
  }
  if (numbers.empty()) {
    throw NotImplementedError(text +
                              "but has no operator() that takes Variables and gives a Variable");
  }
  throw NotImplementedError(fmt::format(
      "{}but its operator() takes {}; for (x, t) of a data set, L::Classifier(model) or a loss "
      "function (StandardUpdater's loss_func) makes a loss of what the model gives for x",
      text, numbers));
}

Link& Link::to(Device device) {
  Walk walk([&](Parameter& p) { p.to_device(device); },
            [&](Persistent& p) {
              if (p.defined()) p = Persistent(p.to(device));
            },
            [&](State& s) { s.to(device); });
  members(walk);
  return *this;
}

void Link::cleargrads() {
  Walk walk([](Parameter& p) { p.cleargrad(); }, ignore, ignore);
  members(walk);
}

void Link::reset_state() {
  Level level(*this);
  for (State* state : level.states) state->reset();
  for (const auto& [name, child] : level.children) child->reset_state();
}

void Link::addgrads(const Link& other) {
  Members mine(*this), theirs(other);
  check_same("addgrads", mine.parameters, theirs.parameters);
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    mine.parameters[i].parameter.addgrad(theirs.parameters[i].parameter);
  }
}

void Link::copyparams(const Link& other) {
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
  if (!mine.numbers.empty()) stay_eager("copyparams copies numbers of the host");
  for (std::size_t i = 0; i < mine.numbers.size(); ++i) {
    *mine.numbers[i].second = *theirs.numbers[i].second;
  }
}

}  // namespace rensa
