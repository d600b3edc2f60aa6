// What a recorded run gives back while it is recorded, and that its list computes the same on other
// memory.
#include "rensa/graph/run_memory.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <vector>

#include "rensa/array/exchange.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/capture.h"
#include "rensa/graph/plan.h"
#include "rensa/graph/rewrite.h"
#include "rensa/links/links.h"
#include "rensa/optimizers/optimizers.h"
#include "tests/graph/heap_in_use.h"
#include "tests/testing.h"

namespace rensa {
namespace {

constexpr std::int64_t kSize = 25000, kBytes = 4 * kSize;  // of an array of float32

template <class F> void record(Recording& recording, F step) {
  RecorderScope scope(&recording);
  step();
}

void launch_all(Recording& recording) {
  for (auto& operation : recording.operations) launch(*operation);
}

TEST(RunMemory, GoesBackAsSoonAsNobodyHoldsIt) {
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  Array x = xp::arange(kSize, float32), y;
  Recording recording;
  record(recording, [&] {
    y = x + 1;
    for (int i = 0; i < 40; ++i) y = xp::sqrt(y * 2);
  });
  EXPECT_LE(in_use.most, 4 * kBytes);  // x, y, the product, and what takes the place of y
  std::vector<float> eager = y.to_vector<float>();
  recording.give_back_memory();
  EXPECT_LT(in_use.now, 2 * kBytes + kBytes / 2);  // x and y
  Plan plan = make_plan(recording, true);
  EXPECT_LT(plan.arenas.at(cpu())->nbytes(), 3 * kBytes);
  y.fill(0);
  launch_all(recording);
  EXPECT_EQ(y.to_vector<float>(), eager);
}

TEST(RunMemory, OfManyStoragesAFewAreLookedAtWithEachOperation) {
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  Array x = xp::ones({16}), sum;
  std::vector<Array> held;
  Recording recording;
  record(recording, [&] {
    for (int i = 0; i < 3000; ++i) held.push_back(x + static_cast<float>(i));
    sum = held[0] * 1.f;
    held.clear();
    for (int i = 0; i < 40; ++i) sum = sum * 0.5f;
  });
  EXPECT_LT(in_use.now, 100 * 64);
  EXPECT_EQ(recording.operations.size(), 3041u);
}

TEST(RunMemory, NamesKeepStoragesApart) {
  Array x = xp::ones({kSize});
  Recording recording;
  record(recording, [&] {
    for (int i = 0; i < 10; ++i) x + static_cast<float>(i);  // all in the same memory
  });
  recording.give_back_memory();
  std::map<const char*, const char*> ranges;
  for (const auto& operation : recording.operations) {
    Access write = accesses(*operation).back();
    ASSERT_TRUE(write.write);
    EXPECT_TRUE(MemoryName::is_one(*write.storage));
    EXPECT_TRUE(is_own(*write.storage));
    EXPECT_EQ(write.storage->nbytes(), kBytes);
    EXPECT_EQ(write.end - write.begin, kBytes);
    ranges[write.begin] = write.end;
  }
  ASSERT_EQ(ranges.size(), 10u);
  for (auto range = ranges.begin(); std::next(range) != ranges.end(); ++range) {
    EXPECT_LE(range->second, std::next(range)->first);
  }
}

TEST(RunMemory, OutlinesDoNotSeeWhereItLies) {
  Array x = xp::ones({kSize}), y;
  std::vector<Array> held;
  auto outline = [&](bool hold) {
    Recording recording;
    record(recording, [&] {
      for (int i = 0; i < 5; ++i) {
        Array a = x + 1.f, b = a * 2.f;
        if (hold) held.push_back(a), held.push_back(b);
        y = xp::sqrt(b);
      }
    });
    recording.give_back_memory();
    EXPECT_EQ(recording.outline.made().size(), hold ? 11u : 1u);
    EXPECT_TRUE(recording.outline.made(y.storage().get()));
    EXPECT_EQ(recording.outline.found().size(), 1u);
    return recording.outline;
  };
  EXPECT_EQ(outline(false).difference(outline(true)), "");
}

// The fill is done once, and not by the replays, though its memory is another array's by then.
TEST(RunMemory, FoldedConstantsAreWrittenAgain) {
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  Array x = xp::arange(kSize, float32), y;
  Recording recording;
  record(recording, [&] {
    Array two = xp::full({kSize}, 2.f);
    y = x * two;
    two = Array();
    for (int i = 0; i < 5; ++i) y = y + x;
  });
  recording.give_back_memory();
  std::vector<float> eager = y.to_vector<float>();
  rewrite(recording);
  EXPECT_EQ(recording.constants.size(), 1u);
  Plan plan = make_plan(recording, true);
  EXPECT_EQ(recording.operations.size(), 6u);
  for (int replay = 0; replay < 2; ++replay) {
    y.fill(0);
    launch_all(recording);
    EXPECT_EQ(y.to_vector<float>(), eager);
  }
  EXPECT_FALSE(MemoryName::is_one(*recording.constants[0].storage.get()));
}

TEST(RunMemory, ThatIsReadBeforeItIsWrittenIsThereInReplays) {
  Array x = xp::ones({4}), y;
  Recording recording;
  record(recording, [&] {
    Array halves = xp::empty({8});
    halves[Slice(0, 4)].assign(halves[Slice(4, 8)]);  // of whatever lay there
    halves[Slice(0, 8)].assign(xp::tile(x, {2}));
    y = halves * 2.f;
  });
  recording.give_back_memory();
  Plan plan = make_plan(recording, true);
  for (const auto& [storage, handle] : recording.storages) {
    EXPECT_FALSE(MemoryName::is_one(*storage));
  }
  y.fill(0);
  launch_all(recording);
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(8, 2.f));
}

TEST(RunMemory, OfARunThatCannotBeRecordedIsNotHeld) {
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  Array x = xp::ones({kSize}), y;
  std::vector<Array> held;
  Recording recording;
  record(recording, [&] {
    for (int i = 0; i < 5; ++i) held.push_back(x + 1.f);
    ThreadState::current().recorder->cannot_record("it is a test");
    for (int i = 0; i < 5; ++i) held.push_back(x + 1.f);
  });
  held.clear();
  EXPECT_LT(in_use.now, 2 * kBytes);
  EXPECT_EQ(recording.operations.size(), 0u);
}

// A gradient that got the memory which the seed had had was copied: it looked shared.
TEST(RunMemory, BackwardDoesTheSameWhereverItLies) {
  for (int length = 2; length < 12; ++length) {
    Parameter w(Initializer(0.5), {});
    Recording recording;
    record(recording, [&] {
      Variable y = w;
      for (int i = 0; i < length; ++i) y = F::tanh(y);
      y.backward();
    });
    EXPECT_STRNE(recording.operations.back()->name(), "copy") << length;
  }
}

/// A deep net: what backward needs of each layer, and more that lives a moment.
struct Deep : Chain<Deep> {
  std::vector<L::Linear> layers;
  std::vector<L::BatchNormalization> norms;
  L::Linear out{10};
  Deep() {
    for (int i = 0; i < 12; ++i) layers.emplace_back(32), norms.emplace_back(32);
  }
  void members(Visitor& v) override { v("layers", layers), v("norms", norms), v("out", out); }
  Variable operator()(Variable h) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      Variable z = norms[i](layers[i](h));
      h = i % 2 == 0 ? F::relu(z) : F::dropout(0.5f * z * (1.f + F::tanh(z)), 0.25) + h;
    }
    return out(h);
  }
};

