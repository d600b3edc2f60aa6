// What GPUs do, from CUPTI: kernels, copies, memsets and waits, each with the library's operation
// that queued it. CUPTI is opened when the first timeline is recorded.
#include "rensa/device/timeline_span.h"

#if __has_include(<cupti.h>)

#include <cupti.h>
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "rensa/backend/cuda/library.h"
#include "rensa/core/error.h"

namespace rensa::timeline {

namespace {

// Records grow from version to version at their ends; these parts of them are the same from CUDA
// 12.4 on.
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using MemsetRecord = CUpti_ActivityMemset4;
using WaitRecord = CUpti_ActivitySynchronization;

constexpr CUpti_ActivityKind kKinds[] = {
    // The calls' own records are not shown: without them external ids are not recorded.
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,           CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,   CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
};
constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

struct Cupti {
  decltype(&::cuptiActivityRegisterCallbacks) register_callbacks;
  decltype(&::cuptiActivityEnable) enable;
  decltype(&::cuptiActivityDisable) disable;
  decltype(&::cuptiActivityFlushAll) flush_all;
  decltype(&::cuptiActivityGetNextRecord) next_record;
  decltype(&::cuptiActivityPushExternalCorrelationId) push;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop;
  decltype(&::cuptiGetTimestamp) timestamp;
  decltype(&::cuptiGetResultString) result_string;

  Cupti() {
    cuda::Library library(cuda::cupti_source());
    library.bind("cuptiActivityRegisterCallbacks", register_callbacks);
    library.bind("cuptiActivityEnable", enable);
    library.bind("cuptiActivityDisable", disable);
    library.bind("cuptiActivityFlushAll", flush_all);
    library.bind("cuptiActivityGetNextRecord", next_record);
    library.bind("cuptiActivityPushExternalCorrelationId", push);
    library.bind("cuptiActivityPopExternalCorrelationId", pop);
    library.bind("cuptiGetTimestamp", timestamp);
    library.bind("cuptiGetResultString", result_string);
  }
  void check(const char* what, CUptiResult result) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    result_string(result, &text);
    throw CudaError(fmt::format("CUPTI: {}: {}", what, text ? text : "an unknown error"));
  }
};

std::string plain_name(const char* mangled) {
  if (!mangled) return "kernel";
  int status = 0;
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? plain : mangled;
  std::free(plain);
  return name;
}

/// "elementwise_kernel" of "void rensa::(anonymous namespace)::elementwise_kernel<...>(...)".
std::string short_name(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (auto at = name.find(kAnonymous); at != std::string::npos; at = name.find(kAnonymous)) {
    name.erase(at, kAnonymous.size());
  }
  name.resize(std::min(name.find_first_of("<("), name.size()));
  if (auto at = name.find_last_of(" :"); at != std::string::npos) name.erase(0, at + 1);
  return name.empty() ? "kernel" : name;
}

/// Two moments, each on both clocks, between which times are carried over.
struct Clocks {
  std::int64_t ours = 0;
  std::uint64_t theirs = 0;
};

class CuptiSource final : public ActivitySource {
 public:
  static CuptiSource& instance() {
    static auto* source = new CuptiSource;  // throws where there is no CUPTI
    return *source;
  }

  void start() {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      activities_.clear();
      operations_.clear();
    }
    try {
      for (CUpti_ActivityKind kind : kKinds) {
        cupti_.check("cuptiActivityEnable", cupti_.enable(kind));
      }
    } catch (...) {
      stop();
      throw;
    }
    start_ = clocks();
  }

  void push(std::uint64_t id) noexcept override { cupti_.push(kOurs, id); }
  void pop() noexcept override {
    std::uint64_t last = 0;
    cupti_.pop(kOurs, &last);
  }

  std::vector<Activity> finish() override {
    Clocks end = clocks();
    cupti_.flush_all(0);
    stop();
    cupti_.flush_all(0);
    std::lock_guard<std::mutex> hold(mutex_);
    std::vector<Activity> activities = std::move(activities_);
    activities_.clear();
    double rate = end.theirs > start_.theirs ? static_cast<double>(end.ours - start_.ours) /
                                                   static_cast<double>(end.theirs - start_.theirs)
                                             : 1.0;
    auto ours = [&](std::int64_t theirs) {
      auto since = static_cast<double>(theirs - static_cast<std::int64_t>(start_.theirs));
      return start_.ours + static_cast<std::int64_t>(since * rate);
    };
    for (Activity& activity : activities) {
      activity.record.begin_ns = ours(activity.record.begin_ns);
      activity.record.end_ns = ours(activity.record.end_ns);
      // operation_id holds CUPTI's correlation id until here.
      auto found = operations_.find(static_cast<std::uint32_t>(activity.operation_id));
      activity.operation_id = found == operations_.end() ? 0 : found->second;
    }
    return activities;
  }

