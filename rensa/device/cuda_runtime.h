// What device/ needs of the CUDA runtime, as plain functions: backend/cuda defines them with the
// runtime's calls, backend/no_cuda so that they throw. Functions that are noexcept swallow errors:
// they run in destructors and while the program ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "rensa/core/device.h"
#include "rensa/device/devices.h"
#include "rensa/device/error_word.h"
#include "rensa/device/launcher.h"
#include "rensa/device/limits.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/stream.h"

namespace rensa::cuda::runtime {

/// GPUs that the driver shows, 0 when there is none or no driver.
int device_count() noexcept;
/// Why device_count() is 0: "this build of Rensa has no CUDA ..." or what the driver said.
std::string why_no_device();
/// Makes `device` the thread's current one; a cached comparison when it is already.
void set_device(Device device);
MemoryInfo memory_info(Device device);
std::string device_name(Device device);
std::string pci_bus_id(Device device);
/// By the names of cudaDevAttr..., without that.
std::map<std::string, int> device_attributes(Device device);
/// The lines of cuda::diagnose() that come from the driver and the libraries.
std::string describe_system();

void* create_stream(Device device, unsigned flags, int priority);
void destroy_stream(void* stream) noexcept;
/// The handle that stands for a device's legacy stream.
void* legacy_stream() noexcept;
void synchronize_stream(void* stream);
bool stream_done(void* stream);
void synchronize_device(Device device);
int stream_priority(void* stream);
bool stream_non_blocking(void* stream);
PriorityRange priority_range(Device device);
/// Calls function(argument) on a thread of the driver's, in the stream's order.
void launch_host_func(void* stream, void (*function)(void*), void* argument);

/// Capturing in CUDA's relaxed mode: allocations go on meanwhile.
void begin_capture(void* stream);
/// The cudaGraph_t; throws CudaError, after which the stream captures no more.
void* end_capture(void* stream);
bool stream_capturing(void* stream);
/// destroy(object) is called once neither the graph, nor what is made of it, nor a launch is left;
/// at once when this throws.
void give_to_graph(void* graph, void* object, void (*destroy)(void*));
/// A cudaGraphExec_t.
void* instantiate_graph(void* graph);
void upload_graph(void* executable, void* stream);
void launch_graph(void* executable, void* stream);
void destroy_graph(void* graph, void* executable) noexcept;
std::size_t graph_nodes(void* graph);
/// The graph in the language of Graphviz.
std::string graph_dot(void* graph);

void* create_event(Device device, EventOptions options);
std::string event_ipc_handle(void* event);
void* open_event(Device device, const std::string& ipc_handle);
void destroy_event(void* event) noexcept;
void record_event(void* event, void* stream);
void wait_event(void* stream, void* event);
void synchronize_event(void* event);
bool event_done(void* event);
float elapsed_ms(void* start, void* stop);

/// Memory straight from the driver; null when there is no more.
void* allocate_device(Device device, std::size_t nbytes);
void free_device(void* data) noexcept;
void zero_async(void* data, std::size_t nbytes, void* stream);

/// A zeroed ErrorWord that host and device see, and its address on the device.
ErrorWord* make_error_word(Device device, void** device_address);

std::unique_ptr<MemorySource> device_source(Device device);
/// cudaMallocAsync on a pool of the driver's own, which keeps up to `release_threshold` bytes.
std::unique_ptr<MemorySource> async_source(Device device, std::uint64_t release_threshold);
/// Memory that moves between host and device by itself.
std::unique_ptr<MemorySource> managed_source(Device device);
std::unique_ptr<MemorySource> pinned_source();

/// The bytes that another process opens, and how far `data` lies behind the beginning of the memory
/// that they stand for.
std::string memory_ipc_handle(Device device, const void* data, std::int64_t* offset);
/// The beginning of the memory; close_memory() as often as opened.
void* open_memory(Device device, const std::string& ipc_handle);
void close_memory(Device device, void* memory) noexcept;

std::size_t get_limit(Device device, Limit limit);
void set_limit(Device device, Limit limit, std::size_t value);

/// Named ranges for profilers, around operations. Off unless a profiler is attached or
/// RENSA_NVTX=1.
bool ranges_on();
void push_range(const char* name) noexcept;
void pop_range() noexcept;
/// What the user asks of profilers; without one, and in a build without CUDA, nothing.
void push_range(const char* name, std::uint32_t argb) noexcept;
void mark(const char* message) noexcept;
void start_profiler();
void stop_profiler();

}  // namespace rensa::cuda::runtime
