// F::forget: a function that is run again for its gradients.
#include "rensa/functions/forget.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "rensa/array/random_tape.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/graph.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa::functions {

namespace {

using xp::random::Tape;

/// The first run's configuration and device, for the second.
class [[nodiscard]] SameSurroundings {
 public:
  SameSurroundings(const Config& config, Device device) : device_(device), previous_(config) {
    previous_.debug = rensa::config().debug;
    previous_.enable_backprop = true;
    std::swap(previous_, rensa::config());
  }
  ~SameSurroundings() { rensa::config() = previous_; }
  SameSurroundings(const SameSurroundings&) = delete;
  SameSurroundings& operator=(const SameSurroundings&) = delete;

 private:
  autograd::CurrentDevice device_;
  Config previous_;
};

/// A function, and what its first run found.
struct Forgetful {
  std::function<Variables(const Variables&)> f;
  Config config = rensa::config();
  Device device = ThreadState::current().device;
  Tape tape;
  autograd::RunScope::Notes notes;

  Variables first(const Variables& xs) {
    no_backprop_mode off;
    autograd::RunScope run(autograd::Run::first, notes);
    Tape::Scope draws(tape, Tape::Scope::record);
    Variables inside;
    for (const Variable& x : xs) inside.emplace_back(x.array(), x.requires_grad());
    Variables results = f(inside);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined()) {
        throw ValueError(fmt::format("forget: result {} of the function is undefined", i));
      }
    }
    return results;
  }

  Variables again(const Variables& xs) {
    SameSurroundings same(config, device);
    autograd::RunScope run(autograd::Run::again, notes);
    Tape::Scope draws(tape, Tape::Scope::repeat);
    Variables results = f(xs);
    if (!draws.at_end()) {
      throw ValueError(
          "forget: the function draws fewer random numbers when it runs again, for its gradients");
    }
    return results;
  }
};

class Forget final : public FunctionNode {
 public:
  /// `count` of the inputs are the function's. Where none of them requires a gradient but something
  /// that it finds by itself does, the graph comes here by one input more, which this node holds.
  Forget(std::shared_ptr<Forgetful> forgetful, Arrays results, std::size_t count, Variable held)
      : FunctionNode("forget"),
        forgetful_(std::move(forgetful)),
        results_(std::move(results)),
        count_(count),
        held_(std::move(held)) {}

  Arrays forward(const Arrays&) override {
    Indexes all;
    for (std::size_t i = 0; i < count_; ++i) all.push_back(static_cast<int>(i));
    retain_inputs(all);
    return std::move(results_);
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    Variables kept = get_retained_inputs(), inside, outputs, gradients, wanted;
    for (const Variable& x : kept) {
      bool twice = config().enable_backprop && x.requires_grad();
      inside.push_back(twice ? autograd::entrance("forget", x)
                             : Variable(x.array(), x.requires_grad()));
      if (x.requires_grad()) wanted.push_back(inside.back());
    }
    Variables results = forgetful_->again(inside);
    if (results.size() != gy.size()) {
      throw ValueError(
          fmt::format("forget: the function gave {} results and {} when it ran again, for its "
                      "gradients",
                      gy.size(), results.size()));
    }
    for (std::size_t i = 0; i < gy.size(); ++i) {
      if (!gy[i].defined() || !results[i].defined() || !results[i].requires_grad()) continue;
      outputs.push_back(results[i]), gradients.push_back(gy[i]);
    }
    Variables found = autograd::gradients_within(outputs, gradients, wanted), all(inputs().size());
    for (std::size_t i = 0, next = 0; i < count_; ++i) {
      if (kept[i].requires_grad()) all[i] = found[next++];
    }
    return all;
  }

 private:
  std::shared_ptr<Forgetful> forgetful_;
  Arrays results_;  // until forward
  std::size_t count_;
  Variable held_;
};

}  // namespace

Variables forget(const std::function<Variables(const Variables&)>& f, const Variables& xs) {
  if (!config().enable_backprop) return f(xs);
  auto forgetful = std::make_shared<Forgetful>();
  forgetful->f = f;
  Variables results = forgetful->first(xs), inputs = xs;
  bool inside = false, outside = false;
  Arrays arrays;
  for (const Variable& y : results) {
    inside |= y.requires_grad();
    arrays.push_back(y.array());
  }
  if (!inside) return results;
  for (const Variable& x : xs) outside |= x.requires_grad();
  Variable held;
  if (!outside) {
    held = Variable(xp::empty({0}, float32, arrays[0].device()));
    inputs.push_back(held);
  }
  auto node = std::make_shared<Forget>(std::move(forgetful), std::move(arrays), xs.size(), held);
  return node->apply(inputs);
}

}  // namespace rensa::functions
