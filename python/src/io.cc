// rensa.xp's files: plain bytes and text.
#include "rensa/array/io.h"

#include <sstream>

#include "rensa/array/functional.h"
#include "routines.h"

namespace rensa::python {

namespace {

std::string path_of(nb::handle file) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(file));
}

/// What is left of a file object, or nothing for a path.
std::optional<std::string> rest_of(nb::handle file) {
  if (!nb::hasattr(file, "read")) return {};
  nb::object read = file.attr("read")();
  if (PyUnicode_Check(read.ptr())) return nb::cast<std::string>(read);
  nb::bytes bytes(read);
  return std::string(bytes.c_str(), bytes.size());
}

std::string text_of(nb::handle file) {
  if (auto rest = rest_of(file)) return *rest;
  nb::object opened = nb::module_::import_("builtins").attr("open")(file);
  auto text = nb::cast<std::string>(opened.attr("read")());
  opened.attr("close")();
  return text;
}

void bind_bytes(nb::module_& m) {
  m.def(
      "fromfile",
      [](nb::handle file, nb::handle dtype, std::int64_t count, std::int64_t offset,
         nb::handle device) {
        Dtype of = optional_dtype(dtype).value_or(float64);
        Placement where = placement_of(device);
        if (auto rest = rest_of(file)) {
          std::string_view bytes(*rest);
          bytes.remove_suffix(bytes.size() % static_cast<std::size_t>(itemsize(of)));
          return xp::frombuffer(bytes, of, count, offset, where);
        }
        std::string path = path_of(file);
        return unlocked([&] { return xp::fromfile(path, of, count, offset, where); });
      },
      nb::arg("file"), nb::arg("dtype") = nb::none(), nb::arg("count") = -1, nb::kw_only(),
      nb::arg("offset") = 0, nb::arg("device") = nb::none());
  m.def(
      "fromiter",
      [](nb::handle iterable, nb::handle dtype, std::int64_t count, nb::handle device) {
        nb::list values;
        for (nb::handle value : iterable) {
          if (count >= 0 && static_cast<std::int64_t>(nb::len(values)) == count) break;
          values.append(value);
        }
        xp::detail::check_iter_count(static_cast<std::int64_t>(nb::len(values)), count);
        return array_of(values, dtype_of_object(dtype), placement_of(device));
      },
      nb::arg("iter"), nb::arg("dtype"), nb::arg("count") = -1, nb::kw_only(),
      nb::arg("device") = nb::none());
}

void bind_text(nb::module_& m) {
  m.def(
      "loadtxt",
      [](nb::handle file, nb::handle dtype, std::optional<std::string> comments,
         std::optional<std::string> delimiter, std::int64_t skiprows, nb::handle usecols,
         bool unpack, int ndmin, nb::handle max_rows, nb::handle device) {
        xp::LoadtxtOptions options;
        options.dtype = optional_dtype(dtype).value_or(float64);
        options.comments = comments.value_or(""), options.delimiter = delimiter.value_or("");
        options.skiprows = skiprows, options.unpack = unpack, options.ndmin = ndmin;
        if (!usecols.is_none()) options.usecols = integers_of(usecols).values();
        if (!max_rows.is_none()) options.max_rows = nb::cast<std::int64_t>(max_rows);
        options.device = placement_of(device);
        std::istringstream stream(text_of(file));
        return unlocked([&] { return xp::loadtxt(stream, options); });
      },
      nb::arg("fname"), nb::arg("dtype") = nb::none(), nb::arg("comments").none() = "#",
      nb::arg("delimiter") = nb::none(), nb::arg("skiprows") = 0, nb::arg("usecols") = nb::none(),
      nb::arg("unpack") = false, nb::arg("ndmin") = 0, nb::arg("max_rows") = nb::none(),
      nb::kw_only(), nb::arg("device") = nb::none());
}

// --- functions of Python's ---

void bind_functional(nb::module_& m) {
  m.def(
      "fromfunction",
      [](nb::handle function, nb::handle shape, nb::handle dtype, nb::handle device,
         const nb::kwargs& keywords) {
        auto call = [&](const std::vector<Array>& coordinates) {
          return array_of(function(*tuple_of(coordinates), **keywords));
        };
        return xp::fromfunction(
            call, shape_of_object(shape),
            {.dtype = optional_dtype(dtype).value_or(float64), .device = placement_of(device)});
      },
      nb::arg("function"), nb::arg("shape"), nb::kw_only(), nb::arg("dtype") = nb::none(),
      nb::arg("device") = nb::none(), nb::arg("kwargs"));
  m.def(
      "apply_along_axis",
      [](nb::handle function, int axis, nb::handle arr, const nb::args& args,
         const nb::kwargs& keywords) {
        auto call = [&](const Array& slice) {
          return array_of(function(slice, *args, **keywords), {}, slice.device());
        };
        return xp::apply_along_axis(call, axis, array_of(arr));
      },
      nb::arg("func1d"), nb::arg("axis"), nb::arg("arr"), nb::arg("args"), nb::arg("kwargs"));
  m.def(
      "apply_over_axes",
      [](nb::handle function, nb::handle a, nb::handle axes) {
        auto call = [&](const Array& x, int axis) { return array_of(function(x, axis)); };
        return xp::apply_over_axes(call, array_of(a), AxisList(shape_of_object(axes)));
      },
      nb::arg("func"), nb::arg("a"), nb::arg("axes"));
}

}  // namespace

void bind_io(nb::module_& m) {
  bind_bytes(m);
  bind_text(m);
  bind_functional(m);
}

}  // namespace rensa::python
