// HDF5 files of members.
#include "rensa/serializers/hdf5.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/host_memory.h"
#include "rensa/serializers/hdf5_library.h"
#include "rensa/serializers/stored_values.h"

namespace rensa::serializers {

namespace {

using Value = Visitor::Value;

// --- Reading ---

constexpr std::uint64_t kDeflation = 1032;  // how many bytes deflate makes of one, at most

/// How many names an object has.
unsigned links_to(hid_t object, const std::string& where) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  herr_t status = H5Oget_info3(object, &info, H5O_INFO_BASIC);
#else
  H5O_info_t info;
  herr_t status = H5Oget_info2(object, &info, H5O_INFO_BASIC);
#endif
  if (status < 0) fail_in_hdf5(where);
  return info.rc;
}

/// An open file.
class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path) : path_(path) {
    FileReader there(path);  // says what the system has against it
    size_ = static_cast<std::uint64_t>(there.remaining().value_or(0));
    Hdf5Scope scope;
    if (H5Fis_hdf5(path.c_str()) <= 0) fail(path, "it is no HDF5 file");
    file_ = {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, path};
    list_datasets();
    for (int i = 0; i < kNumDtypes; ++i) {
      for (H5T_order_t order : {H5T_ORDER_LE, H5T_ORDER_BE}) {
        auto dtype = static_cast<Dtype>(i);
        types_.emplace_back(dtype, hdf5_type(dtype, order, path));
      }
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  /// The text or the array of that name; an undefined array of a dataset without a shape.
  Value value(const std::string& name, bool is_text, const std::string& where) const {
    Hdf5Scope scope;
    Hdf5Handle dataset(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose, where);
    Hdf5Handle space(H5Dget_space(dataset), H5Sclose, where);
    if (H5Sget_simple_extent_type(space) == H5S_NULL) return Array();
    Hdf5Handle type(H5Dget_type(dataset), H5Tclose, where);
    bool has_text = H5Tget_class(type) == H5T_STRING;
    if (has_text != is_text) {
      fail(where, has_text ? "it is a text, and the model has none" : "it is no text");
    }
    if (is_text) return text(dataset, space, type, where);
    return array(dataset, space, type, where);
  }

 private:
  [[noreturn]] static void fail(const std::string& where, const std::string& what) {
    throw SerializationError(where + ": " + what);
  }

  void list_datasets() {
    std::vector<std::pair<std::string, H5L_type_t>> links;
    auto note = [](hid_t, const char* name, const H5L_info_t* info, void* data) -> herr_t {
      try {
        static_cast<decltype(links)*>(data)->emplace_back(name, info->type);
        return 0;
      } catch (const std::bad_alloc&) {
        return -1;
      }
    };
    if (H5Lvisit(file_, H5_INDEX_NAME, H5_ITER_INC, note, &links) < 0) fail_in_hdf5(path_);
    for (const auto& [name, type] : links) {
      std::string where = path_ + ": " + name;
      if (type != H5L_TYPE_HARD) fail(where, "it is a link that leads elsewhere");
      Hdf5Handle object(H5Oopen(file_, name.c_str(), H5P_DEFAULT), H5Oclose, where);
      if (H5Iget_type(object) == H5I_DATASET) names_.push_back(name);
      else if (links_to(object, where) > 1) fail(where, "it is a group that has two names");
    }
  }

  /// The shape, whose array of that dtype has bytes that can be counted.
  Shape shape_of(hid_t space, Dtype dtype, const std::string& where) const {
    int ndim = H5Sget_simple_extent_ndims(space);
    if (ndim < 0) fail_in_hdf5(where);
    if (ndim > kMaxNdim) {
      fail(where, fmt::format("{} axes; arrays have at most {}", ndim, kMaxNdim));
    }
    std::vector<hsize_t> extents(static_cast<std::size_t>(ndim));
    if (H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0) fail_in_hdf5(where);
    Shape shape;
    auto bytes = static_cast<std::int64_t>(itemsize(dtype));
    for (hsize_t extent : extents) {
      if (__builtin_mul_overflow(bytes, std::max<hsize_t>(extent, 1), &bytes)) {
        fail(where, "the shape's size overflows");
      }
      shape.push_back(static_cast<std::int64_t>(extent));
    }
    return shape;
  }

  /// What is to be read lies in this file, packed in a way that says how large it can become.
  void check_storage(hid_t dataset, std::int64_t nbytes, const std::string& where) const {
    Hdf5Handle how(H5Dget_create_plist(dataset), H5Pclose, where);
    H5D_layout_t layout = H5Pget_layout(how);
    if (layout == H5D_VIRTUAL || H5Pget_external_count(how) > 0) {
      fail(where, "its values lie in other files");
    }
    bool is_packed = false;
    int filters = layout == H5D_CHUNKED ? H5Pget_nfilters(how) : 0;
    for (int i = 0; i < filters; ++i) {
      unsigned flags = 0;
      std::size_t values = 0;
      char name[64] = "";
      H5Z_filter_t filter = H5Pget_filter2(how, static_cast<unsigned>(i), &flags, &values, nullptr,
                                           sizeof name, name, nullptr);
      if (filter == H5Z_FILTER_DEFLATE) is_packed = true;
      else if (filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32) {
        fail(where,
             fmt::format("it is packed by \"{}\"; gzip alone is read here (h5repack -f GZIP=4 "
                         "changes it)",
                         name));
      }
    }
    std::uint64_t stored = H5Dget_storage_size(dataset), most = 0;
    bool fits =
        stored <= size_ && !__builtin_mul_overflow(stored, is_packed ? kDeflation : 1, &most);
    if (fits && most >= static_cast<std::uint64_t>(nbytes)) return;
    fail(where, fmt::format("it is to have {} bytes, and {} are in the file", nbytes, stored));
  }

  Array array(hid_t dataset, hid_t space, hid_t type, const std::string& where) const {
    auto same = [&](const auto& known) { return H5Tequal(type, known.second) > 0; };
    auto known = std::ranges::find_if(types_, same);
    if (known == types_.end()) {
      fail(where, fmt::format("arrays have no such dtype: class {} of HDF5 in {} bytes",
                              static_cast<int>(H5Tget_class(type)), H5Tget_size(type)));
    }
    Dtype dtype = known->first;
    Shape shape = shape_of(space, dtype, where);
    if (shape.total() == 0) return xp::empty(shape, dtype, cpu());
    check_storage(dataset, shape.total() * itemsize(dtype), where);
    Array array = xp::empty(shape, dtype, cpu());
    Hdf5Handle memory = hdf5_type(dtype, H5T_ORDER_LE, where);
    if (H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data()) < 0) {
      fail_in_hdf5(where);
    }
    if (dtype == bool_ && std::ranges::any_of(bytes_of(array), [](char c) { return c & ~1; })) {
      fail(where, "a bool is neither 0 nor 1");
    }
    return array;
  }

