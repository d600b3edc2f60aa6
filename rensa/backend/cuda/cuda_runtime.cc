// The CUDA runtime as device/cuda_runtime.h wants it: devices, streams, events, memory of the
// driver.
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "rensa/backend/cuda/check.h"
#include "rensa/backend/cuda/driver.h"
#include "rensa/backend/cuda/library.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/memory_file.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/nvml.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda::runtime {

namespace {

cudaStream_t as_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t as_event(void* handle) { return static_cast<cudaEvent_t>(handle); }

struct DeviceCount {
  int count = 0;
  cudaError_t error;

  DeviceCount() : error(cudaGetDeviceCount(&count)) {
    if (error == cudaSuccess) return;
    count = 0;
    (void)cudaGetLastError();
  }
  static const DeviceCount& instance() {
    static const DeviceCount counted;
    return counted;
  }
};

/// For destructors, and for the end of the program, when the driver may be gone already.
void forgive(cudaError_t error) noexcept {
  if (error != cudaSuccess) (void)cudaGetLastError();
}

/// Whether work of that state is over, as all work of a device is that has failed.
bool is_over(cudaError_t state) noexcept {
  forgive(state);
  return state != cudaErrorNotReady;
}

}  // namespace

int device_count() noexcept { return DeviceCount::instance().count; }

std::string why_no_device() {
  cudaError_t error = DeviceCount::instance().error;
  if (error == cudaSuccess) return "the CUDA driver shows no GPU (see CUDA_VISIBLE_DEVICES)";
  return fmt::format("CUDA says {} ({}); is the NVIDIA driver installed and loaded?",
                     cudaGetErrorString(error), cudaGetErrorName(error));
}

void set_device(Device device) {
  constinit thread_local int current = -1;
  if (device.index == current) return;
  RENSA_CUDA_CALL(cudaSetDevice(device.index));
  current = device.index;
}

MemoryInfo memory_info(Device device) {
  set_device(device);
  std::size_t free = 0, total = 0;
  RENSA_CUDA_CALL(cudaMemGetInfo(&free, &total));
  return {static_cast<std::int64_t>(free), static_cast<std::int64_t>(total)};
}

std::string device_name(Device device) {
  cudaDeviceProp properties;
  RENSA_CUDA_CALL(cudaGetDeviceProperties(&properties, device.index));
  return properties.name;
}

std::string pci_bus_id(Device device) {
  char text[32];
  RENSA_CUDA_CALL(cudaDeviceGetPCIBusId(text, sizeof(text), device.index));
  return text;
}

std::map<std::string, int> device_attributes(Device device) {
  std::map<std::string, int> attributes;
  auto ask = [&](const char* name, cudaDeviceAttr attribute) {
    RENSA_CUDA_CALL(cudaDeviceGetAttribute(&attributes[name], attribute, device.index));
  };
#define RENSA_ATTRIBUTE(name) ask(#name, cudaDevAttr##name);
  RENSA_ATTRIBUTE(AsyncEngineCount)
  RENSA_ATTRIBUTE(CanMapHostMemory)
  RENSA_ATTRIBUTE(ClockRate)
  RENSA_ATTRIBUTE(ComputeCapabilityMajor)
  RENSA_ATTRIBUTE(ComputeCapabilityMinor)
  RENSA_ATTRIBUTE(ComputeMode)
  RENSA_ATTRIBUTE(ComputePreemptionSupported)
  RENSA_ATTRIBUTE(ConcurrentKernels)
  RENSA_ATTRIBUTE(ConcurrentManagedAccess)
  RENSA_ATTRIBUTE(CooperativeLaunch)
  RENSA_ATTRIBUTE(DirectManagedMemAccessFromHost)
  RENSA_ATTRIBUTE(EccEnabled)
  RENSA_ATTRIBUTE(GlobalL1CacheSupported)
  RENSA_ATTRIBUTE(GlobalMemoryBusWidth)
  RENSA_ATTRIBUTE(HostNativeAtomicSupported)
  RENSA_ATTRIBUTE(Integrated)
  RENSA_ATTRIBUTE(IsMultiGpuBoard)
  RENSA_ATTRIBUTE(KernelExecTimeout)
  RENSA_ATTRIBUTE(L2CacheSize)
  RENSA_ATTRIBUTE(LocalL1CacheSupported)
  RENSA_ATTRIBUTE(ManagedMemory)
  RENSA_ATTRIBUTE(MaxBlockDimX)
  RENSA_ATTRIBUTE(MaxBlockDimY)
  RENSA_ATTRIBUTE(MaxBlockDimZ)
  RENSA_ATTRIBUTE(MaxBlocksPerMultiprocessor)
  RENSA_ATTRIBUTE(MaxGridDimX)
  RENSA_ATTRIBUTE(MaxGridDimY)
  RENSA_ATTRIBUTE(MaxGridDimZ)
  RENSA_ATTRIBUTE(MaxPitch)
  RENSA_ATTRIBUTE(MaxRegistersPerBlock)
  RENSA_ATTRIBUTE(MaxRegistersPerMultiprocessor)
  RENSA_ATTRIBUTE(MaxSharedMemoryPerBlock)
  RENSA_ATTRIBUTE(MaxSharedMemoryPerBlockOptin)
  RENSA_ATTRIBUTE(MaxSharedMemoryPerMultiprocessor)
  RENSA_ATTRIBUTE(MaxThreadsPerBlock)
  RENSA_ATTRIBUTE(MaxThreadsPerMultiProcessor)
  RENSA_ATTRIBUTE(MemoryClockRate)
  RENSA_ATTRIBUTE(MemoryPoolsSupported)
  RENSA_ATTRIBUTE(MultiGpuBoardGroupID)
  RENSA_ATTRIBUTE(MultiProcessorCount)
  RENSA_ATTRIBUTE(PageableMemoryAccess)
  RENSA_ATTRIBUTE(PciBusId)
  RENSA_ATTRIBUTE(PciDeviceId)
  RENSA_ATTRIBUTE(PciDomainId)
  RENSA_ATTRIBUTE(ReservedSharedMemoryPerBlock)
  RENSA_ATTRIBUTE(SingleToDoublePrecisionPerfRatio)
  RENSA_ATTRIBUTE(StreamPrioritiesSupported)
  RENSA_ATTRIBUTE(TccDriver)
  RENSA_ATTRIBUTE(TextureAlignment)
  RENSA_ATTRIBUTE(TexturePitchAlignment)
  RENSA_ATTRIBUTE(TotalConstantMemory)
  RENSA_ATTRIBUTE(UnifiedAddressing)
  RENSA_ATTRIBUTE(WarpSize)
#undef RENSA_ATTRIBUTE
  return attributes;
}

