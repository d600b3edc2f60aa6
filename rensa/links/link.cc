// Link: what is derived from a model's members().
#include "rensa/links/link.h"

#include <cxxabi.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ostream>
#include <set>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "rensa/array/random.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/core/text_table.h"
#include "rensa/device/launcher.h"
#include "rensa/device/renewal.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/copy_parts/copy_parts.h"

namespace rensa {

namespace {

/// Shows each parameter to a function.
template <class F> class EachParameter final : public Visitor {
 public:
  explicit EachParameter(F use) : use_(std::move(use)) {}
  void parameter(std::string_view, Parameter& parameter) override { use_(parameter); }

 private:
  F use_;
};

/// Names as text, after those of a list's elements by their numbers.
bool name_is_before(std::string_view a, std::string_view b) {
  auto is_number = [](std::string_view s) {
    return std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
  };
  bool a_is = is_number(a), b_is = is_number(b);
  if (a_is != b_is) return a_is;
  return a_is && a.size() != b.size() ? a.size() < b.size() : a < b;
}

/// The parameters and the children of one link or group, each sorted by name.
class Level final : public Visitor {
 public:
  struct Child {
    std::string name;
    Link* link;                    // null for a group,
    std::unique_ptr<Level> group;  // which is walked over as it is shown
    template <class F> void below(const Level& level, F use) const {
      if (link) use(Level(*link, &level));
      else use(*group);
    }
  };
  explicit Level(const Members& members, const Level* outer = nullptr) : Visitor(outer) {
    members.show(*this);
    if (!parameters_are_sorted_) {
      std::ranges::sort(parameters, name_is_before,
                        [](const auto& p) -> std::string_view { return p.first; });
    }
    if (!children_are_sorted_) std::ranges::sort(children, name_is_before, &Child::name);
  }
  void parameter(std::string_view name, Parameter& parameter) override {
    if (parameters.empty()) parameters.reserve(4);
    else parameters_are_sorted_ &= name_is_before(parameters.back().first, name);
    parameters.emplace_back(name, &parameter);
  }
  void link(std::string_view name, Link& child) override { add(name, &child, nullptr); }
  void group(std::string_view name, const Members& members) override {
    add(name, nullptr, std::make_unique<Level>(members, this));
  }

  std::vector<std::pair<std::string, Parameter*>> parameters;
  std::vector<Child> children;

