// The CUDA runtime of a build without CUDA: there is no device, and whoever names one hears why.
#include "rensa/device/cuda_runtime.h"
#include "rensa/core/error.h"

namespace rensa::cuda::runtime {

namespace {
constexpr const char* kWhy =
    "this build of Rensa has no CUDA (configure with RENSA_CUDA=ON where nvcc is found)";
[[noreturn]] void fail() { throw DeviceError(kWhy); }
}  // namespace

int device_count() noexcept { return 0; }
std::string why_no_device() { return kWhy; }
void set_device(Device) { fail(); }
MemoryInfo memory_info(Device) { fail(); }
std::string device_name(Device) { fail(); }
std::string pci_bus_id(Device) { fail(); }
std::map<std::string, int> device_attributes(Device) { fail(); }
std::string describe_system() { return {}; }

void* create_stream(Device, unsigned, int) { fail(); }
void destroy_stream(void*) noexcept {}
void* legacy_stream() noexcept { return nullptr; }
void synchronize_stream(void*) { fail(); }
bool stream_done(void*) { fail(); }
void synchronize_device(Device) { fail(); }
int stream_priority(void*) { fail(); }
bool stream_non_blocking(void*) { fail(); }
PriorityRange priority_range(Device) { fail(); }
void launch_host_func(void*, void (*)(void*), void*) { fail(); }

void begin_capture(void*) { fail(); }
void* end_capture(void*) { fail(); }
bool stream_capturing(void*) { fail(); }
void give_to_graph(void*, void*, void (*)(void*)) { fail(); }
void* instantiate_graph(void*) { fail(); }
void upload_graph(void*, void*) { fail(); }
void launch_graph(void*, void*) { fail(); }
void destroy_graph(void*, void*) noexcept {}
std::size_t graph_nodes(void*) { fail(); }
std::string graph_dot(void*) { fail(); }

void* create_event(Device, EventOptions) { fail(); }
std::string event_ipc_handle(void*) { fail(); }
void* open_event(Device, const std::string&) { fail(); }
void destroy_event(void*) noexcept {}
void record_event(void*, void*) { fail(); }
void wait_event(void*, void*) { fail(); }
void synchronize_event(void*) { fail(); }
bool event_done(void*) { fail(); }
float elapsed_ms(void*, void*) { fail(); }

void* allocate_device(Device, std::size_t) { fail(); }
void free_device(void*) noexcept {}
void zero_async(void*, std::size_t, void*) { fail(); }

ErrorWord* make_error_word(Device, void**) { fail(); }
std::unique_ptr<MemorySource> device_source(Device) { fail(); }
std::unique_ptr<MemorySource> async_source(Device, std::uint64_t) { fail(); }
std::unique_ptr<MemorySource> managed_source(Device) { fail(); }
std::unique_ptr<MemorySource> pinned_source() { fail(); }

std::string memory_ipc_handle(Device, const void*, std::int64_t*) { fail(); }
void* open_memory(Device, const std::string&) { fail(); }
void close_memory(Device, void*) noexcept {}
std::size_t get_limit(Device, Limit) { fail(); }
void set_limit(Device, Limit, std::size_t) { fail(); }

bool ranges_on() { return false; }
void push_range(const char*) noexcept {}
void pop_range() noexcept {}
void push_range(const char*, std::uint32_t) noexcept {}
void mark(const char*) noexcept {}
void start_profiler() {}
void stop_profiler() {}

}  // namespace rensa::cuda::runtime