std::string describe_system() {
  int driver = 0, runtime = 0;
  forgive(cudaDriverGetVersion(&driver));
  forgive(cudaRuntimeGetVersion(&runtime));
  auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  std::string text = fmt::format("CUDA runtime: {}, driver for up to: {}\n", version(runtime),
                                 driver == 0 ? "none" : version(driver));
  for (int i = 0; i < device_count(); ++i) {
    cudaDeviceProp properties;
    if (cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      forgive(error);
      continue;
    }
    text += fmt::format("cuda:{}: {}, compute capability {}.{}, {:.1f} GiB\n", i, properties.name,
                        properties.major, properties.minor,
                        static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  }
  for (const auto* source :
       {&cublaslt_source(), &cublas_source(), &cusolver_source(), &cufft_source(), &nccl_source(),
        &nvrtc_source(), &cudnn_source(), &cupti_source(), &nvml_source()}) {
    text += describe_library(*source) + "\n";
  }
  return text;
}

// --- streams and events ---

void* create_stream(Device device, unsigned flags, int priority) {
  set_device(device);
  cudaStream_t stream = nullptr;
  unsigned kind = (flags & cuda::non_blocking) ? cudaStreamNonBlocking : cudaStreamDefault;
  RENSA_CUDA_CALL(cudaStreamCreateWithPriority(&stream, kind, priority));
  return stream;
}

void destroy_stream(void* stream) noexcept { forgive(cudaStreamDestroy(as_stream(stream))); }
void* legacy_stream() noexcept { return cudaStreamLegacy; }

void synchronize_stream(void* stream) { RENSA_CUDA_CALL(cudaStreamSynchronize(as_stream(stream))); }

bool stream_done(void* stream) {
  cudaError_t state = cudaStreamQuery(as_stream(stream));
  if (state != cudaErrorNotReady) RENSA_CUDA_CALL(state);
  return is_over(state);
}

void synchronize_device(Device device) {
  set_device(device);
  RENSA_CUDA_CALL(cudaDeviceSynchronize());
}

int stream_priority(void* stream) {
  int priority = 0;
  if (stream == legacy_stream()) return priority;  // which nobody made with another
  RENSA_CUDA_CALL(cudaStreamGetPriority(as_stream(stream), &priority));
  return priority;
}

bool stream_non_blocking(void* stream) {
  unsigned flags = 0;
  RENSA_CUDA_CALL(cudaStreamGetFlags(as_stream(stream), &flags));
  return (flags & cudaStreamNonBlocking) != 0;
}

PriorityRange priority_range(Device device) {
  set_device(device);
  PriorityRange range{};
  RENSA_CUDA_CALL(cudaDeviceGetStreamPriorityRange(&range.last, &range.first));
  return range;
}

void launch_host_func(void* stream, void (*function)(void*), void* argument) {
  RENSA_CUDA_CALL(cudaLaunchHostFunc(as_stream(stream), function, argument));
}

void* create_event(Device device, EventOptions options) {
  set_device(device);
  unsigned flags = cudaEventDefault;
  if (!options.timing) flags |= cudaEventDisableTiming;
  if (options.blocking) flags |= cudaEventBlockingSync;
  if (options.interprocess) flags |= cudaEventInterprocess;
  cudaEvent_t event = nullptr;
  RENSA_CUDA_CALL(cudaEventCreateWithFlags(&event, flags));
  return event;
}

std::string event_ipc_handle(void* event) {
  cudaIpcEventHandle_t handle;
  RENSA_CUDA_CALL(cudaIpcGetEventHandle(&handle, as_event(event)));
  return std::string(handle.reserved, sizeof(handle.reserved));
}

void* open_event(Device device, const std::string& ipc_handle) {
  set_device(device);
  cudaIpcEventHandle_t handle{};
  std::memcpy(handle.reserved, ipc_handle.data(),
              std::min(ipc_handle.size(), sizeof(handle.reserved)));
  cudaEvent_t event = nullptr;
  RENSA_CUDA_CALL(cudaIpcOpenEventHandle(&event, handle));
  return event;
}

void destroy_event(void* event) noexcept { forgive(cudaEventDestroy(as_event(event))); }

void record_event(void* event, void* stream) {
  RENSA_CUDA_CALL(cudaEventRecord(as_event(event), as_stream(stream)));
}

void wait_event(void* stream, void* event) {
  std::shared_lock<std::shared_mutex> hold(stream_order());
  RENSA_CUDA_CALL(cudaStreamWaitEvent(as_stream(stream), as_event(event), 0));
}

void synchronize_event(void* event) { RENSA_CUDA_CALL(cudaEventSynchronize(as_event(event))); }

bool event_done(void* event) {
  cudaError_t state = cudaEventQuery(as_event(event));
  if (state != cudaErrorNotReady) RENSA_CUDA_CALL(state);
  return is_over(state);
}

float elapsed_ms(void* start, void* stop) {
  float ms = 0;
  RENSA_CUDA_CALL(cudaEventElapsedTime(&ms, as_event(start), as_event(stop)));
  return ms;
}

// --- graphs ---

void begin_capture(void* stream) {
  RENSA_CUDA_CALL(cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeRelaxed));
}