struct Peaks {
  std::int64_t warm = 0, recording = 0, replaying = 0;
  std::vector<float> values;
};

Peaks peaks_of(bool captured, CaptureOptions options = {}) {
  constexpr std::int64_t kBatch = 2000;
  testing::HeapInUse in_use;
  HeapHookScope scope(in_use);
  xp::random::seed(5);
  auto model = L::Classifier(Deep());
  optimizers::MomentumSGD optimizer(0.01);
  optimizer.setup(model);
  options.replay_lists = true;
  CaptureCache cache(options);
  CaptureCache::Step step = [&](const Variables& in) {
    return Variables{optimizer.update(model, in[0], in[1])};
  };
  Array x = xp::random::normal(0, 1, {kBatch, 32}, float32),
        t = xp::random::randint(0, 10, {kBatch}, int32);
  Peaks peaks;
  auto train = [&](int steps) {
    in_use.take_most();
    for (int i = 0; i < steps; ++i) {
      Variables in{constant(x), constant(t)};
      peaks.values.push_back((captured ? cache.call(step, in) : step(in))[0].item<float>());
    }
    return in_use.take_most();
  };
  peaks.warm = train(1);
  peaks.recording = train(2);
  peaks.replaying = train(3);
  for (const ParameterRef& p : model.params()) {
    for (float value : p.array().to_vector<float>()) peaks.values.push_back(value);
  }
  if (captured) {
    EXPECT_GE(cache.stats().recordings, 1) << cache.stats().last_fallback;
    EXPECT_EQ(cache.stats().fallbacks, 0);
  }
  return peaks;
}

TEST(RunMemory, RecordingAStepTakesAboutWhatRunningItTakes) {
  Peaks eager = peaks_of(false), captured = peaks_of(true);
  EXPECT_EQ(captured.values, eager.values);
  auto most = [&](double times) {
    return static_cast<std::int64_t>(times * static_cast<double>(eager.warm));
  };
  EXPECT_LT(eager.recording, most(1.2));
  EXPECT_LT(captured.recording, most(1.2));
  EXPECT_LT(captured.replaying, most(1.2));
  // An audit runs beside the plan's memory, and makes a new plan when the old one is gone.
  Peaks audited = peaks_of(true, {.audit_every = 2});
  EXPECT_EQ(audited.values, eager.values);
  EXPECT_LT(audited.replaying, most(2.2));
}

}  // namespace
}  // namespace rensa
