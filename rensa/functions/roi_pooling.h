// Pooling of regions of interest of images.
#pragma once

#include "rensa/array/axis_list.h"
#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

// Of images x (n, channels, height, width) and regions rois (r, 4), each (y_min, x_min, y_max,
// x_max) of the image that roi_indices (r,), integers, names: y (r, channels, *outsize), for each
// region what its bins have, outsize (a number, or rows and columns) of them. The regions'
// coordinates are multiplied by spatial_scale, and a region has one element at least. Where images
// lie with the channels last they are copied.
//
// x and rois are floating. Only x has a gradient, of any order, with the same bits every time.
// Throw ShapeError, DtypeError, DeviceError, ValueError for another outsize, spatial_scale or
// sampling_ratio; IndexError for an index that x has not, on a GPU at the next wait.

/// The elements of each bin, whose ends are rounded to elements, and may share some: their mean, 0
/// of none.
[[nodiscard]] Variable roi_average_pooling_2d(const Variable& x, const Variable& rois,
                                              const Variable& roi_indices, const AxisList& outsize,
                                              double spatial_scale);
/// The greatest of them, -infinity of none.
[[nodiscard]] Variable roi_max_pooling_2d(const Variable& x, const Variable& rois,
                                          const Variable& roi_indices, const AxisList& outsize,
                                          double spatial_scale);
/// He et al., "Mask R-CNN": the mean of sampling_ratio samples (a number, or rows and columns, of
/// which 0 or nothing stands for as many as there are elements), between elements, linearly.
/// Samples further than an element outside of the image are 0.
[[nodiscard]] Variable roi_average_align_2d(const Variable& x, const Variable& rois,
                                            const Variable& roi_indices, const AxisList& outsize,
                                            double spatial_scale,
                                            const AxisList& sampling_ratio = {});
/// The greatest of them, without those outside; -infinity of none.
[[nodiscard]] Variable roi_max_align_2d(const Variable& x, const Variable& rois,
                                        const Variable& roi_indices, const AxisList& outsize,
                                        double spatial_scale, const AxisList& sampling_ratio = {});
/// roi_max_pooling_2d as Fast R-CNN had it first: rois (r, 5), each (index, x_min, y_min, x_max,
/// y_max), the ends included; 0 of none.
[[nodiscard]] Variable roi_pooling_2d(const Variable& x, const Variable& rois, int outh, int outw,
                                      double spatial_scale);

}  // namespace functions

namespace F = functions;

}  // namespace rensa
