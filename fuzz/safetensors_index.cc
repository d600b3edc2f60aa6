// Indexes of safetensors files, beside a file that they may name.
#include <cstdlib>
#include <filesystem>

#include "fuzz/files.h"
#include "rensa/array/creation.h"
#include "rensa/core/files.h"
#include "rensa/serializers/safetensors.h"

namespace {

/// A folder with a good file of two tensors; it goes with the process.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "fuzz_index.XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path = name;
    using namespace rensa;
    serializers::save_safetensors(path / "m", {{"a", xp::ones({2})}, {"b", xp::ones({3})}});
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  std::string index = folder.path / "m.index.json";
  rensa::detail::write_whole_file(index, rensa::fuzz::text(data, size));
  try {
    for (const auto& [name, array] : rensa::serializers::load_safetensors(index)) {
      if (array.sum().item<float>() != static_cast<float>(array.size())) std::abort();
    }
  } catch (const rensa::SerializationError&) {}
  return 0;
}
