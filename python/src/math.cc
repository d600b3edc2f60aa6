// rensa.xp's elementwise routines that are no ufuncs, and polynomials.
#include "routines.h"

namespace rensa::python {

namespace {

// --- two results ---

struct Pair {
  Pair(nb::handle out, nb::handle second, nb::handle where)
      : first_place(PyTuple_Check(out.ptr()) ? nb::object(out[0]) : nb::borrow(out)),
        second_place(PyTuple_Check(out.ptr()) ? nb::object(out[1]) : nb::borrow(second)),
        mask(where) {}
  xp::PairOptions options(nb::handle dtype, const std::string& casting) const {
    return {.out = {first_place.option(), second_place.option()},
            .where = mask.option(),
            .dtype = optional_dtype(dtype),
            .casting = casting};
  }
  nb::tuple results(const std::pair<Array, Array>& made) const {
    return nb::make_tuple(stored(first_place, made.first).object,
                          stored(second_place, made.second).object);
  }
  OptionalArray first_place, second_place, mask;
};

using PairOf = std::pair<Array, Array> (*)(const Array&, const xp::PairOptions&);

void bind_pair(nb::module_& m, const char* name, PairOf routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle out1, nb::handle out2, nb::handle out, nb::handle where,
                nb::handle dtype, const std::string& casting) {
        Array a = array_of(x);
        Pair pair(out.is_none() ? out1 : out, out2, where);
        xp::PairOptions options = pair.options(dtype, casting);
        return pair.results(unlocked([&] { return routine(a, options); }));
      },
      nb::arg("x"), nb::arg("out1") = nb::none(), nb::arg("out2") = nb::none(), nb::kw_only(),
      nb::arg("out") = nb::none(), nb::arg("where") = true, nb::arg("dtype") = nb::none(),
      nb::arg("casting") = "same_kind");
}

std::pair<Array, Array> divide_with_rest(const Operand& a, const Operand& b,
                                         const xp::PairOptions& options) {
  auto* x = std::get_if<Array>(&a);
  auto* y = std::get_if<Array>(&b);
  if (x && y) return xp::divmod(*x, *y, options);
  if (x) return xp::divmod(*x, std::get<Scalar>(b), options);
  if (y) return xp::divmod(std::get<Scalar>(a), *y, options);
  return xp::divmod(array_of_operand(a), array_of_operand(b), options);
}

void bind_pairs(nb::module_& m) {
  bind_pair(m, "modf", xp::modf), bind_pair(m, "frexp", xp::frexp);
  m.def(
      "divmod",
      [](nb::handle x, nb::handle y, nb::handle out1, nb::handle out2, nb::handle out,
         nb::handle where, nb::handle dtype, const std::string& casting) {
        Operand a = operand_of(x), b = operand_of(y);
        Pair pair(out.is_none() ? out1 : out, out2, where);
        xp::PairOptions options = pair.options(dtype, casting);
        return pair.results(unlocked([&] { return divide_with_rest(a, b, options); }));
      },
      nb::arg("x1"), nb::arg("x2"), nb::arg("out1") = nb::none(), nb::arg("out2") = nb::none(),
      nb::kw_only(), nb::arg("out") = nb::none(), nb::arg("where") = true,
      nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind");
  auto operation = [&m](const char* name, bool reflected) {
    def_method(
        m, name,
        [reflected](const Array& self, nb::handle other) -> nb::object {
          if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
          Operand own = self, operand = operand_of(other);
          auto [first, second] = unlocked([&] {
            return reflected ? divide_with_rest(operand, own, {})
                             : divide_with_rest(own, operand, {});
          });
          return nb::make_tuple(first, second);
        },
        nb::arg("other").none());
  };
  operation("__divmod__", false), operation("__rdivmod__", true);
}

// --- one result ---

void bind_rounding(nb::module_& m) {
  auto round = [](nb::handle x, int decimals, nb::handle out) {
    Array a = array_of(x);
    OptionalArray place(out);
    xp::UfuncOptions options{.out = place.option()};
    return stored(place, unlocked([&] { return xp::round(a, decimals, options); }));
  };
  def_both(m, "round", round, nb::arg("decimals") = 0, nb::arg("out") = nb::none());
  m.def("around", round, nb::arg("a"), nb::arg("decimals") = 0, nb::arg("out") = nb::none());
  auto with_options = [&m](const char* name,
                           Array (*routine)(const Array&, const xp::UfuncOptions&)) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle out, nb::handle where, nb::handle dtype) {
          Array a = array_of(x);
          OptionalArray place(out), mask(where);
          xp::UfuncOptions options{place.option(), mask.option(), optional_dtype(dtype)};
          return stored(place, unlocked([&] { return routine(a, options); }));
        },
        nb::arg("x"), nb::arg("out") = nb::none(), nb::kw_only(), nb::arg("where") = true,
        nb::arg("dtype") = nb::none());
  };
  with_options("sinc", xp::sinc), with_options("i0", xp::i0);
}

