// The members of whatever lasts as a flat list of keyed values, and that list's way into and out of
// an npz file.
#include "rensa/serializers/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "rensa/array/internal.h"
#include "rensa/array/io_npz.h"
#include "rensa/array/npy.h"
#include "rensa/array/zip.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/renewal.h"

namespace rensa::serializers {

namespace {

using Value = Visitor::Value;
using Commit = Visitor::Commit;

/// One value of a file.
struct Item {
  std::string key;
  Visitor::Access access;
  /// Of an array: what it is to convert to, and its shape; none where any will do.
  std::optional<Dtype> dtype;
  std::optional<Shape> shape;
};

template <class T> constexpr std::size_t kind_of() { return Visitor::kind_of<T>(); }

Item value_item(std::string key, const Visitor::Access& access) {
  Item item{std::move(key), access, {}, {}};
  if (access.kind != kind_of<Array>()) {
    item.shape = Shape{};
  } else if (access.place) {
    Array now = std::get<Array>(access.get());
    if (now.defined()) item.dtype = now.dtype(), item.shape = now.shape();
  }
  return item;
}

Item array_item(std::string key, const Array& array, std::function<Commit(const Array&)> take) {
  Visitor::Access access{
      kind_of<Array>(), [array] { return Value(array); },
      [take = std::move(take)](const Value& v) { return take(std::get<Array>(v)); }};
  if (!array.defined()) return {std::move(key), std::move(access), {}, {}};
  return {std::move(key), std::move(access), array.dtype(), array.shape()};
}

/// None leaves a parameter as it is: its file was written before it had values.
Item parameter_item(std::string key, const ParameterRef& parameter) {
  auto take = [parameter](const Array& values) -> Commit {
    if (!values.defined()) return [] {};
    if (parameter.is_initialized()) return writing(parameter.array(), values);
    Array made = autograd::array_for(parameter, values.shape());
    write_values(made, values);
    return [parameter, made] {
      // Another one of the file may have given it what they share.
      if (parameter.is_initialized()) write_values(parameter.array(), made);
      else autograd::set_array(parameter, made);
    };
  };
  Item item = array_item(std::move(key), parameter.is_initialized() ? parameter.array() : Array(),
                         std::move(take));
  if (!item.dtype) item.dtype = config().dtype;
  return item;
}

Item persistent_item(std::string key, Persistent& persistent) {
  auto take = [&persistent](const Array& values) -> Commit {
    if (persistent.defined() && values.defined()) return writing(persistent, values);
    if (values.defined()) {
      return
          [&persistent, made = values.copy(persistent.home())] { persistent = Persistent(made); };
    }
    return [&persistent] {
      Device home = persistent.home();
      persistent = Persistent();
      persistent.move_to(home);
    };
  };
  return array_item(std::move(key), persistent, std::move(take));
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

/// The value of one key, checked against what is there for it.
Value read_item(const ZipReader& archive, const std::string& name, const Item& item) {
  std::string file = archive.read(name);
  std::string where = archive.path() + ": " + item.key;
  NpyHeader header = parse_npy_header(file, where);
  if (header.is_object && header.shape.ndim() == 0) return Array();  // None: nothing else is so
  std::size_t kind = item.access.kind;
  if (kind == kind_of<std::string>()) return parse_npy_text(file, where);
  Array array = parse_npy(file, where);
  if (item.shape && array.shape() != *item.shape) {
    throw ShapeError(fmt::format("{}: the file has shape {}, the model {}", where,
                                 array.shape().str(), item.shape->str()));
  }
  std::optional<Dtype> dtype = item.dtype;
  if (kind == kind_of<std::int64_t>()) dtype = int64;
  if (kind == kind_of<double>()) dtype = float64;
  if (kind == kind_of<bool>()) dtype = bool_;
  if (dtype && !can_cast_same_kind(array.dtype(), *dtype)) {
    throw SerializationError(
        fmt::format("{}: the file has {}, which does not convert to the model's {}", where,
                    dtype_name(array.dtype()), dtype_name(*dtype)));
  }
  if (kind == kind_of<std::int64_t>()) return array.item<std::int64_t>();
  if (kind == kind_of<double>()) return array.item<double>();
  if (kind == kind_of<bool>()) return array.item<bool>();
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
  /// Checked against the item; none where there is none of its key.
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
    if (!file_ || parameter.is_initialized()) return;
    std::optional<Value> value = file_->read(items.back());
    if (!value) return;
    const auto& array = std::get<Array>(*value);
    if (array.defined()) initialized_[parameter.body().get()] = array.shape();
    read_[items.back().key] = std::move(*value);
  }
  void persistent(std::string_view name, Persistent& persistent) override {
    items.push_back(persistent_item(path(name), persistent));
  }
  void value(std::string_view name, const Access& access) override {
    items.push_back(value_item(path(name), access));
  }

  Visitor::Reading* reading() override { return file_ ? this : nullptr; }
  bool contains(std::string_view name) const override { return file_->contains(path(name)); }
  std::int64_t number(std::string_view name) const override {
    auto value = file_->read({path(name), {kind_of<std::int64_t>(), {}, {}}, {}, Shape{}});
    const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
    return number ? *number : 0;
  }
  std::optional<Shape> shape_for(const ParameterRef& parameter) const override {
    auto known = initialized_.find(parameter.body().get());
    return known == initialized_.end() ? std::nullopt : std::optional(known->second);
  }
  void then(std::function<void()> action) override { actions.push_back(std::move(action)); }

  /// The item's value in the file; none where there is none of its key.
  std::optional<Value> read(const Item& item) const {
    auto known = read_.find(item.key);
    return known == read_.end() ? file_->read(item) : known->second;
  }

  std::vector<Item> items;
  std::vector<std::function<void()>> actions;

 private:
  const StoredValues* file_;
  std::map<const VariableBody*, Shape> initialized_;
  std::map<std::string, Value> read_;  // of parameters that wait for their shapes
};

/// What puts the value in its place. Throws ShapeError and SerializationError, with the key, where
/// the item cannot take it.
Commit take(const std::string& path, const Item& item, const Value& value) {
  auto text = [&](const Error& error) {
    return fmt::format("{}: {}: {}", path, item.key, error.what());
  };
  try {
    return item.access.take(value);
  } catch (const ShapeError& error) {
    throw ShapeError(text(error));
  } catch (const SerializationError& error) {
    throw SerializationError(text(error));
  } catch (const ValueError& error) {
    throw SerializationError(text(error));
  } catch (const DtypeError& error) {
    throw SerializationError(text(error));
  }
}

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
    write(zip, names[i], all.items[i].access.get(), options.compression);
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
  std::vector<Commit> commits;
  bool are_seen = true;  // by recordings: an array of a known shape takes its values where it lies
  for (const Item& item : all.items) {
    auto value = all.read(item);
    if (!value) continue;
    commits.push_back(take(path, item, *value));
    are_seen = are_seen && item.access.kind == kind_of<Array>() && item.shape;
  }
  for (const Commit& commit : commits) commit();
  for (const auto& action : all.actions) action();
  if (!are_seen) renew_recordings();
}

}  // namespace rensa::serializers
