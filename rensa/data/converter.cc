// The converter: gathers on the host or on the device, and the ring that batches travel over.
#include "rensa/data/converter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/launcher.h"
#include "rensa/operations/indexing/indexing.h"

namespace rensa {

namespace {

constexpr std::int64_t kRingBytes = 64_MiB;
constexpr std::int64_t kMostSlots = 16;

/// What a batch's columns look like, before there is memory for them.
struct ColumnLayout {
  Shape shape;
  Dtype dtype;
};

/// A batch in host memory: whole columns and rows of them, or examples one by one.
class HostBatch {
 public:
  explicit HostBatch(const Batch& batch, const Padding& padding)
      : batch_(batch), padding_(padding), columns_(batch.dataset().columns()) {
    if (columns_) {
      for (const Array& column : *columns_) {
        Shape row = column.shape();
        row.erase(0);
        add_layout(row, column.dtype());
      }
      return;
    }
    if (batch.size() == 0) throw ValueError("converter: a batch of no examples has no shape");
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      examples_.push_back(batch.example(i));
      if (i == 0) check_padding();
      check_example(examples_.back(), i);
    }
    for (std::size_t c = 0; c < examples_[0].size(); ++c) {
      Shape largest = examples_[0][c].shape();
      for (const Columns& example : examples_) {
        for (int axis = 0; axis < largest.size(); ++axis) {
          largest[axis] = std::max(largest[axis], example[c].shape()[axis]);
        }
      }
      add_layout(largest, examples_[0][c].dtype());
    }
  }

  const std::vector<ColumnLayout>& layout() const { return layout_; }

  /// Writes column `c` into `out` (host memory of the layout's shape).
  void write(std::size_t c, const Array& out) const {
    if (out.size() == 0) return;
    if (columns_) {
      const Array& rows = batch_.indices();
      operations::Gather take;
      take.by.count = 1;
      take.by.indices[0] = rows.operand();
      take.by.list_shape = rows.shape();
      take.in = (*columns_)[c].operand();
      take.out = out.operand();
      launch(take);
      return;
    }
    if (is_ragged(c)) return write_padded(c, out);
    std::int64_t row_bytes = out.nbytes() / out.shape()[0];
    parallel_for(out.shape()[0], 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::memcpy(static_cast<char*>(out.data()) + i * row_bytes,
                    examples_[static_cast<std::size_t>(i)][c].data(),
                    static_cast<std::size_t>(row_bytes));
      }
    });
  }

 private:
  void add_layout(Shape row, Dtype dtype) {
    row.insert(0, batch_.size());
    layout_.push_back({row, dtype});
  }

  /// What column `c` is filled up with; none where its arrays may not differ.
  std::optional<Scalar> padding(std::size_t c) const {
    return padding_.empty() ? std::nullopt : padding_[padding_.size() == 1 ? 0 : c];
  }
  void check_padding() const {
    std::size_t n = examples_[0].size();
    if (padding_.size() <= 1 || padding_.size() == n) return;
    throw ValueError(fmt::format(
        "converter: {} values of padding for examples of {} columns; give one for all, or one each",
        padding_.size(), n));
  }

  void check_example(Columns& example, std::int64_t position) const {
    const Columns& first = examples_[0];
    auto number = [&] { return batch_.indices()[position].item<std::int64_t>(); };
    if (example.size() != first.size()) {
      throw ShapeError(fmt::format("converter: example {} has {} columns, others of the batch {}",
                                   number(), example.size(), first.size()));
    }
    for (std::size_t c = 0; c < example.size(); ++c) {
      if (!example[c].device().is_cpu()) {
        throw DeviceError(
            fmt::format("converter: example {} is {}; make examples in host memory, or give the "
                        "dataset as arrays",
                        number(), example[c].view().describe()));
      }
      bool fits = padding(c) ? example[c].ndim() == first[c].ndim()
                             : example[c].shape() == first[c].shape();
      if (!fits || example[c].dtype() != first[c].dtype()) {
        throw ShapeError(fmt::format(
            "converter: column {} of example {} is {}, of others in the batch {}; make them "
            "equal{}",
            c, number(), example[c].view().describe(), first[c].view().describe(),
            padding(c) ? " in dtype and number of axes" : ", or give ConverterOptions::padding"));
      }
      example[c] = example[c].ascontiguous();
    }
  }

  bool is_ragged(std::size_t c) const {
    return std::ranges::any_of(examples_, [&](const Columns& example) {
      return example[c].shape() != examples_[0][c].shape();
    });
  }
  void write_padded(std::size_t c, const Array& out) const {
    out.fill(*padding(c));
    std::int64_t i = 0;
    for (const Columns& example : examples_) {
      std::vector<BasicIndex> corner{i++};
      for (std::int64_t length : example[c].shape()) corner.emplace_back(Slice(length));
      out[corner].assign(example[c]);
    }
  }

  const Batch& batch_;
  const Padding& padding_;
  const Columns* columns_;
  std::vector<Columns> examples_;
  std::vector<ColumnLayout> layout_;
};

