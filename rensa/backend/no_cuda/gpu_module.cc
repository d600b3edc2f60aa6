// Kernels compiled at run time in a build without CUDA.
#include "rensa/device/gpu_module.h"

#include "rensa/core/error.h"

namespace rensa {

namespace cuda {

namespace {
[[noreturn]] void absent() {
  throw NotImplementedError("this build of Rensa has no CUDA (RENSA_CUDA=OFF)");
}
}  // namespace

GpuCode compile_gpu_code(const GpuSource&, int) { absent(); }
std::string nvrtc_version() { absent(); }
int architecture(Device) { absent(); }

struct GpuModule::Impl {};
GpuModule::GpuModule(const GpuCode&) { absent(); }
GpuModule::~GpuModule() = default;
const void* GpuModule::function(const std::string&) const { absent(); }
KernelAttributes GpuModule::attributes(const void*, Device) const { absent(); }
void GpuModule::set_attribute(const void*, Device, KernelAttribute, int) const { absent(); }
int GpuModule::max_active_blocks(const void*, Device, int, unsigned) const { absent(); }
GpuModule::Global GpuModule::global(const std::string&, Device) const { absent(); }
void GpuModule::allow_shared_bytes(const void*, Device, unsigned) const { absent(); }
void GpuModule::set_shared_bytes(const void*, Device, unsigned) const { absent(); }

}  // namespace cuda

}  // namespace rensa
