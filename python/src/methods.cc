// What arrays have beside their routines: flags, parts that can be assigned, files; and errors that
// are NumPy's too.
#include <cctype>
#include <typeinfo>

#include "rensa/array/io.h"
#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

Order order_of(nb::handle object, char otherwise) {
  if (object.is_none()) return otherwise;
  auto text = nb::cast<std::string>(object);
  if (text.size() == 1) text[0] = static_cast<char>(std::toupper(text[0]));
  return text.c_str();
}

namespace {

/// numpy.ndarray.flags.
struct Flags {
  Array array;
  bool fortran() const {
    return array.ndim() <= 1 ? array.is_contiguous() : array.transpose().is_contiguous();
  }
  bool owns() const {
    const auto& storage = array.storage();
    return array.data() == storage->data() && array.nbytes() == storage->nbytes();
  }
};

void bind_flags(nb::module_& m) {
  nb::class_<Flags>(m, "flagsobj", "How an array's elements lie.")
      .def_prop_ro("c_contiguous", [](const Flags& f) { return f.array.is_contiguous(); })
      .def_prop_ro("f_contiguous", &Flags::fortran)
      .def_prop_ro("forc", [](const Flags& f) { return f.array.is_contiguous() || f.fortran(); })
      .def_prop_ro("fnc", [](const Flags& f) { return !f.array.is_contiguous() && f.fortran(); })
      .def_prop_ro("owndata", &Flags::owns)
      .def_prop_ro("writeable", [](const Flags& f) { return !f.array.storage()->is_read_only(); })
      .def(
          "__getitem__",
          [](nb::handle self, const std::string& name) {
            std::string lower;
            for (char c : name) lower += static_cast<char>(std::tolower(c));
            nb::object found = nb::getattr(self, lower.c_str(), nb::none());
            if (found.is_none()) throw nb::key_error(name.c_str());
            return found;
          },
          nb::arg("name"))
      .def("__repr__", [](const Flags& f) {
        auto text = [](bool on) { return std::string(on ? "True" : "False"); };
        return "  C_CONTIGUOUS : " + text(f.array.is_contiguous()) +
               "\n  F_CONTIGUOUS : " + text(f.fortran()) + "\n  OWNDATA : " + text(f.owns());
      });
}

/// Writes a part of an array: its real or its imaginary one.
void assign_part(const Array& part, nb::handle value) {
  Array values = array_beside(value, part);
  unlocked([&] { part.assign(values.astype(part.dtype(), false)); });
}

void bind_properties(nb::module_& m) {
  auto array = nb::borrow<nb::class_<Array>>(m.attr("ndarray"));
  array.def_prop_ro("flags", [](const Array& a) { return Flags{a}; });
  array.def_prop_rw(
      "real",
      [](nb::handle self) -> nb::object {
        const Array& a = nb::cast<const Array&>(self);
        return dtype_kind(a.dtype()) == 'c' ? nb::cast(a.real()) : nb::borrow(self);
      },
      [](const Array& a, nb::handle value) { assign_part(a.real(), value); });
  array.def_prop_rw(
      "imag", [](const Array& a) { return a.imag(); },
      [](const Array& a, nb::handle value) {
        if (dtype_kind(a.dtype()) != 'c')
          throw nb::type_error("the imaginary part of a real array is not written to");
        assign_part(a.imag(), value);
      });
  array.def_prop_rw(
      "shape", [](const Array& a) { return tuple_of_extents(a.shape()); },
      [](Array& a, nb::handle shape) {
        Shape extents = shape_of_object(shape);
        Array made = a.reshape(extents);
        if (made.storage() != a.storage())
          throw nb::attribute_error("the elements lie so that this shape needs a copy: reshape()");
        a = made;
      });
}

void bind_files(nb::module_& m) {
  auto write = [](const Array& a, nb::handle file) {
    if (nb::hasattr(file, "write")) {
      std::string bytes = unlocked([&] { return a.tobytes(); });
      file.attr("write")(nb::bytes(bytes.data(), bytes.size()));
      return;
    }
    auto path = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(file));
    unlocked([&] { xp::tofile(a, path); });
  };
  m.def(
      "require",
      [](nb::handle x, nb::handle dtype, nb::handle requirements) {
        Array a = array_of(x);
        std::vector<std::string> words;
        if (PyUnicode_Check(requirements.ptr()))
          words.push_back(nb::cast<std::string>(requirements));
        else if (!requirements.is_none())
          words = nb::cast<std::vector<std::string>>(nb::list(requirements));
        std::vector<std::string_view> views(words.begin(), words.end());
        auto to = optional_dtype(dtype);
        return itself_or(x, unlocked([&] { return xp::require(a, to, views); }));
      },
      nb::arg("a"), nb::arg("dtype") = nb::none(), nb::arg("requirements") = nb::none());
  def_method(m, "tofile", write, nb::arg("file"));
  m.def(
      "frombuffer",
      [](nb::handle buffer, nb::handle dtype, std::int64_t count, std::int64_t offset,
         nb::handle device) {
        nb::bytes bytes(nb::module_::import_("builtins").attr("bytes")(buffer));
        std::string_view text(bytes.c_str(), bytes.size());
        return xp::frombuffer(text, optional_dtype(dtype).value_or(float64), count, offset,
                              placement_of(device));
      },
      nb::arg("buffer"), nb::arg("dtype") = nb::none(), nb::arg("count") = -1,
      nb::arg("offset") = 0, nb::kw_only(), nb::arg("device") = nb::none());
}

