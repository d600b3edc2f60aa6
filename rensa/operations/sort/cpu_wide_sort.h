// Sorting of plain keys by vector instructions.
#pragma once

#include <cstdint>

namespace rensa::host {

/// Whether sort_wide can be called: the processor has AVX-512.
bool has_wide_sort();
/// Sorts keys in place, ascending.
void sort_wide(unsigned* keys, std::int64_t n);
void sort_wide(unsigned long long* keys, std::int64_t n);
/// Puts keys to the front that are not greater than any behind them, about half of them where they
/// differ; returns their count.
std::int64_t split_wide(unsigned* keys, std::int64_t n);
std::int64_t split_wide(unsigned long long* keys, std::int64_t n);
/// Puts the key of place `kth` of the sorted ones there, nothing greater before it and nothing less
/// behind.
void select_wide(unsigned* keys, std::int64_t n, std::int64_t kth);
void select_wide(unsigned long long* keys, std::int64_t n, std::int64_t kth);

}  // namespace rensa::host
