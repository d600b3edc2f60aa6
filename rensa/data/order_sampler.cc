// Order samplers.
#include "rensa/data/order_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "rensa/core/error.h"
#include "rensa/data/epoch_order.h"

namespace rensa {

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers shuffled(const EpochRequest& request) {
  Numbers order(static_cast<std::size_t>(request.size));
  random_order(request.seed, request.number, request.size, order.data());
  return order;
}

void check_size(const char* sampler, std::size_t known, const EpochRequest& request) {
  if (static_cast<std::int64_t>(known) == request.size) return;
  throw ValueError(fmt::format("{}: made for {} examples, asked for those of a dataset of {}",
                               sampler, known, request.size));
}

}  // namespace

RandomStream EpochRequest::random() const {
  // The greatest place: no example of an epoch has it.
  return RandomStream(derived_seed(seed, ~std::uint64_t{0}, static_cast<std::uint64_t>(number)));
}

namespace iterators {

std::vector<std::int64_t> ShuffleOrderSampler::operator()(const EpochRequest& request) const {
  return shuffled(request);
}

WeightedOrderSampler::WeightedOrderSampler(const std::vector<double>& weights,
                                           std::int64_t n_samples)
    : n_samples_(n_samples > 0 ? n_samples : static_cast<std::int64_t>(weights.size())) {
  if (n_samples < 0) throw ValueError(fmt::format("WeightedOrderSampler: {} samples", n_samples));
  std::vector<double> ends;
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] >= 0)) {
      throw ValueError(fmt::format("WeightedOrderSampler: weight {} is {}; weights are 0 or more",
                                   i, weights[i]));
    }
    ends.push_back(sum += weights[i]);
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    throw ValueError(fmt::format(
        "WeightedOrderSampler: the sum of the weights is {}; it has to be above 0 and finite",
        sum));
  }
  ends_ = std::make_shared<const std::vector<double>>(std::move(ends));
}

std::vector<std::int64_t> WeightedOrderSampler::operator()(const EpochRequest& request) const {
  check_size("WeightedOrderSampler", ends_->size(), request);
  RandomStream random = request.random();
  // The product may round up to the sum: below it, so that an example of weight 0 never comes.
  double sum = ends_->back(), below = std::nextafter(sum, 0.0);
  Numbers order(static_cast<std::size_t>(n_samples_));
  for (std::int64_t& i : order) {
    double at = std::min(random.uniform() * sum, below);
    i = std::ranges::upper_bound(*ends_, at) - ends_->begin();
  }
  return order;
}

BucketOrderSampler::BucketOrderSampler(std::vector<std::int64_t> lengths, std::int64_t batch_size,
                                       BucketOrderSamplerOptions options)
    : lengths_(std::make_shared<const std::vector<std::int64_t>>(std::move(lengths))),
      batch_size_(batch_size),
      options_(options) {
  if (batch_size < 1 || options.batches_per_bucket < 1) {
    throw ValueError(
        fmt::format("BucketOrderSampler: batches of {} examples, {} of them sorted together; give "
                    "1 or more of each",
                    batch_size, options.batches_per_bucket));
  }
}

std::vector<std::int64_t> BucketOrderSampler::operator()(const EpochRequest& request) const {
  check_size("BucketOrderSampler", lengths_->size(), request);
  Numbers random = shuffled(request);
  std::int64_t n_batches = request.size / batch_size_;
  for (std::int64_t first = 0; first < n_batches; first += options_.batches_per_bucket) {
    std::int64_t last = std::min(n_batches - first, options_.batches_per_bucket) + first;
    // Those of one length stay in their random order.
    std::stable_sort(random.begin() + first * batch_size_, random.begin() + last * batch_size_,
                     [this](std::int64_t a, std::int64_t b) {
                       return (*lengths_)[static_cast<std::size_t>(a)] <
                              (*lengths_)[static_cast<std::size_t>(b)];
                     });
  }
  Numbers batches(static_cast<std::size_t>(n_batches));
  random_order(request.random().bits(), 0, n_batches, batches.data());
  Numbers order;
  order.reserve(random.size());
  for (std::int64_t batch : batches) {
    auto begin = random.begin() + batch * batch_size_;
    order.insert(order.end(), begin, begin + batch_size_);
  }
  if (!options_.drop_last) {
    order.insert(order.end(), random.begin() + n_batches * batch_size_, random.end());
  }
  return order;
}

}  // namespace iterators
}  // namespace rensa
