// MNIST: finding its files, or fetching them.
#include "rensa/data/mnist.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/user_cache.h"
#include "rensa/data/download.h"
#include "rensa/data/idx.h"

namespace rensa::datasets {

namespace {

namespace fs = std::filesystem;

struct File {
  const char* name;
  const char* sha256;
  std::int64_t size;
  FileIdentity identity() const { return {sha256, size}; }
};
constexpr File kTrainImages{"train-images-idx3-ubyte.gz",
                            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                            9912422};
constexpr File kTrainLabels{"train-labels-idx1-ubyte.gz",
                            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                            28881};
constexpr File kTestImages{"t10k-images-idx3-ubyte.gz",
                           "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                           1648877};
constexpr File kTestLabels{"t10k-labels-idx1-ubyte.gz",
                           "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                           4542};
constexpr std::array kFiles{kTrainImages, kTrainLabels, kTestImages, kTestLabels};

constexpr std::array kMirrors{"https://ossci-datasets.s3.amazonaws.com/mnist/",
                              "https://storage.googleapis.com/cvdf-datasets/mnist/"};

/// The user's cache; empty when no variable says where that is.
fs::path cache_folder() {
  std::string cache = user_cache_folder();
  return cache.empty() ? fs::path() : fs::path(cache) / "mnist";
}

std::vector<fs::path> candidate_folders() {
  std::vector<fs::path> folders;
  if (auto root = environment::text("RENSA_DATASET_ROOT")) {
    folders = {fs::path(*root) / "mnist", fs::path(*root)};
  }
  if (fs::path cache = cache_folder(); !cache.empty()) folders.push_back(cache);
  return folders;
}

fs::path find_folder() {
  fs::path cache = cache_folder();
  for (const fs::path& folder : candidate_folders()) {
    // What the user has put somewhere is taken as it is, what was downloaded is verified.
    auto is_there = [&](const File& file) {
      std::error_code ignored;
      fs::path path = folder / file.name;
      return folder == cache ? is_file(path.string(), file.identity()) : fs::exists(path, ignored);
    };
    if (std::all_of(kFiles.begin(), kFiles.end(), is_there)) return folder;
  }
  return {};
}

fs::path download_all() {
  std::string looked = "MNIST is not in";
  for (const fs::path& folder : candidate_folders()) looked += " " + folder.string();
  fs::path folder = cache_folder();
  if (folder.empty()) {
    throw SerializationError(looked +
                             "; set RENSA_DATASET_ROOT to the folder of its idx .gz files");
  }
  try {
    rensa::detail::make_folders(folder.string());
    for (const File& file : kFiles) {
      std::vector<std::string> urls;
      for (const char* mirror : kMirrors) urls.push_back(std::string(mirror) + file.name);
      download(urls, file.identity(), (folder / file.name).string());
    }
  } catch (const std::exception& error) {
    throw SerializationError(fmt::format(
        "{}, and it cannot be downloaded; put its four idx .gz files into one of them (or set "
        "RENSA_DATASET_ROOT).\n{}",
        looked, error.what()));
  }
  return folder;
}

TupleDataset read_part(const fs::path& folder, const File& images, const File& labels,
                       bool withlabel, int ndim, float scale) {
  std::string image_path = (folder / images.name).string(),
              label_path = (folder / labels.name).string();
  Array pixels = read_idx_gz(image_path, 3);
  std::int64_t n = pixels.shape()[0];
  Shape shape = ndim == 1 ? Shape{n, pixels.shape()[1] * pixels.shape()[2]} : pixels.shape();
  if (ndim == 3) shape.insert(1, 1);
  Array x = pixels.astype(float32) * (scale / 255.f);
  x = x.reshape(shape);
  if (!withlabel) return TupleDataset(x);
  Array t = read_idx_gz(label_path, 1);
  if (t.shape()[0] != n) {
    throw SerializationError(
        fmt::format("{} has {} images, {} {} labels", image_path, n, label_path, t.shape()[0]));
  }
  return TupleDataset(x, t.astype(int32));
}

}  // namespace

std::string find_mnist() { return find_folder().string(); }

TrainTest get_mnist(bool withlabel, int ndim, float scale) {
  if (ndim < 1 || ndim > 3)
    throw ValueError(fmt::format("get_mnist: ndim is 1, 2 or 3, not {}", ndim));
  fs::path folder = find_folder();
  if (folder.empty()) folder = download_all();
  return {read_part(folder, kTrainImages, kTrainLabels, withlabel, ndim, scale),
          read_part(folder, kTestImages, kTestLabels, withlabel, ndim, scale)};
}

}  // namespace rensa::datasets
