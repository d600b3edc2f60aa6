// Einstein's sums: subscripts to labelled views, pairs of operands to products of matrices.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "rensa/array/internal.h"
#include "rensa/array/linalg.h"
#include "rensa/array/linalg_subscripts.h"
#include "rensa/core/error.h"

namespace rensa {

using detail::axis_of;
using detail::holds;
using detail::kBroadcastLabel;
using detail::Label;
using detail::Labels;

namespace {

// An array whose axes have names, each once.
struct Term {
  Array array;
  Labels labels;

  std::int64_t extent(Label label) const { return array.shape()[axis_of(labels, label)]; }
};

// `a` with its axes named; an axis of a repeated label becomes part of the diagonal.
Term labelled(std::string_view subscripts, const Array& a, const Labels& labels) {
  Term term;
  Shape shape, strides;
  int axis = 0;
  for (Label label : labels) {
    if (!holds(term.labels, label)) {
      term.labels.push_back(label);
      shape.push_back(a.shape()[axis]);
      strides.push_back(a.strides()[axis]);
    } else {
      int first = axis_of(term.labels, label);
      if (shape[first] != a.shape()[axis]) {
        throw ShapeError(fmt::format(
            "einsum: \"{}\": label '{}' stands for extents {} and {} of {}", subscripts,
            static_cast<char>(label), shape[first], a.shape()[axis], a.view().describe()));
      }
      strides[first] += a.strides()[axis];
    }
    ++axis;
  }
  term.array = detail::new_view(a, 0, shape, strides);
  return term;
}

// Axes of extent 1 that stand for a longer one elsewhere are dropped: products broadcast.
void drop_stretched(std::string_view subscripts, std::vector<Term>& terms) {
  for (Term& term : terms) {
    for (std::size_t i = 0; i < term.labels.size();) {
      Label label = term.labels[i];
      std::int64_t extent = term.extent(label), longest = extent;
      for (const Term& other : terms) {
        if (!holds(other.labels, label)) continue;
        std::int64_t theirs = other.extent(label);
        if (theirs != extent && theirs != 1 && extent != 1) {
          throw ShapeError(fmt::format(
              "einsum: \"{}\": {} stands for extents {} and {}: {} and {}", subscripts,
              label < kBroadcastLabel ? fmt::format("label '{}'", static_cast<char>(label))
                                      : "an axis of \"...\"",
              extent, theirs, term.array.view().describe(), other.array.view().describe()));
        }
        if (longest == 1) longest = theirs;
      }
      if (extent == 1 && longest != 1) {
        term.array = term.array.squeeze(static_cast<int>(i));
        term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }
}

// The sum over all labels outside of `kept`, in the term's own dtype.
Term summed(const Term& term, const Labels& kept) {
  unsigned axes = 0;
  Shape shape;
  Term result;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (!holds(kept, term.labels[i])) {
      axes |= 1u << i;
      continue;
    }
    shape.push_back(term.array.shape()[static_cast<int>(i)]);
    result.labels.push_back(term.labels[i]);
  }
  if (axes == 0) return term;
  bool truth = term.array.dtype() == bool_;
  Array sum = detail::reduce_axes(truth ? reduction::any : reduction::sum, term.array, axes);
  result.array = sum.reshape(shape).astype(term.array.dtype(), false);
  return result;
}

// A view with the axes in the order of `labels`; those that the term lacks get extent 1.
Array arranged(const Term& term, const Labels& labels) {
  Shape shape, strides;
  for (Label label : labels) {
    bool there = holds(term.labels, label);
    int axis = axis_of(term.labels, label);
    shape.push_back(there ? term.array.shape()[axis] : 1);
    strides.push_back(there ? term.array.strides()[axis] : 0);
  }
  return detail::new_view(term.array, 0, shape, strides);
}

Shape extents_of(const Term& term, const Labels& labels) {
  Shape shape;
  for (Label label : labels) shape.push_back(term.extent(label));
  return shape;
}

Labels joined(const Labels& a, const Labels& b) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

bool is_narrow_float(Dtype dtype) { return itemsize(dtype) == 2 && dtype_kind(dtype) == 'f'; }

// Whether the CPU sums products along the last axis faster than it makes an array of them.
bool is_fast_dot(const Array& x, const Array& y) {
  constexpr std::int64_t kLong = 256;
  bool fits = x.device().is_cpu() && x.dtype() == y.dtype() && x.shape(-1) >= kLong;
  for (const Array* array : {&x, &y}) {
    std::int64_t size = itemsize(array->dtype());
    fits &= dtype_kind(array->dtype()) == 'f' && array->strides()[array->ndim() - 1] == size;
  }
  return fits;
}

// Sums of products over the labels of both that are not `kept`.
Term contract(const Term& left, const Term& right, const Labels& kept) {
  Term a = summed(left, joined(kept, right.labels)), b = summed(right, joined(kept, left.labels));
  Labels batch, sums, rows, columns;
  for (Label label : a.labels) {
    bool both = holds(b.labels, label);
    (!both ? rows : holds(kept, label) ? batch : sums).push_back(label);
  }
  for (Label label : b.labels) {
    if (!holds(a.labels, label)) columns.push_back(label);
  }
  Term result;
  result.labels = joined(batch, joined(rows, columns));
  if (sums.empty()) {
    result.array = xp::multiply(arranged(a, result.labels), arranged(b, result.labels));
    return result;
  }
  // Many small sums are no products of matrices; the 16-bit floats would round each term.
  if (rows.empty() && columns.empty() && !batch.empty() && !is_narrow_float(a.array.dtype())) {
    Labels all = joined(batch, sums);
    Array x = arranged(a, all), y = arranged(b, all);
    if (!is_fast_dot(x, y)) return summed({xp::multiply(x, y), all}, batch);
  }
  Shape outer = extents_of(a, batch), m = extents_of(a, rows), n = extents_of(b, columns);
  std::int64_t k = extents_of(a, sums).total();
  Array x = arranged(a, joined(batch, joined(rows, sums))).reshape({outer.total(), m.total(), k});
  Array y =
      arranged(b, joined(batch, joined(sums, columns))).reshape({outer.total(), k, n.total()});
  if (batch.empty()) {
    x = x.squeeze(0);
    y = y.squeeze(0);
  }
  Shape shape = outer;
  for (std::int64_t extent : m) shape.push_back(extent);
  for (std::int64_t extent : n) shape.push_back(extent);
  result.array = xp::matmul(x, y).reshape(shape);
  return result;
}

// How many elements the product of two terms has more than they have themselves.
double growth(const Term& a, const Term& b, const Labels& kept) {
  double result = 1;
  for (Label label : a.labels) {
    if (holds(kept, label)) result *= static_cast<double>(a.extent(label));
  }
  for (Label label : b.labels) {
    if (holds(kept, label) && !holds(a.labels, label))
      result *= static_cast<double>(b.extent(label));
  }
  return result - static_cast<double>(a.array.size()) - static_cast<double>(b.array.size());
}

// What the result and the terms other than i and j still need.
Labels kept_beside(const std::vector<Term>& terms, std::size_t i, std::size_t j,
                   const Labels& output) {
  Labels kept = output;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    if (k != i && k != j) kept = joined(kept, terms[k].labels);
  }
  return kept;
}

Term contract_all(std::vector<Term> terms, const Labels& output) {
  while (terms.size() > 1) {
    std::size_t first = 0, second = 1;
    double least = 0;
    for (std::size_t i = 0; terms.size() > 2 && i < terms.size(); ++i) {
      for (std::size_t j = i + 1; j < terms.size(); ++j) {
        double cost = growth(terms[i], terms[j], kept_beside(terms, i, j, output));
        if ((i > 0 || j > 1) && cost >= least) continue;
        least = cost;
        first = i;
        second = j;
      }
    }
    Term product = contract(terms[first], terms[second], kept_beside(terms, first, second, output));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
    terms[first] = product;
  }
  return summed(terms[0], output);
}

}  // namespace

Array detail::einsum(const Subscripts& subscripts, std::span<const Array> operands) {
  std::vector<Term> terms;
  DtypeSet dtypes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_same_device("einsum", operands[0], operands[i]);
    dtypes.add(operands[i].dtype());
    terms.push_back(labelled(subscripts.text, operands[i], subscripts.operands[i]));
  }
  Dtype dtype = dtypes.promoted();
  for (Term& term : terms) term.array = term.array.astype(dtype, false);
  drop_stretched(subscripts.text, terms);
  return arranged(contract_all(std::move(terms), subscripts.result), subscripts.result);
}

Array xp::einsum(std::string_view subscripts, const ArrayList& list, const EinsumOptions& options) {
  std::span<const Array> operands = list;
  std::vector<Array> cast;
  if (options.dtype) {
    for (const Array& a : operands) {
      rensa::detail::check_defined("einsum", a);
      rensa::detail::check_casting("einsum", a.dtype(), *options.dtype, options.casting);
      cast.push_back(a.astype(*options.dtype, false));
    }
    operands = cast;
  }
  return rensa::detail::deliver(
      "einsum",
      rensa::detail::einsum(rensa::detail::parse_subscripts(subscripts, operands), operands),
      options.out, options.casting);
}

}  // namespace rensa
