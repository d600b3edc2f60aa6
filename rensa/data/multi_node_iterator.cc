// Iterators of several ranks: rank 0's state, or the master's batches.
#include "rensa/data/multi_node_iterator.h"

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rensa/array/agreement.h"
#include "rensa/array/manipulation.h"
#include "rensa/core/error.h"
#include "rensa/serializers/npz.h"

namespace rensa::iterators {

namespace {

using serializers::NpzContent;

constexpr char kOther[] = "another rank's iterator";  // what errors name in a file's place

/// Where the master's iterator is.
struct Place {
  std::int64_t epoch = 0;
  bool is_new_epoch = false;
  double epoch_detail = 0;
  std::optional<double> previous_epoch_detail;

  static Place of(const Iterator& iterator) {
    return {iterator.epoch(), iterator.is_new_epoch(), iterator.epoch_detail(),
            iterator.previous_epoch_detail()};
  }
  void members(Visitor& v) {
    v("epoch", epoch), v("is_new_epoch", is_new_epoch);
    v("epoch_detail", epoch_detail), v("previous_epoch_detail", previous_epoch_detail);
  }
};

/// What the master tells of a batch. The elements of its columns follow, those of a column in one
/// dimension.
struct Turn {
  Place place;
  bool has_batch = false;
  std::vector<std::int64_t> indices;
  std::vector<std::uint64_t> seeds;  // what is random in the examples is drawn from
  std::int64_t n_columns = 0;
  /// The number of axes and the extents of each example's columns, one after the other.
  std::vector<std::int64_t> shapes;

  void members(Visitor& v) {
    v("place", place), v("has_batch", has_batch), v("indices", indices), v("seeds", seeds);
    v("n_columns", n_columns), v("shapes", shapes);
  }
};

using Examples = std::shared_ptr<std::vector<Columns>>;

Examples examples_of(const Batch& batch) {
  auto examples = std::make_shared<std::vector<Columns>>();
  for (std::int64_t k = 0; k < batch.size(); ++k) examples->push_back(batch.example(k));
  return examples;
}

/// The elements of each column, in one dimension; what they are is told to `turn`.
Columns pack(const Batch& batch, const std::vector<Columns>& examples, Turn& turn) {
  turn.has_batch = true;
  turn.indices = batch.indices().to_vector<std::int64_t>();
  turn.n_columns = static_cast<std::int64_t>(examples[0].size());
  std::vector<std::vector<Array>> flat(examples[0].size());
  for (std::size_t k = 0; k < examples.size(); ++k) {
    turn.seeds.push_back(batch.seed(static_cast<std::int64_t>(k)));
    if (examples[k].size() != flat.size()) {
      throw ValueError(fmt::format(
          "create_multi_node_iterator: examples {} and {} have {} and {} columns; all of a batch "
          "have to have as many",
          turn.indices[0], turn.indices[k], flat.size(), examples[k].size()));
    }
    for (std::size_t i = 0; i < flat.size(); ++i) {
      const Array& a = examples[k][i];
      if (a.dtype() != examples[0][i].dtype()) {
        throw ValueError(fmt::format(
            "create_multi_node_iterator: column {} of examples {} and {} is {} and {}; all of a "
            "batch have to have one dtype",
            i, turn.indices[0], turn.indices[k], dtype_name(examples[0][i].dtype()),
            dtype_name(a.dtype())));
      }
      turn.shapes.push_back(a.ndim());
      turn.shapes.insert(turn.shapes.end(), a.shape().begin(), a.shape().end());
      flat[i].push_back(a.ravel());
    }
  }
  Columns packed;
  for (const std::vector<Array>& column : flat) packed.push_back(xp::concatenate(column));
  return packed;
}

/// The examples that were packed, as views of the columns.
Examples unpack(const Columns& columns, const Turn& turn) {
  auto examples = std::make_shared<std::vector<Columns>>(turn.indices.size());
  std::vector<std::int64_t> done(columns.size());  // elements of each column
  const std::int64_t* next = turn.shapes.data();
  for (Columns& example : *examples) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      auto ndim = static_cast<std::size_t>(*next++);
      Shape shape(std::span<const std::int64_t>(next, ndim));
      next += ndim;
      std::int64_t begin = std::exchange(done[i], done[i] + shape.total());
      example.push_back(columns[i][Slice(begin, done[i])].reshape(shape));
    }
  }
  return examples;
}

