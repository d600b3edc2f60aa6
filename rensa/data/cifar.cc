// Reading CIFAR's binary version.
#include "rensa/data/cifar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/data/dataset_files.h"
#include "rensa/data/tar.h"

namespace rensa::datasets {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kPixels = 3 * 32 * 32;

struct Cifar {
  PublishedFiles archive;
  std::string folder;  // in the archive
  std::vector<std::string> train;
  std::string test;
  std::int64_t classes, labels;  // bytes before a record's pixels, the last of which is its class
  std::int64_t record() const { return labels + kPixels; }
};

Cifar cifar10() {
  return {{"CIFAR-10",
           "cifar10",
           {{"cifar-10-binary.tar.gz",
             {"c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", 170052171}}},
           {"https://www.cs.toronto.edu/~kriz/"}},
          "cifar-10-batches-bin",
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
           "data_batch_5.bin"},
          "test_batch.bin",
          10,
          1};
}

Cifar cifar100() {
  return {{"CIFAR-100",
           "cifar100",
           {{"cifar-100-binary.tar.gz",
             {"58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", 168513733}}},
           {"https://www.cs.toronto.edu/~kriz/"},
           true},  // of what it unpacks to
          "cifar-100-binary",
          {"train.bin"},
          "test.bin",
          100,
          2};
}

/// Contents by the files' names.
using Files = std::map<std::string, std::string>;

/// The set's folder below $RENSA_DATASET_ROOT that has all of its files, unpacked; empty where none
/// has. The root itself is looked at where no other set has files of these names.
fs::path unpacked(const Cifar& set) {
  auto root = environment::text("RENSA_DATASET_ROOT");
  if (!root) return {};
  fs::path own = fs::path(*root) / set.archive.folder;
  std::vector<fs::path> folders = {own, own / set.folder, fs::path(*root) / set.folder};
  if (!set.archive.has_common_names) folders.emplace_back(*root);
  for (const fs::path& folder : folders) {
    auto is_there = [&](const std::string& name) {
      std::error_code ignored;
      return fs::is_regular_file(folder / name, ignored);
    };
    if (is_there(set.test) && std::ranges::all_of(set.train, is_there)) return folder;
  }
  return {};
}

Files read_files(const Cifar& set, const fs::path& folder) {
  Files files;
  auto read = [&](const std::string& name) {
    files[name] = rensa::detail::read_whole_file((folder / name).string());
  };
  std::ranges::for_each(set.train, read);
  read(set.test);
  return files;
}

Files from_archive(const Cifar& set, const fs::path& path) {
  auto last_part = [](std::string_view name) { return name.substr(name.rfind('/') + 1); };
  auto wanted = [&](std::string_view name) {
    return last_part(name) == set.test || std::ranges::count(set.train, last_part(name)) != 0;
  };
  Files files;
  for (auto& [name, content] : read_tar_gz(path.string(), wanted)) {
    files[std::string(last_part(name))] = std::move(content);
  }
  if (files.size() == set.train.size() + 1) return files;
  throw SerializationError(fmt::format("{}: not {}'s archive: it lacks some of {}, {}",
                                       path.string(), set.archive.title, fmt::join(set.train, ", "),
                                       set.test));
}

/// `from` is for errors.
TupleDataset read(const Cifar& set, const fs::path& from, const Files& files,
                  const std::vector<std::string>& names, bool withlabel, int ndim, float scale) {
  std::vector<Array> parts;
  for (const std::string& name : names) {
    const std::string& bytes = files.at(name);
    auto size = static_cast<std::int64_t>(bytes.size());
    if (size == 0 || size % set.record() != 0) {
      throw SerializationError(fmt::format("{}: {} has {} bytes, which is no multiple of {}",
                                           from.string(), name, size, set.record()));
    }
    Array part = xp::empty({size / set.record(), set.record()}, uint8, cpu());
    std::ranges::copy(bytes, static_cast<char*>(part.data()));
    parts.push_back(part);
  }
  Array records = xp::concatenate(parts, 0);
  std::int64_t n = records.shape(0);
  Array x = records[{Slice(), Slice(set.labels, none)}].astype(float32) * (scale / 255.f);
  if (ndim == 3) x = x.reshape({n, 3, 32, 32});
  if (!withlabel) return TupleDataset(x);
  Array t = records[{Slice(), set.labels - 1}].astype(int32);
  if (t.max().item<int>() >= set.classes) {
    throw SerializationError(fmt::format("{}: a label of {}, of {} classes", from.string(),
                                         t.max().item<int>(), set.classes));
  }
  return TupleDataset(x, t);
}

TrainTest get(const char* function, const Cifar& set, bool withlabel, int ndim, float scale) {
  if (ndim != 1 && ndim != 3) {
    throw ValueError(fmt::format("{}: ndim is 1 or 3, not {}", function, ndim));
  }
  fs::path from = unpacked(set);
  bool is_unpacked = !from.empty();
  if (!is_unpacked) from = set.archive.find_or_download() / set.archive.files[0].name;
  Files files = is_unpacked ? read_files(set, from) : from_archive(set, from);
  return {read(set, from, files, set.train, withlabel, ndim, scale),
          read(set, from, files, {set.test}, withlabel, ndim, scale)};
}

}  // namespace

TrainTest get_cifar10(bool withlabel, int ndim, float scale) {
  return get("get_cifar10", cifar10(), withlabel, ndim, scale);
}

TrainTest get_cifar100(bool withlabel, int ndim, float scale) {
  return get("get_cifar100", cifar100(), withlabel, ndim, scale);
}

}  // namespace rensa::datasets
