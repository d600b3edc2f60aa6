// Files of packed pictures: the index, and the pictures that it names.
#include "fuzz/files.h"
#include "rensa/data/images/packed_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rensa;
  using datasets::PackedIndex;
  std::string_view file = fuzz::text(data, size);
  try {
    PackedIndex index = datasets::read_packed_index(file, "fuzz");
    for (const PackedIndex::Entry& entry : index.entries) {
      try {
        (void)datasets::packed_picture(file, entry, "fuzz");
      } catch (const SerializationError&) {}
    }
  } catch (const SerializationError&) {}
  return 0;
}
