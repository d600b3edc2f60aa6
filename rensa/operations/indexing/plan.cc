// How the arrays of gathers and scatters are taken apart.
#include "rensa/operations/indexing/indexing.h"

namespace rensa::operations {

namespace {

// The axes [begin, end) of a view.
ArrayView axes_of(const ArrayView& view, int begin, int end) {
  ArrayView part = view;
  part.shape = part.strides = {};
  for (int axis = begin; axis < end; ++axis) {
    part.shape.push_back(view.shape[axis]);
    part.strides.push_back(view.strides[axis]);
  }
  return part;
}

}  // namespace

IndexPlan::IndexPlan(const IndexedBy& by, const ArrayView& indexed_array,
                     const ArrayView& listed_array)
    : list(axes_of(listed_array, 0, by.list_shape.ndim())),
      along(indexed_array),
      listed(axes_of(listed_array, by.list_shape.ndim(), listed_array.ndim())),
      indexed(axes_of(indexed_array, by.along < 0 ? by.count : indexed_array.ndim(),
                      indexed_array.ndim())),
      count(by.count),
      mode(by.mode) {
  along.shape = by.list_shape;
  along.strides = Shape::filled(by.list_shape.ndim(), 0);
  for (int axis = 0; by.along >= 0 && axis < by.list_shape.ndim(); ++axis) {
    if (axis == by.along) continue;
    along.strides[axis] = indexed_array.strides[axis < by.along ? axis + 1 : axis];
  }
  ArrayView* lists[kMaxNdim + 2] = {&list, &along};
  for (int i = 0; i < count; ++i) {
    indices[i] = by.indices[i].view;
    lists[2 + i] = &indices[i];
    extents[i] = indexed_array.shape[i];
    strides[i] = indexed_array.strides[i];
  }
  collapse_axes(lists, 2 + count);
  ArrayView* rows[] = {&listed, &indexed};
  collapse_axes(rows, 2);
}

}  // namespace rensa::operations
