// Operations into values.
#include "rensa/kernel/trace.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "rensa/operations/reduce/reduce.h"

namespace rensa::detail {

namespace {

constexpr const char* kTaken =
    "fuse takes the elementwise routines, astype, sum, prod, mean, max, min, any and all, and "
    "views";

template <class T> void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put(std::string& bytes, const Shape& shape) {
  put(bytes, shape.ndim());
  bytes.append(reinterpret_cast<const char*>(shape.data()),
               static_cast<std::size_t>(shape.ndim()) * sizeof(std::int64_t));
}

}  // namespace

/// The memory of a value of the trace: addresses, and nothing behind them.
class Trace::SymbolicStorage final : public Storage {
 public:
  SymbolicStorage(const Tracer* owner, std::uintptr_t address, std::int64_t nbytes, Device device)
      : owner_(owner) {
    data_ = reinterpret_cast<char*>(address);
    nbytes_ = nbytes;
    device_ = device;
    home_ = reinterpret_cast<cuda::StreamState*>(this);  // no stream: use_on_other() is called
  }
  void end() { owner_ = nullptr; }

 private:
  void use_on_other(cuda::StreamState*) override {
    if (owner_ && current_tracer == owner_) return;
    throw ValueError(fmt::format(
        "an array that was made inside of a fused function is used outside of it (it has {} bytes "
        "on {}): its values were never computed. Return it from the function, or make it outside",
        nbytes_, device_.str()));
  }
  void destroy() noexcept override { delete this; }

