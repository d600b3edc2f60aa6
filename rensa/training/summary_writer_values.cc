// Histograms and pictures of event files.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "rensa/array/creation.h"
#include "rensa/array/histogram.h"
#include "rensa/array/math.h"
#include "rensa/array/routines.h"
#include "rensa/array/ufuncs/ufuncs.h"
#include "rensa/core/error.h"
#include "rensa/data/images/png.h"
#include "rensa/serializers/protobuf.h"
#include "rensa/training/summary_writer_internal.h"

namespace rensa::training {

using serializers::ProtobufWriter;

// --- histograms ---

const std::vector<double>& histogram_limits() {
  static const std::vector<double> limits = [] {
    std::vector<double> positive, all;
    for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    for (auto limit = positive.rbegin(); limit != positive.rend(); ++limit) all.push_back(-*limit);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

namespace {

/// What a HistogramProto says of the finite elements, on the host.
struct Distribution {
  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> counts;  // of elements from one limit to the next
};

Distribution distribution_of(const Array& values) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (dtype_kind(values.dtype()) == 'c') {
    throw DtypeError(
        fmt::format("add_histogram: {} is complex, which has no order", values.view().describe()));
  }
  Distribution found;
  found.counts.resize(histogram_limits().size() - 1);
  if (values.size() == 0) return found;
  Array x = values.astype(float64, false), finite = xp::isfinite(x);
  Array sums = xp::stack(std::vector<Array>{
      xp::min(x, {.initial = infinity, .where = finite}),
      xp::max(x, {.initial = -infinity, .where = finite}), xp::sum(finite, {.dtype = float64}),
      xp::sum(x, {.where = finite}), xp::sum(xp::square(x), {.where = finite})});
  Array counts = xp::histogram(x, xp::array(histogram_limits(), x.device())).hist;
  std::vector<double> all =
      xp::concatenate(std::vector<Array>{sums, counts.astype(float64)}).to_vector<double>();
  std::copy(all.begin() + 5, all.end(), found.counts.begin());
  if (all[2] == 0) return found;
  found.min = all[0], found.max = all[1], found.count = all[2];
  found.sum = all[3], found.sum_of_squares = all[4];
  return found;
}

}  // namespace

std::string histogram_message(const Array& values) {
  const std::vector<double>& limits = histogram_limits();
  Distribution found = distribution_of(values);
  // From the first bucket with elements to the last one. A bucket has its right end alone, so an
  // empty one in front says where the first begins.
  auto is_used = [](double count) { return count > 0; };
  auto first = std::find_if(found.counts.begin(), found.counts.end(), is_used);
  auto last = std::find_if(found.counts.rbegin(), found.counts.rend(), is_used).base();
  std::vector<double> buckets{0}, ends{0};
  if (first != found.counts.end()) {
    buckets.insert(buckets.end(), first, last);
    ends.assign(limits.begin() + (first - found.counts.begin()),
                limits.begin() + (last - found.counts.begin()) + 1);
  }
  ProtobufWriter histogram;
  histogram.real64(1, found.min);
  histogram.real64(2, found.max);
  histogram.real64(3, found.count);
  histogram.real64(4, found.sum);
  histogram.real64(5, found.sum_of_squares);
  histogram.packed(6, ends);
  histogram.packed(7, buckets);
  return histogram.text();
}

// --- pictures ---

namespace {

/// (height, width, channels).
Array in_rows(const Array& image, const std::string& dataformats) {
  if (dataformats != "CHW" && dataformats != "HWC" && dataformats != "HW") {
    throw ValueError(fmt::format(
        "add_image: the dataformats \"{}\"; give \"CHW\", \"HWC\" or \"HW\"", dataformats));
  }
  bool fits = image.ndim() == static_cast<int>(dataformats.size());
  Array rows;
  if (fits) {
    rows = dataformats == "CHW"   ? xp::transpose(image, {1, 2, 0})
           : dataformats == "HWC" ? image
                                  : image.reshape({image.shape(0), image.shape(1), 1});
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    fits = rows.size() > 0 && rows.shape(2) <= 4 && rows.shape(0) <= most && rows.shape(1) <= most;
  }
  if (fits) return rows;
  throw ShapeError(fmt::format(
      "add_image: {} is no picture of 1 to 4 channels as \"{}\"; give the dataformats that it has",
      image.view().describe(), dataformats));
}

Array as_uint8(const Array& image) {
  if (image.dtype() == uint8) return image;
  if (dtype_kind(image.dtype()) != 'f') {
    throw DtypeError(fmt::format("add_image: {}; pictures are uint8, or floats from 0 to 1",
                                 image.view().describe()));
  }
  Array shares = xp::clip(xp::nan_to_num(image.astype(float32, false)), 0, 1);
  return xp::rint(shares * 255.f).astype(uint8);
}

}  // namespace

std::string image_message(const Array& image, const std::string& dataformats) {
  Array pixels = as_uint8(in_rows(image, dataformats)).ascontiguous().to(cpu());
  ProtobufWriter message;
  message.integer(1, pixels.shape(0));
  message.integer(2, pixels.shape(1));
  message.integer(3, pixels.shape(2));
  message.bytes(4, images::encode_png(pixels));
  return message.text();
}

}  // namespace rensa::training
