// What walks share, and the check of names.
#include "rensa/links/visitor.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "rensa/array/random.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/links/link.h"

namespace rensa {

void write_values(const Array& target, const Array& values) {
  if (target.shape() != values.shape()) {
    throw ShapeError(fmt::format("an array {} cannot take the values of {}",
                                 target.view().describe(), values.view().describe()));
  }
  Array converted = values.astype(target.dtype(), false);
  if (target.device().is_cpu() || !values.device().is_cpu() || !target.is_contiguous()) {
    target.assign(converted.to(target.device()));
  } else {
    target.set(converted);
  }
}

void Visitor::link(std::string_view, Link& child) { child.members(*this); }
void Visitor::group(std::string_view, const Members& members) { members.show(*this); }

void Visitor::array(std::string_view name, Array& member) {
  auto set = [&member](const Value& v) {
    const Array& values = std::get<Array>(v);
    if (member.defined()) write_values(member, values);
    else member = values;
  };
  value(name, {[&member] { return Value(member); }, set, &member});
}

void Visitor::generator(std::string_view name, xp::random::Generator& member) {
  auto get = [&member] { return Value(member.get_state().to_array()); };
  auto set = [&member](const Value& v) {
    member.set_state(xp::random::GeneratorState::from_array(std::get<Array>(v)));
  };
  value(name, {get, set, &member});
}

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

/// Finds what is shown twice.
class CheckedMembers final : public PathVisitor {
 public:
  explicit CheckedMembers(const Members& members) : PathVisitor("/") {
    seen_[members.place()] = "the model itself";
    members.show(*this);
    for (const auto& [path, parameter, body] : parameters_) {
      if (parameter->body() == body) continue;
      throw ValueError(fmt::format(
          "members(): \"{}\" is tied after it was shown; say v.tied before the link that has it",
          path));
    }
  }
  void parameter(std::string_view name, Parameter& p) override {
    check_name(name);
    autograd::note_named(p);
    check_place(p.body().get(), "parameter", name);
    parameters_.push_back({path(name), &p, p.body()});
  }
  void persistent(std::string_view name, Persistent& p) override { check(&p, "persistent", name); }
  void state(std::string_view name, State& s) override { check(&s, "state", name); }
  void value(std::string_view name, const Access&) override { check_name(name); }
  void link(std::string_view name, Link& child) override {
    check(&child, "link", name);
    PathVisitor::link(name, child);
  }

 private:
  struct Shown {
    std::string path;
    const Parameter* parameter;
    std::shared_ptr<VariableBody> body;
  };

  void check(const void* place, const char* kind, std::string_view name) {
    check_name(name);
    check_place(place, kind, name);
  }
  void check_name(std::string_view name) {
    if (paths_.insert(path(name)).second) return;
    throw ValueError(fmt::format(
        "members(): two members are named \"{}\"; give each a name of its own, files know them "
        "by it",
        path(name)));
  }
  void check_place(const void* member, const char* kind, std::string_view name) {
    auto [known, first] = seen_.try_emplace(member, "\"" + path(name) + "\"");
    if (first) return;
    throw ValueError(
        fmt::format("members(): the {} \"{}\" is {} again and would be updated and saved twice; "
                    "name it once (a parameter that two links share is said by v.tied)",
                    kind, path(name), known->second));
  }

  std::set<std::string> paths_;
  std::map<const void*, std::string> seen_;
  std::vector<Shown> parameters_;
};

}  // namespace

void check_members(const Members& members) { CheckedMembers check(members); }

}  // namespace rensa