 private:
  void add(std::string_view name, Link* link, std::unique_ptr<Level> group) {
    if (children.empty()) children.reserve(8);
    else children_are_sorted_ &= name_is_before(children.back().name, name);
    children.push_back({std::string(name), link, std::move(group)});
  }
  bool parameters_are_sorted_ = true, children_are_sorted_ = true;
};

void collect(const Level& level, std::vector<ParameterRef>& params) {
  for (const auto& [name, parameter] : level.parameters) params.push_back(parameter->ref());
  for (const Level::Child& child : level.children) {
    child.below(level, [&](const Level& below) { collect(below, params); });
  }
}

void collect(const Level& level, const std::string& prefix, std::vector<NamedParameter>& params) {
  for (const auto& [name, parameter] : level.parameters) {
    params.push_back({prefix + name, parameter->ref()});
  }
  for (const Level::Child& child : level.children) {
    child.below(level,
                [&](const Level& below) { collect(below, prefix + child.name + "/", params); });
  }
}

template <class SomeLink>
void collect(const Level& level, const std::string& prefix,
             std::vector<std::pair<std::string, SomeLink*>>& links) {
  for (const Level::Child& child : level.children) {
    if (child.link) links.emplace_back(prefix + child.name, child.link);
    child.below(level,
                [&](const Level& below) { collect(below, prefix + child.name + "/", links); });
  }
}

/// What is saved of a link beside its parameters, with its paths, in the order of members().
struct Kept : PathVisitor {
  Kept() : PathVisitor("/") {}
  explicit Kept(const Link& link) : Kept() { Members(link).show(*this); }
  void persistent(std::string_view name, Persistent& p) override {
    persistents.emplace_back(path(name), &p);
  }
  void value(std::string_view name, const Access& access) override {
    values.emplace_back(path(name), access);
  }
  void counter(std::string_view name, Counter& counter) override {
    counters.insert(values.size());
    PathVisitor::counter(name, counter);
  }
  std::vector<std::pair<std::string, Persistent*>> persistents;
  std::vector<std::pair<std::string, Access>> values;
  std::set<std::size_t> counters;  // which of `values` are
};

/// Its parameters as well.
struct Leaves final : Kept {
  explicit Leaves(const Link& link) { Members(link).show(*this); }
  void parameter(std::string_view name, Parameter& p) override {
    parameters.push_back({path(name), p.ref()});
  }
  std::vector<NamedParameter> parameters;
};

std::vector<std::string> row_of(const std::string& path, const Array& a) {
  return {path, a.shape().str(), std::string(dtype_name(a.dtype())), std::to_string(a.size())};
}

/// Of a value that is saved with the model.
std::vector<std::string> row_of(const std::string& path, const Visitor::Value& value) {
  std::string name = path + " (persistent)";
  if (const auto* array = std::get_if<Array>(&value)) {
    if (array->defined()) return row_of(name, *array);
    return {name, "undefined", "", ""};
  }
  if (const auto* n = std::get_if<std::int64_t>(&value))
    return {name, fmt::to_string(*n), "int64", ""};
  if (const auto* x = std::get_if<double>(&value)) return {name, fmt::to_string(*x), "float64", ""};
  if (const auto* b = std::get_if<bool>(&value)) return {name, fmt::to_string(*b), "bool", ""};
  return {name, std::get<std::string>(value), "str", ""};
}

/// "cpu", or "cuda:0 and cuda:1".
std::string devices_of(const std::vector<NamedParameter>& parameters) {
  std::set<Device> devices;
  for (const NamedParameter& p : parameters) devices.insert(p.parameter.device());
  std::vector<std::string> names;
  for (Device device : devices) names.push_back(device.str());
  return names.empty() ? "no device" : fmt::format("{}", fmt::join(names, " and "));
}

const std::string& path_of(const NamedParameter& p) { return p.path; }
template <class T> const std::string& path_of(const std::pair<std::string, T>& p) {
  return p.first;
}

template <class List> void check_same(const char* operation, const List& mine, const List& theirs) {
  for (std::size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    if (i < mine.size() && i < theirs.size() && path_of(mine[i]) == path_of(theirs[i])) continue;
    throw ValueError(fmt::format("{}: the links differ in structure: {} and {}", operation,
                                 i < mine.size() ? path_of(mine[i]) : "nothing",
                                 i < theirs.size() ? path_of(theirs[i]) : "nothing"));
  }
}

/// Copies of arrays to others of their shapes and dtypes. Those that go from one device to another
/// travel together: many small ones take three operations.
class ArrayCopies {
 public:
  void add(const Array& from, const Array& to) {
    pairs_[{from.device(), to.device()}].emplace_back(from, to);
  }
  void run() const {
    for (const auto& [devices, pairs] : pairs_) {
      if (devices.first == devices.second) copy_parts(pairs);
      else copy_between(devices.first, devices.second, pairs);
    }
  }

 private:
  using Pairs = std::vector<std::pair<Array, Array>>;

  static void copy_parts(const Pairs& pairs) {
    operations::CopyParts copy("copyparams");
    for (const auto& [from, to] : pairs) {
      if (from.size() != 0) copy.parts.push_back({from.operand(), to.operand()});
    }
    launch(copy);
  }

