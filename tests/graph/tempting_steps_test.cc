// Steps that tempt a recording to freeze something: each is bit-equal to the same step run eagerly,
// replayed or with the reason why it is not.
#include <gmock/gmock.h>

#include "rensa/core/error.h"
#include "rensa/graph/capture.h"
#include "tests/graph/tempting_arrays.h"
#include "tests/graph/tempting_host_code.h"
#include "tests/graph/tempting_links.h"
#include "tests/graph/tempting_setters.h"
#include "tests/testing.h"

namespace rensa::tempting {
namespace {

using ::testing::HasSubstr;
using Values = std::vector<std::vector<float>>;

std::vector<Row> rows() {
  return {
      {"closure", closure, "reads another array float32 (3,)"},
      {"closure_with_history", closure_with_history, "reads another array float32 (3,)"},
      {"buffers_that_change_places", buffers_that_change_places, "another array float32 (3,)"},
      {"buffer_that_is_only_written", buffer_that_is_only_written, "writes another array"},
      {"in_place", in_place, nullptr},
      {"replaced_by_the_caller_now_and_then", [](Device d) { return replaced_by_the_caller(d, 6); },
       nullptr},
      {"replaced_by_the_caller_each_time", [](Device d) { return replaced_by_the_caller(d, 1); },
       "reads another array"},
      {"made_late", made_late, nullptr},
      {"kept", kept, nullptr},
      {"kept_and_cleared", kept_and_cleared, "replaced between its calls"},
      {"writes_its_input", writes_its_input, "writes into its inputs"},
      {"values_of_the_host", values_of_the_host, ""},
      {"recurrent", [](Device d) { return recurrent(d, kCalls); }, nullptr},
      {"recurrent_with_resets", [](Device d) { return recurrent(d, 3); }, nullptr},
      {"recurrent_training", recurrent_training, nullptr},
      {"graph_into_the_call_before", graph_into_the_call_before, "leads into the call before"},
      {"states_that_change_places", states_that_change_places, nullptr},
      {"states_of_one_array", states_of_one_array, nullptr},
      {"states_as_they_were", states_as_they_were, nullptr},
      {"state_set_by_the_caller", state_set_by_the_caller, nullptr},
      {"state_of_another_object_now_and_then",
       [](Device d) { return state_of_another_object(d, 6); }, nullptr},
      {"state_of_another_object_each_time", [](Device d) { return state_of_another_object(d, 1); },
       "replaced between its calls"},
      {"state_within_the_step", state_within_the_step, nullptr},
      {"kept_result", kept_result, nullptr},
      {"averages", averages, nullptr},
      {"replaced_persistent", replaced_persistent, "reads another array float32 (3,)"},
      {"gradients_that_add_up", gradients_that_add_up, "reads another array float32 (3,)"},
      {"second_model", [](Device d) { return second_model(d, false); }, nullptr},
      {"second_model_in_training", [](Device d) { return second_model(d, true); }, nullptr},
      {"parameters_that_are_copied", parameters_that_are_copied, nullptr},
      {"hyperparameter", hyperparameter, "asks an optimizer"},
      {"summary", summary, "adds to a Summary"},
      {"gradient_now_and_then", gradient_now_and_then, "what it does on the host"},
      {"counter_that_is_read", counter_that_is_read, "reads a Counter"},
      {"host_counter", host_counter, "has other numbers"},
      {"reported_host_counter", reported_host_counter, "what it does on the host"},
      {"reported_constant", reported_constant, nullptr},
      {"reported_function", reported_function, nullptr},
      {"counter_of_uneven_steps", counter_of_uneven_steps, "what it does on the host"},
      {"host_counter_of_a_branch", host_counter_of_a_branch, " was "},
      {"list_that_grows", list_that_grows, "another array"},
      {"value_of_a_branch", value_of_a_branch, "item"},
      {"exception", exception, nullptr},
      {"random_numbers", random_numbers, nullptr},
      {"random_state_in_the_step", random_state_in_the_step, "state of a generator"},
      {"seeded_in_the_step", seeded_in_the_step, nullptr},
      {"generator_of_the_step", generator_of_the_step, "makes a generator"},
      {"other_seed", other_seed, "what it does on the host"},
      {"other_seed_of_the_device", other_seed_of_the_device, "what it does on the host"},
      {"one_generator_state", one_generator_state, nullptr},
      {"other_generator_offset", other_generator_offset, "what it does on the host"},
      {"own_generators_state", own_generators_state, nullptr},
      {"hyperparameter_of_a_parameter", hyperparameter_of_a_parameter, "sets a hyperparameter"},
      {"hyperparameter_that_is_reset", hyperparameter_that_is_reset, "sets a hyperparameter"},
      {"hyperparameter_by_reference", hyperparameter_by_reference, "changes numbers"},
      {"rate_of_a_hook", rate_of_a_hook, "changes numbers"},
      {"threshold_of_a_hook", threshold_of_a_hook, "changes numbers"},
      {"rate_of_a_parameters_hook", rate_of_a_parameters_hook, "changes numbers"},
      {"rate_that_the_caller_sets", rate_that_the_caller_sets, nullptr},
      {"hook_that_counts", hook_that_counts, "changes numbers"},
      {"hook_with_a_counter", hook_with_a_counter, nullptr},
      {"own_algorithms_number", own_algorithms_number, nullptr},
      {"own_algorithms_number_each_time", own_algorithms_number_each_time, "has other numbers"},
      {"own_hook_that_the_caller_sets", own_hook_that_the_caller_sets, nullptr},
      {"number_of_a_file", number_of_a_file, nullptr},
      {"number_that_is_copied", number_that_is_copied, nullptr},
      {"counts_that_are_copied", counts_that_are_copied, nullptr},
      {"own_algorithms_number_of_a_parameter", own_algorithms_number_of_a_parameter, nullptr},
      {"hook_that_comes_and_goes", hook_that_comes_and_goes, "what an update is made of"},
      {"other_loss_scale", other_loss_scale, "what an update is made of"},
      {"other_width", other_width, "what an update is made of"},
      {"set_up_in_the_step", set_up_in_the_step, "what an update is made of"},
      {"epochs", epochs, nullptr},
      {"update_enabled", update_enabled, nullptr},
      {"number_of_a_model", number_of_a_model, "changes numbers"},
      {"train_that_is_toggled", train_that_is_toggled, "changes the configuration"},
      {"dtype_of_the_step", dtype_of_the_step, "changes the configuration"},
      {"config_of_a_scope", config_of_a_scope, nullptr},
      {"batch_of_an_iterator", batch_of_an_iterator, "an iterator"},
      {"iterator_that_is_reset", iterator_that_is_reset, "an iterator"},
      {"epoch_of_an_iterator", epoch_of_an_iterator, "an iterator"},
      {"counter_that_is_set", counter_that_is_set, nullptr},
      {"counter_that_is_replaced", counter_that_is_replaced, "replaces a Counter"},
      {"scope_of_a_reporter", scope_of_a_reporter, "a Reporter's scope"},
  };
}

std::vector<Row> replayed_rows() {
  std::vector<Row> replayed = rows();
  std::erase_if(replayed, [](const Row& row) { return row.reason != nullptr; });
  return replayed;
}

struct Outcome {
  Values values;
  CaptureStats stats;
};

Outcome run(const Row& row, Device device, bool captured, CaptureOptions options = {}) {
  options.replay_lists = true;
  Program program = row.make(device);
  CaptureCache cache(options);
  CaptureCache::Step step = [&](const Variables& in) { return Variables{program.step(in[0])}; };
  Outcome outcome;
  auto note = [&](const Array& a) { outcome.values.push_back(a.to_vector<float>()); };
  for (int i = 0; i < kCalls; ++i) {
    program.before(i);
    Variables in{constant(xp::full({3}, static_cast<float>(i + 1), float32, device))};
    try {
      note((captured ? cache.call(step, in) : step(in))[0].array());
    } catch (const ValueError&) {
      outcome.values.push_back({-1});
    }
    note(in[0].array());
    for (const Array& a : program.seen()) note(a);
  }
  outcome.stats = cache.stats();
  return outcome;
}

class TemptingStep : public ::testing::TestWithParam<Row> {};

TEST_P(TemptingStep, IsReplayedRightOrStaysEager) {
  const Row& row = GetParam();
  for (Device device : testing::test_devices()) {
    Outcome eager = run(row, device, false), captured = run(row, device, true);
    EXPECT_EQ(eager.values, captured.values) << device.str();
    const CaptureStats& stats = captured.stats;
    if (row.reason) {
      EXPECT_THAT(stats.last_fallback, HasSubstr(row.reason)) << device.str();
      EXPECT_FALSE(stats.last_fallback.empty());
      EXPECT_GT(stats.fallbacks, 0);
    } else {
      EXPECT_EQ(stats.last_fallback, "") << device.str();
      EXPECT_GE(stats.replays, 3) << device.str();
    }
  }
}

class ReplayedStep : public TemptingStep {};

TEST_P(ReplayedStep, IsAsRightWhereItIsAudited) {
  const Row& row = GetParam();
  for (Device device : testing::test_devices()) {
    Outcome eager = run(row, device, false);
    Outcome audited = run(row, device, true, {.audit_every = 3});
    EXPECT_EQ(eager.values, audited.values) << device.str();
    EXPECT_GT(audited.stats.audits, 0) << device.str();
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, TemptingStep, ::testing::ValuesIn(rows()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(LeftBehind, ReportsThatAreKeptStayAsTheyWere) {
  for (Device device : testing::test_devices()) {
    Averages link;
    Reporter reporter;
    reporter.add_observer("main", link);
    auto step = capture(
        [&](const Variable& x) {
          report({{"twice", x * 2}}, link);
          return x + 1;
        },
        {.replay_lists = true});
    std::vector<Observation> kept(6);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      auto scope = reporter.scope(kept[i]);
      step(constant(xp::full({}, static_cast<float>(i), float32, device)));
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(kept[i].at("main/twice").item<float>(), 2 * static_cast<float>(i)) << i;
    }
    EXPECT_EQ(step.stats().replays, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ReplayedStep, ::testing::ValuesIn(replayed_rows()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace rensa::tempting
