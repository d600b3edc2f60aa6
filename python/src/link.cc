#include "link.h"

#include <sstream>

#include "bind.h"
#include "link_hooks.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/links/visitor.h"
#include "serialize.h"

namespace rensa::python {

// --- LinkOfPython ---

nb::object LinkOfPython::self() const {
  nb::object object = nb::find(static_cast<const Link&>(*this));
  if (!object.is_valid())
    throw Error("a link of Python's was not made by its class: call super().__init__()");
  return object;
}

void LinkOfPython::members(Visitor& v) {
  nb::gil_scoped_acquire lock;
  hook_members(v);
  nb::object own = self();
  for (nb::handle entry : nb::list(own.attr("_members"))) {
    auto name = nb::cast<std::string>(entry);
    if (auto found = persistents.find(name); found != persistents.end()) {
      v(name, found->second);
      continue;
    }
    nb::object value = own.attr(name.c_str());
    if (nb::isinstance<ParameterRef>(value)) {
      MemberParameter& member = parameters_[name];
      member.be(nb::cast<const ParameterRef&>(value));
      v(name, static_cast<Parameter&>(member));
    } else if (nb::isinstance<Link>(value)) {
      v.link(name, nb::cast<Link&>(value));
    } else if (!value.is_none()) {
      std::optional<Visitor::Value> plain = plain_value_of(value);
      if (!plain && PyNumber_Check(value.ptr())) plain = nb::cast<double>(nb::float_(value));
      if (!plain) {
        throw nb::type_error((name + ": a persistent is an array, a number or a text, not " +
                              nb::cast<std::string>(nb::repr(value.type())))
                                 .c_str());
      }
      // Walks keep this function, and let go of it without the interpreter's lock.
      auto set = [held = std::make_shared<Held>(own), name](const auto& read) {
        nb::gil_scoped_acquire lock;
        held->object.attr(name.c_str()) = nb::cast(read);
      };
      auto show = [&](const auto& one) {
        v.computed(
            name, [one] { return one; }, set);
      };
      std::visit(show, *plain);
    }
  }
}

Variable LinkOfPython::call(const Variables& x) const {
  nb::gil_scoped_acquire lock;
  nb::list arguments;
  for (const Variable& variable : x) arguments.append(given(variable));
  nb::object result = self()(*nb::tuple(arguments));
  Variable variable;
  if (nb::try_cast(result, variable)) return variable;
  throw ValueError(type_name() + ": a call gives a Variable, not " +
                   nb::cast<std::string>(nb::repr(result.type())));
}

std::string LinkOfPython::type_name() const {
  nb::gil_scoped_acquire lock;
  return nb::cast<std::string>(self().type().attr("__name__"));
}

static thread_local CallOfPython* innermost_call = nullptr;
CallOfPython* CallOfPython::innermost() { return innermost_call; }

CallOfPython::CallOfPython(const Link& link, nb::handle args, nb::handle kwargs)
    : link(link), args(args), kwargs(kwargs), outer_(std::exchange(innermost_call, this)) {}
CallOfPython::~CallOfPython() { innermost_call = outer_; }

nb::object LinkOfPython::call_hooked(nb::handle forward, nb::tuple args, nb::dict kwargs) const {
  CallOfPython call(*this, args, kwargs);
  Variables x;
  for (nb::handle argument : args) {
    Variable variable;
    if (nb::try_cast(argument, variable)) x.push_back(variable);
  }
  hooks_.call(hooked_link(), x, [&] {
    call.result = forward(*args, **kwargs);
    Variable y;
    (void)nb::try_cast(call.result, y);
    return y;
  });
  return call.result;
}

/// Whether the copies that this thread makes are deep.
static thread_local bool deep_copies = true;

nb::object LinkOfPython::copied() const {
  nb::object own = self();
  nb::object made = own.attr("_bare_copy")();
  auto& target = static_cast<LinkOfPython&>(nb::cast<Link&>(made));
  for (const auto& [name, array] : persistents) target.persistents.try_emplace(name, array);
  std::map<const Link*, nb::object> links;  // a link of two names is one in the copy, too
  for (nb::handle entry : nb::list(own.attr("_members"))) {
    auto name = nb::cast<std::string>(entry);
    if (persistents.contains(name)) continue;
    nb::object value = own.attr(name.c_str());
    if (nb::isinstance<ParameterRef>(value)) {
      MemberParameter member;
      member.be(nb::cast<const ParameterRef&>(value));
      made.attr("__dict__")[name.c_str()] =
          parameter_object(Parameter(static_cast<const Parameter&>(member)).ref());
    } else if (nb::isinstance<Link>(value)) {
      Link& child = nb::cast<Link&>(value);
      nb::object& copy = links[&child];
      if (!copy.is_valid()) copy = python::copied(child);
      made.attr("__dict__")[name.c_str()] = copy;
    }
  }
  target.hooks_ = hooks_;
  target.finish_copy();
  if (deep_copies) made.attr("_copy_attributes")(own);
  return made;
}

std::unique_ptr<Link> LinkOfPython::clone() const {
  nb::gil_scoped_acquire lock;
  return std::make_unique<HeldLink>(copied());
}

nb::object copied(Link& link) {
  if (auto* own = dynamic_cast<LinkOfPython*>(&link)) return own->copied();
  nb::object original = nb::find(link);
  std::unique_ptr<Link> made = unlocked([&] { return link.clone(); });
  if (!original.is_valid()) return nb::cast(made.release(), nb::rv_policy::take_ownership);
  // Of its class, which may be one of Python's, with its attributes.
  nb::object object = nb::inst_take_ownership(original.type(), dynamic_cast<void*>(made.release()));
  for (auto [name, value] : nb::dict(original.attr("__dict__"))) {
    if (nb::cast<std::string>(name) != "_owner") object.attr("__dict__")[name] = value;
  }
  return object;
}

namespace {

/// How the copies in its scope are made.
class CopyScope {
 public:
  explicit CopyScope(CopyMode mode)
      : scope_(mode), previous_(std::exchange(deep_copies, mode != CopyMode::share)) {}
  ~CopyScope() { deep_copies = previous_; }
  CopyScope(const CopyScope&) = delete;
  CopyScope& operator=(const CopyScope&) = delete;

