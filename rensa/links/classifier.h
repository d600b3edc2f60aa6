// L::Classifier: a predictor with a loss function and a measure of accuracy.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "rensa/autograd/state.h"
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
  /// A function of scores and labels.
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
    y.reset(), loss.reset(), accuracy.reset();  // lets go of the last call's graph
    Variable scores = predictor(x);
    auto [result, measure] = judge(scores, t);
    y = scores;
    loss = result;
    accuracy = measure;
    return result;
  }
  Variable operator()(const Variable& x, const Variable& t)
      const requires std::is_invocable_r_v<Variable, const Predictor&, const Variable&> {
    return judge(predictor(x), t).first;
  }

  Predictor predictor;
  Measure lossfun, accfun;
  bool compute_accuracy = true;  // whether accfun is called
  State y, loss, accuracy;

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
};

}  // namespace links

namespace L = links;

}  // namespace rensa
