// Many pictures in few files: one open and one map in place of one for each picture.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/data/images/image_datasets.h"

namespace rensa::datasets {

struct PackImagesOptions {
  /// The folder that relative paths begin in.
  std::string root = ".";
  /// Another file is begun before one's pictures would take more; one picture may alone.
  std::int64_t max_file_bytes = std::int64_t{1} << 30;
  /// The classes' names, by label; none are kept where this is empty.
  std::vector<std::string> classes = {};
};

/// Packs pictures, as the files are, with their labels into <prefix>-00000.images,
/// <prefix>-00001.images and so on, in their order. Returns those paths. Each file is written whole
/// or not at all, under a checksum for each picture and for the index
/// (rensa/data/images/packed_index.h has the layout). Throws SerializationError for what
/// images::read_image() cannot read; ValueError for no pictures, a max_file_bytes below 1, and a
/// label that `classes` has not.
std::vector<std::string> pack_images(const std::vector<LabeledPath>& pairs,
                                     const std::string& prefix,
                                     const PackImagesOptions& options = {});

/// LabeledImageDataset's examples of files that pack_images() has written. The files are mapped:
/// pictures are read as they are asked for, and several processes share the memory.
class PackedImageDataset : public Dataset {
 public:
  /// All files of a prefix. Throws SerializationError naming the file, the byte and what is wrong
  /// there: for a file that is missing, damaged, cut short, of another version or of another set;
  /// and ValueError for a label that `label_dtype` cannot hold. An example whose picture is damaged
  /// throws SerializationError when it is asked for. `options.root` is passed over.
  explicit PackedImageDataset(const std::string& prefix, ImageDatasetOptions options = {});
  /// The classes' names, by label; empty where none were packed.
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  struct Opened {
    std::shared_ptr<const DatasetBody> body;
    std::vector<std::string> classes;
  };
  explicit PackedImageDataset(Opened opened)
      : Dataset(std::move(opened.body)), classes_(std::move(opened.classes)) {}
  static Opened open(const std::string& prefix, ImageDatasetOptions options);
  std::vector<std::string> classes_;
};

}  // namespace rensa::datasets