 private:
  CopyModeScope scope_;
  bool previous_;
};

// --- members by their names ---

/// The object of a part of a link of the engine's, which is there as long as the link.
nb::object part_object(Link* part, nb::handle owner) {
  nb::object known = nb::find(*part);
  if (known.is_valid()) return known;
  nb::object object = nb::cast(part, nb::rv_policy::reference);
  nb::dict(object.attr("__dict__"))["_owner"] = owner;
  return object;
}

/// Looks for the member of a name.
class FindMember : public Visitor {
 public:
  FindMember(std::string_view name, nb::handle owner) : name_(name), owner_(owner) {}
  void parameter(std::string_view name, Parameter& p) override {
    if (name == name_) found = parameter_object(p.ref());
    has_weights = has_weights || name == "W";
  }
  void persistent(std::string_view name, Persistent& array) override {
    if (name == name_) found = given(static_cast<const Array&>(array));
    has_statistics = has_statistics || name == "avg_mean";
  }
  void state(std::string_view name, State& state) override {
    if (name == name_) found = given(state.value());
  }
  void value(std::string_view name, const Access& access) override {
    if (name != name_) return;
    Value value = access.get();
    found = std::visit(
        [](const auto& v) -> nb::object {
          if constexpr (std::same_as<std::remove_cvref_t<decltype(v)>, Array>) return given(v);
          else return nb::cast(v);
        },
        value);
  }
  void link(std::string_view name, Link& child) override {
    if (name == name_) found = part_object(&child, owner_);
  }
  void group(std::string_view, const Members&) override {}
  nb::object found;
  bool has_weights = false, has_statistics = false;

