// The ufuncs' methods: reduce, accumulate, reduceat, outer and at, of whatever row of ops.def, by
// the kernels that there are for a few of them and by launches of the row itself for the others.
#include "rensa/array/ufunc.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/along_axis.h"
#include "rensa/array/histogram.h"
#include "rensa/array/indexing.h"
#include "rensa/array/internal.h"
#include "rensa/array/sorting.h"
#include "rensa/core/error.h"

namespace rensa::ufunc {
extern const UfuncInfo bitwise_and, bitwise_or, bitwise_xor, gcd, lcm, hypot, logaddexp, logaddexp2;
}

namespace rensa::xp {

using rensa::detail::check_defined;
using rensa::detail::elementwise;
using rensa::detail::new_array;
using rensa::detail::slice_along;

// --- what they tell ---
std::vector<std::string> UfuncObject::types() const {
  // NumPy's order, which its loops are searched in.
  static constexpr std::pair<Dtype, char> kLetters[] = {
      {bool_, '?'},   {int8, 'b'},    {uint8, 'B'},     {int16, 'h'},     {uint16, 'H'},
      {int32, 'i'},   {uint32, 'I'},  {int64, 'l'},     {uint64, 'L'},    {float16, 'e'},
      {float32, 'f'}, {float64, 'd'}, {complex64, 'F'}, {complex128, 'D'}};
  auto letter_of = [](Dtype dtype) {
    for (auto [d, letter] : kLetters) {
      if (d == dtype) return letter;
    }
    return '-';
  };
  DtypeRule rule = ufunc_info(row_).rule;
  std::vector<std::string> result;
  for (auto [dtype, letter] : kLetters) {
    if (!ufunc_takes(row_, dtype)) continue;
    UfuncTypes types = ufunc_types(row_, dtype);
    // isnan of integers needs no conversion; bits of bool are counted as int8's.
    bool loop = types.compute == dtype || rule == DtypeRule::predicate;
    if (!loop || (rule == DtypeRule::bit_count && dtype == bool_)) continue;
    std::string end = std::string("->") + letter_of(types.output);
    if (rule != DtypeRule::exponent) {
      result.push_back(std::string(static_cast<std::size_t>(nin()), letter) + end);
      continue;
    }
    for (char exponents : {'i', 'l'}) result.push_back(std::string{letter, exponents} + end);
  }
  return result;
}

std::optional<Scalar> UfuncObject::identity() const {
  static const std::pair<Ufunc, Scalar> identities[] = {
      {ufunc::add, 0},
      {ufunc::multiply, 1},
      {ufunc::logical_and, true},
      {ufunc::logical_or, false},
      {ufunc::logical_xor, false},
      {ufunc::bitwise_and, -1},
      {ufunc::bitwise_or, 0},
      {ufunc::bitwise_xor, 0},
      {ufunc::gcd, 0},
      {ufunc::hypot, 0},
      {ufunc::logaddexp, -std::numeric_limits<double>::infinity()},
      {ufunc::logaddexp2, -std::numeric_limits<double>::infinity()}};
  for (const auto& [row, value] : identities) {
    if (row == row_) return value;
  }
  return {};
}

namespace {

enum class Method { reduce, accumulate, reduceat, outer, at };
// "add.reduce" and so on, for as long as the program runs: recordings and errors that are found
// late refer to it.
const char* label_of(const UfuncObject& f, Method method) {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> all;
    for (Ufunc row : all_ufuncs()) {
      for (const char* name : {"reduce", "accumulate", "reduceat", "outer", "at"}) {
        all.push_back(fmt::format("{}.{}", ufunc_info(row).name, name));
      }
    }
    return all;
  }();
  return labels[static_cast<std::size_t>(f.row().number()) * 5 + static_cast<std::size_t>(method)]
      .c_str();
}

bool has_order(Ufunc row) {
  return row == ufunc::maximum || row == ufunc::minimum || row == ufunc::fmax || row == ufunc::fmin;
}
bool is_associative(const BinaryUfunc& f) {
  return f.identity() || has_order(f.row()) || f.row() == ufunc::lcm;
}
// Whether several axes may be reduced at once, as NumPy has it.
bool is_reorderable(const BinaryUfunc& f) { return f.identity() || has_order(f.row()); }

bool is_logical(Ufunc row) {
  return row == ufunc::logical_and || row == ufunc::logical_or || row == ufunc::logical_xor;
}

// What the elements are converted to, which the results are of: `dtype`, or what NumPy takes.
Dtype fold_dtype(const BinaryUfunc& f, const char* operation, const Array& a,
                 const std::optional<Dtype>& asked) {
  check_defined(operation, a);
  bool sums = f.row() == ufunc::add || f.row() == ufunc::multiply;
  Dtype dtype = a.dtype();
  if (asked) dtype = *asked;
  else if (is_logical(f.row())) dtype = bool_;
  else if (sums) dtype = reduction_types(reduction::sum, a.dtype()).compute;
  UfuncTypes types = ufunc_types(f.row(), dtype);
  bool fits = types.output == types.compute && (!asked || types.compute == dtype) &&
              ufunc_info(f.row()).rule != DtypeRule::exponent;
  if (!fits) {
    throw DtypeError(fmt::format("{}: {} gives {} of {}, which are no operands of it again",
                                 operation, f.name(), dtype_name(types.output),
                                 a.view().describe()));
  }
  return types.compute;
}

// The number that counts for nothing in `dtype`: -1 is every bit of an unsigned one.
Scalar number_in(Scalar value, Dtype dtype) {
  bool every_bit = value.kind() == 'i' && value.integer() < 0 && dtype_kind(dtype) == 'u';
  if (!every_bit) return dtype == bool_ ? Scalar(value.as<bool>()) : value;
  return ~std::uint64_t{0} >> (64 - 8 * itemsize(dtype));
}

void apply(const BinaryUfunc& f, const Array& a, const Array& b, const Array& out) {
  elementwise(f.name().data(), f.row(), {a, b}, &out);
}

[[noreturn]] void throw_nothing(const BinaryUfunc& f, const Array& a) {
  throw ValueError(
      fmt::format("{}: {} is empty along a reduced axis and {} has no identity; give "
                  "`initial`",
                  label_of(f, Method::reduce), a.view().describe(), f.name()));
}

// Extent n of the first axis made 1, by halves: f of the first half and the last, again and again.
Array fold_by_halves(const BinaryUfunc& f, const Array& a) {
  std::int64_t n = a.shape()[0], half = n / 2;
  Shape shape = a.shape();
  shape[0] = n - half;
  Array result = new_array(shape, a.dtype(), a.device());
  apply(f, slice_along(a, 0, 0, half), slice_along(a, 0, n - half, half),
        slice_along(result, 0, 0, half));
  if (n % 2 != 0) {
    rensa::detail::copy_elements(f.name().data(), slice_along(a, 0, half, 1),
                                 slice_along(result, 0, half, 1));
  }
  for (n = n - half; n > 1; n -= half) {
    half = n / 2;
    Array first = slice_along(result, 0, 0, half);
    apply(f, first, slice_along(result, 0, n - half, half), first);
  }
  return slice_along(result, 0, 0, 1);
}

// The same from the front on, element by element; where `mask` is given only its elements count.
Array fold_in_order(const BinaryUfunc& f, const Array& a, const Array* start, const Array* mask) {
  Array result = start ? start->copy() : slice_along(a, 0, 0, 1).copy();
  for (std::int64_t i = start ? 0 : 1; i < a.shape()[0]; ++i) {
    Array element = slice_along(a, 0, i, 1);
    if (mask) f(result, element, {.out = result, .where = slice_along(*mask, 0, i, 1)});
    else apply(f, result, element, result);
  }
  return result;
}

// `a`, of which the axes to reduce stand first as one, reduced to extent 1.
Array fold(const BinaryUfunc& f, Array a, const std::optional<Scalar>& initial, const Array* mask) {
  Shape one = a.shape();
  one[0] = 1;
  bool associative = is_associative(f);
  std::optional<Scalar> first = initial;
  std::int64_t n = a.shape()[0];
  if (!first && n < 2) first = f.identity();  // of one element too: gcd and hypot have no sign
  if (!first && n == 0 && one.total() != 0) throw_nothing(f, a);
  Array start;
  if (first) start = full(one, number_in(*first, a.dtype()), a.dtype(), a.device());
  if (one.total() == 0) return new_array(one, a.dtype(), a.device());
  if (n == 0) return start;
  if (!associative) return fold_in_order(f, a, first ? &start : nullptr, mask);
  if (mask) {  // what is left out counts for nothing: the identity, or once more the start
    Scalar idle = number_in(f.identity() ? *f.identity() : *initial, a.dtype());
    a = where(*mask, a, full({}, idle, a.dtype(), a.device()));
  }
  Array result = n == 1 ? a : fold_by_halves(f, a);
  return first ? f(start, result) : result;
}

// The kernel that reduces by this row, or none.
using ReduceRoutine = Array (*)(const Array&, const ReduceOptions&);
ReduceRoutine routine_of(Ufunc row, Dtype dtype) {
  bool floating = dtype_kind(dtype) == 'f';
  if (row == ufunc::add) return sum;
  if (row == ufunc::multiply) return prod;
  if (row == ufunc::maximum || (row == ufunc::fmax && !floating)) return max;
  if (row == ufunc::minimum || (row == ufunc::fmin && !floating)) return min;
  if (row == ufunc::fmax) return nanmax;
  if (row == ufunc::fmin) return nanmin;
  if (row == ufunc::logical_and) return all;
  if (row == ufunc::logical_or) return any;
  return nullptr;
}

Shape with_ones(Shape shape, unsigned axes) {
  for (int i = 0; i < shape.ndim(); ++i) {
    if (axes >> i & 1) shape[i] = 1;
  }
  return shape;
}
Shape without(const Shape& shape, unsigned axes) {
  Shape result;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (!(axes >> i & 1)) result.push_back(shape[i]);
  }
  return result;
}

