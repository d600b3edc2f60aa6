// What becomes of an index that is out of range.
#pragma once

namespace rensa {

/// Of an index outside of [-extent, extent): an IndexError (on a GPU at the next wait); the
/// remainder by the extent; or the nearest of 0 and extent - 1, negative ones not counting from the
/// end then. `strict` is `raise` for which negative ones are out of range too, as labels are.
enum class IndexMode : unsigned char { raise, wrap, clip, strict };

}  // namespace rensa
