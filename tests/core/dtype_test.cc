// Dtypes: NumPy's answers (answers/dtype_tables.txt, made by answers/make_dtype_tables.py) against
// ours.
#include "rensa/core/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rensa/core/error.h"
#include "rensa/core/reductions.h"
#include "rensa/core/scalar.h"
#include "rensa/core/ufunc_info.h"
#include "tests/testing.h"

namespace rensa {
namespace {

// The rows of the table that begin with `question`, without that word.
std::vector<std::vector<std::string>> rows_of(const std::string& question) {
  std::ifstream file(testing::data_file("dtype_tables.txt"));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != question) continue;
    rows.emplace_back();
    while (words >> word) rows.back().push_back(word);
  }
  EXPECT_FALSE(rows.empty()) << question;
  return rows;
}

TEST(Dtype, PromotesAsNumpy) {
  for (const auto& row : rows_of("promote")) {
    EXPECT_EQ(dtype_name(promote_types(parse_dtype(row[0]), parse_dtype(row[1]))), row[2])
        << row[0] << " " << row[1];
  }
}

TEST(Dtype, Bfloat16PromotesAsFloat16Does) {
  for (const auto& row : rows_of("promote")) {
    if (row[0] != "float16" || row[1] == "float16") continue;
    std::string expected = row[2] == "float16" ? "bfloat16" : row[2];
    EXPECT_EQ(dtype_name(promote_types(bfloat16, parse_dtype(row[1]))), expected) << row[1];
    EXPECT_EQ(dtype_name(promote_types(parse_dtype(row[1]), bfloat16)), expected) << row[1];
  }
  EXPECT_EQ(promote_types(float16, bfloat16), float32);
  EXPECT_EQ(promote_types(bfloat16, bfloat16), bfloat16);
}

TEST(Dtype, ThreePromoteAsNumpyInAnyOrder) {
  for (const auto& row : rows_of("promote3")) {
    std::vector<int> order = {0, 1, 2};
    do {
      DtypeSet set;
      for (int i : order) set.add(parse_dtype(row[static_cast<std::size_t>(i)]));
      EXPECT_EQ(dtype_name(set.promoted()), row[3]) << row[0] << " " << row[1] << " " << row[2];
    } while (std::next_permutation(order.begin(), order.end()));
  }
  EXPECT_EQ(rows_of("promote3").size(), 560u);  // of 2,744 triples in some order
  DtypeSet halves;
  halves.add(bfloat16);
  halves.add(uint8);
  EXPECT_EQ(halves.promoted(), bfloat16);
  halves.add(float16);
  EXPECT_EQ(halves.promoted(), float32);
  EXPECT_EQ(DtypeSet().promoted(), bool_);
}

TEST(Dtype, CastsOfOneKindAsNumpy) {
  for (const auto& row : rows_of("cast")) {
    EXPECT_EQ(can_cast_same_kind(parse_dtype(row[0]), parse_dtype(row[1])), row[2] == "1")
        << row[0] << " " << row[1];
  }
}

TEST(Dtype, NamesAsNumpy) {
  for (const auto& row : rows_of("names")) {
    EXPECT_EQ(dtype_name(parse_dtype(row[1])), row[0]);
    EXPECT_EQ(dtype_name(parse_dtype(row[2])), row[0]);
  }
  EXPECT_EQ(parse_dtype("bfloat16"), bfloat16);
  EXPECT_EQ(parse_dtype("=f8"), float64);
  for (const char* bad : {"", "<", "<float32", ">f4", "float", "f3", "int128", "<f44"}) {
    EXPECT_THROW(parse_dtype(bad), DtypeError) << bad;
  }
}

TEST(Dtype, SizesMatchTheCppTypes) {
  for (int i = 0; i < kNumDtypes; ++i) {
    auto d = static_cast<Dtype>(i);
    visit_dtype(d, [&](auto value) {
      EXPECT_EQ(itemsize(d), static_cast<std::int64_t>(sizeof(value)));
      EXPECT_EQ(dtype_of<decltype(value)>, d);
    });
  }
}

