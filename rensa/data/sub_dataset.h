// SubDataset: a part of a dataset; splits and the folds of a cross validation.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/data/dataset.h"

namespace rensa::datasets {

/// The numbers of a dataset's examples in some order; empty: as they are.
using Order = std::vector<std::int64_t>;

/// Examples [start, finish) of a dataset, in `order` if that is given. Of a dataset of arrays it is
/// one too: a view of its rows, or with an order a copy of those that are taken.
class SubDataset : public Dataset {
 public:
  /// Throws ValueError where the part or the order reaches beyond the dataset, or the order has
  /// another length than the dataset.
  SubDataset(const Dataset& dataset, std::int64_t start, std::int64_t finish,
             const Order& order = {});
};

using Split = std::pair<SubDataset, SubDataset>;  // the two parts of split_dataset

/// The first `split_at` examples, and the others. Throws ValueError as SubDataset does.
Split split_dataset(const Dataset& dataset, std::int64_t split_at, const Order& order = {});
/// As split_dataset, in a random order: of `seed`, or drawn from the host's generator
/// (xp::random::seed).
Split split_dataset_random(const Dataset& dataset, std::int64_t first_size,
                           std::optional<std::uint64_t> seed = {});
/// `n` parts of size() / n examples, rounded down; the last few examples are in none. Throws
/// ValueError where `n` is less than 1.
std::vector<SubDataset> split_dataset_n(const Dataset& dataset, std::int64_t n,
                                        const Order& order = {});
std::vector<SubDataset> split_dataset_n_random(const Dataset& dataset, std::int64_t n,
                                               std::optional<std::uint64_t> seed = {});
/// Of each fold what to train with and what to test with: each example is in one test set. Of a
/// dataset of arrays each fold is a copy of all of them, in their memory; a dataset of a function
/// keeps its examples once. Throws ValueError where `n_folds` is less than 1 or more than there are
/// examples.
std::vector<Split> get_cross_validation_datasets(const Dataset& dataset, std::int64_t n_folds,
                                                 const Order& order = {});
std::vector<Split> get_cross_validation_datasets_random(const Dataset& dataset,
                                                        std::int64_t n_folds,
                                                        std::optional<std::uint64_t> seed = {});

}  // namespace rensa::datasets