// The chosen axes as one in front of the others.
Array axes_in_front(const Array& a, unsigned axes) {
  Shape order, shape = {1};
  for (int i = 0; i < a.ndim(); ++i) {
    if (!(axes >> i & 1)) continue;
    order.push_back(i);
    shape[0] *= a.shape()[i];
  }
  for (int i = 0; i < a.ndim(); ++i) {
    if (axes >> i & 1) continue;
    order.push_back(i);
    shape.push_back(a.shape()[i]);
  }
  return a.transpose(order).reshape(shape);
}

Array written(const char* name, const Array& first, const Array& result, const Array* out) {
  if (!out) return result;
  rensa::detail::check_destination(name, first, *out);
  rensa::detail::check_same_kind(name, result.dtype(), *out);
  if (out->shape() != result.shape()) {
    throw ShapeError(fmt::format("{}: the result of shape {} does not fit into {}", name,
                                 result.shape().str(), out->view().describe()));
  }
  rensa::detail::copy_elements(name, result, *out);
  return *out;
}

}  // namespace

// --- reduce ---
Array BinaryUfunc::reduce(const Array& a, const UfuncReduceOptions& options) const {
  const char* operation = label_of(*this, Method::reduce);
  bool sums = row() == ufunc::add || row() == ufunc::multiply;
  Dtype dtype = fold_dtype(*this, operation, a, options.dtype);
  // A 0-d array has the one axis that NumPy forgives.
  unsigned axes = a.ndim() == 0 ? 0 : options.axis.mask(operation, a.ndim());
  if ((axes & (axes - 1)) != 0 && !is_reorderable(*this)) {
    throw ValueError(
        fmt::format("{}: the order of several axes matters; name one axis", operation));
  }
  if (options.where && !identity() && !options.initial) {
    throw ValueError(
        fmt::format("{}: has no answer where the mask leaves nothing; give `initial`", operation));
  }
  if (ReduceRoutine routine = routine_of(row(), dtype)) {
    Axes listed = a.ndim() == 0 ? Axes(none) : options.axis;
    return routine(options.dtype && !sums ? a.astype(dtype, false) : a,
                   {.axis = listed,
                    .keepdims = options.keepdims,
                    .dtype = sums ? options.dtype : std::optional<Dtype>(),
                    .out = options.out,
                    .initial = options.initial,
                    .where = options.where});
  }
  Array in = axes_in_front(a.astype(dtype, false), axes), mask;
  if (options.where) {
    rensa::detail::check_mask(operation, *options.where, a);
    mask = axes_in_front((*options.where).broadcast_to(a.shape()), axes);
  }
  Array result = fold(*this, in, options.initial, options.where ? &mask : nullptr);
  Shape shape = with_ones(a.shape(), axes);
  return written(operation, a, result.reshape(options.keepdims ? shape : without(shape, axes)),
                 options.out.get());
}