  std::string text(hid_t dataset, hid_t space, hid_t type, const std::string& where) const {
    if (H5Sget_simple_extent_npoints(space) != 1) fail(where, "it is more than one text");
    if (H5Tis_variable_str(type) > 0) {
      char* given = nullptr;
      if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, &given) < 0) fail_in_hdf5(where);
      std::string text = given ? given : "";
      H5Dvlen_reclaim(type, space, H5P_DEFAULT, &given);
      return text;
    }
    std::size_t size = H5Tget_size(type);
    check_storage(dataset, static_cast<std::int64_t>(size), where);
    std::string text = with_host_memory("load_hdf5", [&] { return std::string(size, '\0'); });
    if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0) {
      fail_in_hdf5(where);
    }
    H5T_str_t padding = H5Tget_strpad(type);
    std::size_t end = padding == H5T_STR_NULLTERM
                          ? text.find('\0')
                          : text.find_last_not_of(padding == H5T_STR_SPACEPAD ? ' ' : '\0') + 1;
    text.resize(std::min(end, size));
    return text;
  }

  std::string path_;
  std::uint64_t size_ = 0;
  Hdf5Handle file_;
  std::vector<std::string> names_;
  std::vector<std::pair<Dtype, Hdf5Handle>> types_;  // in both byte orders
};

