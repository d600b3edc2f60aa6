// Rows of C-contiguous arrays of any floating dtype, as values of V: where they lie, or in a buffer
// that they are converted into.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/array_view.h"
#include "rensa/portable/element_types.h"

namespace rensa::host {

/// Rows of n elements that are read, or up to n in another way.
template <class V> class RowReader {
 public:
  RowReader(const ArrayView& view, std::int64_t n) : data_(view.data), n_(n) {
    if (view.dtype == value_dtype(compute_type_of<V>)) return;
    size_ = itemsize(view.dtype);
    load_ = kernels().load_of(view.dtype, compute_type_of<V>);
    room_.resize(static_cast<std::size_t>(n));
  }
  /// Those from element number `first` on, until the next call.
  const V* read(std::int64_t first) { return read(first, n_); }
  const V* read(std::int64_t first, std::int64_t n) {
    if (!load_) return reinterpret_cast<const V*>(data_) + first;
    load_(n, data_ + first * size_, size_, room_.data());
    return room_.data();
  }

 private:
  const char* data_;
  std::int64_t n_, size_ = sizeof(V);
  LoadKernel load_ = nullptr;
  std::vector<V> room_;
};

/// Rows of n elements that are written.
template <class V> class RowWriter {
 public:
  RowWriter(const ArrayView& view, std::int64_t n) : data_(view.data), n_(n) {
    if (view.dtype == value_dtype(compute_type_of<V>)) return;
    size_ = itemsize(view.dtype);
    store_ = kernels().store_of(view.dtype, compute_type_of<V>);
    room_.resize(static_cast<std::size_t>(n));
  }
  /// Where to put those from element number `first` on, which write() then takes.
  V* target(std::int64_t first) {
    return store_ ? room_.data() : reinterpret_cast<V*>(data_) + first;
  }
  void write(std::int64_t first) {
    if (store_) store_(n_, room_.data(), data_ + first * size_, size_);
  }

 private:
  char* data_;
  std::int64_t n_, size_ = sizeof(V);
  StoreKernel store_ = nullptr;
  std::vector<V> room_;
};

}  // namespace rensa::host
