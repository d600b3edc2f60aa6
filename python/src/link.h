// Links of Python's own.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "arguments.h"
#include "rensa/links/link_hook.h"

namespace rensa::python {

/// A parameter as a link of Python's has it: by its handle.
class MemberParameter : public Parameter {
 public:
  /// Makes this the parameter that `p` is a handle of.
  void be(const ParameterRef& p) { body_ = p.body(); }
};

/// What a class of Python's that derives from Link is to the engine. The object of Python's has its
/// members' names in `_members`, in their order; what they name are its attributes.
class LinkOfPython : public Link, public HasHooks {
 public:
  void members(Visitor& v) override;
  Variable invoke(const Variables& x) override { return call(x); }
  Variable invoke(const Variables& x) const override { return call(x); }
  std::unique_ptr<Link> clone() const override;
  std::string type_name() const override;

  /// The object of Python's. The caller has the interpreter's lock.
  nb::object self() const;
  /// A copy of the object of Python's, as the current CopyModeScope says.
  nb::object copied() const;
  /// forward(*args, **kwargs), between what hooks do.
  nb::object call_hooked(nb::handle forward, nb::tuple args, nb::dict kwargs) const;
  /// Saved, moved and copied with the link.
  std::map<std::string, Persistent> persistents;

 private:
  HookedLink hooked_link() const override { return {*this}; }
  Variable call(const Variables& x) const;
  std::map<std::string, MemberParameter> parameters_;
};

/// A link of Python's that the engine owns: a replica of ParallelUpdater.
class HeldLink : public Link {
 public:
  explicit HeldLink(nb::object link)
      : held_(std::move(link)), link_(nb::cast<Link&>(held_.object)) {}
  void members(Visitor& v) override { link_.members(v); }
  Variable invoke(const Variables& x) override { return link_.invoke(x); }
  Variable invoke(const Variables& x) const override { return link_.invoke(x); }
  std::unique_ptr<Link> clone() const override { return link_.clone(); }
  std::string type_name() const override { return link_.type_name(); }
  void move_to(Device device) override { link_.move_to(device); }
  void reset_state() override { link_.reset_state(); }

 private:
  Held held_;
  Link& link_;
};

/// A call of a link of Python's that has hooks, on this thread: what it is given, and what it gave.
class CallOfPython {
 public:
  CallOfPython(const Link& link, nb::handle args, nb::handle kwargs);
  ~CallOfPython();
  CallOfPython(const CallOfPython&) = delete;
  CallOfPython& operator=(const CallOfPython&) = delete;
  static CallOfPython* innermost();  // null where there is none

  const Link& link;
  nb::handle args, kwargs;
  nb::object result = {};

 private:
  CallOfPython* outer_;
};

/// A copy as an object of Python's.
nb::object copied(Link& link);

/// A text as a parameter of a template.
template <std::size_t size> struct Text {
  constexpr Text(const char (&text)[size]) { std::copy_n(text, size, characters); }
  char characters[size];
};

/// Keeps what a link of the engine's is made with in its `_made_with`: {name: argument}, without
/// arrays, which would stay in memory.
void remember_arguments(nb::handle link, const char* names, PyObject** given);

/// The policy of constructors whose arguments have these names, with blanks between.
template <Text names> struct Remembers {
  static void precall(PyObject**, std::size_t, nb::detail::cleanup_list*) {}
  static void postcall(PyObject** given, std::size_t, nb::handle) {
    remember_arguments(given[0], names.characters, given + 1);
  }
};

}  // namespace rensa::python
