// The operations behind sorting, searching, scans and histograms. All arrays are C-contiguous.
#pragma once

#include "rensa/device/operation.h"

namespace rensa {

/// Sorts the rows of `in` (rows, n) of any dtype, NaN last, complex numbers by real part, then by
/// imaginary part. `values` gets the elements in order, `order` (int64) the places in their row
/// that they come from, equal ones in the order they had; either may be absent. `descending` turns
/// the order of unequal elements round (NaN first). With `kth` in [0, n) only that place has to
/// hold what it holds in the sorted row, with nothing greater before and nothing less behind it.
struct Sort final : OperationOf<Sort> {
  using OperationOf::OperationOf;
  bool descending = false;
  long long kth = -1;
  Operand in, values, order;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// positions[i] = how many elements of `sorted` (one-dimensional) stand before values[i]: those
/// that are less, with `right` those that are not greater. Both have one dtype, positions is int64.
/// `sorter` (int64, may be absent) lists the places of `sorted`'s elements in ascending order;
/// those out of range are taken for the nearest. `either_way`: where the last element is less than
/// the first, `sorted` falls. With `found` (bool) in place of positions: found[i] = whether an
/// element of `sorted` equals values[i], which no NaN does; the other way round with `invert`.
struct SearchSorted final : OperationOf<SearchSorted> {
  using OperationOf::OperationOf;
  bool right = false, either_way = false, invert = false;
  Operand sorted, values, sorter, positions, found;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// Running sums (or products) of `in` (outer, n, inner) along its middle axis. in and out have one
/// dtype: int64, uint64, float32, float64, complex64 or complex128. May run in place. On the GPU
/// rounding of a long single row may differ from run to run (look-back).
struct Scan final : OperationOf<Scan> {
  Scan(const char* name, bool multiply) : OperationOf(name), product(multiply) {}
  bool product;
  Operand in, out;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};

/// counts[k] = the number of elements of `in` that fall into bin k, or the sum of their weights.
/// Without `edges` an element of the integer array `in` is its bin; with them (float64, rising, one
/// more than counts) bin k holds edges[k] <= x < edges[k + 1], the last bin its right edge too;
/// `uniform`: they are evenly spaced. What falls into no bin is left out. counts is int64 without
/// `weights`, else of the dtype of weights, float64 or complex128. On the GPU the order in which
/// weights are added is not fixed.
struct Histogram final : OperationOf<Histogram> {
  using OperationOf::OperationOf;
  bool uniform = false;
  Operand in, edges, weights, counts;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// flags[k] = whether the array `in`, of integers in [low, low + flags' size), holds low + k; flags
/// is bool. (Differences are taken modulo 2^64, so `low` may stand for a uint64.)
struct MarkPresent final : OperationOf<MarkPresent> {
  using OperationOf::OperationOf;
  long long low = 0;
  Operand in, flags;

  void visit(OperandVisitor& v) override;
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa
