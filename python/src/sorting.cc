// rensa.xp's orders, searches and sets.
#include "routines.h"

namespace rensa::python {

namespace {

void bind_sorts(nb::module_& m) {
  def_both(
      m, "argsort",
      [](nb::handle x, nb::handle axis, nb::handle, bool descending, bool stable) {
        Array a = array_of(x);
        xp::SortOptions options{.axis = axes_of(axis), .descending = descending, .stable = stable};
        return unlocked([&] { return xp::argsort(a, options); });
      },
      nb::arg("axis").none() = -1, nb::arg("kind") = nb::none(), nb::kw_only(),
      nb::arg("descending") = false, nb::arg("stable") = true);
  m.def(
      "sort",
      [](nb::handle x, nb::handle axis, nb::handle, bool descending, bool stable) {
        Array a = array_of(x);
        xp::SortOptions options{.axis = axes_of(axis), .descending = descending, .stable = stable};
        return unlocked([&] { return xp::sort(a, options); });
      },
      nb::arg("a"), nb::arg("axis").none() = -1, nb::arg("kind") = nb::none(), nb::kw_only(),
      nb::arg("descending") = false, nb::arg("stable") = true, "Every sort is stable.");
  def_method(
      m, "sort",
      [](const Array& a, int axis, nb::handle, bool descending, bool stable) {
        xp::SortOptions options{.axis = axis, .descending = descending, .stable = stable};
        unlocked([&] { a.sort(options); });
      },
      nb::arg("axis") = -1, nb::arg("kind") = nb::none(), nb::kw_only(),
      nb::arg("descending") = false, nb::arg("stable") = true,
      "Sorts the elements where they stand.");
}

void bind_orders(nb::module_& m) {
  m.def(
      "lexsort",
      [](nb::handle keys, int axis) {
        if (nb::isinstance<Array>(keys)) {
          Array rows = array_of(keys);
          return unlocked([&] { return xp::lexsort(rows, axis); });
        }
        std::vector<Array> all = arrays_of(keys);
        return unlocked([&] { return xp::lexsort(all, axis); });
      },
      nb::arg("keys"), nb::arg("axis") = -1);
  def_of_one(m, "msort", xp::msort), def_of_one(m, "sort_complex", xp::sort_complex);
  m.def(
      "partition",
      [](nb::handle x, nb::handle kth, nb::handle axis) {
        Array a = array_of(x);
        IntegerList at = integers_of(kth);
        Axes along = axes_of(axis);
        return unlocked([&] { return xp::partition(a, at, along); });
      },
      nb::arg("a"), nb::arg("kth"), nb::arg("axis").none() = -1);
  def_both(
      m, "argpartition",
      [](nb::handle x, nb::handle kth, nb::handle axis) {
        Array a = array_of(x);
        IntegerList at = integers_of(kth);
        Axes along = axes_of(axis);
        return unlocked([&] { return xp::argpartition(a, at, along); });
      },
      nb::arg("kth"), nb::arg("axis").none() = -1);
  def_method(
      m, "partition",
      [](const Array& a, nb::handle kth, int axis) {
        IntegerList at = integers_of(kth);
        unlocked([&] { a.partition(at, axis); });
      },
      nb::arg("kth"), nb::arg("axis") = -1);
  m.def(
      "digitize",
      [](nb::handle x, nb::handle bins, bool right) {
        Array a = array_of(x), edges = array_of(bins);
        return unlocked([&] { return xp::digitize(a, edges, right); });
      },
      nb::arg("x"), nb::arg("bins"), nb::arg("right") = false);
}

void bind_searches(nb::module_& m) {
  def_of_one(m, "argwhere", xp::argwhere), def_of_one(m, "flatnonzero", xp::flatnonzero);
  m.def(
      "extract",
      [](nb::handle condition, nb::handle x) {
        Array a = array_of(x), where = array_beside(condition, a);
        return unlocked([&] { return xp::extract(where, a); });
      },
      nb::arg("condition"), nb::arg("arr"));
}

using SetOfTwo = Array (*)(const Array&, const Array&, bool);

void bind_sets_of_two(nb::module_& m) {
  auto two = [&m](const char* name, SetOfTwo routine) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle y, bool assume_unique) {
          Array a = array_of(x), b = array_of(y);
          return unlocked([&] { return routine(a, b, assume_unique); });
        },
        nb::arg("ar1"), nb::arg("ar2"), nb::arg("assume_unique") = false);
  };
  two("setdiff1d", xp::setdiff1d), two("setxor1d", xp::setxor1d);
  m.def(
      "union1d",
      [](nb::handle x, nb::handle y) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::union1d(a, b); });
      },
      nb::arg("arr1"), nb::arg("arr2"));
  m.def(
      "intersect1d",
      [](nb::handle x, nb::handle y, bool assume_unique, bool return_indices) -> nb::object {
        Array a = array_of(x), b = array_of(y);
        if (!return_indices)
          return nb::cast(unlocked([&] { return xp::intersect1d(a, b, assume_unique); }));
        auto found = unlocked([&] { return xp::intersect1d_indices(a, b, assume_unique); });
        return nb::make_tuple(found.values, found.a_indices, found.b_indices);
      },
      nb::arg("arr1"), nb::arg("arr2"), nb::arg("assume_unique") = false,
      nb::arg("return_indices") = false);
  auto members = [&m](const char* name, auto routine) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle test, bool assume_unique, bool invert) {
          Array a = array_of(x), of = array_of(test);
          return unlocked([&] { return routine(a, of, assume_unique, invert); });
        },
        nb::arg("element"), nb::arg("test_elements"), nb::arg("assume_unique") = false,
        nb::arg("invert") = false);
  };
  members("isin", [](const Array& a, const Array& b, bool unique, bool invert) {
    return xp::isin(a, b, unique, invert);
  });
  members("in1d", [](const Array& a, const Array& b, bool unique, bool invert) {
    return xp::in1d(a, b, unique, invert);
  });
}

}  // namespace

void bind_sorting(nb::module_& m) {
  bind_sorts(m);
  bind_orders(m);
  bind_searches(m);
  bind_sets_of_two(m);
}

}  // namespace rensa::python