class StoredHdf5 final : public StoredValues {
 public:
  StoredHdf5(const std::string& path, const LoadHdf5Options& options)
      : StoredValues(path, options.path, options.names, "/"), file_(path) {
    set_names(file_.names());
  }

 private:
  Value value(const std::string& name, bool is_text, const std::string& where) const override {
    return file_.value(name, is_text, where);
  }

  Hdf5File file_;
};

// --- Writing ---

/// The groups that hold the names, each behind the one that holds it. Throws ValueError for names
/// that HDF5 would take for others.
std::set<std::string> groups_of(const std::vector<std::pair<std::string, Value>>& values) {
  std::set<std::string> groups, names;
  for (const auto& [name, value] : values) {
    names.insert(name);
    for (std::size_t begin = 0; begin <= name.size();) {
      std::size_t end = std::min(name.find('/', begin), name.size());
      std::string part = name.substr(begin, end - begin);
      if (part.empty() || part == "." || part.find('\0') != part.npos) {
        throw ValueError(
            fmt::format("save_hdf5: HDF5 has no name \"{}\": a part of it is empty, \".\" or has a "
                        "NUL",
                        name));
      }
      if (end < name.size()) groups.insert(name.substr(0, end));
      begin = end + 1;
    }
  }
  for (const std::string& name : names) {
    if (!groups.count(name)) continue;
    throw ValueError(fmt::format(
        "save_hdf5: \"{}\" is a value, and others are below it, as HDF5 cannot have it", name));
  }
  return groups;
}

