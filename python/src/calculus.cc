// rensa.xp's differences, integrals, signals and histograms.
#include "routines.h"

namespace rensa::python {

namespace {

Array difference(nb::handle x, int n, int axis, nb::handle prepend, nb::handle append) {
  Array a = array_of(x);
  Array before = prepend.is_none() ? Array() : array_beside(prepend, a);
  Array behind = append.is_none() ? Array() : array_beside(append, a);
  return unlocked([&] { return xp::diff(a, n, axis, before, behind); });
}

std::vector<xp::GradientSpacing> spacing_of(const nb::args& varargs) {
  std::vector<xp::GradientSpacing> spacing;
  for (nb::handle one : varargs) {
    if (auto number = scalar_of(one)) {
      spacing.emplace_back(number->as<double>());
      continue;
    }
    Array a = array_of(one);
    if (a.ndim() == 0) spacing.emplace_back(a.item_scalar().as<double>());
    else spacing.emplace_back(a);
  }
  return spacing;
}

AxisList axis_list_of(nb::handle object) {
  return object.is_none() ? AxisList() : AxisList(shape_of_object(object));
}

void bind_differences(nb::module_& m) {
  m.def("diff", &difference, nb::arg("a"), nb::arg("n") = 1, nb::arg("axis") = -1,
        nb::arg("prepend") = nb::none(), nb::arg("append") = nb::none());
  m.def(
      "ediff1d",
      [](nb::handle x, nb::handle to_end, nb::handle to_begin) {
        Array a = array_of(x), behind = array_or_none(to_end), before = array_or_none(to_begin);
        return unlocked([&] { return xp::ediff1d(a, behind, before); });
      },
      nb::arg("arr"), nb::arg("to_end") = nb::none(), nb::arg("to_begin") = nb::none());
  m.def(
      "gradient",
      [](nb::handle f, const nb::args& varargs, nb::handle axis, int edge_order) -> nb::object {
        Array a = array_of(f);
        std::vector<xp::GradientSpacing> spacing = spacing_of(varargs);
        xp::GradientOptions options{.axis = axis_list_of(axis), .edge_order = edge_order};
        auto parts = unlocked([&] { return xp::gradient(a, spacing, options); });
        if (parts.size() == 1) return nb::cast(parts[0]);
        return list_of(parts);
      },
      nb::arg("f"), nb::arg("varargs"), nb::kw_only(), nb::arg("axis") = nb::none(),
      nb::arg("edge_order") = 1);
  m.def(
      "trapezoid",
      [](nb::handle y, nb::handle x, double dx, int axis) {
        Array values = array_of(y), at = array_or_none(x);
        if (at.defined()) return unlocked([&] { return xp::trapezoid(values, at, axis); });
        return unlocked([&] { return xp::trapezoid(values, dx, axis); });
      },
      nb::arg("y"), nb::arg("x") = nb::none(), nb::arg("dx") = 1.0, nb::arg("axis") = -1);
  m.def(
      "cross",
      [](nb::handle x, nb::handle y, int axisa, int axisb, int axisc, std::optional<int> axis) {
        Array a = array_of(x), b = array_of(y);
        xp::CrossOptions options{.axisa = axisa, .axisb = axisb, .axisc = axisc, .axis = axis};
        return unlocked([&] { return xp::cross(a, b, options); });
      },
      nb::arg("a"), nb::arg("b"), nb::arg("axisa") = -1, nb::arg("axisb") = -1,
      nb::arg("axisc") = -1, nb::arg("axis") = nb::none());
}

// --- signals ---

void bind_signals(nb::module_& m) {
  auto sliding = [&m](const char* name,
                      Array (*routine)(const Array&, const Array&, std::string_view),
                      const char* usual) {
    m.def(
        name,
        [routine](nb::handle x, nb::handle v, const std::string& mode) {
          Array a = array_of(x), b = array_of(v);
          return unlocked([&] { return routine(a, b, mode).ascontiguous(); });
        },
        nb::arg("a"), nb::arg("v"), nb::arg("mode") = usual);
  };
  sliding("convolve", xp::convolve, "full"), sliding("correlate", xp::correlate, "valid");
  m.def(
      "interp",
      [](nb::handle x, nb::handle xs, nb::handle fs, nb::handle left, nb::handle right,
         std::optional<double> period) {
        Array at = array_of(x), from = array_of(xs), to = array_of(fs);
        auto end = [](nb::handle value) -> std::optional<Scalar> {
          if (value.is_none()) return {};
          auto number = scalar_of(value);
          return number ? *number : array_of(value).item_scalar();
        };
        xp::InterpOptions options{.left = end(left), .right = end(right), .period = period};
        return unlocked([&] { return xp::interp(at, from, to, options); });
      },
      nb::arg("x"), nb::arg("xp"), nb::arg("fp"), nb::arg("left") = nb::none(),
      nb::arg("right") = nb::none(), nb::arg("period") = nb::none());
  auto window = [&m](const char* name, Array (*make)(std::int64_t, Placement)) {
    m.def(
        name,
        [make](std::int64_t n, nb::handle device) {
          Placement where = placement_of(device);
          return unlocked([&] { return make(n, where); });
        },
        nb::arg("M"), nb::kw_only(), nb::arg("device") = nb::none());
  };
  window("bartlett", xp::bartlett), window("blackman", xp::blackman);
  window("hamming", xp::hamming), window("hanning", xp::hanning);
  m.def(
      "kaiser",
      [](std::int64_t n, double beta, nb::handle device) {
        Placement where = placement_of(device);
        return unlocked([&] { return xp::kaiser(n, beta, where); });
      },
      nb::arg("M"), nb::arg("beta"), nb::kw_only(), nb::arg("device") = nb::none());
}

// --- histograms ---

/// None, or (least, greatest).
xp::HistogramRange range_of(nb::handle object) {
  if (object.is_none()) return {};
  auto end = [](nb::handle value) {
    auto number = scalar_of(value);
    return (number ? *number : array_of(value).item_scalar()).as<double>();
  };
  return std::pair(end(object[0]), end(object[1]));
}

nb::object histogram(nb::handle x, nb::handle bins, nb::handle range, nb::handle weights,
                     bool density) {
  Array a = array_of(x);
  OptionalArray of(weights);
  xp::HistogramOptions options{
      .range = range_of(range), .weights = of.option(), .density = density};
  if (is_integer(bins)) {
    auto n = nb::cast<std::int64_t>(bins);
    auto made = unlocked([&] { return xp::histogram(a, n, options); });
    return nb::make_tuple(made.hist, made.bin_edges);
  }
  Array edges = array_of(bins);
  auto made = unlocked([&] { return xp::histogram(a, edges, options); });
  return nb::make_tuple(made.hist, made.bin_edges);
}

std::vector<xp::HistogramRange> ranges_of(nb::handle object) {
  std::vector<xp::HistogramRange> ranges;
  if (object.is_none()) return ranges;
  for (nb::handle one : nb::borrow<nb::sequence>(object)) ranges.push_back(range_of(one));
  return ranges;
}

/// Bins of several coordinates: a number for all, numbers, or edges.
xp::HistogramDdResult histogram_dd(const Array& sample, nb::handle bins, std::int64_t coordinates,
                                   const xp::HistogramDdOptions& options) {
  if (is_integer(bins)) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(coordinates),
                                     nb::cast<std::int64_t>(bins));
    return unlocked([&] { return xp::histogramdd(sample, counts, options); });
  }
  bool numbers = true;
  for (nb::handle one : nb::borrow<nb::sequence>(bins)) numbers = numbers && is_integer(one);
  if (numbers) {
    std::vector<std::int64_t> counts = integers_of(bins).values();
    return unlocked([&] { return xp::histogramdd(sample, counts, options); });
  }
  std::vector<Array> edges = arrays_of(bins);
  return unlocked([&] { return xp::histogramdd(sample, edges, options); });
}

