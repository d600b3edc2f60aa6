// A network and its training.
#include <rensa/rensa.h>

#include <iostream>

using namespace rensa;

struct MLP : Chain<MLP> {
  L::Linear l1, l2, l3;
  MLP(int64_t units, int64_t out) : l1(units), l2(units), l3(out) {}  // input sizes are inferred
  void members(Visitor& v) override {
    v("l1", l1);
    v("l2", l2);
    v("l3", l3);
  }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

int main() {
  auto model = L::Classifier(MLP(32, 4));
  auto optimizer = optimizers::Adam();
  optimizer.setup(model);

  xp::random::seed(0);
  Array x = xp::random::uniform(-1, 1, {64, 8});
  Array t = x[{Slice(), Slice(0, 4)}].argmax(1);  // the label: which of the first four is greatest
  float first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    last = optimizer.update(model, x, t).item<float>();  // cleargrads, forward, backward, update
    if (step == 0) first = last;
  }
  std::cout << model << "\n";  // a table of its parameters
  std::cout << "loss " << first << " -> " << last << "\n";
  return last < first / 2 ? 0 : 1;
}
