// Where HDF5 was not there when Rensa was built.
#include "rensa/core/error.h"
#include "rensa/serializers/hdf5.h"

namespace rensa::serializers {

namespace {
[[noreturn]] void fail(const char* operation, const std::string& path) {
  throw NotImplementedError(std::string(operation) + ": " + path +
                            ": this build of Rensa has no HDF5: build it where libhdf5-dev is "
                            "installed, or use npz files");
}
}  // namespace

void save_hdf5(const std::string& path, const Members&, const SaveHdf5Options&) {
  fail("save_hdf5", path);
}
void detail::load_hdf5(const std::string& path, const Members&, const LoadHdf5Options&) {
  fail("load_hdf5", path);
}

}  // namespace rensa::serializers
