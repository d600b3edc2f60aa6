// HDF5 files: libhdf5 makes one of what the input says, as damaged files alone would try that
// library. For each object the input has its kind and its name; of a dataset its type, shape,
// layout, filters and values. What is read of a dataset of a known dtype has to be what was
// written.
#include "rensa/serializers/hdf5.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "fuzz/files.h"
#include "rensa/array/npy.h"
#include "rensa/serializers/hdf5_library.h"
#include "tests/temporary_folder.h"

/// Asked by the leak sanitizer: HDF5 1.10 loses memory where it finds something wrong.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace {

using namespace rensa;
using serializers::Hdf5Handle;
using serializers::Hdf5Scope;

constexpr const char* kNames[] = {"a", "b", "c", "a/b", "a/c", "b/a", "c/a/b", "d"};
constexpr std::size_t kMostBytes = 1 << 16;
constexpr H5Z_filter_t kUnknownFilter = 400;

/// A filter that readers do not know; it changes nothing.
const H5Z_class2_t kFilter = {H5Z_CLASS_T_VERS,
                              kUnknownFilter,
                              1,
                              1,
                              "fuzz",
                              nullptr,
                              nullptr,
                              [](unsigned, std::size_t, const unsigned*, std::size_t size,
                                 std::size_t*, void**) { return size; }};

/// Of a dataset of a known dtype, all of which was written.
struct Written {
  Dtype dtype;
  Shape shape;
  std::string bytes;
};

Hdf5Handle handle(hid_t id, Hdf5Handle::Close close) { return {id, close, "fuzz"}; }
void check(herr_t status) {
  if (status < 0) serializers::fail_in_hdf5("fuzz");
}

