// PublishedFiles: the files of a data set that is published, found on this machine or fetched.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "rensa/data/download.h"

namespace rensa {

struct PublishedFiles {
  struct File {
    std::string name;
    FileIdentity identity;
  };
  std::string title;   // for errors: "MNIST"
  std::string folder;  // "mnist"
  std::vector<File> files;
  std::vector<std::string> mirrors;  // addresses that a name is put behind
  /// Whether other data sets have files of the same names: then only folders that are named as this
  /// one are looked at.
  bool has_common_names = false;

  /// The first folder that has all of them: $RENSA_DATASET_ROOT/<folder>, $RENSA_DATASET_ROOT,
  /// where files are taken as they are, and <folder> in the user's cache, where they have to be the
  /// published ones. Empty where there is none.
  std::filesystem::path find() const;
  /// That folder, or the user's cache into which they are downloaded now. Throws
  /// SerializationError, which says where it looked.
  std::filesystem::path find_or_download() const;
};

}  // namespace rensa
