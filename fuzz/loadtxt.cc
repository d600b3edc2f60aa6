// Text files: the first byte chooses dtype and delimiter, the second the rest.
#include <cstdint>
#include <string_view>

#include "rensa/array/io.h"
#include "rensa/core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  if (size < 2) return 0;
  xp::LoadtxtOptions options;
  options.dtype = static_cast<Dtype>(data[0] % kNumDtypes);
  if (data[0] & 0x40) options.delimiter = ",";
  if (data[0] & 0x80) options.delimiter = ", ";
  options.ndmin = data[1] & 3;
  options.unpack = (data[1] & 4) != 0;
  options.skiprows = data[1] >> 3 & 3;
  if (data[1] & 0x20) options.usecols = {0, -1};
  if (data[1] & 0x40) options.max_rows = 2;
  if (data[1] & 0x80) options.comments.clear();
  options.device = cpu();
  try {
    (void)xp::parse_text({reinterpret_cast<const char*>(data) + 2, size - 2}, options);
  } catch (const ValueError&) {}
  return 0;
}