// --- accumulate ---
namespace {

// Element i joined with the one `step` before, for steps 1, 2, 4 ...: then every element is the
// fold of all up to it.
Array scan_by_doubling(const BinaryUfunc& f, Array current, int axis) {
  std::int64_t n = current.shape()[axis];
  for (std::int64_t step = 1; step < n; step *= 2) {
    Array next = new_array(current.shape(), current.dtype(), current.device());
    rensa::detail::copy_elements(f.name().data(), slice_along(current, axis, 0, step),
                                 slice_along(next, axis, 0, step));
    apply(f, slice_along(current, axis, 0, n - step), slice_along(current, axis, step, n - step),
          slice_along(next, axis, step, n - step));
    current = next;
  }
  return current;
}

// In memory of its own, with the axis in front, so that elements of it do not share memory.
Array scan_in_order(const BinaryUfunc& f, const Array& a, int axis) {
  Array result = moveaxis(a, axis, 0).copy();
  for (std::int64_t i = 1; i < result.shape()[0]; ++i) {
    Array element = slice_along(result, 0, i, 1);
    apply(f, slice_along(result, 0, i - 1, 1), element, element);
  }
  return moveaxis(result, 0, axis).ascontiguous();
}

}  // namespace

Array BinaryUfunc::accumulate(const Array& a, const UfuncAxisOptions& options) const {
  const char* operation = label_of(*this, Method::accumulate);
  Dtype dtype = fold_dtype(*this, operation, a, options.dtype);
  int axis = normalize_axis(operation, options.axis, a.ndim());
  Array result;
  if (row() == ufunc::add || row() == ufunc::multiply) {
    result = rensa::detail::running(operation, row() == ufunc::multiply, a, axis, dtype);
  } else if (a.size() == 0) {
    result = new_array(a.shape(), dtype, a.device());
  } else if (is_associative(*this)) {
    result = scan_by_doubling(*this, a.astype(dtype), axis);
  } else {
    result = scan_in_order(*this, a.astype(dtype, false), axis);
  }
  return written(operation, a, result, options.out.get());
}

