// rensa.xp's statistics, counts and sets.
#include <string>

#include "bind.h"

namespace rensa::python {

namespace {

using Reduction = Array (*)(const Array&, const xp::ReduceOptions&);

void bind_reduction(nb::module_& m, const char* name, Reduction reduce) {
  m.def(
      name,
      [reduce](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out, bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::ReduceOptions options{.axis = axes_of(axis),
                                  .keepdims = keepdims,
                                  .dtype = optional_dtype(dtype),
                                  .out = place.option()};
        return unlocked([&] { return reduce(a, options); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("out") = nb::none(), nb::arg("keepdims") = false);
}

using OfAxes = Array (*)(const Array&, const xp::AxisOptions&);

void bind_of_axes(nb::module_& m, const char* name, OfAxes routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle axis, bool keepdims) {
        Array a = array_of(x);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims};
        return unlocked([&] { return routine(a, options); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("keepdims") = false);
}

using Quantile = Array (*)(const Array&, const xp::Shares&, const xp::QuantileOptions&);

void bind_quantile(nb::module_& m, const char* name, Quantile quantile) {
  m.def(
      name,
      [quantile](nb::handle x, nb::handle q, nb::handle axis, const std::string& method,
                 bool keepdims) {
        Array a = array_of(x);
        xp::QuantileOptions options{.axis = axes_of(axis), .method = method, .keepdims = keepdims};
        if (PyFloat_Check(q.ptr()) || PyLong_Check(q.ptr())) {
          double share = nb::cast<double>(q);
          return unlocked([&] { return quantile(a, share, options); });
        }
        Array shares = array_of(q);
        return unlocked([&] { return quantile(a, shares, options); });
      },
      nb::arg("a"), nb::arg("q"), nb::arg("axis") = nb::none(), nb::kw_only(),
      nb::arg("method") = "linear", nb::arg("keepdims") = false);
}

nb::object unique(nb::handle x, bool index, bool inverse, bool counts, nb::handle axis) {
  Array a = array_of(x);
  xp::UniqueOptions options{
      .return_index = index, .return_inverse = inverse, .return_counts = counts};
  if (!axis.is_none()) options.axis = nb::cast<int>(axis);
  xp::UniqueResult found = unlocked([&] { return xp::unique(a, options); });
  if (!index && !inverse && !counts) return nb::cast(found.values);
  std::vector<Array> all{found.values};
  if (index) all.push_back(found.indices);
  if (inverse) all.push_back(found.inverse);
  if (counts) all.push_back(found.counts);
  return tuple_of(all);
}

}  // namespace

void bind_statistics(nb::module_& m) {
  bind_reduction(m, "nansum", xp::nansum), bind_reduction(m, "nanprod", xp::nanprod);
  bind_reduction(m, "nanmean", xp::nanmean);
  bind_of_axes(m, "median", xp::median), bind_of_axes(m, "count_nonzero", xp::count_nonzero);
  bind_quantile(m, "quantile", xp::quantile), bind_quantile(m, "percentile", xp::percentile);
  m.def(
      "average",
      [](nb::handle x, nb::handle axis, nb::handle weights) {
        Array a = array_of(x);
        OptionalArray of(weights);
        xp::AverageOptions options{.axis = axes_of(axis), .weights = of.option()};
        return unlocked([&] { return xp::average(a, options); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("weights") = nb::none());
  m.def(
      "bincount",
      [](nb::handle x, nb::handle weights, std::int64_t minlength) {
        Array a = array_of(x), of = weights.is_none() ? Array() : array_of(weights);
        return unlocked([&] { return xp::bincount(a, of, minlength); });
      },
      nb::arg("x"), nb::arg("weights") = nb::none(), nb::arg("minlength") = 0);
  m.def("unique", &unique, nb::arg("ar"), nb::arg("return_index") = false,
        nb::arg("return_inverse") = false, nb::arg("return_counts") = false,
        nb::arg("axis") = nb::none());
  m.def(
      "isin",
      [](nb::handle x, nb::handle test) {
        Array a = array_of(x), of = array_of(test);
        return unlocked([&] { return xp::isin(a, of); });
      },
      nb::arg("element"), nb::arg("test_elements"));
  m.def(
      "isclose",
      [](nb::handle x, nb::handle y, double rtol, double atol, bool equal_nan) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::isclose(a, b, rtol, atol, equal_nan); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false);
  m.def(
      "searchsorted",
      [](nb::handle x, nb::handle values, const std::string& side) {
        Array a = array_of(x), of = array_of(values);
        return unlocked([&] { return xp::searchsorted(a, of, side); });
      },
      nb::arg("a"), nb::arg("v"), nb::arg("side") = "left");
  m.def(
      "diff",
      [](nb::handle x, int n, int axis) {
        Array a = array_of(x);
        return unlocked([&] { return xp::diff(a, n, axis); });
      },
      nb::arg("a"), nb::arg("n") = 1, nb::arg("axis") = -1);
  def_both(
      m, "clip",
      [](nb::handle x, nb::handle least, nb::handle most) {
        Array a = array_of(x);
        std::optional<Array> low, high;
        auto bound = [](nb::handle object, std::optional<Array>& array) -> Bound {
          if (object.is_none()) return none;
          if (auto number = scalar_of(object)) return *number;
          return array.emplace(array_of(object));
        };
        Bound from = bound(least, low), to = bound(most, high);
        return unlocked([&] { return a.clip(from, to); });
      },
      nb::arg("min") = nb::none(), nb::arg("max") = nb::none());
}

}  // namespace rensa::python