 private:
  std::string_view name_;
  nb::handle owner_;
};

/// What C++ calls a member is an attribute: l.W, bn.avg_mean, net.fc6.
nb::object get_member(nb::handle_t<Link> self, const std::string& name) {
  Link& link = nb::cast<Link&>(self);
  if (name[0] != '_' && !dynamic_cast<LinkOfPython*>(&link)) {
    FindMember find(name, self);
    link.members(find);
    if (find.found.is_valid()) return find.found;
    // What `nobias`, `use_gamma` and `use_beta` leave out is None.
    if (name == "b" && find.has_weights) return nb::none();
    if ((name == "gamma" || name == "beta") && find.has_statistics) return nb::none();
  } else if (auto* own = dynamic_cast<LinkOfPython*>(&link)) {
    if (auto found = own->persistents.find(name); found != own->persistents.end()) {
      return given(static_cast<const Array&>(found->second));
    }
  }
  std::string type = nb::cast<std::string>(self.type().attr("__name__"));
  throw nb::attribute_error(("'" + type + "' object has no attribute '" + name + "'").c_str());
}

/// Sets the member of a name, or says why it cannot be set.
class SetMember : public Visitor {
 public:
  SetMember(std::string_view name, nb::handle value) : name_(name), value_(value) {}
  void parameter(std::string_view name, Parameter& p) override {
    if (name != name_) return;
    found = true;
    ParameterRef* given = nullptr;
    if (!nb::try_cast(value_, given) || !given)
      refuse("is a parameter: another Parameter can take its place, or set its values by .array");
    if (given->body() == p.body()) return;
    MemberParameter other;
    other.be(*given);
    p = std::move(static_cast<Parameter&>(other));
  }
  void persistent(std::string_view name, Persistent& array) override {
    if (name != name_) return;
    found = true;
    array = plain_array_of(value_);
  }
  void state(std::string_view name, State& state) override {
    if (name != name_) return;
    found = true;
    if (value_.is_none()) state.reset();
    else state = variable_of(value_);
  }
  void value(std::string_view name, const Access& access) override {
    if (name != name_) return;
    found = true;
    switch (access.kind) {
      case kind_of<std::int64_t>(): return access.set(nb::cast<std::int64_t>(value_));
      case kind_of<double>(): return access.set(nb::cast<double>(value_));
      case kind_of<bool>(): return access.set(nb::cast<bool>(value_));
      case kind_of<std::string>(): return access.set(nb::cast<std::string>(value_));
      default: return access.set(plain_array_of(value_));
    }
  }
  void link(std::string_view name, Link& child) override {
    if (name != name_) return;
    found = true;
    Link* given = nullptr;
    if (nb::try_cast(value_, given) && given == &child) return;
    refuse(
        "is a part of a link of the engine's and cannot be replaced: make a Chain with the parts "
        "that you want");
  }
  void group(std::string_view, const Members&) override {}
  bool found = false;

