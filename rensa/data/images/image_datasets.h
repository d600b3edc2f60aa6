// Datasets of pictures in files, which are read as examples are asked for.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/dataset.h"
#include "rensa/data/images/read_image.h"

namespace rensa::datasets {

struct ImageDatasetOptions {
  /// The folder that relative paths begin in.
  std::string root = ".";
  /// What the pictures' values, 0 to 255, are cast to; get_dtype() when it is left out. As uint8
  /// a batch's way to a GPU is a quarter as long.
  std::optional<Dtype> dtype = {};
  Dtype label_dtype = Dtype::int32;
  /// Channels, and the size that is needed of a JPEG.
  images::ReadImageOptions read = {};
};

/// Pictures as chainer.datasets.ImageDataset gives them: arrays (channels, height, width), each
/// picture with its own channels unless `read.mode` says which. images/read_image.h says what is
/// read, and what an example throws that cannot be. Examples have one column.
class ImageDataset : public Dataset {
 public:
  explicit ImageDataset(std::vector<std::string> paths, ImageDatasetOptions options = {});
  ImageDataset(std::initializer_list<const char*> paths, ImageDatasetOptions options = {})
      : ImageDataset(std::vector<std::string>(paths.begin(), paths.end()), std::move(options)) {}
  /// The paths that a text file lists, one a line. Throws SerializationError.
  explicit ImageDataset(const std::string& list_file, ImageDatasetOptions options = {});
};

/// A picture's path and its label.
using LabeledPath = std::pair<std::string, std::int64_t>;

/// ImageDataset's pictures, and labels as a second column: 0-d arrays.
class LabeledImageDataset : public Dataset {
 public:
  /// Throws ValueError for a label that `label_dtype` cannot hold.
  explicit LabeledImageDataset(std::vector<LabeledPath> pairs, ImageDatasetOptions options = {});
  /// A text file of lines "path label". Throws as the other one, and SerializationError naming the
  /// line that has no label.
  explicit LabeledImageDataset(const std::string& list_file, ImageDatasetOptions options = {});
};

/// The pictures of a folder whose subfolders are the classes: what ends in .jpg, .jpeg or .png
/// below each, in order of the names. Labels are the subfolders' places in that order.
class ImageFolder : public LabeledImageDataset {
 public:
  /// Throws SerializationError for what is no folder, has no subfolders, or a subfolder without
  /// pictures. `options.root` is passed over.
  explicit ImageFolder(const std::string& folder, ImageDatasetOptions options = {});
  /// The subfolders' names, by label.
  const std::vector<std::string>& classes() const { return list_.classes; }
  /// The pictures' paths and labels, in the dataset's order.
  const std::vector<LabeledPath>& pairs() const { return list_.pairs; }

 private:
  struct List {
    std::vector<std::string> classes;
    std::vector<LabeledPath> pairs;
  };
  ImageFolder(List list, ImageDatasetOptions options);
  static List list_of(const std::string& folder);
  List list_;
};

}  // namespace rensa::datasets
