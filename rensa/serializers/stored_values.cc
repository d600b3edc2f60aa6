// Members as values, and what puts those of a file in their places.
#include "rensa/serializers/stored_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/renewal.h"

namespace rensa::serializers {

namespace {

using Value = Visitor::Value;
using Commit = Visitor::Commit;

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
  if (!item.dtype) item.dtype = autograd::dtype_for(parameter);
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

/// An array of the file as what `item` is, checked against it.
Value checked(const std::string& where, const Item& item, const Array& array) {
  if (item.shape && array.shape() != *item.shape) {
    throw ShapeError(fmt::format("{}: the file has shape {}, the model {}", where,
                                 array.shape().str(), item.shape->str()));
  }
  std::size_t kind = item.access.kind;
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

/// What `what` shows for the file; what it finds wrong there is told with the file's name.
void show(const Members& what, FileItems& all, const StoredValues& file) {
  try {
    what.show(all);
  } catch (const SerializationError& error) {
    std::string text = error.what();
    if (text.starts_with(file.file() + ": ")) throw;
    throw SerializationError(file.file() + ": " + text);
  }
}

void check_names(const StoredValues& file, const std::vector<Item>& items) {
  std::vector<std::string> missing;
  std::set<std::string> extra = file.names();
  for (const Item& item : items) {
    std::string name = file.name_of(item.key).name;
    if (!extra.erase(name)) missing.push_back(name);
  }
  if (file.naming().surplus) std::erase_if(extra, file.naming().surplus);
  if (missing.empty() && extra.empty()) return;
  throw SerializationError(fmt::format(
      "{}: not a file of this model: it lacks [{}] and has [{}] that the model has not; "
      "give .strict = false to load what is in both",
      file.file(), fmt::join(missing, ", "), fmt::join(extra, ", ")));
}

StoredName name_by(const Naming& naming, const std::string& key) {
  return naming.name ? naming.name(key) : StoredName(key);
}

/// Throws ValueError where two members have one name in the file.
void check_apart(const std::vector<Item>& items, const Naming& naming) {
  std::map<std::string, std::string> keys;
  for (const Item& item : items) {
    auto [known, first] = keys.try_emplace(name_by(naming, item.key).name, item.key);
    if (first) continue;
    throw ValueError(fmt::format("names: \"{}\" and \"{}\" are both named \"{}\" in the file",
                                 known->second, item.key, known->first));
  }
}

}  // namespace

StoredValues::StoredValues(std::string file, std::string path, Naming naming,
                           std::string separators)
    : file_(std::move(file)),
      path_(std::move(path)),
      naming_(std::move(naming)),
      separators_(std::move(separators)) {
  while (!path_.empty() && separators_.find(path_.back()) != std::string::npos) path_.pop_back();
}

void StoredValues::set_names(const std::vector<std::string>& all) {
  for (const std::string& name : all) {
    std::string below = name;
    if (!path_.empty()) {
      std::size_t size = path_.size();
      bool inside = name.starts_with(path_) && name.size() > size &&
                    separators_.find(name[size]) != std::string::npos;
      if (!inside) continue;
      below = name.substr(size + 1);
    }
    if (!names_.insert(below).second) {
      throw ValueError(fmt::format("{}: \"{}\" and \"{}\" are one name, \"{}\", below \"{}\"",
                                   file_, full_[below], name, below, path_));
    }
    full_[below] = name;
  }
}

StoredName StoredValues::name_of(const std::string& key) const { return name_by(naming_, key); }

bool StoredValues::contains(const std::string& key) const {
  std::string name = name_of(key).name;
  if (names_.count(name)) return true;
  for (char separator : separators_) {
    auto below = names_.lower_bound(name + separator);
    if (below != names_.end() && below->starts_with(name + separator)) return true;
  }
  return false;
}

std::optional<Value> StoredValues::read(const Item& item) const {
  StoredName stored = name_of(item.key);
  auto known = full_.find(stored.name);
  if (known == full_.end()) return {};
  std::string where = file_ + ": " + known->second;
  bool is_text = item.access.kind == kind_of<std::string>();
  Value found = value(known->second, is_text, where);
  const auto* array = std::get_if<Array>(&found);
  if (!array || !array->defined()) return found;
  return checked(where, item, stored.transposed ? array->transpose().ascontiguous() : *array);
}

void load(const StoredValues& file, const Members& what, bool strict) {
  FileItems all(&file);
  show(what, all, file);
  check_apart(all.items, file.naming());
  if (strict) check_names(file, all.items);
  std::vector<Commit> commits;
  bool are_seen = true;  // by recordings: an array of a known shape takes its values where it lies
  for (const Item& item : all.items) {
    auto value = all.read(item);
    if (!value) continue;
    commits.push_back(take(file.file(), item, *value));
    are_seen = are_seen && item.access.kind == kind_of<Array>() && item.shape;
  }
  for (const Commit& commit : commits) commit();
  for (const auto& action : all.actions) action();
  if (!are_seen) renew_recordings();
}

std::vector<std::pair<std::string, Value>> values_of(const Members& what, const Naming& naming) {
  check_members(what);
  FileItems all;
  what.show(all);
  check_apart(all.items, naming);
  std::vector<std::pair<std::string, Value>> values;
  for (const Item& item : all.items) {
    StoredName stored = name_by(naming, item.key);
    Value value = item.access.get();
    auto* array = std::get_if<Array>(&value);
    if (stored.transposed && array && array->defined()) *array = array->transpose();
    values.emplace_back(std::move(stored.name), std::move(value));
  }
  return values;
}

Array as_array(const char* operation, const Value& value) {
  Array array;
  if (const auto* a = std::get_if<Array>(&value)) array = *a;
  else if (const auto* n = std::get_if<std::int64_t>(&value)) array = xp::array(*n, cpu());
  else if (const auto* x = std::get_if<double>(&value)) array = xp::array(*x, cpu());
  else array = xp::array(std::get<bool>(value), cpu());
  return array.defined() ? rensa::detail::on_host(operation, array) : array;
}

}  // namespace rensa::serializers
