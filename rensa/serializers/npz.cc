// The walk over a model (or an optimizer) as a flat list of keyed values, and that list's way into
// and out of an npz file.
#include "rensa/serializers/npz.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "rensa/array/npy.h"
#include "rensa/array/npz.h"
#include "rensa/array/zip.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::serializers {

namespace {

/// One value of a file.
struct Item {
  std::string key;
  /// The array to write; undefined for None.
  std::function<Array()> get;
  /// What `set` takes: none for any shape.
  std::optional<Shape> shape;
  Dtype dtype;
  std::function<void(const Array&)> set;
  bool optional = false;  // a file may lack it
};
using Items = std::vector<Item>;

/// Writes host values into an array where it lies, so that whoever holds it sees them.
void store(const Array& target, const Array& values) {
  Array converted = values.astype(target.dtype(), false);
  if (target.device().is_cpu() || !target.is_contiguous()) {
    target.assign(converted.to(target.device()));
  } else {
    target.set(converted);
  }
}

Item array_item(std::string key, const Array& array) {
  return {std::move(key),
          [array] { return array; },
          array.shape(),
          array.dtype(),
          [array](const Array& values) { store(array, values); },
          false};
}

Item integer_item(std::string key, std::int64_t& value) {
  return {std::move(key),
          [&value] { return xp::array(static_cast<std::int64_t>(value), cpu()); },
          Shape{},
          int64,
          [&value](const Array& a) { value = a.item<std::int64_t>(); },
          false};
}

/// The values of a model, keyed by their paths.
class ModelItems final : public Visitor {
 public:
  explicit ModelItems(Items* items) : items_(items) {}

  void operator()(const char* name, Parameter& parameter) override {
    if (!parameter.defined()) return;  // a layer without a bias
    ParameterRef ref = parameter.ref();
    if (ref.is_initialized()) {
      items_->push_back(array_item(prefix_ + name, ref.array()));
      return;
    }
    items_->push_back({prefix_ + name, [] { return Array(); }, std::nullopt, config().dtype,
                       [ref](const Array& values) {
                         ref.initialize(values.shape());
                         store(ref.array(), values);
                       },
                       false});
  }
  void operator()(const char* name, Link& child) override {
    std::string outer = prefix_;
    prefix_ += std::string(name) + "/";
    child.members(*this);
    prefix_ = outer;
  }
  void operator()(const char* name, Persistent& persistent) override {
    if (persistent.defined()) items_->push_back(array_item(prefix_ + name, persistent));
  }
  void operator()(const char* name, std::int64_t& persistent) override {
    items_->push_back(integer_item(prefix_ + name, persistent));
  }
  void operator()(const char*, State&) override {}

