// rensa.xp's products, and rensa.xp.linalg.
#include <string>
#include <vector>

#include "routines.h"

namespace rensa::python {

namespace {

using OfTwo = Array (*)(const Array&, const Array&);

void bind_of_two(nb::module_& m, const char* name, OfTwo routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle y) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return routine(a, b); });
      },
      nb::arg("a"), nb::arg("b"));
}

Array tensordot(nb::handle x, nb::handle y, nb::handle axes) {
  Array a = array_of(x), b = array_of(y);
  if (PyIndex_Check(axes.ptr())) {
    int count = nb::cast<int>(axes);
    return unlocked([&] { return xp::tensordot(a, b, count); });
  }
  Shape first = shape_of_object(axes[0]), second = shape_of_object(axes[1]);
  return unlocked([&] { return xp::tensordot(a, b, first, second); });
}

void bind_products(nb::module_& m) {
  bind_of_two(m, "vdot", xp::vdot), bind_of_two(m, "inner", xp::inner);
  bind_of_two(m, "kron", xp::kron);
  m.def(
      "outer",
      [](nb::handle x, nb::handle y, nb::handle out) {
        Array a = array_of(x), b = array_of(y);
        OptionalArray place(out);
        return stored(place, unlocked([&] { return xp::outer(a, b, {.out = place.option()}); }));
      },
      nb::arg("a"), nb::arg("b"), nb::arg("out") = nb::none());
  m.def("tensordot", &tensordot, nb::arg("a"), nb::arg("b"), nb::arg("axes") = 2);
  m.def(
      "einsum",
      [](const std::string& subscripts, const nb::args& operands, nb::handle out, nb::handle dtype,
         nb::handle casting, nb::handle) {
        std::vector<Array> all = arrays_of(operands);
        OptionalArray place(out);
        std::string how = casting.is_none() ? "safe" : nb::cast<std::string>(casting);
        xp::EinsumOptions options{
            .out = place.option(), .dtype = optional_dtype(dtype), .casting = how};
        return stored(place, unlocked([&] { return xp::einsum(subscripts, all, options); }));
      },
      nb::arg("subscripts"), nb::arg("operands"), nb::kw_only(), nb::arg("out") = nb::none(),
      nb::arg("dtype") = nb::none(), nb::arg("casting") = nb::none(),
      nb::arg("optimize") = nb::none());
  auto product = [&m](const char* name, auto routine) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle y, nb::handle out, nb::handle dtype,
                  const std::string& casting) {
          Array a = array_of(x), b = array_of(y);
          OptionalArray place(out);
          xp::MatmulOptions options{
              .out = place.option(), .casting = casting, .dtype = optional_dtype(dtype)};
          return stored(place, unlocked([&] { return routine(a, b, options); }));
        },
        nb::arg("x1"), nb::arg("x2"), nb::arg("out") = nb::none(), nb::kw_only(),
        nb::arg("dtype") = nb::none(), nb::arg("casting") = "same_kind");
  };
  product("matvec", xp::matvec), product("vecmat", xp::vecmat);
}

void bind_eigenvalues(nb::module_& linalg) {
  linalg.def(
      "eigh",
      [](nb::handle x, const std::string& triangle) {
        Array a = array_of(x);
        auto [values, vectors] = unlocked([&] { return xp::linalg::eigh(a, triangle.at(0)); });
        return nb::make_tuple(values, vectors);
      },
      nb::arg("a"), nb::arg("UPLO") = "L");
  linalg.def(
      "eigvalsh",
      [](nb::handle x, const std::string& triangle) {
        Array a = array_of(x);
        return unlocked([&] { return xp::linalg::eigvalsh(a, triangle.at(0)); });
      },
      nb::arg("a"), nb::arg("UPLO") = "L");
  linalg.def(
      "slogdet",
      [](nb::handle x) {
        Array a = array_of(x);
        auto [sign, logarithm] = unlocked([&] { return xp::linalg::slogdet(a); });
        return nb::make_tuple(sign, logarithm);
      },
      nb::arg("a"));
  linalg.def(
      "matrix_power",
      [](nb::handle x, std::int64_t n) {
        Array a = array_of(x);
        return unlocked([&] { return xp::linalg::matrix_power(a, n); });
      },
      nb::arg("a"), nb::arg("n"));
}

}  // namespace

