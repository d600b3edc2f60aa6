// UpdaterBody and StandardUpdater.
#include "rensa/training/updater.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/training/batch_parts.h"
#include "rensa/training/step_inputs.h"

namespace rensa::training {

namespace {

/// The entry of that name; throws where there is none.
template <class T> const T& get(const Named<T>& all, const std::string& name, const char* what) {
  if (const T* found = all.find(name)) return *found;
  std::string names;
  for (const auto& [other, entry] : all) names += (names.empty() ? "\"" : ", \"") + other + "\"";
  throw ValueError(fmt::format("Updater: no {} is named \"{}\"; there are {}", what, name, names));
}

template <class T> void check_names(const Named<T>& all, const char* what) {
  std::set<std::string> names;
  for (const auto& [name, entry] : all) {
    if (name.empty()) throw ValueError(fmt::format("Updater: an {} has no name", what));
    if (!names.insert(name).second) {
      throw ValueError(fmt::format("Updater: two {}s are named \"{}\"", what, name));
    }
  }
}

}  // namespace

UpdaterBody::UpdaterBody(Named<Iterator> iterators, Named<Optimizer> optimizers)
    : iterators_(std::move(iterators)), optimizers_(std::move(optimizers)) {
  check_names(iterators_, "iterator");
  check_names(optimizers_, "optimizer");
  if (!iterators_.find("main")) {
    throw ValueError(
        "Updater: one of its iterators has to be named \"main\": its epochs are the run's");
  }
  if (optimizers_.size() == 0) throw ValueError("Updater: give it an optimizer");
  for (const auto& [name, optimizer] : optimizers_) (void)optimizer.target();
}

void UpdaterBody::update() {
  std::int64_t epoch = iterator().epoch();
  update_core();
  ++iteration_;
  if (iterator().epoch() == epoch) return;
  for (const auto& [name, optimizer] : optimizers_) optimizer.new_epoch();
}

const Iterator& UpdaterBody::get_iterator(const std::string& name) const {
  return get(iterators_, name, "iterator");
}

const Optimizer& UpdaterBody::get_optimizer(const std::string& name) const {
  return get(optimizers_, name, "optimizer");
}

Batch UpdaterBody::next_batch(const std::string& name) const {
  if (std::optional<Batch> batch = get_iterator(name).next()) return *std::move(batch);
  throw ValueError(
      fmt::format("Updater: the iterator \"{}\" has come to its end; let it repeat, or stop the "
                  "training before",
                  name));
}

void UpdaterBody::members(Visitor& v) {
  // Models first: what an optimizer keeps for a parameter is made for one that is initialized.
  for (const auto& [name, optimizer] : optimizers_) v("model:" + name, optimizer.target());
  for (const auto& [name, iterator] : iterators_) v("iterator:" + name, iterator);
  for (const auto& [name, optimizer] : optimizers_) v("optimizer:" + name, optimizer);
  v("iteration", iteration_);
}

std::int64_t Updater::iteration() const {
  stay_eager("it asks an updater for its iteration");
  return body_->iteration();
}

std::vector<NamedParameter> Updater::namedparams() const {
  std::vector<NamedParameter> all;
  for (const auto& [name, optimizer] : get_all_optimizers()) {
    std::string before = name == "main" ? "" : "/" + name;
    for (const NamedParameter& p : optimizer.target().namedparams()) {
      all.push_back({before + p.path, p.parameter});
    }
  }
  return all;
}

Device device_of(const Link& model) {
  std::vector<ParameterRef> parameters = model.params();
  return parameters.empty() ? cpu() : parameters[0].device();
}

namespace {

void check_options(const Named<Optimizer>& optimizers, const StandardUpdaterOptions& options) {
  if (options.accumulate < 1) {
    throw ValueError(fmt::format("StandardUpdater: a batch in {} parts", options.accumulate));
  }
  if (options.update_core) {
    if (!options.loss_func && options.accumulate == 1) return;
    throw ValueError(
        "StandardUpdater: update_core has the whole update; leave out loss_func and accumulate");
  }
  if (optimizers.size() > 1 || !optimizers.find("main")) {
    throw ValueError(
        "StandardUpdater: it updates the optimizer \"main\" alone; say by update_core what others "
        "are to do");
  }
}

class StandardBody final : public UpdaterBody {
 public:
  StandardBody(Named<Iterator> iterators, Named<Optimizer> optimizers,
               StandardUpdaterOptions options)
      : UpdaterBody(std::move(iterators), std::move(optimizers)),
        options_(std::move(options)),
        cache_(options_.capture_options) {
    check_options(get_all_optimizers(), options_);
    for (std::size_t i = 0; i < get_all_iterators().size(); ++i) {
      converters_.emplace_back(options_.converter_options);
    }
    if (options_.device) {
      for (const auto& [name, optimizer] : get_all_optimizers()) {
        optimizer.target().to(*options_.device);
      }
    }
    Link& first = get_all_optimizers().begin()->second.target();
    device_ = options_.input_device.value_or(options_.device.value_or(device_of(first)));
  }

  const CaptureStats& capture_stats() const { return cache_.stats(); }

 protected:
  void update_core() override {
    std::vector<LocatedBatch> located;
    Variables inputs;
    for (const auto& [name, iterator] : get_all_iterators()) {
      located.push_back(locate(next_batch(name), &converters_[located.size()]));
      append_inputs(located.back(), inputs);
    }
    auto step = [&](const Variables& in) {
      Variables columns;
      auto next = in.begin();
      for (const LocatedBatch& batch : located) {
        for (Array& column : columns_of(batch, next))
          columns.push_back(constant(std::move(column)));
      }
      update_by(columns);
      return Variables();
    };
    if (options_.capture) {
      cache_.call(step, inputs);
    } else {
      step(inputs);
    }
  }

 private:
  LocatedBatch locate(const Batch& batch, Converter* converter) const {
    if (options_.converter) return {options_.converter(batch, device_), {}};
    return converter->locate(batch, device_);
  }

  void update_by(const Variables& columns) const {
    if (options_.update_core) {
      options_.update_core(columns);
      return;
    }
    if (options_.accumulate == 1) {
      optimizer().update([&] { return loss(columns); });
      return;
    }
    optimizer().target().cleargrads();
    each_part(columns, options_.accumulate, [&](const Variables& part, double share) {
      optimizer().backward(loss(part), share);
    });
    optimizer().update();
  }

  Variable loss(const Variables& columns) const {
    return options_.loss_func ? options_.loss_func(columns) : optimizer().target().invoke(columns);
  }

  StandardUpdaterOptions options_;
  std::vector<Converter> converters_;  // of each iterator
  CaptureCache cache_;
  Device device_;
};

}  // namespace

StandardUpdater::StandardUpdater(Named<Iterator> iterators, Named<Optimizer> optimizers,
                                 StandardUpdaterOptions options)
    : Updater(std::make_shared<StandardBody>(std::move(iterators), std::move(optimizers),
                                             std::move(options))) {}

const CaptureStats& StandardUpdater::capture_stats() const {
  return static_cast<const StandardBody&>(*body_).capture_stats();
}

}  // namespace rensa::training
