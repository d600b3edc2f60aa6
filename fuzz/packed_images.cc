// Files of packed pictures: the index, and the pictures that it names. As given, and with the
// index's sums put right.
#include "fuzz/files.h"
#include "rensa/data/images/packed_index.h"

namespace {

using namespace rensa;
using datasets::PackedIndex;

void read(std::string_view file) {
  try {
    PackedIndex index = datasets::read_packed_index(file, "fuzz");
    for (const PackedIndex::Entry& entry : index.entries) {
      try {
        (void)datasets::packed_picture(file, entry, "fuzz");
      } catch (const SerializationError&) {}
    }
  } catch (const SerializationError&) {}
}

/// The last 48 bytes begin with the index's place; at 28 stands its sum, at 32 that of the 32 bytes
/// before.
std::string with_sums(std::string file) {
  if (file.size() < 48) return file;
  const std::size_t end = file.size() - 48;
  std::size_t index = 0;
  for (std::size_t i = 8; i-- > 0;) index = index << 8 | static_cast<unsigned char>(file[end + i]);
  std::string_view bytes = file;
  if (index <= end) {
    fuzz::put(file, end + 28, datasets::packed_sum(bytes.substr(index, end - index)));
  }
  fuzz::put(file, end + 32, datasets::packed_sum(bytes.substr(end, 32)));
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string given(fuzz::text(data, size));
  read(given);
  read(with_sums(given));
  return 0;
}
