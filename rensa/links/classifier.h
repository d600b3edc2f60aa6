// L::Classifier: a predictor with a loss function and a measure of accuracy.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "rensa/device/launcher.h"
#include "rensa/functions/evaluation.h"
#include "rensa/functions/loss.h"
#include "rensa/links/link.h"
#include "rensa/links/reporter.h"

namespace rensa {
namespace links {

/// loss = lossfun(predictor(x), t), reported as "loss"; accfun of the same as "accuracy". What the
/// last call computed stays in y, loss and accuracy, unless the classifier is const.
template <class Predictor> class Classifier : public Chain<Classifier<Predictor>> {
 public:
  using Measure = std::function<Variable(const Variable& y, const Variable& t)>;

  explicit Classifier(
      Predictor p,
      Measure loss_function = [](const Variable& y,
                                 const Variable& t) { return F::softmax_cross_entropy(y, t); },
      Measure accuracy_function = [](const Variable& y,
                                     const Variable& t) { return F::accuracy(y, t); })
      : predictor(std::move(p)),
        lossfun(std::move(loss_function)),
        accfun(std::move(accuracy_function)) {}
  void members(Visitor& v) override { v("predictor", predictor); }

  Variable operator()(const Variable& x, const Variable& t) {
    y = loss = accuracy = {};  // lets go of the last call's graph
    Variable scores = predictor(x);
    auto [result, measure] = judge(scores, t);
    keep(scores, result, measure);
    return result;
  }
  Variable operator()(const Variable& x, const Variable& t)
      const requires std::is_invocable_r_v<Variable, const Predictor&, const Variable&> {
    return judge(predictor(x), t).first;
  }

  Predictor predictor;
  Measure lossfun, accfun;
  bool compute_accuracy = true;
  Variable y, loss, accuracy;

 private:
  // The loss and the accuracy, which are reported.
  std::pair<Variable, Variable> judge(const Variable& scores, const Variable& t) const {
    Variable result = lossfun(scores, t), measure;
    report({{"loss", result}}, *this);
    if (compute_accuracy) {
      measure = accfun(scores, t);
      report({{"accuracy", measure}}, *this);
    }
    return {result, measure};
  }

  // A recording keeps the arrays, which replays renew, without their graph.
  void keep(const Variable& scores, const Variable& result, const Variable& measure) {
    auto store = [](Classifier& self, const Variable& a, const Variable& b, const Variable& c) {
      self.y = a;
      self.loss = b;
      self.accuracy = c;
    };
    if (Recorder* recorder = ThreadState::current().recorder) {
      Variable value = measure.defined() ? constant(measure.array()) : measure;
      recorder->effect([store, value, anchor = this->anchor(), a = constant(scores.array()),
                        b = constant(result.array())] {
        if (anchor->link) store(static_cast<Classifier&>(*anchor->link), a, b, value);
      });
    }
    store(*this, scores, result, measure);
  }
};

}  // namespace links

namespace L = links;

}  // namespace rensa