// --- errors ---

/// The class of Python's that is an error of the engine's and one of NumPy's.
nb::object joined_error(const char* name, const char* own, const char* module, const char* theirs) {
  static nb::object& known = *new nb::object(nb::dict());
  nb::object found = known.attr("get")(name);
  if (!found.is_none()) return found;
  nb::object base = nb::module_::import_("rensa._engine").attr("errors").attr(own);
  nb::object other = nb::module_::import_(module).attr(theirs);
  nb::dict members;
  members["__module__"] = "rensa._engine.errors";
  nb::object made =
      nb::module_::import_("builtins").attr("type")(name, nb::make_tuple(base, other), members);
  known[name] = made;
  return made;
}

void raise_joined(const char* name, const char* own, const char* module, const char* theirs,
                  const char* text) {
  try {
    nb::object type = joined_error(name, own, module, theirs);
    PyErr_SetString(type.ptr(), text);
  } catch (nb::python_error& error) {
    error.restore();
  }
}

bool says(const std::exception& error, std::string_view words) {
  return std::string_view(error.what()).find(words) != std::string_view::npos;
}

/// NumPy's AxisError is a ValueError and an IndexError, its LinAlgError a class of its own; a
/// number of Python's that a dtype does not hold is an OverflowError.
void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const LinAlgError& error) {
    raise_joined("LinAlgError", "LinAlgError", "numpy.linalg", "LinAlgError", error.what());
  } catch (const IndexError& error) {
    if (says(error, "unravel_index: ") || says(error, "ravel_multi_index: ") ||
        says(error, "choose: "))
      return raise_joined("IndexValueError", "IndexError", "builtins", "ValueError", error.what());
    if (!says(error, "is out of bounds for array of dimension")) throw;
    raise_joined("AxisError", "IndexError", "numpy.exceptions", "AxisError", error.what());
  } catch (const ShapeError& error) {
    bool matrix = says(error, "linalg.") &&
                  (says(error, "is no matrix") || says(error, "square") || says(error, "is empty"));
    if (!matrix) throw;
    raise_joined("LinAlgShapeError", "ShapeError", "numpy.linalg", "LinAlgError", error.what());
  } catch (const DtypeError& error) {
    if (!says(error, "is not an index: ")) throw;
    raise_joined("IndexDtypeError", "DtypeError", "builtins", "IndexError", error.what());
  } catch (const std::bad_cast&) {
    PyErr_SetString(PyExc_TypeError,
                    "an argument, or a part of one, is of a type that is not taken here");
  } catch (const ValueError& error) {
    if (!says(error, "the number ") || !says(error, "is out of bounds for ")) throw;
    raise_joined("NumberError", "Error", "builtins", "OverflowError", error.what());
  }
}

}  // namespace

void bind_methods(nb::module_& m) {
  bind_flags(m);
  bind_properties(m);
  bind_files(m);
  nb::register_exception_translator(translate);
}

}  // namespace rensa::python
