// Connectionist temporal classification on the CPU: a thread has a sample.
#include <cmath>
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/device/error_word.h"
#include "rensa/functions/operations/ctc/ctc.h"
#include "rensa/functions/operations/ctc/ctc_sample.h"

namespace rensa::host {

namespace {

template <class T> T* at(const Operand& operand) { return reinterpret_cast<T*>(operand.view.data); }

/// Sample b of either operation. Throws where its lengths or labels are out of range.
template <class V, class Op> CtcSample<V> sample_of(const Op& op, std::int64_t b) {
  const Shape &y = op.y.view.shape, &alpha = op.alpha.view.shape;
  std::int64_t most_labels = op.t.view.shape[1];
  CtcSample<V> sample = {at<const V>(op.y) + b * y[2],
                         at<const long long>(op.t) + b * most_labels,
                         at<V>(op.alpha) + b * alpha[1] * alpha[2],
                         y[1] * y[2],
                         alpha[2],
                         at<const long long>(op.steps_of)[b],
                         at<const long long>(op.labels_of)[b],
                         op.blank,
                         y[2]};
  auto check = [&](ReportedError error, long long value, long long bound, long long first_bad) {
    if (value < 0 || value >= first_bad) throw_reported({error, op.name(), value, bound}, cpu());
  };
  check(ReportedError::length, sample.steps, y[0], y[0] + 1);
  check(ReportedError::length, sample.labels, most_labels, most_labels + 1);
  for (std::int64_t i = 0; i < sample.labels; ++i) {
    check(ReportedError::label, sample.t[i], y[2], y[2]);
  }
  return sample;
}

template <class V, class Op> void check_samples(const Op& op) {
  for (std::int64_t b = 0; b < op.t.view.shape[0]; ++b) sample_of<V>(op, b);
}

template <class V> void ctc(const operations::Ctc& op) {
  check_samples<V>(op);
  parallel_for(op.t.view.shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      CtcSample<V> sample = sample_of<V>(op, b);
      for (long long step = 0; step < sample.steps; ++step) {
        for (long long place = 0; place < sample.places(); ++place) {
          sample.alpha[step * sample.stride + place] = sample.forward(step, place);
        }
      }
      at<V>(op.loss)[b] = sample.loss();
    }
  });
}

template <class V> void ctc_grad(const operations::CtcGrad& op) {
  check_samples<V>(op);
  parallel_for(op.t.view.shape[0], 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      CtcSample<V> sample = sample_of<V>(op, b);
      V loss = at<const V>(op.loss)[b], gy = at<const V>(op.gy)[b];
      V* gx = at<V>(op.gx) + b * sample.classes;
      std::vector<V> behind(static_cast<std::size_t>(sample.places())), here(behind);
      for (long long step = op.y.view.shape[0]; step-- > 0;) {
        V* row = gx + step * sample.next_step;
        for (long long k = 0; k < sample.classes; ++k) {
          row[k] = step < sample.steps ? std::exp(sample.y[step * sample.next_step + k]) : V(0);
        }
        if (step >= sample.steps) continue;
        for (long long place = 0; place < sample.places(); ++place) {
          V ends = sample.backward(step, place, behind.data());
          here[static_cast<std::size_t>(place)] = ends + sample.y_at(step, place);
          row[sample.class_at(place)] -=
              std::exp(sample.alpha[step * sample.stride + place] + ends + loss);
        }
        for (long long k = 0; k < sample.classes; ++k) row[k] *= gy;
        behind.swap(here);
      }
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void Ctc::run_cpu() {
  y.view.dtype == float64 ? host::ctc<double>(*this) : host::ctc<float>(*this);
}

void CtcGrad::run_cpu() {
  y.view.dtype == float64 ? host::ctc_grad<double>(*this) : host::ctc_grad<float>(*this);
}

}  // namespace rensa::operations
