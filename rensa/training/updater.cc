// UpdaterBody and StandardUpdater.
#include "rensa/training/updater.h"

#include <fmt/format.h>

#include <algorithm>

#include "rensa/core/error.h"
#include "rensa/device/tracer.h"

namespace rensa::training {

void UpdaterBody::update() {
  std::optional<Batch> batch = iterator_.next();
  if (!batch) {
    throw ValueError(
        "Updater: the iterator has come to its end; let it repeat, or stop the training before");
  }
  update_core(*batch);
  ++iteration_;
  if (iterator_.is_new_epoch()) optimizer_.new_epoch();
}

void UpdaterBody::members(Visitor& v) {
  // The model first: what an optimizer keeps for a parameter is made for one that is initialized.
  v("model:main", optimizer_.target());
  v("iterator:main", iterator_);
  v("optimizer:main", optimizer_);
  v("iteration", iteration_);
}

std::int64_t Updater::iteration() const {
  stay_eager("it asks an updater for its iteration");
  return body_->iteration();
}

Device device_of(const Link& model) {
  std::vector<ParameterRef> parameters = model.params();
  return parameters.empty() ? cpu() : parameters[0].device();
}

namespace {

class StandardBody final : public UpdaterBody {
 public:
  StandardBody(Iterator iterator, Optimizer optimizer, StandardUpdaterOptions options)
      : UpdaterBody(std::move(iterator), std::move(optimizer)),
        options_(std::move(options)),
        converter_(options_.converter_options),
        cache_(options_.capture_options) {
    if (options_.accumulate < 1) {
      throw ValueError(fmt::format("StandardUpdater: a batch in {} parts", options_.accumulate));
    }
    Link& model = this->optimizer().target();
    if (options_.device) model.to(*options_.device);
    device_ = options_.input_device.value_or(options_.device.value_or(device_of(model)));
  }

  const CaptureStats& capture_stats() const { return cache_.stats(); }

 protected:
  void update_core(const Batch& batch) override {
    LocatedBatch located = options_.converter ? LocatedBatch{options_.converter(batch, device_), {}}
                                              : converter_.locate(batch, device_);
    // Where the dataset lies on the device, the batch's indices are the step's only input.
    Variables inputs;
    if (located.rows.defined()) {
      inputs.push_back(constant(located.rows));
    } else {
      for (Array& column : located.columns) inputs.push_back(constant(std::move(column)));
    }
    auto step = [&](const Variables& in) {
      Variables columns = in;
      if (located.rows.defined()) {
        columns.clear();
        LocatedBatch here{located.columns, in[0].array()};
        for (Array& column : here.gather()) columns.push_back(constant(std::move(column)));
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
  void update_by(const Variables& columns) const {
    std::int64_t n = columns.empty() || columns[0].ndim() == 0 ? 1 : columns[0].shape(0);
    std::int64_t parts = std::min<std::int64_t>(options_.accumulate, n);
    if (parts <= 1) {
      optimizer().update([&] { return loss(columns); });
      return;
    }
    optimizer().target().cleargrads();
    for (std::int64_t k = 0; k < parts; ++k) {
      std::int64_t begin = k * n / parts, end = (k + 1) * n / parts;
      Variables part;
      for (const Variable& column : columns) {
        part.push_back(constant(column.array()[Slice(begin, end)]));
      }
      optimizer().backward(loss(part), static_cast<double>(end - begin) / static_cast<double>(n));
    }
    optimizer().update();
  }

  Variable loss(const Variables& columns) const {
    return options_.loss_func ? options_.loss_func(columns) : optimizer().target().invoke(columns);
  }

  StandardUpdaterOptions options_;
  Converter converter_;
  CaptureCache cache_;
  Device device_;
};

}  // namespace

StandardUpdater::StandardUpdater(Iterator iterator, Optimizer optimizer,
                                 StandardUpdaterOptions options)
    : Updater(std::make_shared<StandardBody>(std::move(iterator), std::move(optimizer),
                                             std::move(options))) {}

const CaptureStats& StandardUpdater::capture_stats() const {
  return static_cast<const StandardBody&>(*body_).capture_stats();
}

}  // namespace rensa::training
