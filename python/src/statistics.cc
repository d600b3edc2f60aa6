// rensa.xp's statistics, counts and sets.
#include <string>

#include "routines.h"

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
        return stored(place, unlocked([&] { return reduce(a, options); }));
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("out") = nb::none(), nb::arg("keepdims") = false);
}

void bind_extreme(nb::module_& m, const char* name, Reduction reduce) {
  m.def(
      name,
      [reduce](nb::handle x, nb::handle axis, nb::handle out, bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::ReduceOptions options{
            .axis = axes_of(axis), .keepdims = keepdims, .out = place.option()};
        return stored(place, unlocked([&] { return reduce(a, options); }));
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("keepdims") = false);
}

using OfAxes = Array (*)(const Array&, const xp::AxisOptions&);

/// A median, whose `overwrite_input` is a promise that nothing is made of.
void bind_median(nb::module_& m, const char* name, OfAxes routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle axis, nb::handle out, bool, bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims, .out = place.option()};
        return stored(place, unlocked([&] { return routine(a, options); }));
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("overwrite_input") = false, nb::arg("keepdims") = false);
}

void bind_position(nb::module_& m, const char* name, OfAxes routine) {
  m.def(
      name,
      [routine](nb::handle x, nb::handle axis, nb::handle out, bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims, .out = place.option()};
        return stored(place, unlocked([&] { return routine(a, options); }));
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("keepdims") = false);
}

using Spread = Array (*)(const Array&, const xp::VarianceOptions&);

