// Arrays for tests of the backend alone: memory, a view that may be strided, and elements as plain
// numbers.
#pragma once

#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include "rensa/core/array_view.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/operation.h"

namespace rensa::testing {

/// How a test array lies in memory.
enum class Layout { contiguous, transposed, reversed, spread };
inline constexpr Layout kLayouts[] = {Layout::contiguous, Layout::transposed, Layout::reversed,
                                      Layout::spread};

class TestArray {
 public:
  TestArray() = default;
  TestArray(const Shape& shape, Dtype dtype, Layout layout = Layout::contiguous) {
    std::int64_t size = itemsize(dtype), step = layout == Layout::spread ? 3 : 1;
    view_ = {nullptr, dtype, cpu(), shape, contiguous_strides(shape, size * step)};
    if (layout == Layout::transposed) {  // Fortran order
      std::int64_t stride = size;
      for (int i = 0; i < shape.ndim(); ++i) {
        view_.strides[i] = stride;
        stride *= std::max<std::int64_t>(shape[i], 1);
      }
    }
    storage_ = allocate(std::max<std::int64_t>(1, shape.total() * size * step), cpu());
    std::memset(storage_->data(), 0x5a, static_cast<std::size_t>(storage_->nbytes()));
    view_.data = storage_->data();
    if (layout == Layout::reversed && shape.total() > 0) {
      for (int i = 0; i < shape.ndim(); ++i) {
        view_.data += (shape[i] - 1) * view_.strides[i];
        view_.strides[i] = -view_.strides[i];
      }
    }
  }

  const ArrayView& view() const { return view_; }
  ArrayView& view() { return view_; }
  Operand operand() const { return {view_, storage_.get()}; }
  std::int64_t size() const { return view_.size(); }

  char* at(std::int64_t index) const {
    char* p = view_.data;
    for (int i = view_.ndim() - 1; i >= 0; --i) {
      p += index % view_.shape[i] * view_.strides[i];
      index /= view_.shape[i];
    }
    return p;
  }
  void set(std::int64_t index, std::complex<double> value) const {
    visit_dtype(view_.dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (requires { typename T::value_type; }) {
        *reinterpret_cast<T*>(at(index)) = T(value);
      } else {
        *reinterpret_cast<T*>(at(index)) = static_cast<T>(static_cast<long long>(value.real()));
        if constexpr (std::is_floating_point_v<T> || sizeof(T) == 2) set_real(index, value.real());
      }
    });
  }
  std::complex<double> get(std::int64_t index) const {
    return visit_dtype(view_.dtype, [&](auto zero) -> std::complex<double> {
      using T = decltype(zero);
      T value = *reinterpret_cast<T*>(at(index));
      if constexpr (requires { typename T::value_type; }) return std::complex<double>(value);
      else return static_cast<double>(value);
    });
  }
  double real(std::int64_t index) const { return get(index).real(); }

  /// Random elements: small integers, halves for floats.
  void fill(std::uint64_t seed) const {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<int> number(dtype_kind(view_.dtype) == 'u' ? 0 : -9, 9);
    bool floating = dtype_kind(view_.dtype) == 'f' || dtype_kind(view_.dtype) == 'c';
    for (std::int64_t i = 0; i < size(); ++i) {
      double re = number(random), im = number(random);
      set(i, floating ? std::complex<double>(re / 2, im / 2) : re);
    }
  }
  std::vector<char> bytes() const {
    std::vector<char> all;
    for (std::int64_t i = 0; i < size(); ++i) {
      all.insert(all.end(), at(i), at(i) + itemsize(view_.dtype));
    }
    return all;
  }

 private:
  void set_real(std::int64_t index, double value) const {
    switch (view_.dtype) {
      case Dtype::float16:
        *reinterpret_cast<half_t*>(at(index)) = half_t(static_cast<float>(value));
        break;
      case Dtype::bfloat16:
        *reinterpret_cast<bfloat16_t*>(at(index)) = bfloat16_t(static_cast<float>(value));
        break;
      case Dtype::float32: *reinterpret_cast<float*>(at(index)) = static_cast<float>(value); break;
      case Dtype::float64: *reinterpret_cast<double*>(at(index)) = value; break;
      default: break;
    }
  }

  StoragePtr storage_;
  ArrayView view_;
};

inline std::vector<Dtype> all_dtypes() {
  std::vector<Dtype> dtypes;
  for (int i = 0; i < kNumDtypes; ++i) dtypes.push_back(static_cast<Dtype>(i));
  return dtypes;
}

/// Runs `body` with each of these numbers of threads.
inline void for_thread_counts(const std::function<void(int)>& body) {
  int previous = get_num_threads();
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    body(threads);
  }
  set_num_threads(previous);
}

}  // namespace rensa::testing
