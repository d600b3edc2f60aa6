// Products made of matmul, multiply and views, and the views of linalg.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "rensa/array/linalg_internal.h"
#include "rensa/core/checked.h"
#include "rensa/core/error.h"

namespace rensa {

namespace {

void check_pair(const char* name, const Array& a, const Array& b) {
  detail::check_defined(name, a);
  detail::check_defined(name, b);
  check_same_device(name, a, b);
}

[[noreturn]] void throw_misfit(const char* name, const Array& a, const Array& b) {
  throw ShapeError(fmt::format("{}: operands do not fit: {} and {}", name, a.view().describe(),
                               b.view().describe()));
}

Array conjugated(const Array& a) { return dtype_kind(a.dtype()) == 'c' ? xp::conjugate(a) : a; }

// The axes of `a` outside of `summed`, in order.
Shape other_axes(const Array& a, const Shape& summed) {
  Shape rest;
  for (int i = 0; i < a.ndim(); ++i) {
    if (std::find(summed.begin(), summed.end(), i) == summed.end()) rest.push_back(i);
  }
  return rest;
}

Shape extents(const Array& a, const Shape& axes) {
  Shape shape;
  for (std::int64_t axis : axes) shape.push_back(a.shape()[static_cast<int>(axis)]);
  return shape;
}

std::vector<std::int64_t> joined(const Shape& a, const Shape& b) {
  std::vector<std::int64_t> values(a.begin(), a.end());
  values.insert(values.end(), b.begin(), b.end());
  return values;
}

// Sums of products over the given axes of each, counted from the front.
Array contract(const char* name, const Array& a, const Array& b, const Shape& a_axes,
               const Shape& b_axes) {
  if (a_axes.size() != b_axes.size()) {
    throw ShapeError(fmt::format("{}: axes {} of {} do not fit axes {} of {}", name, a_axes.str(),
                                 a.view().describe(), b_axes.str(), b.view().describe()));
  }
  for (int i = 0; i < a_axes.size(); ++i) {
    std::int64_t in_a = a.shape()[static_cast<int>(a_axes[i])],
                 in_b = b.shape()[static_cast<int>(b_axes[i])];
    if (in_a == in_b) continue;
    throw ShapeError(fmt::format(
        "{}: axis {} of {} has extent {}, axis {} of {} has extent {}; they have to be equal", name,
        a_axes[i], a.view().describe(), in_a, b_axes[i], b.view().describe(), in_b));
  }
  Shape a_rest = other_axes(a, a_axes), b_rest = other_axes(b, b_axes);
  Shape rows = extents(a, a_rest), columns = extents(b, b_rest);
  Shape result(joined(rows, columns));
  std::int64_t k = extents(a, a_axes).total();
  Array left = a.transpose(Shape(joined(a_rest, a_axes))).reshape({rows.total(), k});
  Array right = b.transpose(Shape(joined(b_axes, b_rest))).reshape({k, columns.total()});
  return xp::matmul(left, right).reshape(result);
}

// `axes` counted from the front, each of them once.
Shape checked_axes(const char* name, const Shape& axes, int ndim) {
  Shape checked;
  for (std::int64_t axis : axes) {
    std::int64_t found = normalize_axis(name, axis, ndim);
    if (std::find(checked.begin(), checked.end(), found) != checked.end()) {
      throw ValueError(fmt::format("{}: axis {} stands twice in {}", name, found, axes.str()));
    }
    checked.push_back(found);
  }
  return checked;
}

Shape counting(int begin, int end) {
  Shape axes;
  for (int i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

// `a` as an operand of a product of `core` axes, which lie at `axes` where these are given.
Array product_operand(const char* name, const Array& a, int core, const AxisList* axes,
                      const xp::MatmulOptions& options) {
  Array in = a;
  if (options.dtype) {
    detail::check_casting(name, a.dtype(), *options.dtype, options.casting);
    in = in.astype(*options.dtype, false);
  }
  core = std::min(core, a.ndim());
  if (!axes) return in;
  if (axes->values().ndim() != core) {
    throw ValueError(fmt::format("{}: {} are not the {} axes of {}", name, axes->values().str(),
                                 core, a.view().describe()));
  }
  return xp::moveaxis(in, axes->values(), counting(-core, 0));
}

}  // namespace

Array detail::product_with(const char* name, const Array& a, const Array& b,
                           std::array<int, 3> cores, const xp::MatmulOptions& options,
                           Array (*product)(const Array&, const Array&)) {
  check_pair(name, a, b);
  std::size_t given = options.axes.size();
  bool enough = given == 3 || given == 0 || (given == 2 && cores[2] == 0);
  for (const AxisList& axes : options.axes) enough &= axes.given();
  if (!enough) {
    throw ValueError(
        fmt::format("{}: axes are {} lists; each operand and the result has one", name, given));
  }
  auto axes_of = [&](std::size_t i) { return i < given ? &options.axes[i] : nullptr; };
  Array result = product(product_operand(name, a, cores[0], axes_of(0), options),
                         product_operand(name, b, cores[1], axes_of(1), options));
  if (const AxisList* axes = axes_of(2); axes && axes->values().ndim() > 0) {
    int core = axes->values().ndim();
    result = xp::moveaxis(result, counting(-core, 0), axes->values());
  }
  return deliver(name, result, options.out, options.casting);
}

namespace xp {

Array vdot(const Array& a, const Array& b) {
  check_pair("vdot", a, b);
  if (a.size() != b.size()) throw_misfit("vdot", a, b);
  return xp::matmul(conjugated(a.reshape({a.size()})), b.reshape({b.size()}));
}

Array inner(const Array& a, const Array& b) {
  check_pair("inner", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) return xp::multiply(a, b);
  return contract("inner", a, b, {a.ndim() - 1}, {b.ndim() - 1});
}

Array outer(const Array& a, const Array& b, const ProductOptions& options) {
  check_pair("outer", a, b);
  return xp::multiply(a.ravel().expand_dims(1), b.ravel(), {.out = options.out});
}

Array tensordot(const Array& a, const Array& b, int axes) {
  check_pair("tensordot", a, b);
  if (axes < 0 || axes > a.ndim() || axes > b.ndim()) {
    throw ShapeError(fmt::format("tensordot: {} axes cannot be summed over: {} and {}", axes,
                                 a.view().describe(), b.view().describe()));
  }
  return contract("tensordot", a, b, counting(a.ndim() - axes, a.ndim()), counting(0, axes));
}

Array tensordot(const Array& a, const Array& b, const Shape& a_axes, const Shape& b_axes) {
  check_pair("tensordot", a, b);
  return contract("tensordot", a, b, checked_axes("tensordot", a_axes, a.ndim()),
                  checked_axes("tensordot", b_axes, b.ndim()));
}

Array kron(const Array& a, const Array& b) {
  check_pair("kron", a, b);
  int ndim = std::max(a.ndim(), b.ndim());
  if (2 * ndim <= kMaxNdim) {
    // a's and b's axes side by side; each pair becomes one.
    Shape a_shape, b_shape, result;
    for (int i = 0; i < ndim; ++i) {
      int p = i - (ndim - a.ndim()), q = i - (ndim - b.ndim());
      std::int64_t x = p < 0 ? 1 : a.shape()[p], y = q < 0 ? 1 : b.shape()[q];
      a_shape.push_back(x);
      a_shape.push_back(1);
      b_shape.push_back(1);
      b_shape.push_back(y);
      result.push_back(checked_multiply("kron", x, y));
    }
    return xp::multiply(a.reshape(a_shape), b.reshape(b_shape)).reshape(result);
  }
  // Without the leading axis, which the others' products stand in one after the other.
  if (a.ndim() != b.ndim()) {
    Array wide = a.ndim() < b.ndim() ? a.expand_dims(0) : a;
    return kron(wide, b.ndim() < a.ndim() ? b.expand_dims(0) : b);
  }
  std::vector<Array> parts;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < b.shape()[0]; ++j) parts.push_back(kron(a[i], b[j]));
  }
  if (!parts.empty()) return stack(parts);
  Shape shape = a.shape();
  for (int i = 0; i < a.ndim(); ++i) {
    shape[i] = checked_multiply("kron", shape[i], b.shape()[i]);
  }
  return rensa::detail::new_array(shape, promote_types(a.dtype(), b.dtype()), a.device());
}

Array vecdot(const Array& a, const Array& b, int axis) {
  check_pair("vecdot", a, b);
  if (a.ndim() == 0 || b.ndim() == 0) throw_misfit("vecdot", a, b);
  Array left = moveaxis(a, normalize_axis("vecdot", axis, a.ndim()), -1);
  Array right = moveaxis(b, normalize_axis("vecdot", axis, b.ndim()), -1);
  if (left.shape(-1) != right.shape(-1)) throw_misfit("vecdot", a, b);
  (void)broadcast_shapes("vecdot", left.shape(), right.shape());
  return einsum("...i,...i->...", conjugated(left), right);
}

Array vecdot(const Array& a, const Array& b, const MatmulOptions& options) {
  return rensa::detail::product_with("vecdot", a, b, {1, 1, 0}, options,
                                     [](const Array& x, const Array& y) { return vecdot(x, y); });
}

Array matvec(const Array& a, const Array& x, const MatmulOptions& options) {
  return rensa::detail::product_with(
      "matvec", a, x, {2, 1, 1}, options, [](const Array& m, const Array& v) {
        if (m.ndim() < 2 || v.ndim() < 1 || m.shape(-1) != v.shape(-1))
          throw_misfit("matvec", m, v);
        return xp::matmul(m, v.expand_dims(-1)).squeeze(-1);
      });
}

Array vecmat(const Array& x, const Array& a, const MatmulOptions& options) {
  return rensa::detail::product_with(
      "vecmat", x, a, {1, 2, 1}, options, [](const Array& v, const Array& m) {
        if (m.ndim() < 2 || v.ndim() < 1 || m.shape(-2) != v.shape(-1))
          throw_misfit("vecmat", v, m);
        return xp::matmul(conjugated(v).expand_dims(-2), m).squeeze(-2);
      });
}

}  // namespace xp

namespace xp::linalg {

namespace {

// costs[i][j]: the fewest multiplications for arrays i to j; splits[i][j]: where that product
// parts.
struct ProductOrder {
  std::vector<std::vector<double>> costs;
  std::vector<std::vector<std::size_t>> splits;