  const Tracer* owner_;
};

void Trace::end() {
  for (SymbolicStorage* storage : symbolic_) storage->end();
  symbolic_.clear();
}

StoragePtr Trace::allocate(std::int64_t nbytes, Device device) {
  symbolic_.push_back(new SymbolicStorage(this, next_address_, nbytes, device));
  StoragePtr storage(symbolic_.back());
  next_address_ += static_cast<std::uintptr_t>(nbytes / 512 + 1) * 512;
  bases_.emplace(storage.get(), -1);
  kept_.push_back(storage);
  return storage;
}

void Trace::refuse(const char* what) {
  throw NotImplementedError(fmt::format(
      "{}: it asks for values inside of a function that is being fused, which are not computed "
      "yet; {}. Return the array and look at it outside",
      what, kTaken));
}

TracedInput Trace::input_of(const char* name, const Operand& operand) const {
  TracedInput in;
  in.array = operand;
  auto base = bases_.find(operand.storage);
  in.kind = base == bases_.end() ? TracedInput::Kind::array : TracedInput::Kind::value;
  if (in.kind == TracedInput::Kind::array) return in;
  in.value = base->second;
  if (in.value < 0) {
    throw NotImplementedError(
        fmt::format("{}: in a function that is being fused it reads {}, which nothing was written "
                    "to",
                    name, operand.view.describe()));
  }
  in.array.view.data =
      reinterpret_cast<char*>(operand.view.data - operand.storage->data());  // an offset
  in.array.storage = nullptr;
  return in;
}

void Trace::define(const char* name, const Operand& out, TracedValue value) {
  auto base = bases_.find(out.storage);
  bool whole = base != bases_.end() && out.view.is_c_contiguous() &&
               out.view.nbytes() == out.storage->nbytes();
  if (!whole) {
    throw NotImplementedError(fmt::format(
        "{}: in a function that is being fused it writes into {}, {}; return a new array instead",
        name, out.view.describe(),
        base == bases_.end() ? "which the function was given" : "a part of an array"));
  }
  value.dtype = out.view.dtype;
  value.shape = out.view.shape;
  value.device = out.view.device;
  base->second = static_cast<int>(values_.size());
  values_.push_back(std::move(value));
}

const char* TracedValue::name() const {
  if (reduction) return reduction_info(reduce_by).name;
  return row ? row->name : ufunc_info(ufunc).name;
}

TracedValue PerElement::value(int k) const {
  const ArrayView& view = out[static_cast<std::size_t>(k)].view;
  TracedValue value;
  value.ufunc = ufunc;
  value.row = row;
  value.output = k;
  value.compute = compute;
  value.dtype = view.dtype;
  value.shape = view.shape;
  value.device = view.device;
  value.num_inputs = static_cast<int>(in.size());
  value.in.resize(value.num_inputs);
  return value;
}

std::optional<PerElement> per_element(const Operation& operation) {
  if (const auto* e = dynamic_cast<const operations::Elementwise*>(&operation)) {
    std::span<const operations::ElementwiseInput> in(e->in,
                                                     static_cast<std::size_t>(e->num_inputs));
    return PerElement{in, {&e->out, 1}, e->compute, e->ufunc, nullptr};
  }
  if (const auto* p = dynamic_cast<const operations::Pointwise*>(&operation)) {
    return PerElement{p->in, p->out, p->compute, ufunc::copy, p->row};
  }
  return std::nullopt;
}

void Trace::per_element_operation(const char* name, const PerElement& op) {
  std::vector<TracedInput> inputs;
  for (const operations::ElementwiseInput& input : op.in) {
    TracedInput& in = inputs.emplace_back();
    if (input.array.present()) {
      in = input_of(name, input.array);
      if (in.kind == TracedInput::Kind::array) kept_.emplace_back(input.array.storage);
    } else {
      in.number = input.scalar;
    }
  }
  for (std::size_t k = 0; k < op.out.size(); ++k) {
    TracedValue value = op.value(static_cast<int>(k));
    for (std::size_t i = 0; i < inputs.size(); ++i) value.in[static_cast<int>(i)] = inputs[i];
    define(name, op.out[k], std::move(value));
  }
}

void Trace::operation(Operation& operation) {
  if (auto op = per_element(operation)) return per_element_operation(operation.name(), *op);
  TracedValue value;
  auto* r = dynamic_cast<operations::Reduce*>(&operation);
  if (r && reduction_info(r->reduction).is_row) {
    value.reduction = true;
    value.reduce_by = r->reduction;
    value.axes = r->axes;
    value.compute = r->compute;
    value.num_inputs = 1;
    value.in.resize(1);
    value.in[0] = input_of(r->name(), r->in);
    if (value.in[0].kind == TracedInput::Kind::array) kept_.emplace_back(r->in.storage);
    return define(r->name(), r->out, std::move(value));
  }
  throw NotImplementedError(
      fmt::format("{}: it cannot be part of a function that is being fused; {}. Call it outside",
                  operation.name(), kTaken));
}

void Trace::effect(std::function<void()> effect, double number, EffectTarget target) {
  if (outer_) outer_->effect(std::move(effect), number, std::move(target));
}
int Trace::scalar(std::function<HostScalar()>) { refuse("a number of the host's"); }
void Trace::output(const ArrayView&, Storage*, std::function<void(StoragePtr, const ArrayView&)>) {
  refuse("a report");
}
void Trace::binding(std::function<const Storage*()> current) {
  if (outer_) outer_->binding(std::move(current));
}

void Trace::watch(std::function<std::vector<std::string>()> numbers) {
  if (outer_) outer_->watch(std::move(numbers));
}
void Trace::state(const std::shared_ptr<StateBody>& state, bool reads) {
  if (outer_) outer_->state(state, reads);
}

int Trace::value_of(const Array& a) const { return bases_.at(a.storage().get()); }

std::int64_t Trace::offset_of(const Array& a) const { return a.view().data - a.storage()->data(); }

std::string Trace::key(const std::vector<int>& outputs) const {
  std::string bytes;
  bytes.reserve(512 * values_.size());
  std::vector<const Operand*> arrays;  // equal ones are one input
  auto place_of = [&](const Operand& operand) {
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      if (arrays[k]->storage == operand.storage && arrays[k]->view.data == operand.view.data) {
        return k;
      }
    }
    arrays.push_back(&operand);
    return arrays.size() - 1;
  };
  for (const TracedValue& v : values_) {
    put(bytes, v.reduction);
    put(bytes, v.reduction ? v.reduce_by.number() : v.ufunc.number());
    put(bytes, v.row);
    put(bytes, v.output);
    put(bytes, v.axes);
    put(bytes, v.compute);
    put(bytes, v.dtype);
    put(bytes, v.shape);
    for (int k = 0; k < v.num_inputs; ++k) {
      put(bytes, v.in[k].kind);
      if (v.in[k].kind == TracedInput::Kind::number) continue;
      const ArrayView& view = v.in[k].array.view;
      if (v.in[k].kind == TracedInput::Kind::array) {
        put(bytes, place_of(v.in[k].array));
      } else {
        put(bytes, v.in[k].value);
        put(bytes, view.data);
      }
      put(bytes, view.dtype);
      put(bytes, view.shape);
      put(bytes, view.strides);
    }
  }
  for (int output : outputs) put(bytes, output);
  return bytes;
}

}  // namespace rensa::detail
