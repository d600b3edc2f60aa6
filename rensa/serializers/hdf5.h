// What lasts in HDF5 files as Chainer writes them: a group for each link and a dataset for each
// value, so that "l1/W" is the dataset W of the group l1. h5py and Chainer read what is written
// here, and the other way round. Needs a build with HDF5 (RENSA_HDF5).
#pragma once

#include <concepts>
#include <string>

#include "rensa/links/visitor.h"
#include "rensa/serializers/naming.h"

namespace rensa::serializers {

struct SaveHdf5Options {
  /// gzip's level from 1 to 9 for arrays of more than 4 KiB, the others are smaller as they are;
  /// 0: none is packed.
  int compression = 4;
  Naming names = {};
};
/// Writes all that `what` (a model, an optimizer, an iterator, a trainer, a struct of one's own)
/// shows in its members(Visitor&), but States. The file appears whole or not at all; HDF5 makes it
/// in memory. What h5py makes of the values: of a parameter that waits for its shape an Empty, as
/// Chainer; of an array the same array; of a number one of int64, float64 or bool without axes; of
/// a text bytes, UTF-8, without the NULs at its end (Chainer saves no texts). bfloat16 is a float
/// of 16 bits with 8 of exponent, which HDF5 converts: h5py gives float32 of the same values.
///
/// Waits for the device. Throws SerializationError naming the file; ValueError for a level that is
/// none, for names that HDF5 cannot hold ("a" beside "a/b", or with a part that is empty or "."),
/// and where something is shown twice (check_members); NotImplementedError in a build without
/// HDF5. Any thread may call it, one call waits for the other; a program that calls HDF5 by itself
/// meanwhile needs an HDF5 that was built for threads.
void save_hdf5(const std::string& path, const Members& what, const SaveHdf5Options& options = {});

struct LoadHdf5Options {
  /// The file's keys and the model's must be the same; off: what is in both is loaded.
  bool strict = true;
  /// Keys below this group are taken: "updater/model:main" of a trainer's file.
  std::string path = {};
  Naming names = {};  // what members are called in the file
};
namespace detail {
void load_hdf5(const std::string& path, const Members& what, const LoadHdf5Options& options);
}

/// As load_npz: nothing is changed unless all of the file fits, values are converted to the dtypes
/// that are there. Read are floats, integers, h5py's bools and complex numbers, of either byte
/// order, and texts; packed by gzip or not at all. Throws SerializationError with the file's name
/// and the key: for what is damaged or of something else, and for links and datasets that lead out
/// of the file; ShapeError naming a parameter whose shape differs; NotImplementedError in a build
/// without HDF5. The file is parsed by HDF5's own library: load those of people whom you trust.
template <class T>
requires(HasMembers<T> ||
         std::invocable<T&, Visitor&>) void load_hdf5(const std::string& path, T&& what,
                                                      const LoadHdf5Options& options = {}) {
  detail::load_hdf5(path, Members(what), options);
}

}  // namespace rensa::serializers