void* end_capture(void* stream) {
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(as_stream(stream), &graph);
  if (error != cudaSuccess && graph) forgive(cudaGraphDestroy(graph));
  RENSA_CUDA_CALL(error);
  return graph;
}

bool stream_capturing(void* stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  RENSA_CUDA_CALL(cudaStreamIsCapturing(as_stream(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

void give_to_graph(void* graph, void* object, void (*destroy)(void*)) {
  cudaUserObject_t counted = nullptr;
  cudaError_t error =
      cudaUserObjectCreate(&counted, object, destroy, 1, cudaUserObjectNoDestructorSync);
  if (error != cudaSuccess) destroy(object);
  RENSA_CUDA_CALL(error);
  RENSA_CUDA_CALL(cudaGraphRetainUserObject(static_cast<cudaGraph_t>(graph), counted, 1,
                                            cudaGraphUserObjectMove));
}

void* instantiate_graph(void* graph) {
  cudaGraphExec_t executable = nullptr;
  RENSA_CUDA_CALL(cudaGraphInstantiate(&executable, static_cast<cudaGraph_t>(graph), 0));
  return executable;
}

void upload_graph(void* executable, void* stream) {
  RENSA_CUDA_CALL(cudaGraphUpload(static_cast<cudaGraphExec_t>(executable), as_stream(stream)));
}

void launch_graph(void* executable, void* stream) {
  RENSA_CUDA_CALL(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable), as_stream(stream)));
}

void destroy_graph(void* graph, void* executable) noexcept {
  if (executable) forgive(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable)));
  if (graph) forgive(cudaGraphDestroy(static_cast<cudaGraph_t>(graph)));
}

std::size_t graph_nodes(void* graph) {
  std::size_t count = 0;
  RENSA_CUDA_CALL(cudaGraphGetNodes(static_cast<cudaGraph_t>(graph), nullptr, &count));
  return count;
}

