// Reading SVHN.
#include "rensa/data/svhn.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "rensa/array/manipulation.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/data/dataset_files.h"
#include "rensa/data/mat_file.h"

namespace rensa::datasets {

namespace {

PublishedFiles svhn_files() {
  return {"SVHN",
          "svhn",
          {{"train_32x32.mat",
            {"435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8", 182040794}},
           {"test_32x32.mat",
            {"cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b", 64275384}}},
          {"http://ufldl.stanford.edu/housenumbers/"}};
}

/// X (32, 32, 3, n) of uint8 and y (n, 1) of 1 to 10, 10 for the digit 0.
TupleDataset read(const std::string& path, bool withlabel, int ndim, float scale) {
  std::map<std::string, Array> file = read_mat(path);
  auto array = [&](const char* name) {
    auto at = file.find(name);
    if (at == file.end()) {
      throw SerializationError(fmt::format("{}: it has no array {}", path, name));
    }
    return at->second;
  };
  Array images = array("X");
  if (images.ndim() != 4 || images.dtype() != uint8 || images.shape(0) != 32 ||
      images.shape(1) != 32 || images.shape(2) != 3) {
    throw SerializationError(fmt::format("{}: X is {} {}, not (32, 32, 3, n) uint8", path,
                                         images.shape().str(), dtype_name(images.dtype())));
  }
  std::int64_t n = images.shape(3);
  Array x = xp::transpose(images, {3, 2, 0, 1}).astype(float32) * (scale / 255.f);
  x = xp::ascontiguousarray(x);
  if (ndim == 1) x = x.reshape({n, -1});
  if (!withlabel) return TupleDataset(x);
  Array labels = array("y");
  if (labels.size() != n) {
    throw SerializationError(fmt::format("{}: {} images and {} labels", path, n, labels.size()));
  }
  Array t = labels.reshape({n}).astype(int32);
  if (n > 0 && (t.min().item<int>() < 0 || t.max().item<int>() > 10)) {
    throw SerializationError(fmt::format("{}: a label that is not one of 0 to 10", path));
  }
  return TupleDataset(x, t % 10);
}

}  // namespace

TrainTest get_svhn(bool withlabel, int ndim, float scale) {
  if (ndim != 1 && ndim != 3) {
    throw ValueError(fmt::format("get_svhn: ndim is 1 or 3, not {}", ndim));
  }
  PublishedFiles files = svhn_files();
  std::filesystem::path folder = files.find_or_download();
  auto part = [&](std::size_t i) {
    return read((folder / files.files[i].name).string(), withlabel, ndim, scale);
  };
  return {part(0), part(1)};
}

}  // namespace rensa::datasets
