// What walks share, and the check of names.
#include "rensa/links/visitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/random.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/links/link.h"

namespace rensa {

Visitor::Commit writing(const Array& target, const Array& values) {
  if (target.shape() != values.shape()) {
    throw ShapeError(fmt::format("an array {} cannot take the values of {}",
                                 target.view().describe(), values.view().describe()));
  }
  Array converted = values.astype(target.dtype(), false);
  if (target.device().is_cpu() || !values.device().is_cpu() || !target.is_contiguous()) {
    return [target, ready = converted.to(target.device())] { target.assign(ready); };
  }
  return [target, converted] { target.set(converted); };
}

void write_values(const Array& target, const Array& values) { writing(target, values)(); }

void Visitor::link(std::string_view, Link& child) { child.members(*this); }
void Visitor::group(std::string_view, const Members& members) { members.show(*this); }

bool Visitor::is_tied(const Parameter& parameter) const {
  return std::ranges::find(*ties_, &parameter) != ties_->end();
}

void Visitor::show(std::string_view name, Parameter& member) {
  if (is_tied(member)) return;
  autograd::note_named(member);
  parameter(name, member);
}

void Visitor::tied(Parameter& parameter, const Parameter& owner) {
  if (is_tied(owner)) {
    throw ValueError(
        "tied: a parameter is tied to another one, not to one that is tied to a third");
  }
  parameter.tie(owner);
  if (!is_tied(parameter)) ties_->push_back(&parameter);
}

void Visitor::counter(std::string_view name, Counter& counter) {
  std::int64_t& count = counter.stored();
  value(name, access<std::int64_t>(count, &count));
}

void Visitor::array(std::string_view name, Array& member) {
  auto take = [&member](const Value& v) -> Commit {
    const Array& values = std::get<Array>(v);
    if (member.defined() && values.defined()) return writing(member, values);
    return [&member, read = values.defined() ? values.copy() : Array()] { member = read; };
  };
  value(name, {kind_of<Array>(), [&member] { return Value(member); }, take, &member});
}

void Visitor::generator(std::string_view name, xp::random::Generator& member) {
  auto take = [&member](const Value& v) -> Commit {
    if (is_none(v)) return [] {};
    auto state = xp::random::GeneratorState::from_array(std::get<Array>(v));
    return [&member, state] { member.set_state(state); };
  };
  auto get = [&member] { return Value(member.get_state().to_array()); };
  value(name, {kind_of<Array>(), get, take, &member});
}

void Visitor::throw_too_large(const std::string& stored, std::size_t bytes) {
  throw SerializationError(
      fmt::format("the number {} does not fit into the member of {} bytes", stored, bytes));
}

namespace {
/// Of a list's elements in files.
template <class S> Dtype stored_dtype() {
  return std::is_same_v<S, std::uint8_t> ? bool_ : dtype_of<S>;
}
}  // namespace

template <class S> Array Visitor::array_of(const std::vector<S>& list) {
  RecorderScope off(nullptr);
  return xp::array(list, cpu()).astype(stored_dtype<S>(), false);
}

template <class S> std::vector<S> Visitor::list_of(const Array& array) {
  Dtype dtype = stored_dtype<S>();
  if (array.ndim() != 1) {
    throw ShapeError(
        fmt::format("a list of numbers has one axis; the values are {}", array.view().describe()));
  }
  if (!can_cast_same_kind(array.dtype(), dtype)) {
    throw DtypeError(fmt::format("a list of {} does not take the values of {}", dtype_name(dtype),
                                 array.view().describe()));
  }
  std::vector<S> list(static_cast<std::size_t>(array.size()));
  Array host = array.astype(dtype, false).to(cpu()).ascontiguous();
  if (!list.empty()) std::memcpy(list.data(), host.data(), list.size() * sizeof(S));
  return list;
}

template Array Visitor::array_of(const std::vector<std::int64_t>&);
template Array Visitor::array_of(const std::vector<double>&);
template Array Visitor::array_of(const std::vector<std::uint8_t>&);
template std::vector<std::int64_t> Visitor::list_of(const Array&);
template std::vector<double> Visitor::list_of(const Array&);
template std::vector<std::uint8_t> Visitor::list_of(const Array&);

void PathVisitor::link(std::string_view name, Link& child) {
  PathVisitor::group(name, Members(child));
}

void PathVisitor::group(std::string_view name, const Members& members) {
  std::size_t outer = prefix_.size();
  prefix_.append(name) += '/';
  members.show(*this);
  prefix_.resize(outer);
}

namespace {

/// Finds what is shown twice, and ties that are none.
class CheckedMembers final : public PathVisitor {
 public:
  explicit CheckedMembers(const Members& members) : PathVisitor("/") {
    if (members.link()) seen_[members.link()] = "the model itself";
    members.show(*this);
    for (const auto& [path, parameter] : parameters_) {
      if (is_tied(*parameter)) {
        throw ValueError(fmt::format(
            "members(): \"{}\" is tied after it was shown; say v.tied before the link that has it",
            path));
      }
      check_place(parameter->body().get(), "parameter", path);
    }
    for (const Parameter* parameter : ties()) {
      if (seen_.count(parameter->body().get())) continue;
      throw ValueError(fmt::format(
          "members(): the parameter \"{}\" is tied to one that nothing shows, and would be neither "
          "updated nor saved; show the link that has that one as well",
          parameter->name()));
    }
  }
  void parameter(std::string_view name, Parameter& p) override {
    check_name(name);
    parameters_.emplace_back(path(name), &p);
  }
  void persistent(std::string_view name, Persistent& p) override { check(&p, "persistent", name); }
  void state(std::string_view name, State& s) override { check(&s, "state", name); }
  void value(std::string_view name, const Access& access) override {
    check_name(name);
    if (access.place) check_place(access.place, "value", path(name));
  }
  void link(std::string_view name, Link& child) override {
    check(&child, "link", name);
    PathVisitor::link(name, child);
  }
  void group(std::string_view name, const Members& members) override {
    check_name(name);
    PathVisitor::group(name, members);
  }

