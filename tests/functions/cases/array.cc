// The functions of rensa/functions/array_functions.h, indexing_functions.h, joining_functions.h and
// image_functions.h.
#include "rensa/functions/functions.h"
#include "tests/functions/function_cases.h"

namespace rensa {
namespace {

using Entries = std::initializer_list<BasicIndex>;

Variables of_topk(const std::pair<Variable, Array>& top) {
  return {top.first, constant(top.second)};
}

#define RENSA_RESIZE(mode_, align, name, height, width)                                       \
  {                                                                                           \
    "resize_images " mode_ " " name,                                                          \
        RENSA_FUNCTION(                                                                       \
            F::resize_images(x[0], {height, width}, {.mode = mode_, .align_corners = align})) \
  }

const std::vector<testing::FunctionRow> rows = {
    {"reshape", RENSA_FUNCTION(F::reshape(x[0], {2, -1}))},
    {"expand_dims", RENSA_FUNCTION(F::expand_dims(x[0], 1))},
    {"expand_dims axis=-1", RENSA_FUNCTION(x[0].expand_dims(-1))},
    {"squeeze", RENSA_FUNCTION(x[0].squeeze())},
    {"squeeze axis=(0, -1)", RENSA_FUNCTION(F::squeeze(x[0], {0, -1}))},
    {"flatten", RENSA_FUNCTION(F::flatten(x[0]))},
    {"broadcast_to", RENSA_FUNCTION(F::broadcast_to(x[0], {2, 3, 4}))},
    {"broadcast", [](const Variables& x) { return F::broadcast(x); }},
    {"transpose", RENSA_FUNCTION(F::transpose(x[0]))},
    {"transpose axes", RENSA_FUNCTION(x[0].transpose({1, -1, 0}))},
    {"swapaxes", RENSA_FUNCTION(F::swapaxes(x[0], 0, -1))},
    {"moveaxis", RENSA_FUNCTION(F::moveaxis(x[0], 0, 2))},
    {"moveaxis several", RENSA_FUNCTION(F::moveaxis(x[0], Shape{0, 1}, Shape{-1, 0}))},
    {"rollaxis", RENSA_FUNCTION(F::rollaxis(x[0], 2))},
    {"rollaxis start=2", RENSA_FUNCTION(F::rollaxis(x[0], 0, 2))},
    {"rollaxis start=-1", RENSA_FUNCTION(F::rollaxis(x[0], 0, -1))},
    {"flip", RENSA_FUNCTION(F::flip(x[0], 1))},
    {"fliplr", RENSA_FUNCTION(F::fliplr(x[0]))},
    {"flipud", RENSA_FUNCTION(F::flipud(x[0]))},
    {"roll", RENSA_FUNCTION(F::roll(x[0], 2))},
    {"roll axes", RENSA_FUNCTION(F::roll(x[0], Shape{1, -2}, Shape{0, 2}))},
    {"repeat", RENSA_FUNCTION(x[0].repeat(2))},
    {"repeat axis=1", RENSA_FUNCTION(F::repeat(x[0], 3, 1))},
    {"repeat counts", RENSA_FUNCTION(F::repeat(x[0], {1, 0, 2}, 1))},
    {"tile", RENSA_FUNCTION(F::tile(x[0], 2))},
    {"tile longer", RENSA_FUNCTION(F::tile(x[0], {2, 1, 3}))},
    {"tile shorter", RENSA_FUNCTION(F::tile(x[0], {2, 3}))},
    {"pad", RENSA_FUNCTION(F::pad(x[0], 1))},
    {"pad widths", RENSA_FUNCTION(F::pad(x[0], {{0, 2}, {1, 0}}, "constant", 1.5))},
    {"pad reflect", RENSA_FUNCTION(F::pad(x[0], {{0, 0}, {0, 0}, {1, 2}}, "reflect"))},
    {"pad replicate", RENSA_FUNCTION(F::pad(x[0], {{0, 0}, {0, 0}, {1, 2}}, "edge"))},
    {"pad circular", RENSA_FUNCTION(F::pad(x[0], {{0, 0}, {0, 0}, {1, 2}}, "wrap"))},
    {"diagonal", RENSA_FUNCTION(x[0].diagonal())},
    {"diagonal offset", RENSA_FUNCTION(F::diagonal(x[0], -1, 1, 2))},
    {"where", RENSA_FUNCTION(F::where(x[0], x[1], x[2]))},
    {"masked_fill", RENSA_FUNCTION(F::masked_fill(x[0], x[1].array().astype(bool_), -1.5))},
    {"cast", RENSA_FUNCTION(F::cast(F::cast(x[0], float64), x[0].dtype()))},
    {"copy", RENSA_FUNCTION(F::copy(x[0], x[0].device()))},
    // indexing
    {"get_item", RENSA_FUNCTION(x[0][1])},
    {"get_item slices",
     RENSA_FUNCTION(F::get_item(x[0], {Slice(), newaxis, Slice(none, none, -2)}))},
    {"get_item ellipsis", RENSA_FUNCTION(x[0][Entries{ellipsis, -1}])},
    {"get_item rows", RENSA_FUNCTION(x[0][x[1].array()])},
    {"get_item rows and columns", RENSA_FUNCTION(F::get_item(x[0], {x[1].array(), x[2].array()}))},
    {"get_item mixed", RENSA_FUNCTION(F::get_item(x[0], {Slice(), x[1].array(), Slice(1, 3)}))},
    {"get_item mask",
     RENSA_FUNCTION(F::get_item(x[0], xp::array({true, false, true}, x[0].device()))), 2, false},
    {"scatter_add", RENSA_FUNCTION(F::scatter_add(x[0], x[2].array(), x[1]))},
    {"scatter_add slice",
     RENSA_FUNCTION(F::scatter_add(x[0], {Index(Slice()), Index(Slice(0, 2))}, x[1]))},
    {"gather", RENSA_FUNCTION(F::gather(x[0], 1, x[1].array()))},
    {"gather axis=0", RENSA_FUNCTION(F::gather(x[0], 0, x[1].array()))},
    {"index_select", RENSA_FUNCTION(F::index_select(x[0], 1, x[1].array()))},
    {"select_item", RENSA_FUNCTION(F::select_item(x[0], x[1]))},
    {"permutate", RENSA_FUNCTION(F::permutate(x[0], x[1].array()))},
    {"permutate inv", RENSA_FUNCTION(F::permutate(x[0], x[1].array(), 1, true))},
    {"topk", [](const Variables& x) { return of_topk(F::topk(x[0], 2)); }},
    {"topk least axis=0", [](const Variables& x) { return of_topk(F::topk(x[0], 2, 0, false)); }},
    {"one_hot", RENSA_FUNCTION(F::one_hot(x[0], 4, int64))},
    // joining
    {"concat", RENSA_FUNCTION(F::concat(x))},
    {"concat axis=0", RENSA_FUNCTION(F::concat(x, 0))},
    {"stack", RENSA_FUNCTION(F::stack(x))},
    {"stack axis=-1", RENSA_FUNCTION(F::stack(x, -1))},
    {"hstack", RENSA_FUNCTION(F::hstack(x))},
    {"hstack of vectors", RENSA_FUNCTION(F::hstack(x))},
    {"vstack", RENSA_FUNCTION(F::vstack(x))},
    {"vstack of vectors", RENSA_FUNCTION(F::vstack(x))},
    {"dstack", RENSA_FUNCTION(F::dstack(x))},
    {"dstack of vectors", RENSA_FUNCTION(F::dstack(x))},
    {"split_axis", [](const Variables& x) { return F::split_axis(x[0], 2, 1); }},
    {"split_axis at", [](const Variables& x) { return F::split_axis(x[0], {1, 3}, 1); }},
    {"separate", [](const Variables& x) { return F::separate(x[0]); }},
    {"separate axis=1", [](const Variables& x) { return F::separate(x[0], 1); }},
    {"pad_sequence", RENSA_FUNCTION(F::pad_sequence(x))},
    {"pad_sequence length padding", RENSA_FUNCTION(F::pad_sequence(x, 5, -1))},
    {"transpose_sequence", [](const Variables& x) { return F::transpose_sequence(x); }},
    // images
    RENSA_RESIZE("bilinear", true, "True (3, 7)", 3, 7),
    RENSA_RESIZE("bilinear", true, "True (8, 2)", 8, 2),
    RENSA_RESIZE("bilinear", true, "True (1, 1)", 1, 1),
    RENSA_RESIZE("bilinear", false, "False (3, 7)", 3, 7),
    RENSA_RESIZE("bilinear", false, "False (8, 2)", 8, 2),
    RENSA_RESIZE("bilinear", false, "False (1, 1)", 1, 1),
    RENSA_RESIZE("nearest", true, "True (3, 7)", 3, 7),
    RENSA_RESIZE("nearest", true, "True (8, 2)", 8, 2),
    RENSA_RESIZE("nearest", true, "True (1, 1)", 1, 1),
    RENSA_RESIZE("nearest", false, "False (3, 7)", 3, 7),
    RENSA_RESIZE("nearest", false, "False (8, 2)", 8, 2),
    RENSA_RESIZE("nearest", false, "False (1, 1)", 1, 1),
    {"spatial_transformer_grid", RENSA_FUNCTION(F::spatial_transformer_grid(x[0], {3, 4}))},
    {"spatial_transformer_sampler", RENSA_FUNCTION(F::spatial_transformer_sampler(x[0], x[1]))},
    {"spatial_transformer_sampler outside",
     RENSA_FUNCTION(F::spatial_transformer_sampler(x[0], x[1]))},
    {"depth2space", RENSA_FUNCTION(F::depth2space(x[0], 2))},
    {"space2depth", RENSA_FUNCTION(F::space2depth(x[0], 2))},
    {"im2col", RENSA_FUNCTION(F::im2col(x[0], 3))},
    {"im2col options",
     RENSA_FUNCTION(F::im2col(
         x[0], {3, 2}, {.stride = {2, 1}, .pad = {1, 0}, .cover_all = true, .dilate = {1, 2}}))},
};
const testing::FunctionTable table("array", rows);

}  // namespace
}  // namespace rensa
