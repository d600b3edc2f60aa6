// What is written by mistake, and what the compiler's first line has to say then: after "// slip:"
// the words to look for, below the code. tools/check_slips.py compiles them one by one.
#include "rensa/array.h"

using namespace rensa;

extern Array a, b, mask, rows;

// slip: write a.fill(7)
void number_for_an_array() { a = 7; }

// slip: this array is a temporary, whose elements = does not write
void write_to_a_transpose() { a.T() = b; }

// slip: write a.fill(7)
void write_to_a_copy() { a[rows][0] = 5; }

// slip: write row.fill(5)
void number_for_a_named_view() {
  auto row = a[0];
  row = 5;
}

// slip: write row.fill(5), row.assign(values)
void array_for_a_named_view() {
  for (auto row : a) row = b;
}

// slip: write a[mask] = 5
void number_for_a_named_selection() {
  auto chosen = a[mask];
  chosen = 5;
}

// slip: an array is no truth: write a.any() or a.all()
void array_as_a_condition() {
  if (a == b) a.fill(0);
}

// slip: a & b, a | b
void logical_and_of_arrays() { a[a > 0 && b > 0] = 0; }

// slip: an index of several entries stands in braces: a[{i, Slice()}]
void index_without_braces() { a[0, Slice()] = 1; }

// slip: a shape is one argument: write xp::zeros({3, 4})
void shape_without_braces() { xp::zeros(3, 4); }

// slip: a shape is one argument: write xp::reshape(a, {3, 2})
void reshape_without_braces() { xp::reshape(a, 3, 2); }

// slip: the array is a temporary: options refer to an array that outlives the call
void option_of_a_temporary() {
  xp::UfuncOptions options;
  options.out = xp::zeros({3});
}

// slip: a dtype is no text: write xp::ones({3, 4}, float64)
void dtype_as_text() { xp::ones({3, 4}, "float64"); }

// slip: a dtype is no text: write a.astype(float32)
void cast_to_text() { a.astype("float32"); }

// slip: arrays in a list: write xp::stack({a, b})
void array_of_arrays() { xp::array({a, b}); }

// slip: say the type: a.item<float>()
float item_without_type() { return a.item(); }

// slip: say the type: a.to_vector<float>()
std::vector<float> vector_without_type() { return a.to_vector(); }

// slip: an index is an integer, a Slice, ellipsis, newaxis, or an array
void index_by_a_float() { a[0.5] = 1; }

// slip: write xp::exp(x), which runs where x is
Array module_of_an_array(const Array& x) {
  auto xp = cuda::get_array_module(x);
  return xp.maximum(x, x);
}