void bind_equations(nb::module_& linalg) {
  linalg.def(
      "lstsq",
      [](nb::handle x, nb::handle y, nb::handle rcond) {
        Array a = array_of(x), b = array_of(y);
        std::optional<double> least;
        if (!rcond.is_none() && PyFloat_Check(rcond.ptr())) least = nb::cast<double>(rcond);
        auto found = unlocked([&] { return xp::linalg::lstsq(a, b, least); });
        Array rank = xp::full({}, found.rank, int32, a.device());
        return nb::make_tuple(found.x, found.residuals, rank, found.s);
      },
      nb::arg("a"), nb::arg("b"), nb::arg("rcond") = nb::none());
  linalg.def(
      "tensorsolve",
      [](nb::handle x, nb::handle y, nb::handle axes) {
        Array a = array_of(x), b = array_of(y);
        AxisList moved = axes.is_none() ? AxisList() : AxisList(shape_of_object(axes));
        return unlocked([&] { return xp::linalg::tensorsolve(a, b, moved); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("axes") = nb::none());
  linalg.def(
      "tensorinv",
      [](nb::handle x, int ind) {
        Array a = array_of(x);
        return unlocked([&] { return xp::linalg::tensorinv(a, ind); });
      },
      nb::arg("a"), nb::arg("ind") = 2);
  linalg.def(
      "multi_dot",
      [](nb::handle arrays, nb::handle out) {
        std::vector<Array> all = arrays_of(arrays);
        OptionalArray place(out);
        return stored(
            place, unlocked([&] { return xp::linalg::multi_dot(all, {.out = place.option()}); }));
      },
      nb::arg("arrays"), nb::kw_only(), nb::arg("out") = nb::none());
}

void bind_linalg(nb::module_& m) {
  bind_products(m);
  nb::module_ linalg = m.def_submodule("linalg", "numpy.linalg's functions.");
  bind_of_two(linalg, "solve", xp::linalg::solve);
  def_of_one(linalg, "inv", xp::linalg::inv), def_of_one(linalg, "det", xp::linalg::det);
  def_of_one(linalg, "svdvals", xp::linalg::svdvals);
  def_of_one(linalg, "eigvals", xp::linalg::eigvals);
  linalg.def(
      "cholesky",
      [](nb::handle x, bool upper) {
        Array a = array_of(x);
        return unlocked([&] { return xp::linalg::cholesky(a, upper); });
      },
      nb::arg("a"), nb::kw_only(), nb::arg("upper") = false);
  linalg.def(
      "qr",
      [](nb::handle x, const std::string& mode) -> nb::object {
        Array a = array_of(x);
        auto [q, r] = unlocked([&] { return xp::linalg::qr(a, mode); });
        if (!q.defined()) return nb::cast(r);
        return nb::make_tuple(q, r);
      },
      nb::arg("a"), nb::arg("mode") = "reduced");
  linalg.def(
      "svd",
      [](nb::handle x, bool full_matrices, bool compute_uv, bool hermitian) -> nb::object {
        Array a = array_of(x);
        xp::linalg::SVDOptions options{
            .full_matrices = full_matrices, .compute_uv = compute_uv, .hermitian = hermitian};
        auto [u, s, vh] = unlocked([&] { return xp::linalg::svd(a, options); });
        if (!compute_uv) return nb::cast(s);
        return nb::make_tuple(u, s, vh);
      },
      nb::arg("a"), nb::arg("full_matrices") = true, nb::arg("compute_uv") = true,
      nb::arg("hermitian") = false);
  linalg.def(
      "eig",
      [](nb::handle x) {
        Array a = array_of(x);
        auto [values, vectors] = unlocked([&] { return xp::linalg::eig(a); });
        return nb::make_tuple(values, vectors);
      },
      nb::arg("a"));
  bind_equations(linalg);
  bind_eigenvalues(linalg);
}

}  // namespace rensa::python
