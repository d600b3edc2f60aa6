// The routines that index: compositions of gathers, scatters and the search for what is not zero.
#include "rensa/array/indexing_routines.h"

#include <fmt/format.h>

#include "rensa/array/along_axis.h"
#include "rensa/array/indexing.h"
#include "rensa/array/internal.h"
#include "rensa/core/error.h"

namespace rensa::xp {

using rensa::detail::along_one_axis;
using rensa::detail::apply_along_axis;
using rensa::detail::apply_take;
using rensa::detail::check_defined;
using rensa::detail::IndexedElements;

namespace {

using operations::ScatterMode;

void check_size(const char* operation, const Array& a, const Array& mask) {
  check_defined(operation, a);
  check_defined(operation, mask);
  check_same_device(operation, a, mask);
  if (a.size() == mask.size()) return;
  throw ValueError(fmt::format("{}: the mask {} is not of the size of {}", operation,
                               mask.view().describe(), a.view().describe()));
}

// `count` of the flattened values, from the first on again where there are fewer.
Array repeated(const char* operation, const Array& values, std::int64_t count) {
  Array flat = values.reshape({values.size()});
  if (flat.size() >= count) return flat[Slice(count)];
  if (flat.size() == 1) return flat.broadcast_to({count});
  Array positions = arange(count, int64, values.device());
  return rensa::detail::gather(operation,
                               apply_take(operation, flat, positions, 0, IndexMode::wrap));
}

Array taken(const char* operation, const Array& a, const Array& indices, int axis, IndexMode mode) {
  IndexedElements elements = apply_take(operation, a, indices, axis, mode);
  // Of no blocks nothing is taken, wherever the indices lead.
  for (int i = 0; i < elements.position; ++i) {
    if (a.shape()[i] != 0) continue;
    return rensa::detail::new_array(elements.result_shape(), a.dtype(), a.device());
  }
  return rensa::detail::gather(operation, elements);
}

// Writes into the flattened array.
void put_flat(const char* operation, const Array& a, const Array& indices, const Array& values,
              IndexMode mode, bool distinct) {
  rensa::detail::check_writable(operation, a);
  rensa::detail::check_same_kind(operation, values.dtype(), a);
  Array flat = a.reshape({a.size()});  // a copy where strides do not allow a view
  IndexedElements elements = apply_take(operation, flat, indices.ravel(), 0, mode);
  elements.distinct = distinct;
  rensa::detail::scatter(operation, ScatterMode::assign, elements,
                         repeated(operation, values, indices.size()));
  if (flat.storage() != a.storage()) a.assign(flat.reshape(a.shape()));
}

// The shape that all of `arrays` broadcast to.
Shape common_shape(const char* operation, Shape shape, std::span<const Array> arrays,
                   const Array& first) {
  for (const Array& a : arrays) {
    check_defined(operation, a);
    check_same_device(operation, first, a);
    shape = broadcast_shapes(operation, shape, a.shape());
  }
  return shape;
}

}  // namespace

// --- where an array is not zero ---
std::vector<Array> nonzero(const Array& a) {
  check_defined("nonzero", a);
  if (a.ndim() == 0) {
    throw ValueError("nonzero: a 0-d array has no axis to name positions along; use reshape({1})");
  }
  Array coordinates = rensa::detail::true_coordinates("nonzero", a, false);
  std::vector<Array> result;
  for (int axis = 0; axis < a.ndim(); ++axis) result.push_back(coordinates[axis]);
  return result;
}

std::vector<Array> where(const Array& condition) { return nonzero(condition); }

Array argwhere(const Array& a) {
  check_defined("argwhere", a);
  return rensa::detail::true_coordinates("argwhere", a, false, true).transpose();
}

Array flatnonzero(const Array& a) {
  check_defined("flatnonzero", a);
  return rensa::detail::true_coordinates("flatnonzero", a, true)[0];
}

Array extract(const Array& condition, const Array& a) {
  check_defined("extract", condition);
  check_defined("extract", a);
  check_same_device("extract", a, condition);
  if (condition.size() == a.size()) {
    return rensa::detail::true_elements("extract", a, condition);
  }
  Array positions = rensa::detail::true_coordinates("extract", condition, true)[0];
  return rensa::detail::gather(
      "extract", apply_take("extract", a.reshape({a.size()}), positions, 0, IndexMode::raise));
}

Array compress(const Array& condition, const Array& a, const CompressOptions& options) {
  auto [array, along] = along_one_axis("compress", a, options.axis);
  check_defined("compress", condition);
  if (condition.ndim() != 1) {
    throw ValueError(fmt::format("compress: the condition {} has other than one dimension",
                                 condition.view().describe()));
  }
  Array positions = rensa::detail::true_coordinates("compress", condition, true)[0];
  return rensa::detail::deliver(
      "compress", taken("compress", array, positions, along, IndexMode::raise), options.out);
}

void place(const Array& a, const Array& mask, const Array& values) {
  check_size("place", a, mask);
  check_defined("place", values);
  Array positions = rensa::detail::true_coordinates("place", mask, true)[0];
  if (positions.size() == 0) return;
  if (values.size() == 0) throw ValueError("place: there is no value to write where mask is true");
  put_flat("place", a, positions, values, IndexMode::raise, true);
}

// --- by integer arrays ---
Array take(const Array& a, const Array& indices, const TakeOptions& options) {
  auto [array, along] = along_one_axis("take", a, options.axis);
  return rensa::detail::deliver("take", taken("take", array, indices, along, options.mode),
                                options.out);
}

Array take_along_axis(const Array& a, const Array& indices, int axis) {
  return rensa::detail::gather("take_along_axis",
                               apply_along_axis("take_along_axis", a, indices, axis));
}

void put_along_axis(const Array& a, const Array& indices, const Array& values, int axis) {
  check_defined("put_along_axis", a);
  rensa::detail::check_writable("put_along_axis", a);
  rensa::detail::scatter("put_along_axis", ScatterMode::assign,
                         apply_along_axis("put_along_axis", a, indices, axis), values);
}

void put(const Array& a, const Array& indices, const Array& values, IndexModeOption mode) {
  check_defined("put", a);
  check_defined("put", values);
  rensa::detail::check_integer("put", indices);
  if (indices.size() == 0 || values.size() == 0) return;
  put_flat("put", a, indices, values, mode, false);
}

void putmask(const Array& a, const Array& mask, const Array& values) {
  check_size("putmask", a, mask);
  check_defined("putmask", values);
  if (a.size() == 0 || values.size() == 0) return;
  Array value = values.size() == 1 ? values.reshape({})
                                   : repeated("putmask", values, a.size()).reshape(a.shape());
  rensa::detail::elementwise("putmask", ufunc::where, {mask.reshape(a.shape()), value, a}, &a);
}

Array choose(const Array& a, std::span<const Array> choices, const ChooseOptions& options) {
  IndexMode mode = options.mode;
  if (mode == IndexMode::raise) mode = IndexMode::strict;
  check_defined("choose", a);
  if (choices.empty()) throw ValueError("choose: there is no array to choose from");
  Array indices = a.dtype() == bool_ ? a.astype(int64) : a;
  rensa::detail::check_integer("choose", indices);
  DtypeSet dtypes;
  for (const Array& choice : choices) dtypes.add(choice.dtype());
  Dtype dtype = dtypes.promoted();
  Shape shape = common_shape("choose", a.shape(), choices, a), stacked_shape = shape;
  stacked_shape.insert(0, static_cast<std::int64_t>(choices.size()));
  Array stacked = rensa::detail::new_array(stacked_shape, dtype, a.device());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    rensa::detail::copy_elements("choose", choices[i], stacked[static_cast<std::int64_t>(i)]);
  }
  IndexedElements elements;
  elements.base = stacked;
  elements.indices = {indices.broadcast_to(shape)};
  elements.axes = {0};
  elements.list_shape = shape;
  elements.along = shape.ndim();  // every one of the list's axes is the choices' own
  elements.mode = mode;
  return rensa::detail::deliver("choose", rensa::detail::gather("choose", elements), options.out);
}