class MultiNodeBody final : public IteratorBody {
 public:
  MultiNodeBody(std::optional<Iterator> own, Communicator communicator, int master)
      : own_(std::move(own)),
        communicator_(std::move(communicator)),
        master_(master),
        dataset_(own_ ? own_->dataset() : Dataset(0, no_example)) {
    struct Settings {
      std::int64_t size = 0;
      bool repeats = false;
      Place place;
      void members(Visitor& v) { v("size", size), v("repeats", repeats), v("place", place); }
    };
    Settings settings = told<ValueError, Settings>([&]() -> Settings {
      if (own_) return {dataset_.size(), own_->repeats(), Place::of(*own_)};
      throw ValueError(fmt::format(
          "create_multi_node_iterator: {} is the master and gives no iterator; it is the one that "
          "has to",
          communicator_.describe(master_)));
    });
    repeats_ = settings.repeats;
    place_ = settings.place;
    if (!own_) dataset_ = Dataset(settings.size, no_example);
  }

  std::optional<Batch> next() override {
    std::optional<Batch> batch;
    Columns columns;
    Turn turn = told<Error, Turn>([&] {
      batch = own_->next();
      Turn made;
      made.place = Place::of(*own_);
      if (!batch) return made;
      Examples examples = examples_of(*batch);
      columns = pack(*batch, *examples, made);
      if (!dataset_.columns()) batch = batch->with_examples(examples);
      return made;
    });
    place_ = turn.place;
    if (!turn.has_batch) return std::nullopt;
    columns.resize(static_cast<std::size_t>(turn.n_columns));
    for (Array& column : columns) column = communicator_.bcast(column, master_);
    if (own_) return batch;
    auto seeds = std::make_shared<const std::vector<std::uint64_t>>(turn.seeds);
    return Batch(dataset_, xp::array(turn.indices, cpu()))
        .with_examples(unpack(columns, turn), std::move(seeds));
  }

  void reset() override {
    place_ = told<Error, Place>([&] {
      own_->reset();
      return Place::of(*own_);
    });
  }

  std::int64_t epoch() const override { return place_.epoch; }
  bool is_new_epoch() const override { return place_.is_new_epoch; }
  double epoch_detail() const override { return place_.epoch_detail; }
  std::optional<double> previous_epoch_detail() const override {
    return place_.previous_epoch_detail;
  }
  const Dataset& dataset() const override { return dataset_; }
  bool repeats() const override { return repeats_; }
  void members(Visitor& v) override {
    place_.members(v);
    if (own_) v("master", *own_);
  }

 private:
  static Columns no_example(std::int64_t) {
    throw ValueError(
        "create_multi_node_iterator: the examples are the master's; this rank has those of its "
        "batches, Batch::example");
  }

  /// What `make` gives on the master, on all ranks.
  template <class Exception, class T, class Make> T told(Make make) const {
    std::string bytes = detail::bytes_of_root<Exception>(communicator_, master_, [&] {
      T made = make();
      return NpzContent(made).bytes();
    });
    T result;
    serializers::load_npz(kOther, NpzContent::parse(kOther, std::move(bytes)), result);
    return result;
  }

  std::optional<Iterator> own_;  // the master's
  Communicator communicator_;
  int master_;
  Dataset dataset_;
  bool repeats_ = false;
  Place place_;
};

}  // namespace

Iterator create_synchronized_iterator(Iterator iterator, const Communicator& communicator) {
  check_agreement(communicator, "create_synchronized_iterator", iterator.describe(),
                  "all ranks have to make the same iterator");
  std::string bytes =
      detail::bytes_of_root<Error>(communicator, 0, [&] { return NpzContent(iterator).bytes(); });
  if (communicator.rank() != 0) {
    serializers::load_npz(kOther, NpzContent::parse(kOther, std::move(bytes)), iterator);
  }
  return iterator;
}

Iterator create_multi_node_iterator(const Iterator& iterator, const Communicator& communicator,
                                    int master) {
  std::optional<Iterator> own;
  if (communicator.rank() == master) own = iterator;
  return Iterator(std::make_shared<MultiNodeBody>(std::move(own), communicator, master));
}

Iterator create_multi_node_iterator(const Communicator& communicator, int master) {
  return Iterator(std::make_shared<MultiNodeBody>(std::nullopt, communicator, master));
}

}  // namespace rensa::iterators
