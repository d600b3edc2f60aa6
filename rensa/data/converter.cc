// The converter: gathers on the host or on the device, and the ring that batches travel over.
#include "rensa/data/converter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
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
constexpr std::size_t kMostSent = 16;

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

/// Batches on their way to one GPU, over a stream of their own. The memory is the pools', which
/// hand out again what was given back only behind the work that uses it: an array that somebody
/// still holds, on whatever stream, stays as it is.
class Ring {
 public:
  explicit Ring(Device device) : device_(device), copies_(device, cuda::non_blocking) {}

  Columns send(const HostBatch& batch) {
    cuda::Stream compute = cuda::current_stream(device_);
    wait_for_room(compute, batch);
    Columns sent;
    for (std::size_t c = 0; c < batch.layout().size(); ++c) {
      const auto& [shape, dtype] = batch.layout()[c];
      Array pinned = xp::empty_pinned(shape, dtype);
      batch.write(c, pinned);
      cuda::StreamScope scope(copies_);
      sent.push_back(xp::empty(shape, dtype, device_));
      sent.back().set(pinned, copies_);
    }
    copies_.record(arrived_);
    compute.wait(arrived_);
    return sent;
  }

 private:
  /// A batch that was sent, and when the work of the one before it is done.
  struct Sent {
    cuda::Event before{false};
    std::int64_t bytes;
  };

  /// Lets the host be as many batches ahead of the GPU as the ring has room for.
  void wait_for_room(const cuda::Stream& compute, const HostBatch& batch) {
    Sent now{cuda::Event(false), 1};
    for (const ColumnLayout& l : batch.layout()) now.bytes += l.shape.total() * itemsize(l.dtype);
    compute.record(now.before);
    bytes_ += now.bytes;
    sent_.push_back(std::move(now));
    while (sent_.size() > 2 && (sent_.size() > kMostSent || bytes_ > kRingBytes)) {
      if (!sent_.front().before.done()) sent_.front().before.synchronize();
      bytes_ -= sent_.front().bytes;
      sent_.pop_front();
    }
  }

  Device device_;
  cuda::Stream copies_;
  cuda::Event arrived_{false};
  std::deque<Sent> sent_;
  std::int64_t bytes_ = 0;  // of sent_
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