 private:
  CuptiSource() {
    cupti_.check("cuptiActivityRegisterCallbacks",
                 cupti_.register_callbacks(give_buffer, take_buffer));
  }

  void stop() {
    for (CUpti_ActivityKind kind : kKinds) cupti_.disable(kind);
  }

  /// Read so that the two lie as close together as they can.
  Clocks clocks() const {
    Clocks best;
    std::int64_t shortest = -1;
    for (int i = 0; i < 5; ++i) {
      std::uint64_t theirs = 0;
      std::int64_t before = now_ns();
      cupti_.timestamp(&theirs);
      std::int64_t after = now_ns();
      if (shortest >= 0 && after - before >= shortest) continue;
      shortest = after - before;
      best = {before + shortest / 2, theirs};
    }
    return best;
  }

  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *records = 0;
  }

  static void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                                   std::size_t valid) {
    try {
      instance().parse(buffer, valid);
    } catch (...) {
      // No memory: these records are lost.
    }
    std::free(buffer);
  }

  void parse(std::uint8_t* buffer, std::size_t valid) {
    std::lock_guard<std::mutex> hold(mutex_);
    CUpti_Activity* record = nullptr;
    while (valid > 0 && cupti_.next_record(buffer, valid, &record) == CUPTI_SUCCESS) see(record);
  }

  void see(const CUpti_Activity* any) {
    switch (any->kind) {
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto* record = reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(any);
        if (record->externalKind == kOurs) operations_[record->correlationId] = record->externalId;
        break;
      }
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto* record = reinterpret_cast<const KernelRecord*>(any);
        Record& added = add(Kind::kernel, *record, record->deviceId, record->streamId);
        added.detail = plain_name(record->name);
        added.name = short_name(added.detail);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto* record = reinterpret_cast<const CopyRecord*>(any);
        auto [kind, name] = copy_kind(record->copyKind);
        Record& added = add(kind, *record, record->deviceId, record->streamId);
        added.name = name;
        added.bytes = static_cast<std::int64_t>(record->bytes);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto* record = reinterpret_cast<const PeerCopyRecord*>(any);
        Record& added = add(Kind::copy_on_device, *record, record->deviceId, record->streamId);
        added.name = fmt::format("cuda:{} to cuda:{}", record->srcDeviceId, record->dstDeviceId);
        added.bytes = static_cast<std::int64_t>(record->bytes);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto* record = reinterpret_cast<const MemsetRecord*>(any);
        Record& added = add(Kind::memset, *record, record->deviceId, record->streamId);
        added.name = "memset";
        added.bytes = static_cast<std::int64_t>(record->bytes);
        break;
      }
      case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto* record = reinterpret_cast<const WaitRecord*>(any);
        if (const char* name = wait_name(record->type)) {
          Record& added = add(Kind::wait, *record, 0, 0);
          added.device = cpu();
          added.name = name;
        }
        break;
      }
      default: break;
    }
  }

  template <class T>
  Record& add(Kind kind, const T& record, std::uint32_t device, std::uint32_t stream) {
    Activity& activity = activities_.emplace_back();
    activity.operation_id = record.correlationId;
    activity.record.kind = kind;
    activity.record.begin_ns = static_cast<std::int64_t>(record.start);
    activity.record.end_ns = static_cast<std::int64_t>(record.end);
    activity.record.device = gpu(static_cast<int>(device));
    activity.record.row = stream;
    return activity.record;
  }

  static std::pair<Kind, const char*> copy_kind(std::uint8_t kind) {
    switch (kind) {
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA: return {Kind::copy_to_device, "host to device"};
      case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH: return {Kind::copy_to_host, "device to host"};
      default: return {Kind::copy_on_device, "device to device"};
    }
  }

  /// Null for what makes a stream wait and not the host.
  static const char* wait_name(CUpti_ActivitySynchronizationType type) {
    switch (type) {
      case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return "wait for an event";
      case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return "wait for a stream";
      case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return "wait for a device";
      default: return nullptr;
    }
  }

  Cupti cupti_;
  std::mutex mutex_;
  std::vector<Activity> activities_;
  std::unordered_map<std::uint32_t, std::uint64_t> operations_;  // by correlation id
  Clocks start_;
};

}  // namespace

ActivitySource* start_activity_source(std::string& note) {
  try {
    CuptiSource::instance().start();
    return &CuptiSource::instance();
  } catch (const std::exception& error) {
    note = error.what();
    return nullptr;
  }
}

}  // namespace rensa::timeline

#else

namespace rensa::timeline {

ActivitySource* start_activity_source(std::string& note) {
  note = "this build of Rensa has no CUPTI (cupti.h was not found): GPUs are not in the timeline";
  return nullptr;
}

}  // namespace rensa::timeline

#endif
