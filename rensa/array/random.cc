// Generators and their states; uniforms, integers and what comes of one uniform by a formula.
#include "rensa/array/random.h"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <charconv>
#include <limits>
#include <random>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/array/random_internal.h"
#include "rensa/array/random_tape.h"
#include "rensa/core/environment.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/device/launcher.h"
#include "rensa/device/tracer.h"
#include "rensa/operations/random/random.h"
#include "rensa/operations/sort/sort.h"

namespace rensa::xp::random {

namespace detail {

struct GeneratorSource {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::int64_t> offset{0};

  void restart(std::uint64_t new_seed) {
    seed.store(new_seed, std::memory_order_relaxed);
    offset.store(0, std::memory_order_relaxed);
  }
};

}  // namespace detail

using detail::GeneratorSource;

namespace {

using operations::Random;

std::uint64_t entropy() {
  std::random_device device;
  std::uint64_t high = device();
  return high << 32 | device();
}

// The generators of this process. Those that nobody seeded start from RENSA_SEED or from entropy.
class Generators {
 public:
  Generators() {
    for (auto& source : sources_) source = std::make_shared<GeneratorSource>();
    auto given = environment::number("RENSA_SEED", 0, std::numeric_limits<std::uint64_t>::max());
    seed(given ? *given : entropy());
  }
  const std::shared_ptr<GeneratorSource>& of(Device device) {
    return sources_[device.is_cpu() ? kMaxGpus : device.index];
  }
  void seed(std::uint64_t seed) {
    for (int i = 0; i < kMaxGpus; ++i) {
      sources_[i]->restart(seed + static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u);
    }
    sources_[kMaxGpus]->restart(seed);
  }

