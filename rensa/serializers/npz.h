// What lasts in NumPy's npz files, with Chainer's keys: of a model "l1/W", "predictor/l1/b"; of an
// optimizer "t", "epoch", "l1/W/t", "l1/W/m"; of a trainer "updater/model:main/l1/W",
// "updater/iteration", "extensions/LogReport/_log".
#pragma once

#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "rensa/links/visitor.h"
#include "rensa/serializers/naming.h"

namespace rensa::serializers {

struct SaveNpzOptions {
  bool compression = true;  // by zlib; else stored as it is
  Naming names = {};        // what members are called in the file
};
/// Writes all that `what` (a model, an optimizer, an iterator, a trainer, a struct of one's own)
/// shows in its members(Visitor&), but States. The file appears whole or not at all. A parameter
/// that waits for its shape is written as None, as Chainer does; an array is written as it is, a
/// number as one of int64, float64 or bool, a text as NumPy's str. Waits for the device. Throws
/// SerializationError, and ValueError where something is shown twice (check_members).
void save_npz(const std::string& path, const Members& what, const SaveNpzOptions& options = {});

/// What save_npz would write, in host memory of its own: for who writes it later, or in another
/// thread, while training goes on, and for who sends it to another rank.
struct NpzContent {
  /// The name of a value, and the .npy of it.
  using Entry = std::pair<std::string, std::string>;
  /// Waits for the device. Throws ValueError as save_npz does.
  explicit NpzContent(const Members& what, const Naming& names = {});
  explicit NpzContent(std::vector<Entry> all = {}) : entries(std::move(all)) {}
  /// What the bytes of a file are; `file` stands in errors. Throws SerializationError.
  static NpzContent parse(const std::string& file, std::string bytes);

  /// Throws SerializationError.
  void write(const std::string& path, bool compression = true) const;
  /// The bytes of the file, without compression.
  std::string bytes() const;

  std::vector<Entry> entries;  // all of the file, in its order
};

struct LoadNpzOptions {
  /// The file's keys and the model's must be the same; off: what is in both is loaded.
  bool strict = true;
  /// Keys below this one are taken: "updater/model:main" of a trainer's snapshot.
  std::string path = {};
  Naming names = {};  // what members are called in the file
};
namespace detail {
void load_npz(const std::string& path, const Members& what, const LoadNpzOptions& options);
void load_npz(const std::string& file, const NpzContent& content, const Members& what,
              const LoadNpzOptions& options);
}  // namespace detail

/// Reads into the arrays that `what` has, converted to their dtypes (a step recorded by capture
/// stays valid; where numbers, flags or texts are set too it is recorded anew); a parameter that
/// waits for its shape takes it from the file. Nothing is changed unless all of the file fits.
/// Throws SerializationError for a file that is damaged or of something else, listing the keys,
/// ShapeError naming a parameter whose shape differs.
template <class T>
requires(HasMembers<T> ||
         std::invocable<T&, Visitor&>) void load_npz(const std::string& path, T&& what,
                                                     const LoadNpzOptions& options = {}) {
  detail::load_npz(path, Members(what), options);
}
/// The same of what a file holds, which is in memory; `file` stands in errors.
template <class T>
requires(HasMembers<T> ||
         std::invocable<T&, Visitor&>) void load_npz(const std::string& file,
                                                     const NpzContent& content, T&& what,
                                                     const LoadNpzOptions& options = {}) {
  detail::load_npz(file, content, Members(what), options);
}

}  // namespace rensa::serializers
