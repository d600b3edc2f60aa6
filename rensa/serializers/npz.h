// Models and optimizers in NumPy's npz files, with Chainer's keys: "l1/W", "predictor/l1/b"; of an
// optimizer "t", "epoch", "l1/W/t", "l1/W/m".
#pragma once

#include <string>

#include "rensa/links/link.h"
#include "rensa/optimizers/optimizer.h"

namespace rensa::serializers {

struct SaveNpzOptions {
  bool compression = true;
};
/// Writes all parameters and persistents. The file appears whole or not at all. A parameter that
/// waits for its shape is written as None, as Chainer does. Waits for the device. Throws
/// SerializationError, and ValueError for a model that names something twice (Link::check_members).
void save_npz(const std::string& path, const Link& model, const SaveNpzOptions& options = {});
void save_npz(const std::string& path, const Optimizer& optimizer,
              const SaveNpzOptions& options = {});

struct LoadNpzOptions {
  /// The file's keys and the model's must be the same; off: what is in both is loaded.
  bool strict = true;
  /// Keys below this one are taken: "updater/model:main" of a trainer's snapshot.
  std::string path = {};
};
/// Reads into the arrays that the model has, converted to their dtypes (a step recorded by capture
/// stays valid); a parameter that waits for its shape takes it from the file. The model is changed
/// only when all of the file fits. Throws SerializationError for a file that is damaged or of
/// another model, listing the keys, ShapeError naming a parameter whose shape differs.
void load_npz(const std::string& path, Link& model, const LoadNpzOptions& options = {});
void load_npz(const std::string& path, const Optimizer& optimizer,
              const LoadNpzOptions& options = {});

}  // namespace rensa::serializers
