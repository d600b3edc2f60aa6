// CIFAR's files. The first byte says which set and how it is read. With its bit 3 the rest is the
// archive, not gzip'd; else each file has a byte that says how many records it has and how many
// bytes it is cut by, and for each record its labels and the value of its pixels.
#include "rensa/data/cifar.h"

#include <cstdlib>
#include <vector>

#include "fuzz/files.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rensa;

constexpr std::size_t kPixels = 3 * 32 * 32;

/// The one place that is looked at: nothing is downloaded, as the files are there.
std::string root() {
  static const testing::TemporaryFolder folder;
  static const bool is_set = [] {
    setenv("RENSA_DATASET_ROOT", folder.str().c_str(), 1);
    setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
    return true;
  }();
  if (!is_set) std::abort();
  return folder.str();
}

/// A file, whose labels, of whole records, are added to `labels`.
std::string file_of(fuzz::Input& input, std::size_t labels_size, std::vector<int>& labels) {
  std::string file;
  std::size_t how = input.byte();
  for (std::size_t i = how % 4; i > 0; --i) {
    std::string label(labels_size, '\0');
    for (char& c : label) c = static_cast<char>(input.byte());
    labels.push_back(static_cast<unsigned char>(label.back()));
    file += label + std::string(kPixels, static_cast<char>(input.byte()));
  }
  file.resize(file.size() - std::min(file.size(), how / 4));
  return file;
}

void expect(bool is_so) {
  if (!is_so) std::abort();
}

void check(const datasets::TupleDataset& read, bool withlabel, const std::vector<int>& labels) {
  expect(read.size() == static_cast<std::int64_t>(labels.size()));
  if (withlabel) expect((*read.columns())[1].to_vector<int>() == labels);
  expect((*read.columns())[0].max().item<float>() <= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace fs = std::filesystem;
  fuzz::Input input(data, size);
  const unsigned how = input.byte();
  const bool is_large = how & 1, withlabel = how & 2;
  const fs::path folder = fs::path(root()) / (is_large ? "cifar100" : "cifar10");
  fs::remove_all(folder);
  fs::create_directories(folder);
  std::vector<int> train, test;
  if (how & 8) {
    testing::write_file(folder / (is_large ? "cifar-100-binary.tar.gz" : "cifar-10-binary.tar.gz"),
                        std::string(input.bytes(size)));
  } else if (is_large) {
    testing::write_file(folder / "train.bin", file_of(input, 2, train));
    testing::write_file(folder / "test.bin", file_of(input, 2, test));
  } else {
    for (const char* name : {"1", "2", "3", "4", "5"}) {
      testing::write_file(folder / (std::string("data_batch_") + name + ".bin"),
                          file_of(input, 1, train));
    }
    testing::write_file(folder / "test_batch.bin", file_of(input, 1, test));
  }
  try {
    auto get = is_large ? datasets::get_cifar100 : datasets::get_cifar10;
    datasets::TrainTest sets = get(withlabel, how & 4 ? 1 : 3, 1.f);
    if (how & 8) return 0;
    check(sets.train, withlabel, train);
    check(sets.test, withlabel, test);
  } catch (const SerializationError&) {}
  return 0;
}