Array choose(const Array& a, std::initializer_list<Array> choices, const ChooseOptions& options) {
  return choose(a, std::span<const Array>(choices.begin(), choices.size()), options);
}

Array select(std::span<const Array> conditions, std::span<const Array> choices, Scalar otherwise) {
  if (conditions.size() != choices.size() || conditions.empty()) {
    throw ValueError(
        fmt::format("select: {} conditions and {} choices; there has to be one of "
                    "each, and as many of both",
                    conditions.size(), choices.size()));
  }
  for (const Array& condition : conditions) {
    check_defined("select", condition);
    if (condition.dtype() == bool_) continue;
    throw DtypeError(
        fmt::format("select: the condition {} is not of dtype bool", condition.view().describe()));
  }
  DtypeSet dtypes;
  for (const Array& choice : choices) {
    check_defined("select", choice);
    dtypes.add(choice.dtype());
  }
  Dtype dtype = otherwise.result_type(dtypes.promoted());
  rensa::detail::check_in_range("select", otherwise, dtype);
  Array result;
  for (std::size_t i = choices.size(); i-- > 0;) {
    Array choice = choices[i].astype(dtype, false);
    result = result.defined()
                 ? rensa::detail::elementwise("select", ufunc::where,
                                              {conditions[i], choice, result}, nullptr)
                 : rensa::detail::elementwise("select", ufunc::where,
                                              {conditions[i], choice, otherwise}, nullptr);
  }
  return result;
}