// --- reduceat ---
namespace {

struct Segment {
  std::int64_t start, count;
};

std::vector<Segment> segments_of(const char* operation, const std::vector<std::int64_t>& indices,
                                 std::int64_t extent) {
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= extent) {
      throw IndexError(fmt::format("{}: the index {} is out of bounds for an axis of extent {}",
                                   operation, indices[i], extent));
    }
    std::int64_t end = i + 1 < indices.size() ? indices[i + 1] : extent;
    segments.push_back({indices[i], std::max<std::int64_t>(end - indices[i], 1)});
  }
  return segments;
}

// Writes the fold of each segment of a's first axis into `out`. With `power` running over 1, 2, 4
// ... element i of `blocks` is the fold of `power` elements from the i-th on, and every segment is
// a row of such blocks, the smallest first.
void fold_segments(const BinaryUfunc& f, const Array& a, std::vector<Segment> segments,
                   const Array& out) {
  Array blocks = a;
  std::vector<bool> begun(segments.size());
  std::int64_t longest = 0;
  for (const Segment& s : segments) longest = std::max(longest, s.count);
  for (std::int64_t power = 1; power <= longest; power *= 2) {
    std::vector<std::int64_t> fresh, fresh_at, open, open_at;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      Segment& s = segments[i];
      if ((s.count & power) == 0) continue;
      (begun[i] ? open : fresh).push_back(static_cast<std::int64_t>(i));
      (begun[i] ? open_at : fresh_at).push_back(s.start);
      begun[i] = true;
      s.start += power;
    }
    auto at = [&](const std::vector<std::int64_t>& places) { return array(places, a.device()); };
    if (!fresh.empty()) out[at(fresh)] = Array(blocks[at(fresh_at)]);
    if (!open.empty()) {
      Array places = at(open);
      out[places] = f(Array(out[places]), Array(blocks[at(open_at)]));
    }
    std::int64_t left = blocks.shape()[0] - power;
    if (2 * power > longest || left <= 0) break;
    blocks = f(slice_along(blocks, 0, 0, left), slice_along(blocks, 0, power, left));
  }
}

}  // namespace