  static void copy_between(Device source, Device destination, const Pairs& pairs) {
    constexpr std::int64_t kAligned = 16;
    std::int64_t bytes = 0;
    std::vector<Slice> places;
    for (const auto& [from, to] : pairs) {
      places.emplace_back(bytes, bytes + from.nbytes());
      bytes += (from.nbytes() + kAligned - 1) / kAligned * kAligned;
    }
    Array packed = xp::empty({bytes}, uint8, source);
    auto part = [&](const Array& all, std::size_t i) {
      const Array& like = pairs[i].first;
      return all[places[i]].view(like.dtype()).reshape(like.shape());
    };
    Pairs in, out;
    for (std::size_t i = 0; i < pairs.size(); ++i) in.emplace_back(pairs[i].first, part(packed, i));
    copy_parts(in);
    Array arrived = packed.to(destination);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      out.emplace_back(part(arrived, i), pairs[i].second);
    }
    copy_parts(out);
  }

  std::map<std::pair<Device, Device>, Pairs> pairs_;
};

void copy_persistent(const Persistent& from, Persistent& to, ArrayCopies& copies) {
  if (!from.defined()) {
    Device home = to.home();
    to = Persistent();
    to.move_to(home);
  } else if (!to.defined() || !(to.shape() == from.shape()) || to.dtype() != from.dtype()) {
    to = Persistent(from.copy(to.home()));
  } else {
    copies.add(from, to);
  }
}

/// Whether a number, flag, text or list of numbers differs.
bool is_other_value(const Visitor::Value& a, const Visitor::Value& b) {
  if (a.index() != b.index()) return true;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (!std::is_same_v<T, Array>) return x != y;
        else if (!x.defined() || !y.defined()) return x.defined() || y.defined();
        else return !x.device().is_cpu() || !y.device().is_cpu() || !xp::array_equal(x, y);
      },
      a);
}

void check_kept(const char* operation, const Kept& mine, const Kept& theirs) {
  check_same(operation, mine.persistents, theirs.persistents);
  check_same(operation, mine.values, theirs.values);
}

void copy_kept(const Kept& mine, const Kept& theirs) {
  ArrayCopies copies;
  for (std::size_t i = 0; i < mine.persistents.size(); ++i) {
    copy_persistent(*theirs.persistents[i].second, *mine.persistents[i].second, copies);
  }
  copies.run();
  if (!mine.values.empty()) stay_eager("copyparams copies numbers of the host");
  bool is_other = false;  // what recordings may hold
  for (std::size_t i = 0; i < mine.values.size(); ++i) {
    const Visitor::Access& access = mine.values[i].second;
    Visitor::Value now = access.get(), next = theirs.values[i].second.get();
    access.set(next);
    bool is_followed =
        mine.counters.count(i) > 0 || (std::holds_alternative<Array>(now) && access.place);
    is_other = is_other || (!is_followed && is_other_value(now, next));
  }
  if (is_other) renew_recordings();
}

/// A generator of its own on `device`, which draws on from where `source` is.
xp::random::Generator continued(const xp::random::Generator& source, Device device) {
  RecorderScope off(nullptr);
  xp::random::Generator made(xp::random::Philox4x3210{}, device);
  made.set_state(source.get_state());
  return made;
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
  if (!anchor_) anchor_ = std::make_shared<LinkAnchor>(LinkAnchor{const_cast<Link*>(this)});
  return anchor_;
}

std::vector<ParameterRef> Link::params() const {
  std::vector<ParameterRef> params;
  collect(Level(*this), params);
  return params;
}

std::vector<NamedParameter> Link::namedparams() const {
  std::vector<NamedParameter> params;
  collect(Level(*this), "/", params);
  return params;
}

std::vector<std::pair<std::string, Link*>> Link::namedlinks() {
  std::vector<std::pair<std::string, Link*>> links{{"/", this}};
  collect(Level(*this), "/", links);
  return links;
}

std::vector<std::pair<std::string, const Link*>> Link::namedlinks() const {
  std::vector<std::pair<std::string, const Link*>> links{{"/", this}};
  collect(Level(*this), "/", links);
  return links;
}

