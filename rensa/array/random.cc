// Random numbers: a Philox generator a device, whose only state is a seed and a counter.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"
#include "rensa/device/sort_operations.h"

namespace rensa::xp::random {

namespace {

struct Generator {
  std::atomic<std::uint64_t> seed{0};
  std::atomic<std::int64_t> offset{0};  // Philox counters handed out
};

// The generators of this process. Those that nobody seeded start from RENSA_SEED or from entropy.
class Generators {
 public:
  Generators() {
    const char* text = std::getenv("RENSA_SEED");
    if (text && *text) {
      char* end = nullptr;
      std::uint64_t value = std::strtoull(text, &end, 10);
      if (*end != '\0') {
        throw ValueError(fmt::format("random: RENSA_SEED=\"{}\" is not a number", text));
      }
      seed(value);
    } else {
      std::random_device entropy;
      seed(std::uint64_t{entropy()} << 32 | entropy());
    }
  }
  Generator& of(Device device) { return generators_[device.is_cpu() ? kMaxGpus : device.index]; }
  // The CPU and GPU 0 draw the same numbers; further GPUs draw others, so that the replicas of a
  // data-parallel run do not drop the same units.
  void seed(std::uint64_t seed) {
    for (int i = 0; i < kMaxGpus; ++i) {
      restart(generators_[i], seed + static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u);
    }
    restart(generators_[kMaxGpus], seed);
  }
  static void restart(Generator& generator, std::uint64_t seed) {
    generator.seed.store(seed, std::memory_order_relaxed);
    generator.offset.store(0, std::memory_order_relaxed);
  }

 private:
  Generator generators_[kMaxGpus + 1];
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

void check_floating(const char* name, Dtype dtype) {
  if (dtype_kind(dtype) == 'f') return;
  throw DtypeError(fmt::format("{}: {} is not taken, only float16, bfloat16, float32 and float64",
                               name, dtype_name(dtype)));
}

// Runs `op` into a new array, each element of which takes `words` of the four words of a counter.
Array draw(Random op, const Shape& shape, Dtype dtype, Placement placement, int words) {
  Array out = rensa::detail::new_array(shape, dtype, placement.device());
  std::int64_t size = out.size();
  if (size == 0) return out;
  GeneratorPosition position = take(out.device(), (size - 1) / (4 / words) + 1);
  op.seed = position.seed;
  op.offset = position.offset;
  op.out = out.operand();
  launch(op);
  return out;
}

Array draw_floats(Random op, const Shape& shape, Dtype dtype, Placement placement) {
  check_floating(op.name(), dtype);
  return draw(std::move(op), shape, dtype, placement, dtype == float64 ? 2 : 1);
}

}  // namespace

void seed(std::uint64_t seed) { generators().seed(seed); }

void seed(std::uint64_t seed, Device device) {
  check_gpu_index(device);
  Generators::restart(generators().of(device), seed);
}

GeneratorPosition take(Device device, std::int64_t count) {
  check_gpu_index(device);
  Generator& generator = generators().of(device);
  // Both are read in the source, so that a replay sees a new seed and takes counters of its own.
  return {
      host_scalar([&generator] {
        return static_cast<long long>(generator.seed.load(std::memory_order_relaxed));
      }),
      host_scalar([&generator, count] {
        return static_cast<long long>(generator.offset.fetch_add(count, std::memory_order_relaxed));
      })};
}

Array uniform(double low, double high, const Shape& shape, Dtype dtype, Placement device) {
  Random op("uniform", Random::Kind::uniform);
  op.a = low;
  op.b = high;
  return draw_floats(op, shape, dtype, device);
}

Array random(const Shape& shape, Dtype dtype, Placement device) {
  Random op("random", Random::Kind::uniform);
  op.a = 0;
  op.b = 1;
  return draw_floats(op, shape, dtype, device);
}

Array normal(double loc, double scale, const Shape& shape, Dtype dtype, Placement device) {
  if (!(scale >= 0)) throw ValueError(fmt::format("normal: scale {} is negative", scale));
  Random op("normal", Random::Kind::normal);
  op.a = loc;
  op.b = scale;
  return draw_floats(op, shape, dtype, device);
}

Array randint(std::int64_t low, std::int64_t high, const Shape& shape, Dtype dtype,
              Placement device) {
  if (dtype_kind(dtype) != 'i' && dtype_kind(dtype) != 'u') {
    throw DtypeError(fmt::format("randint: {} is not an integer dtype", dtype_name(dtype)));
  }
  if (low >= high) {
    throw ValueError(fmt::format("randint: [{}, {}) holds no integer", low, high));
  }
  rensa::detail::check_in_range("randint", low, dtype);
  rensa::detail::check_in_range("randint", high - 1, dtype);
  Random op("randint", Random::Kind::integers);
  op.low = low;
  op.high = high;
  auto span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  return draw(op, shape, dtype, device, span < (std::uint64_t{1} << 32) ? 1 : 2);
}

Array permutation(std::int64_t n, Placement device) {
  if (n < 0) throw ValueError(fmt::format("permutation: of {} elements", n));
  Array order = rensa::detail::new_array({n}, int64, device.device());
  if (n == 0) return order;
  // Keys of 63 bits: two of a million are equal once in 18 million permutations.
  Array keys = randint(0, std::numeric_limits<std::int64_t>::max(), {n}, uint64, device);
  Sort op("permutation");
  op.in = keys.reshape({1, n}).operand();
  op.order = order.operand();
  launch(op);
  return order;
}

}  // namespace rensa::xp::random
