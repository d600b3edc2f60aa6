// rensa.xp's products, and rensa.xp.linalg.
#include <string>
#include <vector>

#include "bind.h"

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
      [](nb::handle x, nb::handle y) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::outer(a, b); });
      },
      nb::arg("a"), nb::arg("b"));
  m.def("tensordot", &tensordot, nb::arg("a"), nb::arg("b"), nb::arg("axes") = 2);
  m.def(
      "einsum",
      [](const std::string& subscripts, const nb::args& operands) {
        std::vector<Array> all = arrays_of(operands);
        return unlocked([&] { return xp::einsum(subscripts, all); });
      },
      nb::arg("subscripts"), nb::arg("operands"));
  def_both(
      m, "trace",
      [](nb::handle x, std::int64_t offset, int axis1, int axis2) {
        Array a = array_of(x);
        return unlocked([&] { return xp::trace(a, offset, axis1, axis2); });
      },
      nb::arg("offset") = 0, nb::arg("axis1") = 0, nb::arg("axis2") = 1);
}

}  // namespace

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
      [](nb::handle x, bool full_matrices, bool compute_uv) -> nb::object {
        Array a = array_of(x);
        auto [u, s, vh] = unlocked([&] { return xp::linalg::svd(a, full_matrices, compute_uv); });
        if (!compute_uv) return nb::cast(s);
        return nb::make_tuple(u, s, vh);
      },
      nb::arg("a"), nb::arg("full_matrices") = true, nb::arg("compute_uv") = true);
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

}  // namespace rensa::python