/// One place of a ring: pinned memory, memory on the GPU, and when each may be written again.
struct Slot {
  Columns pinned, device;
  std::optional<cuda::Event> copied;    // the copy out of `pinned` is done
  std::optional<cuda::Event> consumed;  // what read `device` is queued before this
};

/// The ring of one GPU.
class Ring {
 public:
  explicit Ring(Device device) : device_(device), copies_(device, cuda::non_blocking) {}

  Columns send(const HostBatch& batch) {
    cuda::Stream compute = cuda::current_stream(device_);
    if (latest_) {  // all that works on the batch before this one is queued by now
      if (!latest_->consumed) latest_->consumed.emplace(false);
      compute.record(*latest_->consumed);
    }
    if (slots_.empty()) {  // all at once: a steady loop never grows
      slots_.resize(static_cast<std::size_t>(num_slots(batch)));
      for (Slot& slot : slots_) make_room(slot, batch);
    }
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    latest_ = &slot;
    if (slot.copied && !slot.copied->done()) slot.copied->synchronize();
    make_room(slot, batch);
    if (slot.consumed) copies_.wait(*slot.consumed);
    for (std::size_t c = 0; c < batch.layout().size(); ++c) {
      batch.write(c, slot.pinned[c]);
      slot.device[c].set(slot.pinned[c], copies_);
    }
    if (!slot.copied) slot.copied.emplace(false);
    copies_.record(*slot.copied);
    compute.wait(*slot.copied);
    return slot.device;
  }

 private:
  static std::int64_t num_slots(const HostBatch& batch) {
    std::int64_t bytes = 1;
    for (const ColumnLayout& l : batch.layout()) bytes += l.shape.total() * itemsize(l.dtype);
    return std::clamp(kRingBytes / bytes, std::int64_t{2}, kMostSlots);
  }

  /// Memory of the batch's shape in `slot`; anew where the shape changed or somebody still holds
  /// the arrays of the slot's last batch.
  void make_room(Slot& slot, const HostBatch& batch) {
    std::size_t n = batch.layout().size();
    slot.pinned.resize(n);
    slot.device.resize(n);
    for (std::size_t c = 0; c < n; ++c) {
      const auto& [shape, dtype] = batch.layout()[c];
      slot.pinned[c] = resized(slot.pinned[c], shape, dtype, true);
      bool held = slot.device[c].defined() && slot.device[c].storage()->use_count() > 1;
      slot.device[c] = resized(held ? Array() : slot.device[c], shape, dtype, false);
    }
  }