/// (n, d): an array, or a sequence of the coordinates.
Array sample_of(nb::handle object) {
  if (nb::isinstance<Array>(object) || PyObject_CheckBuffer(object.ptr())) {
    Array a = array_of(object);
    return a.ndim() == 1 ? a.expand_dims(1) : a;
  }
  return array_of(object).transpose();
}

}  // namespace

void bind_calculus(nb::module_& m) {
  bind_differences(m);
  bind_signals(m);
}

void bind_histograms(nb::module_& m) {
  m.def("histogram", &histogram, nb::arg("x"), nb::arg("bins") = 10, nb::arg("range") = nb::none(),
        nb::arg("weights") = nb::none(), nb::arg("density") = false);
  m.def(
      "histogram_bin_edges",
      [](nb::handle x, nb::handle bins, nb::handle range) {
        if (!is_integer(bins)) return array_of(bins);
        Array a = array_of(x);
        auto n = nb::cast<std::int64_t>(bins);
        xp::HistogramRange of = range_of(range);
        return unlocked([&] { return xp::histogram_bin_edges(a, n, of); });
      },
      nb::arg("a"), nb::arg("bins") = 10, nb::arg("range") = nb::none());
  m.def(
      "histogramdd",
      [](nb::handle sample, nb::handle bins, nb::handle range, nb::handle weights, bool density) {
        Array points = sample_of(sample);
        if (!range.is_none()) points = points.astype(float64, false);  // as the edges then are
        OptionalArray of(weights);
        xp::HistogramDdOptions options{
            .range = ranges_of(range), .weights = of.option(), .density = density};
        auto made = histogram_dd(points, bins, points.ndim() == 2 ? points.shape(1) : 1, options);
        return nb::make_tuple(made.hist, list_of(made.edges));
      },
      nb::arg("sample"), nb::arg("bins") = 10, nb::arg("range") = nb::none(),
      nb::arg("weights") = nb::none(), nb::arg("density") = false);
  m.def(
      "histogram2d",
      [](nb::handle x, nb::handle y, nb::handle bins, nb::handle range, nb::handle weights,
         bool density) {
        std::vector<Array> coordinates{array_of(x), array_of(y)};
        OptionalArray of(weights);
        xp::HistogramDdOptions options{
            .range = ranges_of(range), .weights = of.option(), .density = density};
        Array points = unlocked([&] { return xp::stack(coordinates, 1); });
        if (!range.is_none()) points = points.astype(float64, false);
        nb::object each = nb::borrow(bins);
        bool edges = nb::isinstance<Array>(bins) || PyObject_CheckBuffer(bins.ptr());
        if (edges && !is_integer(bins)) each = nb::make_tuple(bins, bins);
        auto made = histogram_dd(points, each, 2, options);
        return nb::make_tuple(made.hist, made.edges[0], made.edges[1]);
      },
      nb::arg("x"), nb::arg("y"), nb::arg("bins") = 10, nb::arg("range") = nb::none(),
      nb::arg("weights") = nb::none(), nb::arg("density") = false);
}

}  // namespace rensa::python
