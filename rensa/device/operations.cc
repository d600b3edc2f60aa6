// Which operands and host numbers each kind of operation has, in a fixed order: inputs first, so
// that errors name them first.
#include "rensa/device/operations.h"

namespace rensa {

namespace {

void read(OperandVisitor& v, Operand& operand) {
  if (operand.present()) v.read(operand);
}

void write(OperandVisitor& v, Operand& operand) {
  if (operand.present()) v.write(operand);
}

}  // namespace

void Elementwise::visit(OperandVisitor& v) {
  for (int i = 0; i < num_inputs; ++i) read(v, in[i].array);
  write(v, out);
}

void Reduce::visit(OperandVisitor& v) {
  read(v, in);
  write(v, out);
}

void Matmul::visit(OperandVisitor& v) {
  read(v, a);
  read(v, b);
  read(v, bias);
  write(v, c);
}

void Arange::visit(OperandVisitor& v) { write(v, out); }

void Random::visit(OperandVisitor& v) {
  write(v, out);
  v.scalar(seed);
  v.scalar(offset);
}

void Dropout::visit(OperandVisitor& v) {
  read(v, in);
  write(v, out);
  v.scalar(seed);
  v.scalar(offset);
}

void SoftmaxCrossEntropy::visit(OperandVisitor& v) {
  read(v, x);
  read(v, t);
  write(v, y);
  write(v, loss);
  write(v, count);
}

void SoftmaxCrossEntropyGrad::visit(OperandVisitor& v) {
  read(v, y);
  read(v, t);
  read(v, count);
  read(v, gy);
  write(v, gx);
}

void Accuracy::visit(OperandVisitor& v) {
  read(v, y);
  read(v, t);
  write(v, accuracy);
}

void ReluBiasGrad::visit(OperandVisitor& v) {
  read(v, gy);
  read(v, y);
  write(v, gz);
  write(v, gb);
}

void UpdateParameters::visit(OperandVisitor& v) {
  for (UpdateTarget& target : targets) {
    read(v, target.gradient);
    v.update(target.parameter);
    for (int i = 0; i < num_states; ++i) write(v, target.states[i]);
  }
  for (int i = 0; i < num_hyperparameters; ++i) v.scalar(hyperparameters[i]);
}

void Transfer::visit(OperandVisitor& v) {
  read(v, in);
  write(v, out);
}

}  // namespace rensa
