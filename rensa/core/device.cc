// The text form of a Device.
#include "rensa/core/device.h"

#include <fmt/format.h>

#include <charconv>
#include <ostream>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa {

namespace {

[[noreturn]] void fail(std::string_view text) {
  throw DeviceError(fmt::format(
      "Device: \"{}\" names no device; write \"cpu\", \"cuda\" or \"cuda:0\" to \"cuda:{}\"", text,
      kMaxGpus - 1));
}

bool take_prefix(std::string_view* text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

Device::Device(std::string_view text) {
  if (text == "cpu" || text == "@numpy") return;
  std::string_view rest = text;
  if (!take_prefix(&rest, "cuda") && !take_prefix(&rest, "gpu") && !take_prefix(&rest, "@cupy")) {
    fail(text);
  }
  type = DeviceType::cuda;
  if (rest.empty()) return;
  int value = 0;
  const char* end = rest.data() + rest.size();
  auto [stopped, error] = std::from_chars(rest.data() + 1, end, value);
  if (rest[0] != ':' || error != std::errc() || stopped != end || value < 0 || value >= kMaxGpus) {
    fail(text);
  }
  index = static_cast<short>(value);
}

void Device::throw_no_index(int index) {
  throw DeviceError(fmt::format("Device: there is no GPU {}: they are counted from 0 to {}", index,
                                kMaxGpus - 1));
}

std::string Device::str() const { return is_cpu() ? "cpu" : fmt::format("cuda:{}", index); }

Device current_gpu() {
  Device current = ThreadState::current().device;
  return current.is_cuda() ? current : gpu(0);
}

std::ostream& operator<<(std::ostream& os, const Device& device) { return os << device.str(); }

}  // namespace rensa