/// A file that is made in memory: so HDF5 meets no full disk, which it does not recover from.
class Hdf5Image {
 public:
  Hdf5Image(std::string path, int compression) : path_(std::move(path)), compression_(compression) {
    Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, path_);
    Hdf5Handle root(H5Pcreate(H5P_FILE_CREATE), H5Pclose, path_);
    check(H5Pset_fapl_core(access, std::size_t{1} << 20, false));
    // The first format with sums over what describes the data.
    check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18));
    check(H5Pset_obj_track_times(root, false));
    file_ = {H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, root, access), H5Fclose, path_};
    group_ = {H5Pcreate(H5P_GROUP_CREATE), H5Pclose, path_};
    check(H5Pset_obj_track_times(group_, false));
    link_ = {H5Pcreate(H5P_LINK_CREATE), H5Pclose, path_};
    check(H5Pset_char_encoding(link_, H5T_CSET_UTF8));
  }

  void add_group(const std::string& name) {
    Hdf5Handle(H5Gcreate2(file_, name.c_str(), link_, group_, H5P_DEFAULT), H5Gclose, where(name));
  }

  void add(const std::string& name, const Array& host) {
    if (!host.defined()) {
      Hdf5Handle none(H5Screate(H5S_NULL), H5Sclose, where(name));
      return add(name, hdf5_type(float32, H5T_ORDER_LE, where(name)), none, {});
    }
    std::vector<hsize_t> extents(host.shape().begin(), host.shape().end());
    Hdf5Handle space(extents.empty() ? H5Screate(H5S_SCALAR)
                                     : H5Screate_simple(host.ndim(), extents.data(), nullptr),
                     H5Sclose, where(name));
    std::vector<hsize_t> chunk;
    if (compression_ > 0) chunk = chunk_of(extents, itemsize(host.dtype()));
    add(name, hdf5_type(host.dtype(), H5T_ORDER_LE, where(name)), space, bytes_of(host), chunk);
  }

  void add(const std::string& name, const std::string& text) {
    Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, where(name));
    check(H5Tset_size(type, std::max<std::size_t>(text.size(), 1)));
    check(H5Tset_strpad(type, H5T_STR_NULLPAD));
    check(H5Tset_cset(type, H5T_CSET_UTF8));
    Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, where(name));
    add(name, type, space, text.empty() ? std::string_view("", 1) : text);
  }

  /// The file's bytes, which stay with the image.
  std::string_view bytes() {
    check(H5Fflush(file_, H5F_SCOPE_GLOBAL));
    ssize_t size = H5Fget_file_image(file_, nullptr, 0);
    void** memory = nullptr;
    check(H5Fget_vfd_handle(file_, H5P_DEFAULT, reinterpret_cast<void**>(&memory)));
    if (size < 0 || !memory) fail_in_hdf5(path_);
    return {static_cast<const char*>(*memory), static_cast<std::size_t>(size)};
  }

 private:
  void check(herr_t status) const {
    if (status < 0) fail_in_hdf5(path_);
  }
  std::string where(const std::string& name) const { return path_ + ": " + name; }

  /// Extents halved from the first on until they have 1 MiB, what HDF5 keeps unpacked.
  static std::vector<hsize_t> chunk_of(std::vector<hsize_t> extents, std::int64_t item) {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    auto bytes = [&] {
      std::size_t product = static_cast<std::size_t>(item);
      for (hsize_t extent : extents) product *= extent;
      return product;
    };
    for (hsize_t& extent : extents) {
      while (extent > 1 && bytes() > kMost) extent = (extent + 1) / 2;
    }
    return extents;
  }

  /// What is small lies in the dataset's header, under its sum; what is larger is packed where a
  /// chunk is given.
  void add(const std::string& name, hid_t type, hid_t space, std::string_view bytes,
           const std::vector<hsize_t>& chunk = {}) {
    Hdf5Handle how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, where(name));
    check(H5Pset_obj_track_times(how, false));
    if (bytes.size() <= kSmall) {
      check(H5Pset_layout(how, H5D_COMPACT));
    } else if (!chunk.empty()) {
      check(H5Pset_chunk(how, static_cast<int>(chunk.size()), chunk.data()));
      check(H5Pset_deflate(how, static_cast<unsigned>(compression_)));
    }
    Hdf5Handle dataset(H5Dcreate2(file_, name.c_str(), type, space, link_, how, H5P_DEFAULT),
                       H5Dclose, where(name));
    if (bytes.empty()) return;
    if (H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) < 0) {
      fail_in_hdf5(where(name));
    }
  }

  static constexpr std::size_t kSmall = 4096;  // about what a packed array takes besides

  std::string path_;
  int compression_;
  Hdf5Handle file_, group_, link_;
};

}  // namespace

void save_hdf5(const std::string& path, const Members& what, const SaveHdf5Options& options) {
  if (options.compression < 0 || options.compression > 9) {
    throw ValueError(fmt::format(
        "save_hdf5: compression {}; gzip's levels are 1 to 9, and 0 is none", options.compression));
  }
  std::vector<std::pair<std::string, Value>> values = values_of(what, options.names);
  std::set<std::string> groups = groups_of(values);
  FileWriter file(path);
  Hdf5Scope scope;
  Hdf5Image image(path, options.compression);
  for (const std::string& group : groups) image.add_group(group);
  for (const auto& [name, value] : values) {
    if (const auto* text = std::get_if<std::string>(&value)) image.add(name, *text);
    else image.add(name, as_array("save_hdf5", value));
  }
  file.write(image.bytes());
  file.finish();
}

void detail::load_hdf5(const std::string& path, const Members& what,
                       const LoadHdf5Options& options) {
  check_members(what);
  load(StoredHdf5(path, options), what, options.strict);
}

}  // namespace rensa::serializers
