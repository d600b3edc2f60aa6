// REINFORCE (Williams, "Simple statistical gradient-following algorithms for connectionist
// reinforcement learning"): a network learns to balance a pole on a cart by pushing the cart left
// or right. Many carts are played side by side, as arrays.
#include <filesystem>
#include <iostream>

#include "training_options.h"

using namespace rensa;

struct Options : TrainingOptions {
  std::int64_t unit = 32, steps = 200;
  double learnrate = 0.01, discount = 0.98;
};

/// n carts (Barto, Sutton and Anderson, "Neuronlike adaptive elements that can solve difficult
/// learning control problems"): places, angles of the poles, and how fast both change.
struct Carts {
  Array x, dx, angle, dangle;

  explicit Carts(std::int64_t n) : x(small(n)), dx(small(n)), angle(small(n)), dangle(small(n)) {}
  static Array small(std::int64_t n) { return xp::random::uniform(-0.05, 0.05, n).astype(float32); }

  Array seen() const { return xp::stack({x, dx, angle, dangle}, 1); }

  /// Pushes each cart to the right where `action` (n,) is 1, to the left where it is 0.
  void push(const Array& action) {
    Array sin = xp::sin(angle), cos = xp::cos(angle);
    Array force = (20.f * action - 10.f + 0.05f * dangle * dangle * sin) / 1.1f;
    Array turn = (9.8f * sin - cos * force) / (0.5f * (4.f / 3 - 0.1f / 1.1f * cos * cos));
    x += 0.02f * dx, angle += 0.02f * dangle;
    dx += 0.02f * (force - 0.05f / 1.1f * turn * cos), dangle += 0.02f * turn;
  }
  /// 1 for each cart that is on its track and whose pole stands within 12 degrees, else 0.
  Array standing() const {
    return ((xp::abs(x) < 2.4f) & (xp::abs(angle) < 0.21f)).astype(float32);
  }
};

/// What happened in all carts at each time: (steps, n) and, of `seen`, (steps, n, 4).
struct Games {
  Array seen, actions, standing;
};

/// Plays with actions that are drawn by the policy's scores.
template <class Policy> static Games play(const Policy& policy, const Options& options) {
  no_backprop_mode no_graph;
  Carts carts(options.batchsize);
  std::vector<Array> seen, actions, standing = {carts.standing()};
  for (std::int64_t t = 0; t < options.steps; ++t) {
    seen.push_back(carts.seen().astype(get_dtype()));
    Array scores = policy(constant(seen.back())).array().astype(float32);
    // The greatest of scores with such noise is a draw from their softmax.
    actions.push_back((scores + xp::random::gumbel(0, 1, scores.shape())).argmax(1).astype(int32));
    carts.push(actions.back().astype(float32));
    standing.push_back(standing.back() * carts.standing());  // who has fallen stays down
  }
  standing.pop_back();
  return {xp::stack(seen), xp::stack(actions), xp::stack(standing)};
}

/// How much more than the average of all carts at that time came after each action: each step that
/// a pole stands is worth 1, later ones less. 0 where it has fallen.
static Array advantages(const Array& standing, double discount) {
  Array to_come = xp::zeros({standing.shape(1)});
  Array returns = xp::zeros_like(standing);
  for (std::int64_t t = standing.shape(0) - 1; t >= 0; --t) {
    to_come = standing[t] * (1.f + static_cast<float>(discount) * to_come);
    returns[t] = to_come;
  }
  Array there = xp::maximum(standing.sum(1, true), 1.f);
  Array better = (returns - returns.sum(1, true) / there) * standing;
  return better / xp::sqrt((better * better).mean() + 1e-8f);
}

static void train(const Options& options) {
  DeviceScope here(options.device());  // arrays are made there
  auto policy = Sequential(L::Linear(4, options.unit), F::relu, L::Linear(options.unit, 2));
  policy.to(options.device());
  optimizers::Adam optimizer(options.learnrate);
  options.setup(optimizer, policy);

  // Actions that did better than the average become likelier, the others less likely.
  auto loss_of = [&](const Variable& seen, const Variable& actions, const Variable& advantage) {
    return F::mean(F::softmax_cross_entropy(policy(seen), actions, {.reduce = "no"}) * advantage);
  };
  auto step = [&](const Variable& seen, const Variable& actions, const Variable& advantage) {
    return optimizer.update(loss_of, seen, actions, advantage);
  };
  auto captured = capture(step);
  std::cout << "iteration  steps that a pole stands, of " << options.steps << std::endl;
  double lengths = 0;
  for (std::int64_t i = 1; i <= options.iterations; ++i) {
    Games games = play(policy, options);
    Array advantage = advantages(games.standing, options.discount).astype(get_dtype());
    Variable seen = constant(games.seen.reshape({-1, 4}));
    Variable actions = constant(games.actions.reshape({-1}));
    Variable weights = constant(advantage.reshape({-1}));
    options.capture ? captured(seen, actions, weights) : step(seen, actions, weights);
    lengths += games.standing.sum(0).mean().item<double>();
    if (i % 10 == 0 || i == options.iterations) {
      std::cout << i << "\t   " << lengths / static_cast<double>((i - 1) % 10 + 1) << std::endl;
      lengths = 0;
    }
  }
  options.print_replays(captured.stats());
  std::filesystem::create_directories(options.out);
  serializers::save_npz(options.out + "/policy.npz", policy);
}

int main(int argc, char** argv) {
  Options options;
  options.iterations = 100;
  options.batchsize = 32;
  return TrainingArguments(
             {.description = "Learns to balance a pole on a cart", .resume = false, .epoch = false},
             &options)
      .number("--unit", &options.unit, "units of the hidden layer")
      .number("--steps", &options.steps, "of a game")
      .real("--learnrate", &options.learnrate, "of Adam")
      .real("--discount", &options.discount, "what a step is worth against the one before it")
      .run(argc, argv, [&] { train(options); });
}
