// Counting the driver's calls with CUPTI's callbacks.
#include "tests/device/driver_calls.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <string_view>

#include "rensa/core/error.h"

#if RENSA_HAS_CUDA
#include <cuda_runtime.h>
#include <cupti.h>

#include "rensa/backend/cuda/library.h"
#endif

namespace rensa::testing {

namespace {

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> prefixes) {
  for (std::string_view prefix : prefixes) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

template <class Predicate> std::int64_t DriverCalls::sum(Predicate&& counts) const {
  std::int64_t total = 0;
  for (const auto& [name, count] : calls) {
    if (counts(std::string_view(name))) total += count;
  }
  return total;
}

std::int64_t DriverCalls::waits() const {
  return sum([](std::string_view name) {
    return is_any_of(name, {"cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"});
  });
}

std::int64_t DriverCalls::waiting_copies() const {
  return pageable_copies + sum([](std::string_view name) {
           return name.starts_with("cuMemcpy") && name.find("Async") == name.npos;
         });
}

std::int64_t DriverCalls::allocations() const {
  return sum([](std::string_view name) {
    return is_any_of(name, {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister",
                            "cuMemHostUnregister", "cuMemCreate", "cuMemRelease"});
  });
}

std::int64_t DriverCalls::module_loads() const {
  return sum([](std::string_view name) {
    return is_any_of(name, {"cuModuleLoad", "cuLibraryLoad"});
  });
}

std::string DriverCalls::str() const {
  std::string text = fmt::format("pageable copies {}", pageable_copies);
  for (const auto& [name, count] : calls) text += fmt::format(", {} {}", name, count);
  return text;
}

DriverCalls operator-(const DriverCalls& later, const DriverCalls& earlier) {
  DriverCalls difference = later;
  difference.pageable_copies -= earlier.pageable_copies;
  for (const auto& [name, count] : earlier.calls) {
    if ((difference.calls[name] -= count) == 0) difference.calls.erase(name);
  }
  return difference;
}

#if RENSA_HAS_CUDA

namespace {

struct Cupti {
  decltype(&::cuptiSubscribe) subscribe;
  decltype(&::cuptiUnsubscribe) unsubscribe;
  decltype(&::cuptiEnableDomain) enable_domain;
  decltype(&::cuptiGetCallbackName) callback_name;
  decltype(&::cuptiGetResultString) result_string;
};

const Cupti& cupti() {
  static const Cupti table = [] {
    cuda::Library library(cuda::cupti_source());
    Cupti t;
    library.bind("cuptiSubscribe", t.subscribe);
    library.bind("cuptiUnsubscribe", t.unsubscribe);
    library.bind("cuptiEnableDomain", t.enable_domain);
    library.bind("cuptiGetCallbackName", t.callback_name);
    library.bind("cuptiGetResultString", t.result_string);
    return t;
  }();
  return table;
}

void check(const char* what, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "an unknown error";
  cupti().result_string(result, &text);
  throw CudaError(fmt::format("{}: {}", what, text));
}

bool is_pageable(const void* pointer) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, pointer) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

/// Whether the call about to be made is an asynchronous copy that will wait after all.
bool copies_pageable_memory(CUpti_CallbackId id, const void* parameters) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2_ptsz:
      return is_pageable(static_cast<const cuMemcpyHtoDAsync_v2_params*>(parameters)->srcHost);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz:
      return is_pageable(static_cast<const cuMemcpyDtoHAsync_v2_params*>(parameters)->dstHost);
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz: {
      auto* copy = static_cast<const cuMemcpyAsync_params*>(parameters);
      return is_pageable(reinterpret_cast<const void*>(copy->dst)) ||
             is_pageable(reinterpret_cast<const void*>(copy->src));
    }
    default: return false;
  }
}

thread_local bool asking = false;  // the counter's own calls do not count

}  // namespace

struct DriverCallCounter::Impl {
  CUpti_SubscriberHandle subscriber = nullptr;
  std::array<std::atomic<std::int64_t>, CUPTI_DRIVER_TRACE_CBID_SIZE> counts{};
  std::atomic<std::int64_t> pageable_copies{0};

  static void CUPTIAPI called(void* self, CUpti_CallbackDomain, CUpti_CallbackId id,
                              const void* data) {
    auto* call = static_cast<const CUpti_CallbackData*>(data);
    if (asking || call->callbackSite != CUPTI_API_ENTER) return;
    asking = true;
    auto* impl = static_cast<Impl*>(self);
    if (id < impl->counts.size()) impl->counts[id].fetch_add(1, std::memory_order_relaxed);
    if (copies_pageable_memory(id, call->functionParams)) impl->pageable_copies.fetch_add(1);
    asking = false;
  }
};

DriverCallCounter::DriverCallCounter() : impl_(std::make_unique<Impl>()) {
  check("cuptiSubscribe", cupti().subscribe(&impl_->subscriber, &Impl::called, impl_.get()));
  CUptiResult enabled = cupti().enable_domain(1, impl_->subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  if (enabled != CUPTI_SUCCESS) cupti().unsubscribe(impl_->subscriber);
  check("cuptiEnableDomain", enabled);
}

bool DriverCallCounter::can_count() {
  CUpti_SubscriberHandle subscriber = nullptr;
  CUptiResult result = cupti().subscribe(&subscriber, &Impl::called, nullptr);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) return false;
  check("cuptiSubscribe", result);
  check("cuptiUnsubscribe", cupti().unsubscribe(subscriber));
  return true;
}

DriverCallCounter::~DriverCallCounter() { cupti().unsubscribe(impl_->subscriber); }

DriverCalls DriverCallCounter::snapshot() const {
  DriverCalls result;
  result.pageable_copies = impl_->pageable_copies;
  for (std::size_t id = 0; id < impl_->counts.size(); ++id) {
    std::int64_t count = impl_->counts[id];
    if (count == 0) continue;
    const char* name = nullptr;
    check("cuptiGetCallbackName",
          cupti().callback_name(CUPTI_CB_DOMAIN_DRIVER_API, static_cast<std::uint32_t>(id), &name));
    result.calls[name] = count;
  }
  return result;
}

#else

struct DriverCallCounter::Impl {};
DriverCallCounter::DriverCallCounter() { throw CudaError("this build of Rensa has no CUDA"); }
DriverCallCounter::~DriverCallCounter() = default;
bool DriverCallCounter::can_count() { return false; }
DriverCalls DriverCallCounter::snapshot() const { return {}; }

#endif

}  // namespace rensa::testing
