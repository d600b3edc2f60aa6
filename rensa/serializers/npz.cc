// The members of whatever lasts as a flat list of keyed values, and that list's way into and out of
// an npz file.
#include "rensa/serializers/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "rensa/array/internal.h"
#include "rensa/array/io_npz.h"
#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::serializers {

namespace {

using Value = Visitor::Value;

/// One value of a file.
struct Item {
  std::string key;
  /// An undefined array for None.
  std::function<Value()> get;
  std::function<void(const Value&)> set;
  /// Of what `set` takes: which alternative of Value, and of an array its dtype and shape (none:
  /// any).
  std::size_t kind;
  Dtype dtype;
  std::optional<Shape> shape;
};

template <class T> constexpr std::size_t kind_of() { return Value(T()).index(); }
constexpr std::size_t kArray = 4;

Dtype dtype_of(const Value& value) {
  switch (value.index()) {
    case 0: return int64;
    case 1: return float64;
    case 2: return bool_;
    default: return uint8;  // never asked of a text
  }
}

Item value_item(std::string key, const Visitor::Access& access) {
  Value now = access.get();
  if (const auto* array = std::get_if<Array>(&now)) {
    bool keeps = access.place && array->defined();
    return {std::move(key),
            access.get,
            access.set,
            kArray,
            array->defined() ? array->dtype() : float64,
            keeps ? std::optional(array->shape()) : std::nullopt};
  }
  return {std::move(key), access.get, access.set, now.index(), dtype_of(now), Shape{}};
}

Item array_item(std::string key, const Array& array) {
  return {std::move(key),
          [array] { return Value(array); },
          [array](const Value& values) { write_values(array, std::get<Array>(values)); },
          kArray,
          array.dtype(),
          array.shape()};
}

Item parameter_item(std::string key, const ParameterRef& parameter) {
  if (parameter.is_initialized()) return array_item(std::move(key), parameter.array());
  return {std::move(key),
          [] { return Value(Array()); },
          [parameter](const Value& values) {
            parameter.initialize(std::get<Array>(values).shape());
            write_values(parameter.array(), std::get<Array>(values));
          },
          kArray,
          config().dtype,
          std::nullopt};
}

/// The keys of `archive` below `prefix`, without ".npy".
std::set<std::string> keys_of(const ZipReader& archive, const std::string& prefix) {
  std::set<std::string> keys;
  for (std::string name : archive.names()) {
    if (name.size() >= 4 && name.compare(name.size() - 4, 4, ".npy") == 0) {
      name.resize(name.size() - 4);
    }
    if (name.compare(0, prefix.size(), prefix) == 0) keys.insert(name.substr(prefix.size()));
  }
  return keys;
}

/// The value of one key, checked against what is there for it; none for None.
std::optional<Value> read_item(const ZipReader& archive, const std::string& name,
                               const Item& item) {
  std::string file = archive.read(name);
  std::string where = archive.path() + ": " + item.key;
  NpyHeader header = parse_npy_header(file, where);
  if (header.is_object && header.shape.ndim() == 0) return {};  // None: nothing else is stored so
  if (item.kind == kind_of<std::string>()) return parse_npy_text(file, where);
  Array array = parse_npy(file, where);
  if (item.shape && array.shape() != *item.shape) {
    throw ShapeError(fmt::format("{}: the file has shape {}, the model {}", where,
                                 array.shape().str(), item.shape->str()));
  }
  if (!can_cast_same_kind(array.dtype(), item.dtype)) {
    throw SerializationError(
        fmt::format("{}: the file has {}, which does not convert to the model's {}", where,
                    dtype_name(array.dtype()), dtype_name(item.dtype)));
  }
  if (item.kind == kind_of<std::int64_t>()) return array.item<std::int64_t>();
  if (item.kind == kind_of<double>()) return array.item<double>();
  if (item.kind == kind_of<bool>()) return array.item<bool>();
  return array;
}

/// The values of a file below a prefix.
class StoredValues {
 public:
  StoredValues(const std::string& path, std::string prefix)
      : file_(path), archive_(file_), prefix_(std::move(prefix)) {
    while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
    if (!prefix_.empty()) prefix_ += '/';
    keys_ = keys_of(archive_, prefix_);
  }
  const std::set<std::string>& keys() const { return keys_; }
  /// Whether there is a value of that key, or one below it.
  bool contains(const std::string& key) const {
    if (keys_.count(key)) return true;
    auto below = keys_.lower_bound(key + "/");
    return below != keys_.end() && below->starts_with(key + "/");
  }
  /// Checked against the item; none for None and where there is none of its key.
  std::optional<Value> read(const Item& item) const {
    if (!keys_.count(item.key)) return {};
    std::string name = prefix_ + item.key;
    if (archive_.contains(name + ".npy")) name += ".npy";
    return read_item(archive_, name, item);
  }

