// Datasets: examples by number. A dataset made of arrays can give a whole batch in one gather; any
// other gives one example after the other. Datasets are shared handles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/data/random_stream.h"

namespace rensa {

/// One example, or a batch of them: one array per column ({x, t} in most cases).
using Columns = std::vector<Array>;

/// What a dataset does, behind the handles.
class DatasetBody {
 public:
  virtual ~DatasetBody() = default;
  virtual std::int64_t size() const = 0;  // the number of examples
  /// Example `i` of [0, size()), in host memory. What it draws at random follows from `seed` alone,
  /// so that it is the same in whichever thread it is made. May be called from several threads at
  /// once.
  virtual Columns example(std::int64_t i, std::uint64_t seed) const = 0;
  /// Arrays whose rows are the examples; null where there are none.
  virtual const Columns* columns() const { return nullptr; }
};

class Dataset {
 public:
  explicit Dataset(std::shared_ptr<const DatasetBody> body) : body_(std::move(body)) {}
  /// Examples 0 .. size-1 made by a function.
  Dataset(std::int64_t size, std::function<Columns(std::int64_t)> example);
  /// The same for examples with something random in them: all of it is drawn from the stream, whose
  /// numbers are other ones each time that an iterator comes to the example.
  Dataset(std::int64_t size, std::function<Columns(std::int64_t, RandomStream&)> example);

  std::int64_t size() const { return body_->size(); }  // the number of examples
  /// What is random in it is the same each time. Throws IndexError outside [0, size()).
  Columns operator[](std::int64_t i) const { return example(i, static_cast<std::uint64_t>(i)); }
  /// The example with what is random in it drawn from `seed`. Throws IndexError outside
  /// [0, size()).
  Columns example(std::int64_t i, std::uint64_t seed) const;
  /// Arrays whose rows are the examples; null where there are none.
  const Columns* columns() const { return body_->columns(); }
  /// What the handles share.
  const std::shared_ptr<const DatasetBody>& body() const { return body_; }

 private:
  std::shared_ptr<const DatasetBody> body_;
};

namespace datasets {

/// Examples that are the rows of some arrays of equal length.
class TupleDataset : public Dataset {
 public:
  /// Throws ValueError for no arrays or a 0-d one, ShapeError for lengths that differ, DeviceError
  /// for arrays on several devices.
  explicit TupleDataset(Columns columns);
  template <class... A>
  requires(std::convertible_to<const A&, Array>&&...) explicit TupleDataset(const Array& first,
                                                                            const A&... more)
      : TupleDataset(Columns{first, static_cast<Array>(more)...}) {}
  /// The same examples on `device`: batches are gathered there, and only indices travel.
  TupleDataset to(Device device) const;
};

/// A TupleDataset whose columns have names.
class DictDataset : public TupleDataset {
 public:
  /// Throws as TupleDataset does, and ValueError for a name that is there twice.
  explicit DictDataset(std::vector<std::pair<std::string, Array>> columns);
  /// Of the columns, in their order.
  const std::vector<std::string>& names() const { return names_; }
  /// Throws ValueError for a name there is not.
  const Array& column(const std::string& name) const;

 private:
  std::vector<std::string> names_;
};

/// What a function makes of another dataset's examples, each time that one is asked for. The
/// function may be called from several threads at once.
class TransformDataset : public Dataset {
 public:
  TransformDataset(Dataset dataset, std::function<Columns(const Columns&)> transform);
  /// A random one: augmentation. All that is random is drawn from the stream, whose numbers are
  /// other ones each time that an iterator comes to the example.
  TransformDataset(Dataset dataset,
                   std::function<Columns(const Columns&, RandomStream&)> transform);
};

/// The examples of several datasets, those of one behind those of the other.
class ConcatenatedDataset : public Dataset {
 public:
  explicit ConcatenatedDataset(std::vector<Dataset> datasets);
};

}  // namespace datasets
}  // namespace rensa
