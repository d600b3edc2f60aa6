#include "serialize.h"

#include <memory>
#include <utility>

#include "rensa/array/manipulation.h"
#include "rensa/core/error.h"

namespace rensa::python {

namespace {

/// One call of serialize: a walk over what lasts, or, when a file has been read, the other one.
struct Call {
  Visitor* visitor = nullptr;  // of the walk
  bool loads = false;
  std::map<std::string, Visitor::Value> read;
  ShownAlready already;
};

/// What serialize is given.
struct Serializer {
  std::shared_ptr<Call> call;
  std::string path;  // in front of keys: "child/"
};

/// What a value is in files; None is an array that is not there.
Visitor::Value value_of(const std::string& key, nb::handle value) {
  if (value.is_none()) return Array();
  if (nb::isinstance<Array>(value)) return nb::cast<Array>(value);
  if (auto plain = plain_value_of(value)) return *plain;
  nb::object array = nb::getattr(value, "array", value);  // a variable's
  if (PyObject_CheckBuffer(array.ptr()) || nb::isinstance<Array>(array)) return array_of(array);
  throw nb::type_error(("serialize: \"" + key + "\" is a " +
                        nb::cast<std::string>(nb::repr(value.type())) +
                        "; files hold numbers, texts, arrays and None")
                           .c_str());
}

/// A value of a file as what `now` is: an array of NumPy's where that is one, on the device where
/// that lies; a number in place of None where it may be one.
nb::object object_of(const Visitor::Value& value, nb::handle now) {
  auto* array = std::get_if<Array>(&value);
  if (!array) {
    return std::visit([](const auto& one) { return nb::object(nb::cast(one)); }, value);
  }
  if (!array->defined()) return nb::none();
  if (nb::isinstance<Array>(now)) return nb::cast(array->to(nb::cast<Array>(now).device()));
  nb::object host = nb::module_::import_("numpy").attr("array")(nb::cast(array->to(cpu())));
  return now.is_none() && array->ndim() == 0 ? host.attr("item")() : host;
}

nb::object serialized(const Serializer& self, const std::string& key, nb::handle value) {
  std::string name = self.path + key;
  Call& call = *self.call;
  if (auto known = call.already.find(name); known != call.already.end()) {
    return call.loads ? known->second() : nb::borrow(value);
  }
  if (call.loads) {
    auto found = call.read.find(name);
    return found == call.read.end() ? nb::borrow(value) : object_of(found->second, value);
  }
  if (!call.visitor) throw ValueError("serialize: the serializer is used after the call it is for");
  Visitor::Value now = value_of(name, value);
  auto take = [kept = std::weak_ptr(self.call), name](const Visitor::Value& read) {
    return [kept, name, read] {
      if (auto into = kept.lock()) into->read[name] = read;
    };
  };
  call.visitor->value(name, {now.index(), [now] { return now; }, take});
  return nb::borrow(value);
}

}  // namespace

std::optional<Visitor::Value> plain_value_of(nb::handle value) {
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (is_integer(value)) return nb::cast<std::int64_t>(nb::int_(value));
  return {};
}

void show_serialized(Visitor& v, nb::handle object, ShownAlready already) {
  nb::gil_scoped_acquire lock;
  nb::object serialize = nb::getattr(object, "serialize", nb::none());
  if (serialize.is_none()) return;
  auto call = std::make_shared<Call>();
  call->visitor = &v;
  call->already = std::move(already);
  serialize(Serializer{call, ""});
  call->visitor = nullptr;
  if (Visitor::Reading* file = v.reading()) {
    file->then([call, held = std::make_shared<Held>(serialize)] {
      nb::gil_scoped_acquire again;
      call->loads = true;
      held->object(Serializer{call, ""});
    });
  }
}

void bind_serialize(nb::module_& m) {
  nb::class_<Serializer>(m, "Serializer", "What serialize(serializer) of an object is given.")
      .def(
          "__call__", &serialized, nb::arg("key"), nb::arg("value").none(),
          "Names a value of a file: a number, a text, an array or None. Gives the file's while one "
          "is read, else the value.")
      .def(
          "__getitem__",
          [](const Serializer& self, const std::string& key) {
            return Serializer{self.call, self.path + key + "/"};
          },
          nb::arg("key"), "The serializer of a part.")
      .def_prop_ro(
          "reads", [](const Serializer& self) { return self.call->loads; },
          "Whether what it gives is a file's.");
}

}  // namespace rensa::python