 private:
  FileReader file_;
  ZipReader archive_;
  std::string prefix_;
  std::set<std::string> keys_;
};

/// All values, keyed by their paths; with a file, those that are to be read from it.
class FileItems final : public PathVisitor, public Visitor::Reading {
 public:
  explicit FileItems(const StoredValues* file = nullptr) : file_(file) {}

  void parameter(std::string_view name, Parameter& parameter) override {
    items.push_back(parameter_item(path(name), parameter.ref()));
    if (!file_ || parameter.is_initialized() || !file_->read(items.back())) return;
    initialized_.insert(parameter.body().get());
  }
  void persistent(std::string_view name, Persistent& persistent) override {
    if (persistent.defined()) items.push_back(array_item(path(name), persistent));
  }
  void value(std::string_view name, const Access& access) override {
    items.push_back(value_item(path(name), access));
  }

  Visitor::Reading* reading() override { return file_ ? this : nullptr; }
  bool contains(std::string_view name) const override { return file_->contains(path(name)); }
  std::int64_t number(std::string_view name) const override {
    std::int64_t number = 0;
    auto value = file_->read(value_item(path(name), {[&] { return Value(number); }, {}, nullptr}));
    return value ? std::get<std::int64_t>(*value) : 0;
  }
  bool initializes(const ParameterRef& parameter) const override {
    return initialized_.count(parameter.body().get()) > 0;
  }
  void then(std::function<void()> action) override { actions.push_back(std::move(action)); }

  std::vector<Item> items;
  std::vector<std::function<void()>> actions;

 private:
  const StoredValues* file_;
  std::set<const VariableBody*> initialized_;
};

void write(ZipWriter& zip, const std::string& name, const Value& value, bool compress) {
  if (const auto* text = std::get_if<std::string>(&value)) {
    return zip.add(name, {format_npy_text(*text)}, compress);
  }
  Array array;
  if (const auto* a = std::get_if<Array>(&value)) array = *a;
  else if (const auto* n = std::get_if<std::int64_t>(&value)) array = xp::array(*n, cpu());
  else if (const auto* x = std::get_if<double>(&value)) array = xp::array(*x, cpu());
  else array = xp::array(std::get<bool>(value), cpu());
  if (!array.defined()) return zip.add(name, {npy_of_none()}, compress);
  Array host = rensa::detail::on_host("save_npz", array);
  zip.add(name, {npy_header(host), bytes_of(host)}, compress);
}

void check_keys(const std::string& path, const std::vector<Item>& items,
                const std::set<std::string>& there) {
  std::vector<std::string> missing;
  std::set<std::string> extra = there;
  for (const Item& item : items) {
    if (!extra.erase(item.key)) missing.push_back(item.key);
  }
  if (missing.empty() && extra.empty()) return;
  throw SerializationError(fmt::format(
      "{}: not a file of this model: it lacks [{}] and has [{}] that the model has not; "
      "give .strict = false to load what is in both",
      path, fmt::join(missing, ", "), fmt::join(extra, ", ")));
}

}  // namespace

void save_npz(const std::string& path, const Members& what, const SaveNpzOptions& options) {
  check_members(what);
  FileItems all;
  what.show(all);
  std::vector<std::string> names;
  for (const Item& item : all.items) names.push_back(item.key + ".npy");
  ZipWriter::check_names("save_npz", names);
  FileWriter file(path);
  ZipWriter zip(file);
  for (std::size_t i = 0; i < names.size(); ++i) {
    write(zip, names[i], all.items[i].get(), options.compression);
  }
  zip.finish();
  file.finish();
}

void detail::load_npz(const std::string& path, const Members& what, const LoadNpzOptions& options) {
  check_members(what);
  StoredValues file(path, options.path);
  FileItems all(&file);
  what.show(all);
  if (options.strict) check_keys(path, all.items, file.keys());
  std::vector<std::pair<const Item*, Value>> read;
  for (const Item& item : all.items) {
    if (auto value = file.read(item)) read.emplace_back(&item, std::move(*value));
  }
  for (const auto& [item, value] : read) item->set(value);
  for (const auto& action : all.actions) action();
}

}  // namespace rensa::serializers