/// A file. What HDF5 refuses to make is passed by.
class FileMaker {
 public:
  FileMaker(fuzz::Input& input, const std::string& path) : input_(input) {
    Hdf5Handle access = handle(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
    H5F_libver_t version = input.byte() % 2 ? H5F_LIBVER_V18 : H5F_LIBVER_EARLIEST;
    check(H5Pset_libver_bounds(access, version, H5F_LIBVER_LATEST));
    file_ = handle(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), H5Fclose);
    link_ = handle(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    check(H5Pset_create_intermediate_group(link_, 1));
    for (int objects = 0; objects < 8 && !input.empty(); ++objects) {
      try {
        add();
      } catch (const SerializationError&) {}
    }
  }
  const std::map<std::string, Written>& written() const { return written_; }

 private:
  const char* name() { return kNames[input_.byte() % std::size(kNames)]; }

  void add() {
    unsigned kind = input_.byte() % 16;  // links are refused, and all with them
    const char* at = name();
    switch (kind) {
      case 0: return (void)handle(H5Gcreate2(file_, at, link_, 0, 0), H5Gclose);
      case 1: return check(H5Lcreate_soft(name(), file_, at, link_, 0));
      case 2: return check(H5Lcreate_external("/dev/null", name(), file_, at, link_, 0));
      case 3:
        return check(H5Lcreate_hard(file_, input_.byte() % 2 ? "/" : name(), file_, at, link_, 0));
      default: return add_dataset(at);
    }
  }

  void add_dataset(const char* at) {
    std::optional<Dtype> dtype;
    Hdf5Handle type = make_type(dtype);
    std::vector<hsize_t> extents;
    Hdf5Handle space = make_space(extents);
    bool is_chunked = false, lies_elsewhere = false;
    Hdf5Handle how = make_layout(extents, is_chunked, lies_elsewhere);
    unsigned flags = input_.byte();
    if (is_chunked) add_filters(how, flags);
    Hdf5Handle dataset =
        handle(H5Dcreate2(file_, at, type, space, link_, how, H5P_DEFAULT), H5Dclose);
    if (flags & 16) add_attribute(dataset, type);
    if ((flags & 32) == 0 && !lies_elsewhere) write(at, dataset, type, space, dtype, extents);
  }

  /// The types of dtypes, in either order, and others.
  Hdf5Handle make_type(std::optional<Dtype>& dtype) {
    unsigned kind = input_.byte();
    if (kind < 128) {
      dtype = static_cast<Dtype>(kind % kNumDtypes);
      return serializers::hdf5_type(*dtype, kind & 64 ? H5T_ORDER_BE : H5T_ORDER_LE, "fuzz");
    }
    std::size_t size = input_.byte();
    auto copy = [](hid_t type) { return handle(H5Tcopy(type), H5Tclose); };
    switch (kind % 10) {
      case 0:
      case 1: {
        Hdf5Handle text = copy(H5T_C_S1);
        check(H5Tset_size(text, kind % 10 == 0 ? 1 + size / 3 : H5T_VARIABLE));
        check(H5Tset_strpad(text, static_cast<H5T_str_t>(size % 3)));
        return text;
      }
      case 2: return handle(H5Tcreate(H5T_OPAQUE, 1 + size), H5Tclose);
      case 3: return copy(H5T_NATIVE_LDOUBLE);
      case 4: {
        Hdf5Handle number = copy(H5T_STD_I32LE);
        check(H5Tset_precision(number, 1 + size % 32));
        check(H5Tset_offset(number, size / 32));
        return number;
      }
      case 5: {
        hsize_t extent = 1 + size;
        return handle(H5Tarray_create2(H5T_IEEE_F32LE, 1, &extent), H5Tclose);
      }
      case 6: return handle(H5Tvlen_create(H5T_STD_I16LE), H5Tclose);
      case 7: return copy(H5T_STD_REF_OBJ);
      case 8: {
        Hdf5Handle pair = handle(H5Tcreate(H5T_COMPOUND, 16 + size), H5Tclose);
        check(H5Tinsert(pair, "r", size / 2, H5T_IEEE_F64LE));
        check(H5Tinsert(pair, size % 2 ? "i" : "j", size / 2 + 8, H5T_IEEE_F64LE));
        return pair;
      }
      default: {
        Hdf5Handle flag = handle(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
        for (int i = 0; i < 2; ++i) {
          auto value = static_cast<signed char>(size + i);
          check(H5Tenum_insert(flag, i ? "TRUE" : "FALSE", &value));
        }
        return flag;
      }
    }
  }

  Hdf5Handle make_space(std::vector<hsize_t>& extents) {
    unsigned kind = input_.byte();
    if (kind % 16 == 0) return handle(H5Screate(H5S_NULL), H5Sclose);
    if (kind % 16 == 1) return handle(H5Screate(H5S_SCALAR), H5Sclose);
    extents.resize(kind >= 240 ? kind - 238 : kind % 16 - 1);
    for (hsize_t& extent : extents) {
      unsigned byte = input_.byte();
      extent = byte < 200 ? byte % 32 : hsize_t{1} << (byte - 200);
    }
    return handle(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                  H5Sclose);
  }

  Hdf5Handle make_layout(const std::vector<hsize_t>& extents, bool& is_chunked,
                         bool& lies_elsewhere) {
    Hdf5Handle how = handle(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    unsigned kind = input_.byte();
    if (kind % 8 == 1) {
      check(H5Pset_layout(how, H5D_COMPACT));
    } else if (kind % 8 == 2) {
      lies_elsewhere = true;
      check(H5Pset_external(how, "none", 0, H5F_UNLIMITED));
    } else if (kind % 8 == 3) {
      lies_elsewhere = true;
      Hdf5Handle space = handle(
          H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
      check(H5Pset_virtual(how, space, kind & 8 ? "." : "none", "d", space));
    } else if (kind % 8 >= 4 && !extents.empty()) {
      is_chunked = true;
      std::vector<hsize_t> chunk;
      for (hsize_t extent : extents) {
        chunk.push_back(std::clamp<hsize_t>(extent, 1, 1 + kind / 8 % 8));
      }
      check(H5Pset_chunk(how, static_cast<int>(chunk.size()), chunk.data()));
    }
    return how;
  }

  void add_filters(hid_t how, unsigned flags) {
    if (flags & 1) check(H5Pset_shuffle(how));
    if (flags & 2) check(H5Pset_deflate(how, 6));
    if (flags & 4) check(H5Pset_fletcher32(how));
    if (flags & 8) {
      check(H5Pset_filter(how, kUnknownFilter, H5Z_FLAG_OPTIONAL, 0, nullptr));
    }
  }

  void add_attribute(hid_t dataset, hid_t type) {
    Hdf5Handle space = handle(H5Screate(H5S_SCALAR), H5Sclose);
    handle(H5Acreate2(dataset, "note", type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  }

  void write(const char* at, hid_t dataset, hid_t type, hid_t space,
             const std::optional<Dtype>& dtype, const std::vector<hsize_t>& extents) {
    std::size_t size = H5Tget_size(type), total = H5Sget_simple_extent_type(space) != H5S_NULL;
    for (hsize_t extent : extents) {
      if (__builtin_mul_overflow(total, extent, &total)) return;
    }
    if (total > kMostBytes / size || total == 0) return;
    if (H5Tis_variable_str(type) > 0) return write_texts(dataset, type, total);
    if (H5Tget_class(type) == H5T_VLEN || H5Tget_class(type) == H5T_REFERENCE) return;
    std::string bytes(input_.bytes(total * size));
    bytes.resize(total * size, bytes.empty() ? '\0' : bytes.back());
    Hdf5Handle memory = dtype ? serializers::hdf5_type(*dtype, H5T_ORDER_LE, "fuzz")
                              : handle(H5Tcopy(type), H5Tclose);
    check(H5Dwrite(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()));
    if (!dtype || extents.size() > kMaxNdim) return;
    Written known{*dtype, {}, std::move(bytes)};
    for (hsize_t extent : extents) known.shape.push_back(static_cast<std::int64_t>(extent));
    written_.insert_or_assign(at, std::move(known));
  }

  void write_texts(hid_t dataset, hid_t type, std::size_t total) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < total; ++i) texts.emplace_back(input_.bytes(input_.byte()));
    std::vector<const char*> starts;
    for (const std::string& text : texts) starts.push_back(text.empty() ? nullptr : text.c_str());
    check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, starts.data()));
  }

  fuzz::Input& input_;
  Hdf5Handle file_, link_;
  std::map<std::string, Written> written_;
};

/// What a model may have of each name.
struct Model {
  std::array<Array, std::size(kNames)> arrays;
  std::array<std::string, std::size(kNames)> texts;
  std::array<double, std::size(kNames)> numbers{};
  std::array<std::vector<std::int64_t>, std::size(kNames)> lists;
};

void read(fuzz::Input& input, const std::string& path,
          const std::map<std::string, Written>& written) {
  std::array<unsigned, std::size(kNames)> kinds;
  for (unsigned& kind : kinds) kind = input.byte() % 8;
  Model model;
  auto show = [&](Visitor& v) {
    for (std::size_t i = 0; i < std::size(kNames); ++i) {
      switch (kinds[i]) {
        case 0: v(kNames[i], model.texts[i]); break;
        case 1: v(kNames[i], model.numbers[i]); break;
        case 2: v(kNames[i], model.lists[i]); break;
        case 3: break;
        default: v(kNames[i], model.arrays[i]);
      }
    }
  };
  try {
    serializers::load_hdf5(path, show, {.strict = false});
  } catch (const SerializationError&) {
    return;
  } catch (const ShapeError&) {
    return;
  }
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    auto known = written.find(kNames[i]);
    if (kinds[i] < 4 || known == written.end()) continue;
    const Array& array = model.arrays[i];
    const auto& [dtype, shape, bytes] = known->second;
    if (!array.defined() || array.dtype() != dtype || array.shape() != shape) std::abort();
    if (bytes_of(array) != bytes) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool is_ready = [] {
    Hdf5Scope scope;
    check(H5Zregister(&kFilter));
    check(H5set_free_list_limits(0, 0, 0, 0, 0, 0));  // memory is given back when it is freed
    return true;
  }();
  if (!is_ready) return 0;
  fuzz::Input input(data, size);
  const auto kinds = input.bytes(std::size(kNames));
  fuzz::Input choice(reinterpret_cast<const std::uint8_t*>(kinds.data()), kinds.size());
  Hdf5Scope scope;
  static const testing::TemporaryFolder folder;  // HDF5 asks for a path that is the file's own
  const std::string path = folder / "fuzz.h5";
  const std::map<std::string, Written> written = FileMaker(input, path).written();
  read(choice, path, written);
  return 0;
}