  explicit ProductOrder(const std::vector<double>& sizes) {
    std::size_t n = sizes.size() - 1;
    costs.assign(n, std::vector<double>(n, 0));
    splits.assign(n, std::vector<std::size_t>(n, 0));
    for (std::size_t length = 1; length < n; ++length) {
      for (std::size_t i = 0; i + length < n; ++i) {
        std::size_t j = i + length;
        costs[i][j] = std::numeric_limits<double>::infinity();
        for (std::size_t k = i; k < j; ++k) {
          double cost = costs[i][k] + costs[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1];
          if (cost >= costs[i][j]) continue;
          costs[i][j] = cost;
          splits[i][j] = k;
        }
      }
    }
  }

  Array multiply(const std::vector<Array>& arrays, std::size_t i, std::size_t j) const {
    if (i == j) return arrays[i];
    std::size_t k = splits[i][j];
    return xp::matmul(multiply(arrays, i, k), multiply(arrays, k + 1, j));
  }
};

}  // namespace

Array matrix_power(const Array& a, std::int64_t n) {
  const char* name = "linalg.matrix_power";
  rensa::detail::check_square(name, a);
  if (n == 0) return xp::eye(a.shape(-1), a.dtype(), a.device()).broadcast_to(a.shape()).copy();
  Array base = n < 0 ? rensa::detail::inverse(name, a, true) : a;
  std::uint64_t left = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  Array result;
  for (;; base = xp::matmul(base, base)) {
    if (left & 1) result = result.defined() ? xp::matmul(result, base) : base;
    left >>= 1;
    if (left == 0) break;
  }
  return result.view().data == a.view().data ? result.copy() : result;
}

Array multi_dot(const ArrayList& list, const ProductOptions& options) {
  const char* name = "linalg.multi_dot";
  std::span<const Array> arrays = list;
  if (arrays.size() < 2) {
    throw ValueError(fmt::format("{}: {} arrays are too few for a product", name, arrays.size()));
  }
  std::vector<Array> factors(arrays.begin(), arrays.end());
  for (const Array& a : factors) check_pair(name, factors[0], a);
  bool row = factors.front().ndim() == 1, column = factors.back().ndim() == 1;
  if (row) factors.front() = factors.front().expand_dims(0);
  if (column) factors.back() = factors.back().expand_dims(1);
  std::vector<double> sizes;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].ndim() != 2 || (i > 0 && factors[i - 1].shape(1) != factors[i].shape(0))) {
      throw_misfit(name, arrays[i > 0 ? i - 1 : 0], arrays[i]);
    }
    sizes.push_back(static_cast<double>(factors[i].shape(0)));
  }
  sizes.push_back(static_cast<double>(factors.back().shape(1)));
  Array result = ProductOrder(sizes).multiply(factors, 0, factors.size() - 1);
  if (column) result = result.squeeze(1);
  return rensa::detail::deliver(name, row ? result.squeeze(0) : result, options.out);
}

Array matrix_transpose(const Array& a) {
  rensa::detail::check_matrices("linalg.matrix_transpose", a);
  return a.swapaxes(-1, -2);
}

Array diagonal(const Array& a, std::int64_t offset) {
  rensa::detail::check_matrices("linalg.diagonal", a);
  return rensa::detail::diagonal_view(a, offset);
}

Array trace(const Array& a, std::int64_t offset) { return xp::sum(diagonal(a, offset), -1); }

Array trace(const Array& a, const TraceOptions& o) {
  return xp::sum(diagonal(a, o.offset), {.axis = -1, .dtype = o.dtype});
}

}  // namespace xp::linalg

}  // namespace rensa
