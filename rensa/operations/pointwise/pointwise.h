// Pointwise: what the rows of pointwise.def are run by.
#pragma once

#include <span>
#include <vector>

#include "rensa/operations/elementwise/elementwise.h"

namespace rensa {

/// One row of pointwise.def (operations/pointwise/pointwise_rows.h has them by name).
struct PointwiseRow {
  const char* name;
  int index;  // in the table
  DtypeRule rule;
  int inputs, outputs;
};
/// What a row may have.
inline constexpr int kMostPointwiseInputs = 12, kMostPointwiseOutputs = 7;

namespace pointwise {
/// All rows, in order, for who needs none of them by name.
std::span<const PointwiseRow* const> all_rows();
}  // namespace pointwise

}  // namespace rensa

namespace rensa::operations {

/// out[0][i], out[1][i], ... = row(in[0][i], in[1][i], ...) in compute_type(compute), a floating or
/// complex type. Every array is already broadcast to the outputs' one shape (stride 0); all are of
/// any dtype. An output may be the same elements as an input, no two outputs share elements, and
/// nothing overlaps partly.
struct Pointwise final : KindOf<Pointwise> {
  explicit Pointwise(const PointwiseRow& r) : KindOf(r.name), row(&r) {}
  const PointwiseRow* row;
  Dtype compute = Dtype::float32;
  std::vector<ElementwiseInput> in;
  std::vector<Operand> out;

  template <class V> void fields(V& v) {
    for (ElementwiseInput& input : in) v.read(input.array), v.number(input.scalar);
    for (Operand& output : out) v.write(output);
    v.number(compute);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