 private:
  Items* items_;
  std::string prefix_;
};

Items items_of(const Link& model) {
  model.check_members();
  Items items;
  ModelItems visitor(&items);
  model.show_members(visitor);
  return items;
}

Item number_item(std::string key, std::function<double()> get, std::function<void(double)> set) {
  return {
      std::move(key), [get = std::move(get)] { return xp::array(get(), cpu()); },        Shape{},
      float64,        [set = std::move(set)](const Array& a) { set(a.item<double>()); }, true};
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

/// The array of one key, checked against what the model has there; undefined for None.
Array read_item(const ZipReader& archive, const std::string& name, const Item& item) {
  std::string file = archive.read(name);
  std::string where = archive.path() + ": " + item.key;
  NpyHeader header = parse_npy_header(file, where);
  if (header.is_object && header.shape.ndim() == 0) return {};  // None: nothing else is stored so
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
  return array;
}

/// The arrays of a file below a prefix.
class StoredArrays {
 public:
  StoredArrays(const std::string& path, std::string prefix)
      : file_(path), archive_(file_), prefix_(std::move(prefix)) {
    while (!prefix_.empty() && prefix_.back() == '/') prefix_.pop_back();
    if (!prefix_.empty()) prefix_ += '/';
    keys_ = keys_of(archive_, prefix_);
  }
  const std::set<std::string>& keys() const { return keys_; }
  bool contains(const std::string& key) const { return keys_.count(key) > 0; }
  /// Checked against the item; undefined for None and where there is none of its key.
  Array read(const Item& item) const {
    if (!contains(item.key)) return {};
    std::string name = prefix_ + item.key;
    if (archive_.contains(name + ".npy")) name += ".npy";
    return read_item(archive_, name, item);
  }
  /// The number of an integer_item; 0 where there is none.
  std::int64_t count(const Item& item) const {
    Array value = read(item);
    return value.defined() ? value.item<std::int64_t>() : 0;
  }

 private:
  FileReader file_;
  ZipReader archive_;
  std::string prefix_;
  std::set<std::string> keys_;
};

/// One parameter's count, states and values of its own. A file of a parameter that was not updated
/// yet may lack its states: then they are made by the first update.
void add_items_of(Items& items, OptimizerState& optimizer, const NamedParameter& named,
                  const StoredArrays* file) {
  std::shared_ptr<UpdateRule> rule = optimizer.rule_of(named.parameter);
  std::string prefix = named.path.substr(1) + "/";
  Item count = integer_item(prefix + "t", rule->t);
  if (file && named.parameter.is_initialized()) optimizer.prepare_for_update(named.parameter);
  bool updated = !file || file->count(count) > 0;
  std::vector<UpdateState> states = optimizer.algorithm->states();
  Items of_states;
  for (std::size_t i = 0; i < rule->states.size(); ++i) {
    of_states.push_back(array_item(prefix + states[i].name, rule->states[i]));
  }
  bool has_states = updated || std::ranges::any_of(of_states, [&](const Item& item) {
                      return file->contains(item.key);
                    });
  std::string fp32_key = prefix + "fp32_param";
  bool has_copy = updated || file->contains(fp32_key);
  count.set = [set = count.set, rule, has_states, has_copy](const Array& values) {
    set(values);
    if (!has_states) rule->states.clear();
    if (!has_copy) rule->fp32_param = {};
  };
  items.push_back(std::move(count));
  if (has_states) std::ranges::move(of_states, std::back_inserter(items));
  if (has_copy && rule->fp32_param.defined()) {
    items.push_back(array_item(fp32_key, rule->fp32_param));
  }
  const Hyperparameters& own = rule->own_hyperparams();
  for (const auto& [name, value] : optimizer.algorithm->hyperparameters()) {
    bool is_own =
        std::ranges::any_of(own, [&name = name](const auto& o) { return o.first == name; });
    if (!is_own && !file) continue;
    items.push_back(number_item(
        prefix + "hyperparam/" + name, [rule, name = name] { return rule->hyperparam(name); },
        [rule, name = name](double v) { rule->set_hyperparam(name, v); }));
  }
}

/// The values of an optimizer: its counts and hyperparameters, its loss scale (which a file from
/// before the first update may lack), and what it keeps for each parameter. What is not made yet is
/// made to be read from `file`; null: the values are to be written.
Items items_of(const Optimizer& optimizer, const StoredArrays* file) {
  Items items;
  OptimizerState& state = *optimizer.state();
  Item count = integer_item("t", state.t);
  bool has_scale = !file || file->contains("loss_scale") || file->count(count) > 0;
  count.set = [set = count.set, &state, has_scale](const Array& values) {
    set(values);
    if (!state.dynamic || has_scale) return;
    state.dynamic->scale = {};
    state.change_structure();
  };
  items.push_back(std::move(count));
  items.push_back(integer_item("epoch", state.epoch));
  for (const auto& [name, value] : state.algorithm->hyperparameters()) {
    items.push_back(number_item(
        "hyperparam/" + name, [value = value] { return *value; },
        [value = value](double v) { *value = v; }));
  }
  for (const NamedParameter& named : optimizer.target().namedparams()) {
    add_items_of(items, state, named, file);
  }
  if (!state.dynamic || !has_scale) return items;
  DynamicLossScale& dynamic = *state.dynamic;
  if (!dynamic.scale.defined() && (file || state.t > 0)) dynamic.prepare(cpu());
  if (dynamic.scale.defined()) {
    items.push_back(array_item("loss_scale", dynamic.scale));
    items.push_back(array_item("loss_scale_overflowed", dynamic.overflowed));
  }
  return items;
}

void save(const std::string& path, const Items& items, const SaveNpzOptions& options) {
  std::vector<xp::NamedArray> arrays;
  for (const Item& item : items) arrays.push_back({item.key, item.get()});
  rensa::detail::check_npz_names("save_npz", arrays);
  FileWriter file(path);
  rensa::detail::write_npz(file, arrays, options.compression);
}

void check_keys(const std::string& path, const Items& items, const std::set<std::string>& there) {
  std::vector<std::string> missing;
  std::set<std::string> extra = there;
  for (const Item& item : items) {
    if (!extra.erase(item.key) && !item.optional) missing.push_back(item.key);
  }
  if (missing.empty() && extra.empty()) return;
  throw SerializationError(fmt::format(
      "{}: not a file of this model: it lacks [{}] and has [{}] that the model has not; "
      "give .strict = false to load what is in both",
      path, fmt::join(missing, ", "), fmt::join(extra, ", ")));
}

void load(const std::string& path, const StoredArrays& file, const Items& items, bool strict) {
  if (strict) check_keys(path, items, file.keys());
  std::vector<std::pair<const Item*, Array>> read;
  for (const Item& item : items) {
    Array array = file.read(item);
    if (array.defined()) read.emplace_back(&item, std::move(array));
  }
  for (const auto& [item, array] : read) item->set(array);
}

}  // namespace

void save_npz(const std::string& path, const Link& model, const SaveNpzOptions& options) {
  save(path, items_of(model), options);
}

void save_npz(const std::string& path, const Optimizer& optimizer, const SaveNpzOptions& options) {
  save(path, items_of(optimizer, nullptr), options);
}

void load_npz(const std::string& path, Link& model, const LoadNpzOptions& options) {
  Items items = items_of(model);
  load(path, StoredArrays(path, options.path), items, options.strict);
}

void load_npz(const std::string& path, const Optimizer& optimizer, const LoadNpzOptions& options) {
  StoredArrays file(path, options.path);
  load(path, file, items_of(optimizer, &file), options.strict);
}

}  // namespace rensa::serializers