 private:
  [[noreturn]] void refuse(const char* why) const {
    throw nb::attribute_error((std::string(name_) + " " + why).c_str());
  }
  std::string_view name_;
  nb::handle value_;
};

LinkOfPython& own(Link& link, const char* call) {
  if (auto* found = dynamic_cast<LinkOfPython*>(&link)) return *found;
  throw ValueError(std::string(call) + ": the members of " + link.type_name() +
                   " are the engine's");
}

nb::list links_of(nb::handle self, bool with_names, bool skip_self) {
  nb::list list;
  for (auto& [path, link] : nb::cast<Link&>(self).namedlinks()) {
    bool is_self = link == &nb::cast<Link&>(self);
    if (is_self && skip_self) continue;
    nb::object object = is_self ? nb::borrow(self) : part_object(link, self);
    if (with_names) list.append(nb::make_tuple(path, object));
    else list.append(object);
  }
  return list;
}

template <class Move> nb::object moved(nb::handle self, Move move) {
  Link& link = nb::cast<Link&>(self);
  unlocked([&] { move(link); });
  return nb::borrow(self);
}

using LinkClass = nb::class_<Link, LinkOfPython>;

void bind_walks(LinkClass& link) {
  link.def(
          "params",
          [](const Link& l, bool include_uninit) {
            nb::list list;
            for (const ParameterRef& p : l.params()) {
              if (include_uninit || p.is_initialized()) list.append(parameter_object(p));
            }
            return list;
          },
          nb::arg("include_uninit") = true, "All parameters below this link, by their paths.")
      .def(
          "namedparams",
          [](const Link& l, bool include_uninit) {
            nb::list list;
            for (const NamedParameter& p : l.namedparams()) {
              if (include_uninit || p.parameter.is_initialized()) {
                list.append(nb::make_tuple(p.path, parameter_object(p.parameter)));
              }
            }
            return list;
          },
          nb::arg("include_uninit") = true, "(path, parameter) of all: \"/l1/W\".")
      .def(
          "links",
          [](nb::handle_t<Link> self, bool skipself) { return links_of(self, false, skipself); },
          nb::arg("skipself") = false, "This link and all below it.")
      .def(
          "namedlinks",
          [](nb::handle_t<Link> self, bool skipself) { return links_of(self, true, skipself); },
          nb::arg("skipself") = false, "(path, link) of all.")
      .def("count_params", &Link::count_params)
      .def("cleargrads", [](Link& l) { unlocked([&] { l.cleargrads(); }); })
      .def("zerograds",
           [](Link& l) {
             unlocked([&] {
               for (const ParameterRef& p : l.params()) {
                 if (p.is_initialized()) p.set_grad(xp::zeros_like(p.array()));
               }
             });
           })
      .def("enable_update", &Link::enable_update)
      .def("disable_update", &Link::disable_update)
      .def("reset_state", [](Link& l) { unlocked([&] { l.reset_state(); }); })
      .def("addgrads", [](Link& l, const Link& other) { unlocked([&] { l.addgrads(other); }); })
      .def(
          "copyparams",
          [](Link& l, const Link& other, bool copy_persistent) {
            unlocked([&] { l.copyparams(other, copy_persistent); });
          },
          nb::arg("link"), nb::arg("copy_persistent") = true)
      .def(
          "copy",
          [](Link& l, const std::string& mode) {
            if (mode != "share" && mode != "copy" && mode != "init") {
              throw ValueError("Link.copy: the mode is 'share', 'copy' or 'init', not '" + mode +
                               "'");
            }
            CopyScope scope(mode == "share"  ? CopyMode::share
                            : mode == "copy" ? CopyMode::copy
                                             : CopyMode::init);
            return copied(l);
          },
          nb::arg("mode") = "share",
          "A copy: `share` shares arrays, `copy` is deep, `init` starts anew from the "
          "initializers.")
      .def("__deepcopy__", [](Link& l, nb::handle) {
        CopyScope scope(CopyMode::copy);
        return copied(l);
      });
}

HasHooks& with_hooks(Link& link, const char* call) {
  if (auto* found = dynamic_cast<HasHooks*>(&link)) return *found;
  throw NotImplementedError(std::string(call) + ": " + link.type_name() +
                            " takes no hooks; Linear, EmbedID, BatchNormalization, convolutions "
                            "and links of Python's do");
}

void bind_hooks(LinkClass& link) {
  link.def(
          "_add_hook",
          [](Link& l, const AnyLinkHook& given) {
            HasHooks& hooks = with_hooks(l, "add_hook");
            if (given.replaces_parameters && dynamic_cast<LinkOfPython*>(&l)) {
              throw NotImplementedError("add_hook: " + given.hook->name() +
                                        " is for links of the engine's that compute "
                                        "with weights: add it to the parts of " +
                                        l.type_name());
            }
            unlocked([&] { hooks.add_hook(given.hook->clone()); });
          },
          nb::arg("hook"))
      .def(
          "_delete_hook",
          [](Link& l, const std::string& name) {
            unlocked([&] { with_hooks(l, "delete_hook").delete_hook(name); });
          },
          nb::arg("name"))
      .def(
          "_call_hooked",
          [](Link& l, nb::handle forward, nb::tuple args, nb::dict kwargs) {
            return own(l, "a call").call_hooked(forward, std::move(args), std::move(kwargs));
          },
          nb::arg("forward"), nb::arg("args"), nb::arg("kwargs"));
}

void bind_moves(LinkClass& link) {
  link.def("to_device",
           [](nb::handle_t<Link> self, Argument<Device> device) {
             return moved(self, [&](Link& l) { l.to(device.get()); });
           })
      .def("to_cpu",
           [](nb::handle_t<Link> self) { return moved(self, [](Link& l) { l.to_cpu(); }); })
      .def(
          "to_gpu",
          [](nb::handle_t<Link> self, std::optional<int> device) {
            return moved(self, [&](Link& l) { l.to(gpu_of(device)); });
          },
          nb::arg("device") = nb::none(),
          "Moves the parameters to a GPU, the current one by default; gives itself.");
}

}  // namespace

void remember_arguments(nb::handle link, const char* names, PyObject** given) {
  nb::dict kept;
  std::istringstream words(names);
  for (std::string name; words >> name; ++given) {
    nb::handle argument = *given;
    bool is_array = nb::isinstance<Array>(argument) || nb::isinstance<Variable>(argument) ||
                    PyObject_CheckBuffer(argument.ptr());
    if (!is_array) kept[name.c_str()] = argument;
  }
  link.attr("__dict__")["_made_with"] = kept;
}

void bind_link_class(nb::module_& m) {
  m.def("_is_ready", [](nb::handle object) { return nb::inst_ready(object); });
  LinkClass link(m, "Link", nb::dynamic_attr(), nb::is_weak_referenceable(),
                 "A model, or a part of one.");
  link.def(
          "__init__",
          [](nb::handle_t<Link> self, const nb::kwargs& parts) {
            if (nb::hasattr(self.type(), "serialize")) {
              throw NotImplementedError(
                  nb::cast<std::string>(self.type().attr("__name__")) +
                  ": serialize is asked of extensions, updaters and iterators; what lasts of a "
                  "link is named by add_persistent(name, value)");
            }
            new (nb::inst_ptr<Link>(self)) LinkOfPython();
            nb::inst_mark_ready(self);
            nb::dict own(self.attr("__dict__"));
            own["_members"] = nb::list();
            own["_within_init_scope"] = false;
            own["name"] = nb::none();
            for (auto [name, part] : parts) {
              self.attr(nb::isinstance<Link>(part) ? "add_link" : "add_param")(name, part);
            }
          },
          nb::arg("parts"), "`parts` are Chainer 1's: links, and shapes of parameters.")
      .def("__getattr__", &get_member)
      .def("__str__", [](const Link& l) { return unlocked([&] { return l.str(); }); })
      .def("__repr__", [](const Link& l) { return unlocked([&] { return l.describe(); }); })
      .def(
          "_set_persistent",
          [](Link& l, const std::string& name, Argument<Array> values) {
            Persistent& member = own(l, "add_persistent").persistents[name];
            if (!values.get().defined()) {
              member = Persistent();
            } else if (ThreadState::current().recorder) {
              member = values.get();  // in place, so that replays do it again
            } else {
              Array copied = values.get().copy();
              member = Persistent(copied);
            }
          },
          nb::arg("name"), nb::arg("values").none())
      .def(
          "_set_member",
          [](Link& l, const std::string& name, nb::handle value) {
            SetMember set(name, value);
            l.members(set);
            return set.found;
          },
          nb::arg("name"), nb::arg("value").none())
      .def("_has_persistent", [](Link& l, const std::string& name) {
        auto* own = dynamic_cast<LinkOfPython*>(&l);
        return own && own->persistents.contains(name);
      });
  bind_walks(link);
  bind_hooks(link);
  bind_moves(link);
}

}  // namespace rensa::python