void bind_spread(nb::module_& m, const char* name, Spread spread) {
  m.def(
      name,
      [spread](nb::handle x, nb::handle axis, nb::handle dtype, nb::handle out, double ddof,
               bool keepdims) {
        Array a = array_of(x);
        OptionalArray place(out);
        xp::VarianceOptions options{.axis = axes_of(axis),
                                    .ddof = ddof,
                                    .keepdims = keepdims,
                                    .dtype = optional_dtype(dtype),
                                    .out = place.option()};
        return stored(place, unlocked([&] { return spread(a, options); }));
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("dtype") = nb::none(),
      nb::arg("out") = nb::none(), nb::arg("ddof") = 0.0, nb::arg("keepdims") = false);
}

using Quantile = Array (*)(const Array&, const xp::Shares&, const xp::QuantileOptions&);

void bind_quantile(nb::module_& m, const char* name, Quantile quantile) {
  m.def(
      name,
      [quantile](nb::handle x, nb::handle q, nb::handle axis, nb::handle out, bool,
                 const std::string& method, bool keepdims, nb::handle weights) {
        Array a = array_of(x);
        OptionalArray place(out), of(weights);
        xp::QuantileOptions options{.axis = axes_of(axis),
                                    .method = method,
                                    .keepdims = keepdims,
                                    .weights = of.option(),
                                    .out = place.option()};
        if (PyFloat_Check(q.ptr()) || PyLong_Check(q.ptr())) {
          double share = nb::cast<double>(q);
          return stored(place, unlocked([&] { return quantile(a, share, options); }));
        }
        if (PyList_Check(q.ptr()) || PyTuple_Check(q.ptr())) {
          std::vector<double> several;
          for (nb::handle one : nb::borrow<nb::sequence>(q))
            several.push_back(nb::cast<double>(one));
          return stored(place, unlocked([&] { return quantile(a, several, options); }));
        }
        Array shares = array_of(q);
        return stored(place, unlocked([&] { return quantile(a, shares, options); }));
      },
      nb::arg("a"), nb::arg("q"), nb::arg("axis") = nb::none(), nb::arg("out") = nb::none(),
      nb::arg("overwrite_input") = false, nb::arg("method") = "linear", nb::arg("keepdims") = false,
      nb::arg("weights") = nb::none());
}

void bind_correlation(nb::module_& m) {
  m.def(
      "cov",
      [](nb::handle of, nb::handle y, bool rowvar, bool bias, std::optional<int> ddof,
         nb::handle fweights, nb::handle aweights, nb::handle dtype) {
        Array a = array_of(of), b = array_or_none(y);
        OptionalArray times(fweights), weights(aweights);
        xp::CovOptions options{.rowvar = rowvar,
                               .bias = bias,
                               .ddof = ddof,
                               .fweights = times.option(),
                               .aweights = weights.option(),
                               .dtype = optional_dtype(dtype)};
        return unlocked([&] { return xp::cov(a, b, options); });
      },
      nb::arg("a"), nb::arg("y") = nb::none(), nb::arg("rowvar") = true, nb::arg("bias") = false,
      nb::arg("ddof") = nb::none(), nb::arg("fweights") = nb::none(),
      nb::arg("aweights") = nb::none(), nb::kw_only(), nb::arg("dtype") = nb::none());
  m.def(
      "corrcoef",
      [](nb::handle x, nb::handle y, bool rowvar, nb::handle dtype) {
        Array a = array_of(x), b = array_or_none(y);
        xp::CorrcoefOptions options{.rowvar = rowvar, .dtype = optional_dtype(dtype)};
        return unlocked([&] { return xp::corrcoef(a, b, options); });
      },
      nb::arg("a"), nb::arg("y") = nb::none(), nb::arg("rowvar") = true, nb::kw_only(),
      nb::arg("dtype") = nb::none());
}

nb::object unique(nb::handle x, bool index, bool inverse, bool counts, nb::handle axis,
                  bool equal_nan) {
  Array a = array_of(x);
  xp::UniqueOptions options{.return_index = index,
                            .return_inverse = inverse,
                            .return_counts = counts,
                            .equal_nan = equal_nan};
  if (!axis.is_none()) options.axis = nb::cast<int>(axis);
  xp::UniqueResult found = unlocked([&] { return xp::unique(a, options); });
  if (!index && !inverse && !counts) return nb::cast(found.values);
  std::vector<Array> all{found.values};
  if (index) all.push_back(found.indices);
  if (inverse) all.push_back(found.inverse);
  if (counts) all.push_back(found.counts);
  return tuple_of(all);
}

void bind_counts(nb::module_& m) {
  m.def(
      "bincount",
      [](nb::handle x, nb::handle weights, std::int64_t minlength) {
        Array a = array_of(x), of = weights.is_none() ? Array() : array_of(weights);
        return unlocked([&] { return xp::bincount(a, of, minlength); });
      },
      nb::arg("x"), nb::arg("weights") = nb::none(), nb::arg("minlength") = 0);
  m.def("unique", &unique, nb::arg("ar"), nb::arg("return_index") = false,
        nb::arg("return_inverse") = false, nb::arg("return_counts") = false,
        nb::arg("axis") = nb::none(), nb::kw_only(), nb::arg("equal_nan") = true);
  m.def(
      "isclose",
      [](nb::handle x, nb::handle y, double rtol, double atol, bool equal_nan) {
        Array a = array_of(x), b = array_of(y);
        return unlocked([&] { return xp::isclose(a, b, rtol, atol, equal_nan); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("rtol") = 1e-5, nb::arg("atol") = 1e-8,
      nb::arg("equal_nan") = false);
}

void bind_bounds(nb::module_& m) {
  auto search = [](const Array& a, nb::handle values, const std::string& side, nb::handle sorter) {
    Array of = array_beside(values, a), order = array_or_none(sorter);
    return unlocked([&] { return xp::searchsorted(a, of, side, order); });
  };
  def_method(m, "searchsorted", search, nb::arg("v"), nb::arg("side") = "left",
             nb::arg("sorter") = nb::none());
  m.def(
      "searchsorted",
      [search](nb::handle x, nb::handle values, const std::string& side, nb::handle sorter) {
        return search(array_of(x), values, side, sorter);
      },
      nb::arg("a"), nb::arg("v"), nb::arg("side") = "left", nb::arg("sorter") = nb::none());
  auto clip = [](nb::handle x, nb::handle least, nb::handle most, nb::handle out) {
    Array a = array_of(x);
    OptionalArray place(out);
    std::optional<Array> low, high;
    auto bound = [&](nb::handle object, std::optional<Array>& array) -> Bound {
      if (object.is_none()) return none;
      if (auto number = scalar_of(object)) return *number;
      return array.emplace(array_beside(object, a));
    };
    Bound from = bound(least, low), to = bound(most, high);
    xp::UfuncOptions options{.out = place.option()};
    return stored(place, unlocked([&] { return a.clip(from, to, options); }));
  };
  def_method(m, "clip", clip, nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
             nb::arg("out") = nb::none());
  m.def("clip", clip, nb::arg("a"), nb::arg("min") = nb::none(), nb::arg("max") = nb::none(),
        nb::arg("out") = nb::none());
}

}  // namespace

void bind_statistics(nb::module_& m) {
  bind_reduction(m, "nansum", xp::nansum), bind_reduction(m, "nanprod", xp::nanprod);
  bind_reduction(m, "nanmean", xp::nanmean);
  bind_extreme(m, "nanmax", xp::nanmax), bind_extreme(m, "nanmin", xp::nanmin);
  bind_median(m, "median", xp::median), bind_median(m, "nanmedian", xp::nanmedian);
  bind_position(m, "nanargmax", xp::nanargmax), bind_position(m, "nanargmin", xp::nanargmin);
  bind_spread(m, "nanvar", xp::nanvar), bind_spread(m, "nanstd", xp::nanstd);
  bind_quantile(m, "quantile", xp::quantile), bind_quantile(m, "percentile", xp::percentile);
  bind_quantile(m, "nanquantile", xp::nanquantile);
  bind_quantile(m, "nanpercentile", xp::nanpercentile);
  m.def(
      "count_nonzero",
      [](nb::handle x, nb::handle axis, bool keepdims) {
        Array a = array_of(x);
        xp::AxisOptions options{.axis = axes_of(axis), .keepdims = keepdims};
        return unlocked([&] { return xp::count_nonzero(a, options); });
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::kw_only(), nb::arg("keepdims") = false);
  m.def(
      "average",
      [](nb::handle x, nb::handle axis, nb::handle weights, bool returned,
         bool keepdims) -> nb::object {
        Array a = array_of(x);
        OptionalArray of(weights);
        xp::AverageOptions options{
            .axis = axes_of(axis), .weights = of.option(), .keepdims = keepdims};
        if (!returned) return nb::cast(unlocked([&] { return xp::average(a, options); }));
        auto [mean, sum] = unlocked([&] { return xp::average_returned(a, options); });
        return nb::make_tuple(mean, sum);
      },
      nb::arg("a"), nb::arg("axis") = nb::none(), nb::arg("weights") = nb::none(),
      nb::arg("returned") = false, nb::kw_only(), nb::arg("keepdims") = false);
  bind_correlation(m);
  bind_counts(m);
  bind_bounds(m);
}

}  // namespace rensa::python
