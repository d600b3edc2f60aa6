// rensa.xp's ufuncs: every public row of core/ufuncs, and the operators of arrays.

#include <string>

#include "rensa/core/error.h"
#include "routines.h"

namespace rensa::python {

namespace {

/// numpy.ufunc: one of one operand, or of two.
struct UfuncOfPython {
  const xp::UnaryUfunc* unary = nullptr;
  const xp::BinaryUfunc* binary = nullptr;
  const xp::UfuncObject& object() const {
    return unary ? static_cast<const xp::UfuncObject&>(*unary) : *binary;
  }
  std::string name() const { return std::string(object().name()); }
};

Array call_binary(const xp::BinaryUfunc& ufunc, const Operand& a, const Operand& b,
                  const xp::UfuncOptions& options) {
  auto* x = std::get_if<Array>(&a);
  auto* y = std::get_if<Array>(&b);
  if (x && y) return ufunc(*x, *y, options);
  if (x) return ufunc(*x, std::get<Scalar>(b), options);
  if (y) return ufunc(std::get<Scalar>(a), *y, options);
  return ufunc(array_of_operand(a), array_of_operand(b), options);
}

/// The place for results: an array, or NumPy's tuple of one.
OptionalArray place_of(nb::handle out) {
  if (PyTuple_Check(out.ptr()) && nb::len(out) == 1) return OptionalArray(out[0]);
  if (!out.is_none() && !nb::isinstance<Array>(out)) {
    throw nb::type_error("out is an array of rensa.xp, or a tuple of one");
  }
  return OptionalArray(out);
}

Returned<Array> call(const UfuncOfPython& self, const nb::args& args, nb::handle out,
                     nb::handle where, nb::handle dtype, const std::string& casting) {
  auto nin = static_cast<std::size_t>(self.object().nin());
  if (args.size() != nin && !(args.size() == nin + 1 && out.is_none())) {
    std::string text = self.name() + "() takes " + std::to_string(nin) +
                       " operands, and one more for "
                       "the results, not " +
                       std::to_string(args.size());
    throw nb::type_error(text.c_str());
  }
  OptionalArray place = place_of(args.size() > nin ? nb::handle(args[nin]) : out), mask(where);
  xp::UfuncOptions options{place.option(), mask.option(), optional_dtype(dtype), casting};
  Operand a = operand_of(args[0]);
  if (self.unary)
    return stored(place, unlocked([&] { return (*self.unary)(array_of_operand(a), options); }));
  Operand b = operand_of(args[1]);
  return stored(place, unlocked([&] { return call_binary(*self.binary, a, b, options); }));
}

/// a[index] = f(a[index], b), the index being an array or one to six entries.
template <class At> void at_index(nb::handle key, At at) {
  std::vector<Index> i = index_of(key);
  unlocked([&] {
    switch (i.size()) {
      case 1: return at({i[0]});
      case 2: return at({i[0], i[1]});
      case 3: return at({i[0], i[1], i[2]});
      case 4: return at({i[0], i[1], i[2], i[3]});
      case 5: return at({i[0], i[1], i[2], i[3], i[4]});
      case 6: return at({i[0], i[1], i[2], i[3], i[4], i[5]});
      default: throw IndexError("ufunc.at: an index of one to six entries is needed");
    }
  });
}

void at(const UfuncOfPython& self, const Array& a, nb::handle key, nb::handle b) {
  using Entries = std::initializer_list<Index>;
  if (self.unary) return at_index(key, [&](Entries index) { self.unary->at(a, index); });
  if (b.is_none()) throw nb::type_error((self.name() + ".at: second operand needed").c_str());
  Operand operand = operand_of(b);
  at_index(key, [&](Entries index) {
    if (auto* array = std::get_if<Array>(&operand))
      self.binary->at(a, index, array->to(a.device()));
    else self.binary->at(a, index, std::get<Scalar>(operand));
  });
}

const xp::BinaryUfunc& binary_of(const UfuncOfPython& self, const char* method) {
  if (self.binary) return *self.binary;
  throw ValueError(self.name() + "." + method + ": is for ufuncs of two operands");
}

/// Sets nin, name and so on, and the methods of ufuncs.
void bind_ufunc_class(nb::module_& m) {
  nb::class_<UfuncOfPython>(m, "ufunc", nb::dynamic_attr(), "An operation element by element.")
      .def("__call__", &call, nb::arg("args"), nb::kw_only(), nb::arg("out") = nb::none(),
           nb::arg("where") = true, nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind")
      .def("__repr__", [](const UfuncOfPython& u) { return "<ufunc '" + u.name() + "'>"; })
      .def_prop_ro("nin", [](const UfuncOfPython& u) { return u.object().nin(); })
      .def_prop_ro("nout", [](const UfuncOfPython& u) { return u.object().nout(); })
      .def_prop_ro("nargs", [](const UfuncOfPython& u) { return u.object().nargs(); })
      .def_prop_ro("types", [](const UfuncOfPython& u) { return u.object().types(); })
      .def_prop_ro("ntypes", [](const UfuncOfPython& u) { return u.object().ntypes(); })
      .def(
          "reduce",
          [](const UfuncOfPython& u, nb::handle x, nb::handle axis, nb::handle dtype,
             nb::handle out, bool keepdims, nb::handle initial, nb::handle where) {
            const xp::BinaryUfunc& ufunc = binary_of(u, "reduce");
            Array a = array_of(x);
            OptionalArray place = place_of(out), mask(where);
            xp::UfuncReduceOptions options{.axis = axes_of(axis),
                                           .keepdims = keepdims,
                                           .dtype = optional_dtype(dtype),
                                           .out = place.option(),
                                           .initial = scalar_of(initial),
                                           .where = mask.option()};
            return stored(place, unlocked([&] { return ufunc.reduce(a, options); }));
          },
          nb::arg("array"), nb::arg("axis").none() = 0, nb::arg("dtype") = nb::none(),
          nb::arg("out") = nb::none(), nb::arg("keepdims") = false, nb::arg("initial") = nb::none(),
          nb::arg("where") = true)
      .def(
          "accumulate",
          [](const UfuncOfPython& u, nb::handle x, int axis, nb::handle dtype, nb::handle out) {
            const xp::BinaryUfunc& ufunc = binary_of(u, "accumulate");
            Array a = array_of(x);
            OptionalArray place = place_of(out);
            xp::UfuncAxisOptions options{
                .axis = axis, .dtype = optional_dtype(dtype), .out = place.option()};
            return stored(place, unlocked([&] { return ufunc.accumulate(a, options); }));
          },
          nb::arg("array"), nb::arg("axis") = 0, nb::arg("dtype") = nb::none(),
          nb::arg("out") = nb::none())
      .def(
          "outer",
          [](const UfuncOfPython& u, nb::handle x, nb::handle y, nb::handle out, nb::handle dtype) {
            const xp::BinaryUfunc& ufunc = binary_of(u, "outer");
            Array a = array_of(x), b = array_of(y);
            OptionalArray place = place_of(out);
            xp::UfuncOptions options{.out = place.option(), .dtype = optional_dtype(dtype)};
            return stored(place, unlocked([&] { return ufunc.outer(a, b, options); }));
          },
          nb::arg("a"), nb::arg("b"), nb::kw_only(), nb::arg("out") = nb::none(),
          nb::arg("dtype") = nb::none())
      .def("at", &at, nb::arg("a"), nb::arg("indices").none(), nb::arg("b") = nb::none(),
           "Every one of equal indices counts.")
      .def(
          "reduceat",
          [](const UfuncOfPython& u, nb::handle x, nb::handle indices, int axis, nb::handle dtype,
             nb::handle out) {
            const xp::BinaryUfunc& ufunc = binary_of(u, "reduceat");
            Array a = array_of(x), at = array_of(indices);
            OptionalArray place = place_of(out);
            xp::UfuncAxisOptions options{
                .axis = axis, .dtype = optional_dtype(dtype), .out = place.option()};
            return stored(place, unlocked([&] { return ufunc.reduceat(a, at, options); }));
          },
          nb::arg("array"), nb::arg("indices"), nb::arg("axis") = 0, nb::arg("dtype") = nb::none(),
          nb::arg("out") = nb::none());
}

// --- operators ---

/// self + other, and NotImplemented where the other is nothing to compute with.
template <const xp::BinaryUfunc& ufunc, bool reflected>
nb::object operate(const Array& self, nb::handle other) {
  if (nb::isinstance<Array>(other)) {
    const Array& array = *nb::inst_ptr<Array>(other);
    return nb::cast(unlocked([&] { return reflected ? ufunc(array, self) : ufunc(self, array); }));
  }
  if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
  Operand operand = operand_of(other);
  return nb::cast(unlocked([&] {
    Operand own = self;
    return reflected ? call_binary(ufunc, operand, own, {}) : call_binary(ufunc, own, operand, {});
  }));
}

/// self += other, in self's memory.
template <const xp::BinaryUfunc& ufunc>
nb::object operate_in_place(nb::handle self, nb::handle other) {
  if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
  const Array& a = nb::cast<const Array&>(self);
  Operand operand = operand_of(other);
  unlocked([&] { return call_binary(ufunc, Operand(a), operand, {.out = a}); });
  return nb::borrow(self);
}

template <const xp::BinaryUfunc& ufunc> void bind_operator(nb::module_& m, const char* name) {
  auto def = [&](const std::string& full, auto function) {
    def_method(m, full.c_str(), function, nb::arg("other").none());
  };
  std::string plain = name;
  def("__" + plain + "__", &operate<ufunc, false>);
  def("__r" + plain + "__", &operate<ufunc, true>);
  def("__i" + plain + "__", &operate_in_place<ufunc>);
}

/// What no array is made of: None, Ellipsis and plain objects, which equal nothing.
bool equals_nothing(nb::handle other) {
  return other.is_none() || other.ptr() == Py_Ellipsis ||
         reinterpret_cast<PyTypeObject*>(other.type().ptr())->tp_richcompare ==
             PyBaseObject_Type.tp_richcompare;
}

template <const xp::BinaryUfunc& ufunc> void bind_comparison(nb::module_& m, const char* name) {
  def_method(m, name, &operate<ufunc, false>, nb::arg("other").none());
}

template <const xp::BinaryUfunc& ufunc>
void bind_equality(nb::module_& m, const char* name, bool unlike) {
  def_method(
      m, name,
      [unlike](const Array& self, nb::handle other) {
        if (!equals_nothing(other) || is_operand(other)) return operate<ufunc, false>(self, other);
        return nb::object(nb::cast(xp::full(self.shape(), unlike, bool_, self.device())));
      },
      nb::arg("other").none());
}

void bind_operators(nb::module_& m) {
  bind_operator<xp::add>(m, "add");
  bind_operator<xp::subtract>(m, "sub");
  bind_operator<xp::multiply>(m, "mul");
  bind_operator<xp::divide>(m, "truediv");
  bind_operator<xp::floor_divide>(m, "floordiv");
  bind_operator<xp::remainder>(m, "mod");
  bind_operator<xp::power>(m, "pow");
  bind_operator<xp::bitwise_and>(m, "and");
  bind_operator<xp::bitwise_or>(m, "or");
  bind_operator<xp::bitwise_xor>(m, "xor");
  bind_operator<xp::left_shift>(m, "lshift");
  bind_operator<xp::right_shift>(m, "rshift");
  bind_equality<xp::equal>(m, "__eq__", false);
  bind_equality<xp::not_equal>(m, "__ne__", true);
  bind_comparison<xp::less>(m, "__lt__");
  bind_comparison<xp::less_equal>(m, "__le__");
  bind_comparison<xp::greater>(m, "__gt__");
  bind_comparison<xp::greater_equal>(m, "__ge__");
  def_method(m, "__neg__", [](const Array& a) { return unlocked([&] { return -a; }); });
  def_method(m, "__pos__",
             [](const Array& a) { return unlocked([&] { return xp::positive(a); }); });
  def_method(m, "__abs__",
             [](const Array& a) { return unlocked([&] { return xp::absolute(a); }); });
  def_method(m, "__invert__", [](const Array& a) { return unlocked([&] { return ~a; }); });
  nb::setattr(m.attr("ndarray"), "__hash__", nb::none());  // == gives arrays
}

void put(nb::module_& m, const char* name, const UfuncOfPython& ufunc) {
  nb::object made = nb::cast(ufunc);
  made.attr("__name__") = name;  // a class has one of its own
  m.attr(name) = made;
}
void put(nb::module_& m, const char* name, const xp::UnaryUfunc& ufunc) {
  put(m, name, UfuncOfPython{&ufunc, nullptr});
}
void put(nb::module_& m, const char* name, const xp::BinaryUfunc& ufunc) {
  put(m, name, UfuncOfPython{nullptr, &ufunc});
}

}  // namespace

void bind_ufuncs(nb::module_& m) {
  bind_ufunc_class(m);
#define RENSA_PUT_1(name) put(m, #name, xp::name);
#define RENSA_PUT_2(name) put(m, #name, xp::name);
#define RENSA_PUT_3(name)
#define RENSA_UFUNC(name, inputs, rule, expression) RENSA_PUT_##inputs(name)
#define RENSA_INTERNAL(name, inputs, rule, expression)
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
#undef RENSA_INTERNAL
#undef RENSA_PUT_1
#undef RENSA_PUT_2
#undef RENSA_PUT_3
  bind_operators(m);
}

}  // namespace rensa::python