Array BinaryUfunc::reduceat(const Array& a, const Array& indices,
                            const UfuncAxisOptions& options) const {
  const char* operation = label_of(*this, Method::reduceat);
  Dtype dtype = fold_dtype(*this, operation, a, options.dtype);
  rensa::detail::check_integer(operation, indices);
  if (indices.ndim() != 1) {
    throw ShapeError(
        fmt::format("{}: the indices {} have to be 1-d", operation, indices.view().describe()));
  }
  int axis = normalize_axis(operation, options.axis, a.ndim());
  std::vector<Segment> segments =
      segments_of(operation, indices.to_vector<std::int64_t>(), a.shape()[axis]);
  Array in = moveaxis(a.astype(dtype, false), axis, 0);
  Shape shape = in.shape();
  shape[0] = static_cast<std::int64_t>(segments.size());
  Array result = new_array(shape, dtype, a.device());
  if (result.size() != 0 && is_associative(*this)) {
    fold_segments(*this, in, segments, result);
  } else if (result.size() != 0) {
    for (std::size_t i = 0; i < segments.size(); ++i) {
      Array part = slice_along(in, 0, segments[i].start, segments[i].count);
      rensa::detail::copy_elements(operation, fold_in_order(*this, part, nullptr, nullptr),
                                   slice_along(result, 0, static_cast<std::int64_t>(i), 1));
    }
  }
  return written(operation, a, moveaxis(result, 0, axis).ascontiguous(), options.out.get());
}

// --- outer ---
Array BinaryUfunc::outer(const Array& a, const Array& b, const UfuncOptions& options) const {
  const char* operation = label_of(*this, Method::outer);
  check_defined(operation, a);
  check_defined(operation, b);
  if (a.ndim() + b.ndim() > kMaxNdim) {
    throw ShapeError(
        fmt::format("{}: the axes of {} and of {} are more than the {} that an array "
                    "can have",
                    operation, a.view().describe(), b.view().describe(), kMaxNdim));
  }
  Shape shape = a.shape();
  for (int i = 0; i < b.ndim(); ++i) shape.push_back(1);
  return (*this)(a.reshape(shape), b, options);
}

