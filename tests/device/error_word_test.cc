// What a device reports, and the exceptions that it stands for.
#include "rensa/device/error_word.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <typeindex>
#include <vector>

#include "rensa/array/linalg.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/device_state.h"
#include "rensa/device/stream.h"
#include "tests/optional_parts.h"
#include "tests/testing.h"

namespace rensa {
namespace {

using ::testing::HasSubstr;

struct Row {
  ErrorReport report;
  std::type_index type;
  const char* text;  // as far as it comes before the device
};

std::vector<Row> rows() {
  return {
      {{ReportedError::index, "take", -7, 5},
       typeid(IndexError),
       "take: index -7 is out of bounds for an axis of size 5"},
      {{ReportedError::label, "hinge", 4, 3},
       typeid(IndexError),
       "hinge: label 4 is out of bounds for 3 classes"},
      {{ReportedError::length, "ctc", 4, 3},
       typeid(ValueError),
       "ctc: a length of 4 is none of 0 to 3"},
      {{ReportedError::singular, "inv", 2, 8},
       typeid(LinAlgError),
       "inv: matrix 2 of 8 is singular"},
      {{ReportedError::not_positive_definite, "whiten", 0, 1},
       typeid(LinAlgError),
       "whiten: the matrix is not positive definite"},
      {{ReportedError::not_converged, "svd", 0, 1},
       typeid(LinAlgError),
       "svd: the matrix has values that were not found"},
  };
}

/// Calls f, which throws what `row` says.
template <class F> void expect_thrown(const Row& row, Device device, F f) {
  try {
    f();
    FAIL() << row.text;
  } catch (const Error& error) {
    EXPECT_EQ(std::type_index(typeid(error)), row.type);
    EXPECT_EQ(std::string(error.what()).find(row.text), 0u) << error.what();
    EXPECT_EQ(std::string(error.what()).find("(reported by cuda:0") != std::string::npos,
              device.is_cuda())
        << error.what();
  }
}

TEST(ErrorWord, TheKindDecidesTheException) {
  for (const Row& row : rows()) {
    for (Device device : {cpu(), gpu(0)}) {
      expect_thrown(row, device, [&] { throw_reported(row.report, device); });
    }
  }
}

TEST(ErrorWord, IsThrownByTheNextWaitAndOnce) {
  RENSA_NEEDS_GPUS(1);
  for (const Row& row : rows()) {
    *cuda::device_state(gpu(0)).error_word = {cuda::ErrorWord::written, row.report};
    expect_thrown(row, gpu(0), [] { cuda::synchronize(gpu(0)); });
    cuda::synchronize(gpu(0));
  }
}

// A kernel of another stream has begun its report.
TEST(ErrorWord, IsNotReadBeforeItIsWritten) {
  RENSA_NEEDS_GPUS(1);
  Row row = rows().front();
  cuda::ErrorWord& word = *cuda::device_state(gpu(0)).error_word;
  word = {cuda::ErrorWord::busy, {}};
  cuda::synchronize(gpu(0));
  word = {cuda::ErrorWord::written, row.report};
  expect_thrown(row, gpu(0), [] { cuda::synchronize(gpu(0)); });
}

TEST(ErrorWord, TheKindComesFromTheOperation) {
  for (Device device : testing::linalg_devices()) {
    Array zeros = xp::zeros({2, 2}, float64, device), nan = xp::full({2, 2}, NAN, float64, device);
    auto text = [&](auto f) -> std::string {
      try {
        f().get();
      } catch (const LinAlgError& error) {
        return error.what();
      }
      return "nothing was thrown";
    };
    EXPECT_THAT(text([&] { return xp::linalg::inv(zeros); }), HasSubstr("is singular"));
    EXPECT_THAT(text([&] {
                  return xp::linalg::tensorinv(zeros.reshape({2, 1, 2}), 1);
                }),
                HasSubstr("is singular"));
    EXPECT_THAT(text([&] { return xp::linalg::cholesky(zeros - 1.0); }),
                HasSubstr("is not positive definite"));
    EXPECT_THAT(text([&] { return xp::linalg::eigvalsh(nan); }), HasSubstr("did not converge"));
    Array index = xp::array({0, 2}, device);
    EXPECT_THROW(zeros[index].get(), IndexError);
  }
}

}  // namespace
}  // namespace rensa
