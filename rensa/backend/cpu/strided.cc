// Readers and writers of strided views.
#include "rensa/backend/cpu/strided.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace rensa::host {

namespace {

// Calls f(pointer, count) for the runs along the last axis that make up [begin, begin + n).
template <class F>
void for_each_run(const ArrayView& view, std::int64_t inner, std::int64_t inner_stride,
                  std::int64_t begin, std::int64_t n, const F& f) {
  std::int64_t index[kMaxNdim] = {};
  std::int64_t at = begin % inner, rest = begin / inner;
  char* row = view.data;
  for (int i = view.ndim() - 2; i >= 0; --i) {
    if (i > 0) {
      index[i] = rest % view.shape[i];
      rest /= view.shape[i];
    } else {
      index[i] = rest;
    }
    row += index[i] * view.strides[i];
  }
  while (n > 0) {
    std::int64_t count = std::min(n, inner - at);
    f(row + at * inner_stride, count);
    n -= count;
    at = 0;
    for (int i = view.ndim() - 2; i >= 0; --i) {
      row += view.strides[i];
      if (++index[i] < view.shape[i]) break;
      row -= view.shape[i] * view.strides[i];
      index[i] = 0;
    }
  }
}

bool same_layout(Dtype d, ComputeType type) { return d == value_dtype(type); }

}  // namespace

std::int64_t offset_of(const ArrayView& view, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = view.ndim() - 1; i > 0; --i) {
    offset += index % view.shape[i] * view.strides[i];
    index /= view.shape[i];
  }
  return view.ndim() > 0 ? offset + index * view.strides[0] : 0;
}

Reader::Reader(const ArrayView& view, ComputeType type, bool truth)
    : view_(view), type_(type), truth_(truth && view.dtype != bool_) {
  ArrayView* self = &view_;
  collapse_axes(&self, 1);
  load_ = kernels().load_of(view_.dtype, type);
  value_size_ = itemsize(value_dtype(type));
  if (view_.ndim() > 0) {
    inner_ = view_.shape[view_.ndim() - 1];
    inner_stride_ = view_.strides[view_.ndim() - 1];
  }
  in_place_ =
      !truth_ && same_layout(view_.dtype, type) && (inner_stride_ == value_size_ || inner_ == 1);
  constant_ = std::all_of(view_.strides.begin(), view_.strides.end(),
                          [](std::int64_t stride) { return stride == 0; });
}

void Reader::load_run(std::int64_t n, const char* source, std::int64_t stride, char* values) const {
  if (stride == 0 && n > 1) {  // one element, which is converted once
    load_run(1, source, stride, values);
    return kernels().fill(n - 1, values, value_size_, values + value_size_);
  }
  if (!truth_) return load_(n, source, stride, values);
  // Through the element's own value type, then bool, then the value type that is asked for.
  constexpr std::int64_t kPart = 256;
  alignas(64) char own[kPart * kMaxValueSize];
  char flags[kPart];
  ComputeType own_type = compute_type(view_.dtype);
  const KernelTable& k = kernels();
  for (std::int64_t i = 0; i < n; i += kPart) {
    std::int64_t part = std::min(kPart, n - i);
    k.load_of(view_.dtype, own_type)(part, source + i * stride, stride, own);
    k.store_of(bool_, own_type)(part, own, flags, 1);
    k.load_of(bool_, type_)(part, flags, 1, values + i * value_size_);
  }
}

const void* Reader::read(std::int64_t begin, std::int64_t n, Scratch& scratch) const {
  if (in_place_ && view_.ndim() <= 1) return view_.data + begin * value_size_;
  const char* in_place = nullptr;
  char* values = scratch.bytes;
  for_each_run(view_, inner_, inner_stride_, begin, n, [&](const char* source, std::int64_t count) {
    if (in_place_ && count == n) {
      in_place = source;
    } else {
      load_run(count, source, inner_stride_, values);
      values += count * value_size_;
    }
  });
  return in_place ? in_place : scratch.bytes;
}

Writer::Writer(const ArrayView& view, ComputeType type) : view_(view) {
  ArrayView* self = &view_;
  collapse_axes(&self, 1);
  store_ = kernels().store_of(view_.dtype, type);
  value_size_ = itemsize(value_dtype(type));
  if (view_.ndim() > 0) {
    inner_ = view_.shape[view_.ndim() - 1];
    inner_stride_ = view_.strides[view_.ndim() - 1];
  }
  in_place_ = same_layout(view_.dtype, type) && (inner_stride_ == value_size_ || inner_ == 1);
}

void* Writer::target(std::int64_t begin, std::int64_t n, Scratch& scratch) const {
  if (in_place_ && view_.ndim() <= 1) return view_.data + begin * value_size_;
  void* in_place = nullptr;
  if (in_place_ && begin % inner_ + n <= inner_) {
    for_each_run(view_, inner_, inner_stride_, begin, n,
                 [&](char* destination, std::int64_t) { in_place = destination; });
  }
  return in_place ? in_place : scratch.bytes;
}

void Writer::write(std::int64_t begin, std::int64_t n, const void* values) const {
  if (in_place_ && view_.ndim() <= 1) return;
  const char* source = static_cast<const char*>(values);
  for_each_run(view_, inner_, inner_stride_, begin, n, [&](char* destination, std::int64_t count) {
    if (source != destination) store_(count, source, destination, inner_stride_);
    source += count * value_size_;
  });
}

}  // namespace rensa::host