std::int64_t Link::count_params() const {
  std::int64_t count = 0;
  EachParameter walk([&](Parameter& p) { count += p.is_initialized() ? p.size() : 0; });
  Members(*this).show(walk);
  return count;
}

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
  Leaves all(*this);
  std::vector<std::vector<std::string>> rows{{"name", "shape", "dtype", "elements"}};
  for (const NamedParameter& p : all.parameters) {
    if (p.parameter.is_initialized()) rows.push_back(row_of(p.path, p.parameter.array()));
    else rows.push_back({p.path, "not initialized", "", ""});
  }
  std::int64_t total = count_params();
  for (const auto& [path, persistent] : all.persistents) {
    if (persistent->defined()) rows.push_back(row_of(path + " (persistent)", *persistent));
  }
  for (const auto& [path, access] : all.values) rows.push_back(row_of(path, access.get()));
  rows.push_back(
      {fmt::format("parameters on {}", devices_of(all.parameters)), "", "", std::to_string(total)});
  return describe() + "\n" + text_table(rows, "<<<>");
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

void Link::check_is(const std::type_info& known) const {
  if (typeid(*this) == known) return;
  throw NotImplementedError(fmt::format(
      "clone: {0} derives from another Chain, and would be copied as that; derive it from "
      "Chain<{0}>, with the other one as a member, or override clone()",
      type_name()));
}

void Link::move_to(Device device) {
  struct Move final : Visitor {
    explicit Move(Device d) : device(d) {}
    void parameter(std::string_view, Parameter& p) override { p.to(device); }
    void persistent(std::string_view, Persistent& p) override { p.move_to(device); }
    void generator(std::string_view, xp::random::Generator& g) override {
      if (g.device() != device) g = continued(g, device);
    }
    void state(std::string_view, State& s) override { s.to(device); }
    void link(std::string_view, Link& child) override { child.move_to(device); }
    Device device;
  } move(device);
  members(move);
}

void Link::cleargrads() {
  EachParameter walk([](Parameter& p) { p.cleargrad(); });
  members(walk);
}

void Link::enable_update() {
  EachParameter walk([](Parameter& p) { p.set_update_enabled(true); });
  members(walk);
}

void Link::disable_update() {
  EachParameter walk([](Parameter& p) { p.set_update_enabled(false); });
  members(walk);
}

void Link::reset_state() {
  struct Reset final : Visitor {
    void state(std::string_view, State& s) override { s.reset(); }
    void link(std::string_view, Link& child) override { child.reset_state(); }
  } reset;
  members(reset);
}

void Link::finish_copy() {
  struct Finish final : Visitor {
    void generator(std::string_view, xp::random::Generator& g) override {
      g = continued(g, g.device());
    }
  } finish;
  members(finish);
}

void Link::addgrads(const Link& other) {
  Leaves mine(*this), theirs(other);
  check_same("addgrads", mine.parameters, theirs.parameters);
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    mine.parameters[i].parameter.addgrad(theirs.parameters[i].parameter);
  }
}

void Link::copyparams(const Link& other, bool copy_persistent) {
  Leaves mine(*this), theirs(other);
  check_same("copyparams", mine.parameters, theirs.parameters);
  check_kept("copyparams", mine, theirs);
  for (std::size_t i = 0; i < mine.parameters.size(); ++i) {
    const ParameterRef &to = mine.parameters[i].parameter, &from = theirs.parameters[i].parameter;
    if (to.is_initialized() && !from.is_initialized()) from.initialize(to.shape());
    to.copydata(from);
  }
  if (copy_persistent) copy_kept(mine, theirs);
}

void Link::copy_persistents(const Link& other) {
  Kept mine(*this), theirs(other);
  check_kept("copy_persistents", mine, theirs);
  copy_kept(mine, theirs);
}

std::unique_ptr<Link> Link::clone() const {
  throw NotImplementedError("clone: this model cannot be copied");
}

}  // namespace rensa
