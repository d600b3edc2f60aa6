// Arrays end to end, as they are sent to other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "rensa/array/array.h"

namespace rensa::detail {

/// Arrays of one device and dtype.
struct Alike {
  Device device;
  Dtype dtype;
  std::vector<std::size_t> members;  // places among the arrays
};
/// In the order of the first of each.
std::vector<Alike> groups_of(const std::vector<Array>& arrays);

/// Arrays of one device and dtype end to end, in one dimension.
class Ends {
 public:
  Ends(Device device, Dtype dtype) : device_(device), dtype_(dtype) {}
  void add(const Array& a) { arrays_.push_back(a), size_ += a.size(); }
  Device device() const { return device_; }
  Dtype dtype() const { return dtype_; }
  std::int64_t size() const { return size_; }
  Array joined() const;
  /// Gives the arrays the values of `joined` from `at` on.
  void assign(const Array& joined, std::int64_t at = 0) const;

 private:
  Device device_;
  Dtype dtype_;
  std::vector<Array> arrays_;
  std::int64_t size_ = 0;
};

/// What goes at once: larger packs take no less time, and begin later.
constexpr std::int64_t kPackBytes = 25 << 20;

/// The arrays of each dtype and device, end to end, in packs of about kPackBytes: the last ones
/// first, whose gradients are there first. So a captured step exchanges them under backward.
std::vector<Ends> packs_of(const std::vector<Array>& arrays);

/// What is made of one array, such as the mean of it over all ranks.
using MadeOfArray = std::function<Array(const Array&)>;

/// Replaces arrays by what `make` gives for one array of each pack.
void in_packs(const std::vector<Array>& arrays, const MadeOfArray& make);

}  // namespace rensa::detail