// --- at ---
namespace {

using operations::ScatterMode;

// a[index] = f(a[index], values) element by element: first all elements that are named for the
// first time, then those that are named a second time, and so on. `f(x, places)` computes new
// values of the elements x, which the index names at `places`.
template <class F>
void update_at(const char* operation, const Array& a, std::span<const Index> index,
               const Array* values, F f) {
  check_defined(operation, a);
  rensa::detail::check_writable(operation, a);
  Array numbers = arange(a.size(), int64, a.device()).reshape(a.shape());
  Array chosen =
      rensa::detail::gather(operation, rensa::detail::apply_index(operation, numbers, index));
  Array operand;
  if (values) operand = values->broadcast_to(chosen.shape()).ravel();
  Array targets = chosen.ravel();
  std::int64_t n = targets.size();
  if (n == 0) return;
  Array order = argsort(targets), sorted = targets[order], ranks = arange(n, int64, a.device());
  Array starts = zeros({n}, int64, a.device());
  Array changes = not_equal(slice_along(sorted, 0, 1, n - 1), slice_along(sorted, 0, 0, n - 1));
  slice_along(starts, 0, 1, n - 1).assign(multiply(changes, slice_along(ranks, 0, 1, n - 1)));
  ranks -= maximum.accumulate(starts);
  order = order[argsort(ranks)];
  Array flat = a.ravel();  // a copy where strides do not allow a view
  std::int64_t done = 0;
  for (std::int64_t count : bincount(ranks).to_vector<std::int64_t>()) {
    Array places = slice_along(order, 0, done, count), target = targets[places];
    Array old = flat[target];
    Array changed = values ? f(old, Array(operand[places])) : f(old, Array());
    flat[target] = changed.astype(a.dtype(), false);
    done += count;
  }
  if (flat.storage() != a.storage()) a.assign(flat.reshape(a.shape()));
}

void at_index(const UnaryUfunc& f, const Array& a, std::span<const Index> index) {
  const char* operation = label_of(f, Method::at);
  update_at(operation, a, index, nullptr, [&](const Array& old, const Array&) { return f(old); });
}

void at_index(const BinaryUfunc& f, const Array& a, std::span<const Index> index, const Array& b) {
  const char* operation = label_of(f, Method::at);
  check_defined(operation, a);
  check_defined(operation, b);
  check_same_device(operation, a, b);
  ufunc_types(f.row(), promote_types(a.dtype(), b.dtype()));
  bool scatters = f.row() == ufunc::add || f.row() == ufunc::maximum || f.row() == ufunc::minimum;
  if (scatters && can_cast_same_kind(b.dtype(), a.dtype())) {
    ScatterMode mode = f.row() == ufunc::add       ? ScatterMode::add
                       : f.row() == ufunc::maximum ? ScatterMode::max
                                                   : ScatterMode::min;
    rensa::detail::scatter(operation, mode, rensa::detail::apply_index(operation, a, index), b);
    return;
  }
  update_at(operation, a, index, &b,
            [&](const Array& old, const Array& operand) { return f(old, operand); });
}

std::span<const Index> span_of(std::initializer_list<Index> index) {
  return {index.begin(), index.size()};
}

// A number beside `a`, of a's dtype where that holds it.
Array beside(const Array& a, Scalar number) {
  check_defined("at", a);
  Dtype dtype = number.result_type(a.dtype());
  if (rensa::detail::is_out_of_range(number, dtype)) dtype = number.default_dtype();
  return full({}, number, dtype, a.device());
}

}  // namespace

void UnaryUfunc::at(const Array& a, const Array& index) const {
  at_index(*this, a, span_of({index}));
}
void UnaryUfunc::at(const Array& a, std::initializer_list<Index> index) const {
  at_index(*this, a, span_of(index));
}
void BinaryUfunc::at(const Array& a, const Array& index, const Array& b) const {
  at_index(*this, a, span_of({index}), b);
}
void BinaryUfunc::at(const Array& a, const Array& index, Scalar b) const {
  at_index(*this, a, span_of({index}), beside(a, b));
}
void BinaryUfunc::at(const Array& a, std::initializer_list<Index> index, const Array& b) const {
  at_index(*this, a, span_of(index), b);
}
void BinaryUfunc::at(const Array& a, std::initializer_list<Index> index, Scalar b) const {
  at_index(*this, a, span_of(index), beside(a, b));
}

// --- calls ---
Array UnaryUfunc::operator()(const Array& a) const {
  return elementwise(ufunc_info(row()).name, row(), {a}, nullptr);
}
Array UnaryUfunc::operator()(const Array& a, const UfuncOptions& options) const {
  return elementwise(ufunc_info(row()).name, row(), {a}, options);
}
#define RENSA_BINARY(A, B)                                                     \
  Array BinaryUfunc::operator()(A a, B b) const {                              \
    return elementwise(ufunc_info(row()).name, row(), {a, b}, nullptr);        \
  }                                                                            \
  Array BinaryUfunc::operator()(A a, B b, const UfuncOptions& options) const { \
    return elementwise(ufunc_info(row()).name, row(), {a, b}, options);        \
  }
RENSA_BINARY(const Array&, const Array&)
RENSA_BINARY(const Array&, Scalar)
RENSA_BINARY(Scalar, const Array&)
#undef RENSA_BINARY

}  // namespace rensa::xp