TEST(Scalar, MeetsArraysAsNumpy) {
  const std::map<std::string, Scalar> scalars = {
      {"b", true}, {"i", 1}, {"f", 1.0}, {"c", std::complex<double>(0, 1)}};
  for (const auto& row : rows_of("scalar")) {
    EXPECT_EQ(dtype_name(scalars.at(row[0]).result_type(parse_dtype(row[1]))), row[2])
        << row[0] << " " << row[1];
  }
  EXPECT_EQ(Scalar(1u).result_type(bool_), uint64);
  EXPECT_EQ(Scalar(1.0).result_type(bfloat16), bfloat16);
}

TEST(Scalar, Converts) {
  EXPECT_EQ(Scalar(-3).as<std::uint8_t>(), 253);
  EXPECT_EQ(Scalar(2.75).as<int>(), 2);
  EXPECT_EQ(Scalar(~0ull).as<double>(), 18446744073709551615.0);
  EXPECT_EQ(Scalar(std::complex<float>(1, 2)).as<std::complex<double>>(),
            (std::complex<double>(1, 2)));
  EXPECT_TRUE(Scalar(std::complex<double>(0, 2)).as<bool>());
  EXPECT_FALSE(Scalar(0.0).as<bool>());
}

std::map<std::string, Ufunc> ufuncs() {
  std::map<std::string, Ufunc> map;
  for (Ufunc ufunc : all_ufuncs()) map[ufunc_info(ufunc).name] = ufunc;
  return map;
}

// Complex numbers have no order here.
bool differs(const std::string& name, Dtype d) {
  return dtype_kind(d) == 'c' && (name == "maximum" || name == "less");
}

TEST(Ufunc, TypesAsNumpy) {
  auto table = ufuncs();
  int compared = 0;
  for (const auto& row : rows_of("ufunc")) {
    Dtype d = parse_dtype(row[1]);
    if (differs(row[0], d)) continue;
    ++compared;
    Ufunc ufunc = table.at(row[0]);
    if (row[2] == "none") {
      EXPECT_THROW(ufunc_types(ufunc, d), DtypeError) << row[0] << " " << row[1];
    } else {
      EXPECT_EQ(dtype_name(ufunc_types(ufunc, d).output), row[2]) << row[0] << " " << row[1];
    }
  }
  EXPECT_GT(compared, 350);
}

TEST(Ufunc, RowsAreNumberedInTheOrderOfTheTable) {
  int next = 0;
  for (Ufunc ufunc : all_ufuncs()) EXPECT_EQ(ufunc.number(), next++) << ufunc_info(ufunc).name;
  EXPECT_GT(next, 90);
}

TEST(Ufunc, KernelsExistForEveryTypeThatTheRulesGive) {
  for (Ufunc ufunc : all_ufuncs()) {
    for (int d = 0; d < kNumDtypes; ++d) {
      UfuncTypes types;
      try {
        types = ufunc_types(ufunc, static_cast<Dtype>(d));
      } catch (const DtypeError& e) {
        EXPECT_NE(std::string(e.what()).find(ufunc_info(ufunc).name), std::string::npos);
        continue;
      }
      EXPECT_TRUE(rule_takes(ufunc_info(ufunc).rule, compute_type(types.compute)))
          << ufunc_info(ufunc).name << " " << dtype_name(static_cast<Dtype>(d));
    }
  }
}

TEST(Reduction, TypesAsNumpy) {
  std::map<std::string, Reduction> table;
  for (Reduction reduction : all_reductions()) table[reduction_info(reduction).name] = reduction;
  for (const auto& row : rows_of("reduction")) {
    Reduction reduction = table.at(row[0]);
    Dtype d = parse_dtype(row[1]);
    ReductionRule rule = reduction_info(reduction).rule;
    bool ordered = rule != ReductionRule::sum && rule != ReductionRule::mean;
    if (dtype_kind(d) == 'c' && ordered) {
      EXPECT_THROW(reduction_types(reduction, d), DtypeError);
      continue;
    }
    UfuncTypes types = reduction_types(reduction, d);
    EXPECT_EQ(dtype_name(types.output), row[2]) << row[0] << " " << row[1];
    EXPECT_TRUE(rule_takes(rule, compute_type(types.compute))) << row[0] << " " << row[1];
  }
}

}  // namespace
}  // namespace rensa
