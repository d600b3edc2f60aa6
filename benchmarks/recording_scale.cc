// What capture() does on the host before it can replay a step, pass by pass, by the length of the
// step: an unrolled RNN with gradient and update, a chain of elementwise operations, and short
// chains that know nothing of one another.
//   recording_scale [device] [most operations]
// Chains are joined on a CPU too, where capture() leaves them apart; compilation is not counted.
#include <fmt/format.h>
#include <rensa/rensa.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>

#include "benchmarks/timing.h"
#include "rensa/graph/join_chains.h"
#include "rensa/graph/plan.h"
#include "rensa/graph/recording.h"
#include "rensa/graph/rewrite.h"

namespace {

using namespace rensa;
using Step = std::function<Variable()>;

struct Cell : Chain<Cell> {
  L::Linear x_to_h, h_to_h, out;
  explicit Cell(std::int64_t units) : x_to_h(units), h_to_h(units), out(1) {}
  void members(Visitor& v) override { v("x_to_h", x_to_h), v("h_to_h", h_to_h), v("out", out); }
  Variable operator()(const Variable& x) { return unrolled(x, 1); }
  Variable unrolled(const Variable& x, int times) {
    Variable h = F::tanh(x_to_h(x));
    for (int t = 1; t < times; ++t) h = F::tanh(x_to_h(x) + h_to_h(h));
    return F::sum(out(h));
  }
};

/// A step whose length is `times` times one piece of it, and then some.
using MakeStep = std::function<Step(int times, Device device)>;

Step make_rnn(int times, Device device) {
  auto cell = std::make_shared<Cell>(8);
  cell->to_device(device);
  optimizers::SGD optimizer(0.01);
  optimizer.setup(*cell);
  Variable x(xp::random::normal(0, 1, {2, 8}, float32, device));
  return [=] {
    return optimizer.update([&](const Variable& in) { return cell->unrolled(in, times); }, x);
  };
}

Step make_chain(int times, Device device) {
  Variable x(xp::random::normal(0, 1, {16}, float32, device));
  return [=] {
    Variable y = x;
    for (int t = 0; t < times; ++t) y = y * 0.5f + x;
    return y;
  };
}

Step make_branches(int times, Device device) {
  Variable x(xp::random::normal(0, 1, {16}, float32, device));
  auto results = std::make_shared<std::vector<Array>>();
  return [=] {
    results->clear();
    for (int t = 0; t < times; ++t) {
      results->push_back((F::exp(x * 0.5f) * 0.25f + 1.f).array());
    }
    return x + 1.f;
  };
}

/// A run of the step, recorded.
std::unique_ptr<Recording> record(const Step& step) {
  auto recording = std::make_unique<Recording>();
  ThreadState::current().recorder = recording.get();
  Variable result = step();
  ThreadState::current().recorder = nullptr;
  recording->outputs.push_back({result.array(), nullptr});
  if (!recording->failure().empty()) throw NotImplementedError(recording->failure());
  return recording;
}

std::size_t length_of(const Step& step) {
  step();
  return record(step)->operations.size();
}

double seconds_of(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

/// Seconds of each pass, and what came of them.
struct Passes {
  double eager = 0, record = 0, rewrite = 0, join = 0, plan = 0, plan_as_recorded = 0;
  std::size_t operations = 0, left = 0;
  std::int64_t planned_bytes = 0;
  double in_all() const { return record + rewrite + join + plan; }
};

Passes time_passes(const Step& step, Device device) {
  Passes passes;
  passes.eager = seconds_of([&] { step(), benchmarks::wait_for(device); });
  std::unique_ptr<Recording> recording = record(step);
  passes.plan_as_recorded = seconds_of([&] { make_plan(*recording, true); });
  recording.reset();
  passes.record = seconds_of([&] { recording = record(step), benchmarks::wait_for(device); });
  passes.operations = recording->operations.size();
  passes.rewrite = seconds_of([&] { rewrite(*recording); });  // on a GPU it joins too
  if (device.is_cpu()) passes.join = seconds_of([&] { join_chains(*recording); });
  passes.left = recording->operations.size();
  Plan plan;
  passes.plan = seconds_of([&] { plan = make_plan(*recording, true); });
  passes.planned_bytes = plan.arenas.at(device)->nbytes();
  return passes;
}

/// Prints how long the passes take for a step of about `operations`: the quickest of three runs.
void run(const char* name, const MakeStep& make, std::size_t operations, Device device) {
  std::size_t ten = length_of(make(10, device)), twenty = length_of(make(20, device));
  Step step = make(static_cast<int>(operations * 10 / (twenty - ten)), device);
  step();                      // parameters and optimizer states come into being
  join_chains(*record(step));  // compiles
  Passes best = time_passes(step, device);
  for (int turn = 0; turn < 2; ++turn) {
    Passes passes = time_passes(step, device);
    if (passes.in_all() < best.in_all()) best = passes;
  }
  benchmarks::print_figure(
      fmt::format("recording: {}, {} operations, {} rensa", name, operations, device.str()),
      best.in_all(), "s",
      fmt::format(", \"operations\": {}, \"eager\": {:.4g}, \"record\": {:.4g}, \"rewrite\": "
                  "{:.4g}, \"join\": {:.4g}, \"plan\": {:.4g}, \"plan_as_recorded\": {:.4g}, "
                  "\"operations_left\": {}, \"planned_bytes\": {}",
                  best.operations, best.eager, best.record, best.rewrite, best.join, best.plan,
                  best.plan_as_recorded, best.left, best.planned_bytes));
}

}  // namespace

int main(int argc, char** argv) try {
  Device device = argc > 1 ? Device(argv[1]) : try_gpu();
  std::size_t most = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 50000;
  const std::pair<const char*, MakeStep> steps[] = {{"unrolled RNN with update", make_rnn},
                                                    {"elementwise chain", make_chain},
                                                    {"independent chains", make_branches}};
  xp::random::seed(1);
  for (const auto& [name, make] : steps) {
    for (std::size_t operations : {1000, 2000, 5000, 10000, 20000, 50000}) {
      if (operations <= most) run(name, make, operations, device);
    }
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