 private:
  std::shared_ptr<GeneratorSource> sources_[kMaxGpus + 1];
};

Generators& generators() {
  static Generators instance;
  return instance;
}

void check_gpu_index(Device device) {
  if (device.is_cuda() && (device.index < 0 || device.index >= kMaxGpus)) {
    throw DeviceError(fmt::format("random: there is no {}", device.str()));
  }
}

void check_state(const GeneratorState& state) {
  if (state.offset >= 0) return;
  throw ValueError(fmt::format("set_random_state: the offset {} is negative", state.offset));
}

// Runs `op` into a new array, each element of which takes `words` of the four words of a counter.
Array draw(const Generator& generator, Random op, const Shape& shape, Dtype dtype, int words) {
  Array out = rensa::detail::new_array(shape, dtype, generator.device());
  std::int64_t size = out.size();
  if (size == 0) return out;
  GeneratorPosition position = generator.take((size - 1) / (4 / words) + 1);
  op.seed = position.seed;
  op.offset = position.offset;
  op.out = out.operand();
  launch(op);
  return out;
}

Array draw_floats(const Generator& generator, const char* name, Random::Kind kind, double a,
                  double b, const Shape& shape, Dtype dtype) {
  detail::check_floating(name, dtype);
  Random op(name, kind);
  op.a = a;
  op.b = b;
  return draw(generator, std::move(op), shape, dtype, dtype == float64 ? 2 : 1);
}

// loc + scale * the standard variates of `kind`; arrays take one pass more.
Array located(const Generator& generator, const char* name, Random::Kind kind, const Parameter& loc,
              const Parameter& scale, const Size& size, Dtype dtype) {
  detail::check_number(name, "scale", scale, detail::Domain::non_negative);
  Shape shape = detail::joint_shape(name, {}, loc);
  shape = detail::fit_size(name, detail::joint_shape(name, shape, scale), size);
  if (!loc.is_array() && !scale.is_array()) {
    return draw_floats(generator, name, kind, loc.number(), scale.number(), shape, dtype);
  }
  Array out = draw_floats(generator, name, kind, 0, 1, shape, dtype);
  detail::combine(name, ufunc::multiply, out, scale);
  detail::combine(name, ufunc::add, out, loc);
  return out;
}

// Integers of [low, low + span); a span of 0 stands for all of 2^64.
Array draw_integers(const Generator& generator, const char* name, std::int64_t low,
                    std::uint64_t span, int words, const Shape& shape, Dtype dtype) {
  Random op(name, Random::Kind::integers);
  op.low = low;
  op.span = span;
  op.words = words;
  return draw(generator, std::move(op), shape, dtype, words);
}

// So many that what the remainder prefers some numbers by stays below 2^-16.
int words_for(std::uint64_t span) {
  if (span == 0 || (span & (span - 1)) == 0) return span == 0 || span >> 32 ? 2 : 1;
  return span >> 48 ? 4 : span >> 16 ? 2 : 1;
}

// Orders of up to so many things come of sorted keys, which makes each as likely as the others;
// larger ones of a keyed one-to-one map, which costs no sort.
constexpr std::int64_t kMostSorted = 1 << 16;

void check_integer_dtype(const char* name, Dtype dtype) {
  if (dtype_kind(dtype) == 'i' || dtype_kind(dtype) == 'u') return;
  throw DtypeError(fmt::format("{}: {} is not an integer dtype", name, dtype_name(dtype)));
}

}  // namespace

// --- state ---

std::string GeneratorState::str() const { return fmt::format("philox4x32-10 {} {}", seed, offset); }

GeneratorState GeneratorState::parse(std::string_view text) {
  constexpr std::string_view kName = "philox4x32-10 ";
  GeneratorState state;
  if (text.starts_with(kName)) {
    const char *begin = text.data() + kName.size(), *end = text.data() + text.size();
    auto [middle, error] = std::from_chars(begin, end, state.seed);
    if (error == std::errc() && middle < end && *middle == ' ') {
      auto [last, offset_error] = std::from_chars(middle + 1, end, state.offset);
      if (offset_error == std::errc() && last == end && state.offset >= 0) return state;
    }
  }
  throw ValueError(fmt::format("GeneratorState: \"{}\" is no state of a generator", text));
}

Array GeneratorState::to_array() const {
  return array({seed, static_cast<std::uint64_t>(offset)}, cpu());
}

GeneratorState GeneratorState::from_array(const Array& state) {
  rensa::detail::check_defined("GeneratorState", state);
  if (state.dtype() != uint64) {
    throw DtypeError(
        fmt::format("GeneratorState: uint64 is wanted, not {}", dtype_name(state.dtype())));
  }
  if (state.shape() != Shape{2}) {
    throw ShapeError(fmt::format("GeneratorState: (2,) is wanted, not {}", state.shape().str()));
  }
  auto values = state.to_vector<std::uint64_t>();
  GeneratorState result{values[0], static_cast<std::int64_t>(values[1])};
  check_state(result);
  return result;
}

Generator::Generator(Philox4x3210 bits, Placement device)
    : source_(std::make_shared<GeneratorSource>()), device_(device.device()) {
  check_gpu_index(device_);
  stay_eager("it makes a generator");  // which every call would start anew
  source_->restart(bits.seed);
}

Generator::Generator(std::shared_ptr<GeneratorSource> source, Device device)
    : source_(std::move(source)), device_(device) {}

GeneratorState Generator::get_state() const {
  stay_eager("it reads the state of a generator on the host");
  return {source_->seed.load(std::memory_order_relaxed),
          source_->offset.load(std::memory_order_relaxed)};
}

void Generator::set_state(const GeneratorState& state) const {
  check_state(state);
  // A number to an effect: a step that sets another state each time is not replayed with the first.
  host_effect([source = source_,
               seed = state.seed] { source->seed.store(seed, std::memory_order_relaxed); },
              std::bit_cast<double>(state.seed));
  host_effect([source = source_,
               offset = state.offset] { source->offset.store(offset, std::memory_order_relaxed); },
              std::bit_cast<double>(state.offset));
}

GeneratorPosition Generator::take(std::int64_t count) const {
  // Both are read in the source, so that a replay sees a new seed and takes counters of its own.
  return Tape::Scope::take(source_.get(), count, [&]() -> GeneratorPosition {
    return {
        host_scalar([source = source_] {
          return static_cast<long long>(source->seed.load(std::memory_order_relaxed));
        }),
        host_scalar([source = source_, count] {
          return static_cast<long long>(source->offset.fetch_add(count, std::memory_order_relaxed));
        })};
  });
}

Generator default_rng(const Seed& seed, Placement device) {
  return Generator(Philox4x3210{seed.value()}, device);
}
Generator default_rng(Placement device) { return default_rng(none, device); }

Generator generator(Placement device) {
  Device on = device.device();
  check_gpu_index(on);
  return Generator(generators().of(on), on);
}

void seed(const Seed& seed) {
  std::uint64_t value = seed.value();
  host_effect([value] { generators().seed(value); }, std::bit_cast<double>(value));
}
void seed(const Seed& seed, Device device) { generator(device).set_state({seed.value(), 0}); }

GeneratorState get_random_state(Placement device) { return generator(device).get_state(); }
void set_random_state(const GeneratorState& state, Placement device) {
  generator(device).set_state(state);
}
GeneratorPosition take(Device device, std::int64_t count) { return generator(device).take(count); }

// --- seeds and options ---

Seed::Seed(None) : value_(entropy()) {}

// Every number turns every bit of what comes of those before it (splitmix64), so that neither their
// order nor their count is lost.
Seed::Seed(std::span<const std::uint64_t> numbers) {
  if (numbers.empty())
    throw ValueError("seed: there is no number in the list; none is the system's");
  value_ = numbers.size();
  for (std::uint64_t number : numbers) {
    value_ = (value_ ^ number) + 0x9E3779B97F4A7C15u;
    value_ = (value_ ^ value_ >> 30) * 0xBF58476D1CE4E5B9u;
    value_ = (value_ ^ value_ >> 27) * 0x94D049BB133111EBu;
    value_ ^= value_ >> 31;
  }
  if (numbers.size() == 1) value_ = numbers[0];
}

Seed::Seed(const Array& numbers) {
  rensa::detail::check_defined("seed", numbers);
  if (dtype_kind(numbers.dtype()) != 'i' && dtype_kind(numbers.dtype()) != 'u') {
    throw DtypeError(fmt::format("seed: {} holds no integers", numbers.view().describe()));
  }
  value_ = Seed(numbers.astype(uint64, false).to_vector<std::uint64_t>()).value();
}

Size DrawOptions::drawn_size() const { return !size.given() && out ? Size((*out).shape()) : size; }

Dtype DrawOptions::drawn_dtype(Dtype usual) const {
  return dtype.value_or(out ? (*out).dtype() : usual);
}

Placement DrawOptions::drawn_device() const {
  return !device.given() && out ? Placement((*out).device()) : device;
}

Array DrawOptions::finish(const char* operation, const Array& drawn) const {
  return rensa::detail::deliver(operation, drawn, out);
}

void Generator::check_own_device(const char* operation, Placement device) const {
  if (!device.given() || device.device() == device_) return;
  throw DeviceError(
      fmt::format("{}: wanted on {}, and the generator draws on {}; make one with "
                  "random::default_rng(seed, device)",
                  operation, device.device().str(), device_.str()));
}

Array Generator::randint(std::int64_t low, std::int64_t high, const DrawOptions& o) const {
  check_own_device("randint", o.device);
  return o.finish("randint", randint(low, high, o.drawn_size(), o.drawn_dtype(int64)));
}

// --- uniforms and integers ---

Array Generator::random(const Size& size, Dtype dtype) const {
  return draw_floats(*this, "random", Random::Kind::uniform, 0, 1, size.shape(), dtype);
}

Array Generator::uniform(const Parameter& low, const Parameter& high, const Size& size,
                         Dtype dtype) const {
  Shape shape = detail::joint_shape("uniform", {}, low);
  shape = detail::fit_size("uniform", detail::joint_shape("uniform", shape, high), size);
  if (!low.is_array() && !high.is_array()) {
    return draw_floats(*this, "uniform", Random::Kind::uniform, low.number(), high.number(), shape,
                       dtype);
  }
  Array out = draw_floats(*this, "uniform", Random::Kind::uniform, 0, 1, shape, dtype);
  // The span in the result's dtype, as for numbers.
  auto as_array = [&](const Parameter& p) {
    return p.is_array() ? p.array().astype(dtype, false) : full({}, p.number(), dtype, device_);
  };
  detail::combine("uniform", ufunc::multiply, out, as_array(high) - as_array(low));
  detail::combine("uniform", ufunc::add, out, low);
  return out;
}

Array Generator::randint(std::int64_t low, std::int64_t high, const Size& size, Dtype dtype) const {
  check_integer_dtype("randint", dtype);
  if (low >= high) {
    throw ValueError(fmt::format("randint: [{}, {}) holds no integer", low, high));
  }
  return integers(low, high - 1, size.shape(), dtype, true);
}

Array Generator::integers(std::int64_t low, std::int64_t high, const Size& size, Dtype dtype,
                          bool endpoint) const {
  check_integer_dtype("integers", dtype);
  if (low > high || (low == high && !endpoint)) {
    throw ValueError(
        fmt::format("integers: [{}, {}{} holds no integer", low, high, endpoint ? ']' : ')'));
  }
  std::int64_t last = endpoint ? high : high - 1;
  rensa::detail::check_in_range("randint", low, dtype);
  rensa::detail::check_in_range("randint", last, dtype);
  std::uint64_t span = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(low) + 1;
  return draw_integers(*this, "randint", low, span, words_for(span), size.shape(), dtype);
}

Array Generator::randint(const Array& low, const Array& high, const Size& size, Dtype dtype) const {
  check_integer_dtype("randint", dtype);
  for (const Array* bound : {&low, &high}) {
    rensa::detail::check_defined("randint", *bound);
    if (dtype_kind(bound->dtype()) == 'f' || dtype_kind(bound->dtype()) == 'c') {
      throw DtypeError(
          fmt::format("randint: bounds of {} are no integers", dtype_name(bound->dtype())));
    }
  }
  Shape shape = broadcast_shapes("randint", low.shape(), high.shape());
  shape = detail::fit_size("randint", shape, size);
  Array words = draw_integers(*this, "randint", 0, 0, 2, shape, uint64);
  Array from = low.astype(int64, false).astype(uint64, false);
  Array spans = high.astype(int64, false).astype(uint64, false) - from;
  return (words % spans + from).astype(dtype, false);
}

std::vector<std::uint8_t> Generator::bytes(std::int64_t length) const {
  if (length < 0) throw ValueError(fmt::format("bytes: of {} bytes", length));
  Array words =
      draw_integers(*this, "bytes", 0, 0, 2, {length / 8 + (length % 8 != 0)}, uint64).get();
  auto values = host_list<std::uint8_t>("bytes", length);
  const auto* first = reinterpret_cast<const std::uint8_t*>(words.data());
  values.insert(values.end(), first, first + length);
  return values;
}

// --- location and scale ---

Array Generator::standard_normal(const Size& size, Dtype dtype) const {
  return draw_floats(*this, "standard_normal", Random::Kind::normal, 0, 1, size.shape(), dtype);
}

Array Generator::normal(const Parameter& loc, const Parameter& scale, const Size& size,
                        Dtype dtype) const {
  return located(*this, "normal", Random::Kind::normal, loc, scale, size, dtype);
}

Array Generator::lognormal(const Parameter& mean, const Parameter& sigma, const Size& size,
                           Dtype dtype) const {
  detail::check_number("lognormal", "sigma", sigma, detail::Domain::non_negative);
  Array out = located(*this, "lognormal", Random::Kind::normal, mean, sigma, size, dtype);
  return rensa::detail::elementwise("lognormal", ufunc::exp, {out}, &out);
}

Array Generator::standard_exponential(const Size& size, Dtype dtype) const {
  return draw_floats(*this, "standard_exponential", Random::Kind::exponential, 0, 1, size.shape(),
                     dtype);
}

Array Generator::exponential(const Parameter& scale, const Size& size, Dtype dtype) const {
  return located(*this, "exponential", Random::Kind::exponential, 0, scale, size, dtype);
}

Array Generator::gumbel(const Parameter& loc, const Parameter& scale, const Size& size,
                        Dtype dtype) const {
  return located(*this, "gumbel", Random::Kind::gumbel, loc, scale, size, dtype);
}

Array Generator::laplace(const Parameter& loc, const Parameter& scale, const Size& size,
                         Dtype dtype) const {
  return located(*this, "laplace", Random::Kind::laplace, loc, scale, size, dtype);
}

Array Generator::logistic(const Parameter& loc, const Parameter& scale, const Size& size,
                          Dtype dtype) const {
  return located(*this, "logistic", Random::Kind::logistic, loc, scale, size, dtype);
}

Array Generator::standard_cauchy(const Size& size, Dtype dtype) const {
  return draw_floats(*this, "standard_cauchy", Random::Kind::cauchy, 0, 1, size.shape(), dtype);
}

// --- orders ---

namespace detail {

Array order_of(const Array& keys) {
  Array order = rensa::detail::new_array(keys.shape(), int64, keys.device());
  if (order.size() == 0) return order;
  Array rows = keys.ascontiguous().reshape({1, keys.size()});
  operations::Sort op("permutation");
  op.in = rows.operand();
  op.order = order.operand();
  launch(op);
  return order;
}

}  // namespace detail

Array Generator::permutation(std::int64_t n) const {
  if (n < 0) throw ValueError(fmt::format("permutation: of {} elements", n));
  if (n > kMostSorted) {
    Random op("permutation", Random::Kind::order);
    return draw(*this, std::move(op), {n}, int64, 1);
  }
  // Keys of 63 bits: two of them are equal once in 4 billion permutations.
  constexpr std::uint64_t kSpan = std::numeric_limits<std::int64_t>::max();
  return detail::order_of(draw_integers(*this, "permutation", 0, kSpan, 2, {n}, uint64));
}

}  // namespace rensa::xp::random