Array select(std::initializer_list<Array> conditions, std::initializer_list<Array> choices,
             Scalar otherwise) {
  return select(std::span<const Array>(conditions.begin(), conditions.size()),
                std::span<const Array>(choices.begin(), choices.size()), otherwise);
}

// --- scatters ---
namespace {

void combine(const char* operation, ScatterMode mode, const Array& a, std::span<const Index> index,
             const Array& values) {
  check_defined(operation, a);
  if (mode != ScatterMode::add && dtype_kind(a.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("{}: {} has no order; it is complex", operation, a.view().describe()));
  }
  rensa::detail::scatter(operation, mode, rensa::detail::apply_index(operation, a, index), values);
}

void combine(const char* operation, ScatterMode mode, const Array& a, std::span<const Index> index,
             Scalar value) {
  check_defined(operation, a);
  combine(operation, mode, a, index, rensa::detail::filled_scalar(value, a.dtype(), a.device()));
}

std::span<const Index> span_of(std::initializer_list<Index> index) {
  return {index.begin(), index.size()};
}

}  // namespace

#define RENSA_SCATTER(name, mode)                                                      \
  void name(const Array& a, const Array& index, const Array& values) {                 \
    combine(#name, ScatterMode::mode, a, span_of({index}), values);                    \
  }                                                                                    \
  void name(const Array& a, const Array& index, Scalar value) {                        \
    combine(#name, ScatterMode::mode, a, span_of({index}), value);                     \
  }                                                                                    \
  void name(const Array& a, std::initializer_list<Index> index, const Array& values) { \
    combine(#name, ScatterMode::mode, a, span_of(index), values);                      \
  }                                                                                    \
  void name(const Array& a, std::initializer_list<Index> index, Scalar value) {        \
    combine(#name, ScatterMode::mode, a, span_of(index), value);                       \
  }
RENSA_SCATTER(scatter_add, add)
RENSA_SCATTER(scatter_max, max)
RENSA_SCATTER(scatter_min, min)
#undef RENSA_SCATTER

}  // namespace rensa::xp
