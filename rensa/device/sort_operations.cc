// The operands of sorting, searching, scans and histograms.
#include "rensa/device/sort_operations.h"

namespace rensa {

void Sort::visit(OperandVisitor& v) {
  v.read(in);
  if (values.present()) v.write(values);
  if (order.present()) v.write(order);
}

void SearchSorted::visit(OperandVisitor& v) {
  v.read(sorted);
  v.read(values);
  if (sorter.present()) v.read(sorter);
  v.write(found.present() ? found : positions);
}

void Scan::visit(OperandVisitor& v) {
  v.read(in);
  v.write(out);
}

void MarkPresent::visit(OperandVisitor& v) {
  v.read(in);
  v.write(flags);
}

void Histogram::visit(OperandVisitor& v) {
  v.read(in);
  if (edges.present()) v.read(edges);
  if (weights.present()) v.read(weights);
  v.write(counts);
}

}  // namespace rensa