void bind_complex(nb::module_& m) {
  m.def(
      "angle",
      [](nb::handle x, bool deg) {
        Array a = array_of(x);
        return unlocked([&] { return xp::angle(a, deg); });
      },
      nb::arg("z"), nb::arg("deg") = false);
  def_of_one(m, "iscomplex", xp::iscomplex), def_of_one(m, "isreal", xp::isreal);
  m.def(
      "iscomplexobj", [](nb::handle x) { return xp::iscomplexobj(array_of(x)); }, nb::arg("x"));
  m.def(
      "isrealobj", [](nb::handle x) { return xp::isrealobj(array_of(x)); }, nb::arg("x"));
  m.def(
      "real_if_close",
      [](nb::handle x, double tol) {
        Array a = array_of(x);
        return unlocked([&] { return xp::real_if_close(a, tol); });
      },
      nb::arg("a"), nb::arg("tol") = 100);
  auto conjugate = [](nb::handle self) -> Returned<Array> {
    const Array& a = nb::cast<const Array&>(self);
    if (dtype_kind(a.dtype()) != 'c') return nb::borrow(self);
    return nb::object(nb::cast(unlocked([&] { return a.conj(); })));
  };
  def_method(m, "conj", conjugate), def_method(m, "conjugate", conjugate);
}

