// Every routine called with numbers that make no sense (nonsense.def): what comes is an array or a
// typed error, soon. Run under the address sanitizer it also shows each wrong address.
#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "rensa/array/random.h"
#include "rensa/core/host_memory.h"
#include "tests/array/arrays.h"
#include "tests/optional_parts.h"

namespace rensa {
namespace {

// The hostile numbers, as int64 and as int.
struct Number {
  std::int64_t wide;
  int narrow;
};
constexpr std::array<Number, 7> kNumbers = {
    {{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<int>::min()},
     {-1, -1},
     {0, 0},
     {1, 1},
     {std::int64_t{1} << 31, 1 << 16},
     {std::int64_t{1} << 62, 1 << 30},
     {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<int>::max()}}};

// Pieces of memory end at 16 MiB, so that what is merely large is refused, too, and not filled.
class SmallMemory {
 public:
  explicit SmallMemory(Device device) : device_(device) {
    if (device.is_cuda())
      cuda::memory_pool(device).set_limit(cuda::memory_pool(device).total_bytes() + kMost);
  }
  ~SmallMemory() {
    limit_host_memory(before_);
    if (device_.is_cuda()) cuda::memory_pool(device_).set_limit(std::int64_t{0});
  }
  SmallMemory(const SmallMemory&) = delete;
  SmallMemory& operator=(const SmallMemory&) = delete;

 private:
  static constexpr std::int64_t kMost = std::int64_t{16} << 20;
  Device device_;
  std::int64_t before_ = limit_host_memory(kMost);
};

class NonsenseTable {
 public:
  NonsenseTable() { fill_rows(); }

  struct Row {
    int varied;
    const char* name;
    std::function<void()> call;
  };
  const std::vector<Row>& rows() const { return rows_; }

  void set(const Number& first, const Number& second, const Number& third) {
    n = first.wide, m = second.wide, k = third.wide;
    i = first.narrow, j = second.narrow, l = third.narrow;
  }
  std::string numbers() const {
    return " with " + std::to_string(n) + ", " + std::to_string(m) + ", " + std::to_string(k);
  }

 private:
  void fill_rows();

  std::int64_t n = 0, m = 0, k = 0;
  int i = 0, j = 0, l = 0;
  Array v = xp::array({0.5f, 1.f, 2.f, -3.f, 4.f});
  Array a = xp::arange(12, float64).reshape({3, 4});
  Array q = xp::eye(3, float64) * 2 + 1;
  Array t = xp::arange(24).reshape({2, 3, 4});
  Array u = xp::array({3, 0, 1, 1, 2, 0});
  Array b = xp::array({1, 0, 1, 1, 0}).astype(bool_);
  Array e = xp::zeros({0, 3});
  Array h = xp::ones({1}).broadcast_to({std::int64_t{1} << 62});
  Array s = xp::array({1});
  std::vector<Row> rows_;
};

void NonsenseTable::fill_rows() {
#define RENSA_NONSENSE(varied, name, ...) \
  rows_.push_back({varied, name, [this] { (void)(__VA_ARGS__); }});
#include "tests/array/nonsense.def"
#undef RENSA_NONSENSE
}

TEST(Nonsense, GivesAnArrayOrATypedError) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "not under this sanitizer";  // which takes minutes, and looks for other things
#endif
  for (Device device : testing::test_devices()) {
    DeviceScope scope(device);
    NonsenseTable table;
    SmallMemory small(device);
    for (const NonsenseTable::Row& row : table.rows()) {
      auto count = [&](int place) { return row.varied > place ? kNumbers.size() : 1; };
      for (std::size_t x = 0; x < count(0); ++x) {
        for (std::size_t y = 0; y < count(1); ++y) {
          for (std::size_t z = 0; z < count(2); ++z) {
            table.set(kNumbers[x], kNumbers[y], kNumbers[z]);
            SCOPED_TRACE(row.name + table.numbers() + " on " + device.str());
            try {
              row.call();
            } catch (const Error& error) {
              EXPECT_STRNE(error.what(), "");
            } catch (const std::exception& error) {
              ADD_FAILURE() << "not an error of Rensa's: " << error.what();
            }
          }
        }
      }
      if (!device.is_cuda()) continue;
      try {
        cuda::synchronize(device);
      } catch (const Error&) {
        // An index found out of range on the device.
      }
    }
    EXPECT_GT(table.rows().size(), 200u);
  }
}

}  // namespace
}  // namespace rensa
