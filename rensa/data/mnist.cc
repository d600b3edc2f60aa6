// MNIST and the sets that are laid out as it is.
#include "rensa/data/mnist.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/data/dataset_files.h"
#include "rensa/data/idx.h"

namespace rensa::datasets {

namespace {

namespace fs = std::filesystem;

/// Files named and laid out as MNIST's.
PublishedFiles idx_files(std::string title, std::string folder, std::vector<std::string> mirrors,
                         FileIdentity train_images, FileIdentity train_labels,
                         FileIdentity test_images, FileIdentity test_labels) {
  return {std::move(title),
          std::move(folder),
          {{"train-images-idx3-ubyte.gz", std::move(train_images)},
           {"train-labels-idx1-ubyte.gz", std::move(train_labels)},
           {"t10k-images-idx3-ubyte.gz", std::move(test_images)},
           {"t10k-labels-idx1-ubyte.gz", std::move(test_labels)}},
          std::move(mirrors),
          true};
}

PublishedFiles mnist_files() {
  PublishedFiles files =
      idx_files("MNIST", "mnist",
                {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                 "https://storage.googleapis.com/cvdf-datasets/mnist/"},
                {"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9912422},
                {"3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28881},
                {"8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1648877},
                {"f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4542});
  files.has_common_names = false;  // the others are told from it by their folders
  return files;
}

PublishedFiles fashion_mnist_files() {
  return idx_files("Fashion-MNIST", "fashion-mnist",
                   {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/"
                    "fashion/",
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
                   {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26421880},
                   {"a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29515},
                   {"346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4422102},
                   {"67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5148});
}

PublishedFiles kuzushiji_mnist_files() {
  return idx_files("Kuzushiji-MNIST", "kuzushiji-mnist",
                   {"https://codh.rois.ac.jp/kmnist/dataset/kmnist/"},
                   {"51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4", 18165135},
                   {"e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17", 29497},
                   {"edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5", 3041136},
                   {"20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c", 5120});
}

TupleDataset read_part(const fs::path& folder, const std::string& images, const std::string& labels,
                       bool withlabel, int ndim, float scale) {
  std::string image_path = (folder / images).string(), label_path = (folder / labels).string();
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

TrainTest read(const char* function, const PublishedFiles& set, bool withlabel, int ndim,
               float scale) {
  if (ndim < 1 || ndim > 3) {
    throw ValueError(fmt::format("{}: ndim is 1, 2 or 3, not {}", function, ndim));
  }
  fs::path folder = set.find_or_download();
  auto part = [&](std::size_t images) {
    return read_part(folder, set.files[images].name, set.files[images + 1].name, withlabel, ndim,
                     scale);
  };
  return {part(0), part(2)};
}

}  // namespace

std::string find_mnist() { return mnist_files().find().string(); }

TrainTest get_mnist(bool withlabel, int ndim, float scale) {
  return read("get_mnist", mnist_files(), withlabel, ndim, scale);
}

TrainTest get_fashion_mnist(bool withlabel, int ndim, float scale) {
  return read("get_fashion_mnist", fashion_mnist_files(), withlabel, ndim, scale);
}

TrainTest get_kuzushiji_mnist(bool withlabel, int ndim, float scale) {
  return read("get_kuzushiji_mnist", kuzushiji_mnist_files(), withlabel, ndim, scale);
}

}  // namespace rensa::datasets