void bind_values(nb::module_& m) {
  m.def(
      "nan_to_num",
      [](nb::handle x, bool copy, double nan, std::optional<double> posinf,
         std::optional<double> neginf) {
        Array a = array_of(x);
        Array made = unlocked([&] { return xp::nan_to_num(a, nan, posinf, neginf); });
        if (copy) return Returned<Array>(nb::cast(made));
        unlocked([&] { a.assign(made); });
        return itself_or(x, a);
      },
      nb::arg("x"), nb::arg("copy") = true, nb::arg("nan") = 0.0, nb::arg("posinf") = nb::none(),
      nb::arg("neginf") = nb::none());
  m.def(
      "unwrap",
      [](nb::handle p, std::optional<double> discont, int axis, nb::handle period) {
        Array a = array_of(p);
        xp::UnwrapOptions options{.discont = discont, .axis = axis};
        if (!period.is_none()) options.period = *scalar_of(period);
        return unlocked([&] { return xp::unwrap(a, options); });
      },
      nb::arg("p"), nb::arg("discont") = nb::none(), nb::arg("axis") = -1, nb::kw_only(),
      nb::arg("period") = nb::none());
  m.def(
      "packbits",
      [](nb::handle x, nb::handle axis, const std::string& bitorder) {
        Array a = array_of(x);
        OptionalAxis along = optional_axis(axis);
        return unlocked([&] { return xp::packbits(a, along, bitorder); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("bitorder") = "big");
  m.def(
      "unpackbits",
      [](nb::handle x, nb::handle axis, std::optional<std::int64_t> count,
         const std::string& bitorder) {
        Array a = array_of(x);
        OptionalAxis along = optional_axis(axis);
        return unlocked([&] { return xp::unpackbits(a, along, count, bitorder); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("count") = nb::none(),
      nb::arg("bitorder") = "big");
  m.def("binary_repr", &xp::binary_repr, nb::arg("num"), nb::arg("width") = nb::none());
}

// --- polynomials ---

using OfPolynomials = Array (*)(const Array&, const Array&);

std::vector<Scalar> constants_of(nb::handle object) {
  if (object.is_none()) return {};
  if (auto number = scalar_of(object)) return {*number};
  Array values = array_of(object).ravel();
  std::vector<Scalar> constants;
  for (Array value : values) constants.push_back(value.item_scalar());
  return constants;
}

Array coefficients_of(nb::handle object) {
  if (nb::isinstance<xp::poly1d>(object)) return nb::cast<const xp::poly1d&>(object).coeffs();
  return array_of(object);
}

void bind_polynomial_routines(nb::module_& m) {
  auto two = [&m](const char* name, OfPolynomials routine, const char* first, const char* second) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle y) -> nb::object {
          Array a = coefficients_of(x), b = coefficients_of(y);
          Array made = unlocked([&] { return routine(a, b); });
          bool is_class = nb::isinstance<xp::poly1d>(x) || nb::isinstance<xp::poly1d>(y);
          return is_class ? nb::cast(xp::poly1d(made)) : nb::cast(made);
        },
        nb::arg(first), nb::arg(second));
  };
  two("polyadd", xp::polyadd, "a1", "a2"), two("polysub", xp::polysub, "a1", "a2");
  two("polymul", xp::polymul, "a1", "a2");
  m.def(
      "polyval",
      [](nb::handle p, nb::handle x) {
        Array a = coefficients_of(p), at = array_of(x);
        return unlocked([&] { return xp::polyval(a, at); });
      },
      nb::arg("p"), nb::arg("x"));
  m.def(
      "polyder",
      [](nb::handle p, int times) {
        Array a = coefficients_of(p);
        return unlocked([&] { return xp::polyder(a, times); });
      },
      nb::arg("p"), nb::arg("m") = 1);
  m.def(
      "polyint",
      [](nb::handle p, int times, nb::handle k) {
        Array a = coefficients_of(p);
        if (k.is_none()) return unlocked([&] { return xp::polyint(a, times); });
        std::vector<Scalar> constants = constants_of(k);
        return unlocked([&] { return xp::polyint(a, times, constants); });
      },
      nb::arg("p"), nb::arg("m") = 1, nb::arg("k") = nb::none());
  def_of_one(m, "poly", xp::poly);
  m.def(
      "roots",
      [](nb::handle p) {
        Array a = coefficients_of(p);
        return unlocked([&] { return xp::roots(a); });
      },
      nb::arg("p"));
  m.def(
      "polyfit",
      [](nb::handle x, nb::handle y, int deg, std::optional<double> rcond, nb::handle w) {
        Array at = array_of(x), values = array_of(y), weights = array_or_none(w);
        return unlocked([&] { return xp::polyfit(at, values, deg, rcond, weights); });
      },
      nb::arg("x"), nb::arg("y"), nb::arg("deg"), nb::arg("rcond") = nb::none(),
      nb::arg("w") = nb::none());
}

void bind_polynomial_class(nb::module_& m) {
  using Polynomial = xp::poly1d;
  nb::class_<Polynomial>(m, "poly1d", "A polynomial: its coefficients, the highest power first.")
      .def(
          "__init__",
          [](Polynomial* self, nb::handle c, bool r) {
            Array a = coefficients_of(c);
            new (self) Polynomial(unlocked([&] { return Polynomial(r ? xp::poly(a) : a); }));
          },
          nb::arg("c_or_r"), nb::arg("r") = false)
      .def_prop_ro("coeffs", &Polynomial::coeffs)
      .def_prop_ro("c", &Polynomial::c)
      .def_prop_ro("order", &Polynomial::order)
      .def_prop_ro("o", &Polynomial::order)
      .def_prop_ro("roots", [](const Polynomial& p) { return unlocked([&] { return p.roots(); }); })
      .def_prop_ro("r", [](const Polynomial& p) { return unlocked([&] { return p.roots(); }); })
      .def_prop_ro("variable", [](const Polynomial&) { return "x"; })
      .def("__len__", &Polynomial::order)
      .def(
          "__getitem__", [](const Polynomial& p, int power) { return p[power]; }, nb::arg("power"))
      .def(
          "__call__",
          [](const Polynomial& p, nb::handle x) -> nb::object {
            if (nb::isinstance<Polynomial>(x)) {
              const auto& inner = nb::cast<const Polynomial&>(x);
              return nb::cast(unlocked([&] { return p(inner); }));
            }
            Array at = array_of(x);
            return nb::cast(unlocked([&] { return p(at); }));
          },
          nb::arg("x"))
      .def("deriv", &Polynomial::deriv, nb::arg("m") = 1)
      .def("integ", &Polynomial::integ, nb::arg("m") = 1)
      .def("__add__", [](const Polynomial& a, const Polynomial& b) { return a + b; })
      .def("__sub__", [](const Polynomial& a, const Polynomial& b) { return a - b; })
      .def("__mul__", [](const Polynomial& a, const Polynomial& b) { return a * b; })
      .def("__neg__", [](const Polynomial& a) { return -a; })
      .def("__eq__", [](const Polynomial& a, const Polynomial& b) { return a == b; });
}

}  // namespace

void bind_math(nb::module_& m) {
  bind_pairs(m);
  bind_rounding(m);
  bind_complex(m);
  bind_values(m);
}

void bind_polynomials(nb::module_& m) {
  bind_polynomial_class(m);
  bind_polynomial_routines(m);
}

}  // namespace rensa::python