std::string graph_dot(void* graph) {
  MemoryFile file("rensa graph");
  RENSA_CUDA_CALL(cudaGraphDebugDotPrint(static_cast<cudaGraph_t>(graph), file.path().c_str(),
                                         cudaGraphDebugDotFlagsVerbose));
  return file.contents();
}

// --- memory ---

void* allocate_device(Device device, std::size_t nbytes) {
  set_device(device);
  void* data = nullptr;
  cudaError_t error = cudaMalloc(&data, nbytes);
  if (error == cudaErrorMemoryAllocation) {
    forgive(error);
    return nullptr;
  }
  RENSA_CUDA_CALL(error);
  return data;
}

void free_device(void* data) noexcept {
  std::shared_lock<std::shared_mutex> hold(stream_order());
  forgive(cudaFree(data));
}

void zero_async(void* data, std::size_t nbytes, void* stream) {
  RENSA_CUDA_CALL(cudaMemsetAsync(data, 0, nbytes, as_stream(stream)));
}

ErrorWord* make_error_word(Device device, void** device_address) {
  set_device(device);
  void* word = nullptr;
  RENSA_CUDA_CALL(
      cudaHostAlloc(&word, sizeof(ErrorWord), cudaHostAllocMapped | cudaHostAllocPortable));
  std::memset(word, 0, sizeof(ErrorWord));
  RENSA_CUDA_CALL(cudaHostGetDevicePointer(device_address, word, 0));
  return static_cast<ErrorWord*>(word);
}

std::string memory_ipc_handle(Device device, const void* data, std::int64_t* offset) {
  set_device(device);
  CUdeviceptr begin = 0, at = reinterpret_cast<CUdeviceptr>(data);
  std::size_t nbytes = 0;
  if (CUresult result = driver().mem_get_address_range(&begin, &nbytes, at);
      result != CUDA_SUCCESS) {
    throw CudaError(fmt::format("ipc_handle: the CUDA driver says {}", driver_error_text(result)));
  }
  *offset = static_cast<std::int64_t>(at - begin);
  cudaIpcMemHandle_t handle;
  RENSA_CUDA_CALL(cudaIpcGetMemHandle(&handle, reinterpret_cast<void*>(begin)));
  return std::string(handle.reserved, sizeof(handle.reserved));
}

void* open_memory(Device device, const std::string& ipc_handle) {
  set_device(device);
  cudaIpcMemHandle_t handle{};
  std::memcpy(handle.reserved, ipc_handle.data(),
              std::min(ipc_handle.size(), sizeof(handle.reserved)));
  void* memory = nullptr;
  RENSA_CUDA_CALL(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
  return memory;
}

void close_memory(Device device, void* memory) noexcept {
  try {
    set_device(device);
  } catch (const Error&) {}  // it has failed: there is nothing left to close
  forgive(cudaIpcCloseMemHandle(memory));
}

// --- limits ---

namespace {

cudaLimit limit_of(Limit limit) {
  switch (limit) {
    case Limit::stack_size: return cudaLimitStackSize;
    case Limit::printf_fifo_size: return cudaLimitPrintfFifoSize;
    case Limit::malloc_heap_size: return cudaLimitMallocHeapSize;
    case Limit::dev_runtime_pending_launch_count: return cudaLimitDevRuntimePendingLaunchCount;
    case Limit::max_l2_fetch_granularity: return cudaLimitMaxL2FetchGranularity;
    case Limit::persisting_l2_cache_size: return cudaLimitPersistingL2CacheSize;
  }
  throw ValueError("no such limit");
}

}  // namespace

std::size_t get_limit(Device device, Limit limit) {
  set_device(device);
  std::size_t value = 0;
  RENSA_CUDA_CALL(cudaDeviceGetLimit(&value, limit_of(limit)));
  return value;
}

void set_limit(Device device, Limit limit, std::size_t value) {
  set_device(device);
  RENSA_CUDA_CALL(cudaDeviceSetLimit(limit_of(limit), value));
}

// --- profilers ---

bool ranges_on() {
  static const bool on =
      environment::flag("RENSA_NVTX").value_or(std::getenv("NVTX_INJECTION64_PATH") != nullptr);
  return on;
}

void push_range(const char* name) noexcept { nvtxRangePushA(name); }
void pop_range() noexcept { nvtxRangePop(); }

void push_range(const char* name, std::uint32_t argb) noexcept {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  if (argb != 0) {
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = argb;
  }
  nvtxRangePushEx(&attributes);
}

void mark(const char* message) noexcept { nvtxMarkA(message); }
void start_profiler() { RENSA_CUDA_CALL(cudaProfilerStart()); }
void stop_profiler() { RENSA_CUDA_CALL(cudaProfilerStop()); }

}  // namespace rensa::cuda::runtime