  /// `buffer` as an array of `shape`, where its memory reaches: a short last batch and the long one
  /// after it use the same.
  Array resized(const Array& buffer, const Shape& shape, Dtype dtype, bool pinned) const {
    if (buffer.defined() && buffer.shape() == shape && buffer.dtype() == dtype) return buffer;
    ArrayView view{nullptr, dtype, pinned ? cpu() : device_, shape,
                   contiguous_strides(shape, itemsize(dtype))};
    if (buffer.defined() && buffer.storage()->nbytes() >= view.nbytes()) {
      view.data = buffer.storage()->data();
      return Array(buffer.storage(), view);
    }
    if (pinned) return xp::empty_pinned(shape, dtype);
    cuda::StreamScope scope(copies_);
    return xp::empty(shape, dtype, device_);
  }

  Device device_;
  cuda::Stream copies_;
  std::vector<Slot> slots_;
  std::size_t next_ = 0;
  Slot* latest_ = nullptr;
};

std::int64_t total_bytes(const Columns& columns) {
  std::int64_t total = 0;
  for (const Array& column : columns) total += column.nbytes();
  return total;
}

Columns host_columns(const Batch& batch, const Padding& padding) {
  HostBatch host(batch, padding);
  Columns result;
  for (std::size_t c = 0; c < host.layout().size(); ++c) {
    result.push_back(xp::empty(host.layout()[c].shape, host.layout()[c].dtype, cpu()));
    host.write(c, result.back());
  }
  return result;
}

Columns moved(Columns columns, Device device) {
  for (Array& column : columns) column = column.to(device);
  return columns;
}

/// The device that a dataset's arrays lie on; the CPU for a dataset without.
Device home_of(const Columns* columns) { return columns ? (*columns)[0].device() : cpu(); }

}  // namespace

Columns LocatedBatch::gather() const {
  if (!rows.defined()) return columns;
  Columns result;
  for (const Array& column : columns) result.push_back(xp::take(column, rows, 0));
  return result;
}

struct Converter::Impl {
  struct Resident {
    std::shared_ptr<const DatasetBody> dataset;  // held, so that its address stays its own
    Columns columns;
  };
  ConverterOptions options;
  std::mutex mutex;  // of the maps
  std::map<std::pair<Device, std::thread::id>, Ring> rings;
  std::map<std::pair<Device, const DatasetBody*>, Resident> residents;

  /// The calling thread's: replicas of one model may share a GPU.
  Ring& ring(Device device) {
    std::lock_guard lock(mutex);
    return rings.try_emplace({device, std::this_thread::get_id()}, device).first->second;
  }

  const Columns& resident(const Dataset& dataset, Device device) {
    std::lock_guard lock(mutex);
    auto [place, fresh] = residents.try_emplace({device, dataset.body().get()});
    if (fresh) {
      try {
        place->second = {dataset.body(), moved(*dataset.columns(), device)};
      } catch (...) {
        residents.erase(place);
        throw;
      }
    }
    return place->second.columns;
  }
};

Converter::Converter(ConverterOptions options) : impl_(std::make_shared<Impl>()) {
  impl_->options = std::move(options);
}

LocatedBatch Converter::locate(const Batch& batch, Device device) const {
  const Columns* columns = batch.dataset().columns();
  Device home = home_of(columns);
  if (columns && home == device) return {*columns, batch.indices_on(device)};
  if (columns && home.is_cuda()) {  // gathered where the dataset is, moved from there
    return {moved(LocatedBatch{*columns, batch.indices_on(home)}.gather(), device), {}};
  }
  const Padding& padding = impl_->options.padding;
  if (device.is_cpu()) return {host_columns(batch, padding), {}};
  if (columns && total_bytes(*columns) <= impl_->options.resident_limit) {
    return {impl_->resident(batch.dataset(), device), batch.indices_on(device)};
  }
  return {impl_->ring(device).send(HostBatch(batch, padding)), {}};
}

Columns concat_examples(const Batch& batch, Device device, const Padding& padding) {
  const Columns* columns = batch.dataset().columns();
  Device home = home_of(columns);
  if (!columns || home.is_cpu()) return moved(host_columns(batch, padding), device);
  return moved(LocatedBatch{*columns, batch.indices_on(home)}.gather(), device);
}

}  // namespace rensa