 private:
  void check(const void* place, const char* kind, std::string_view name) {
    check_name(name);
    check_place(place, kind, path(name));
  }
  void check_name(std::string_view name) {
    if (paths_.insert(path(name)).second) return;
    throw ValueError(fmt::format(
        "members(): two members are named \"{}\"; give each a name of its own, files know them "
        "by it",
        path(name)));
  }
  void check_place(const void* member, const char* kind, const std::string& path) {
    auto [known, first] = seen_.try_emplace(member, "\"" + path + "\"");
    if (first) return;
    throw ValueError(
        fmt::format("members(): the {} \"{}\" is {} again and would be updated and saved twice; "
                    "name it once (a parameter that two links share is said by v.tied)",
                    kind, path, known->second));
  }

  std::set<std::string> paths_;
  std::map<const void*, std::string> seen_;
  std::vector<std::pair<std::string, const Parameter*>> parameters_;
};

}  // namespace

void check_members(const Members& members) { CheckedMembers check(members); }

// kind_of() has the order of Value's alternatives in a text of its own.
template <class T>
constexpr bool kNumbered =
    std::is_same_v<std::variant_alternative_t<Visitor::kind_of<T>(), Visitor::Value>, T>;
static_assert(kNumbered<std::int64_t> && kNumbered<double> && kNumbered<bool> &&
              kNumbered<std::string> && kNumbered<Array>);

template Visitor::Access Visitor::access<bool>(bool&, const void*);
template Visitor::Access Visitor::access<int>(int&, const void*);
template Visitor::Access Visitor::access<std::int64_t>(std::int64_t&, const void*);
template Visitor::Access Visitor::access<double>(double&, const void*);
template Visitor::Access Visitor::access<std::string>(std::string&, const void*);

}  // namespace rensa
