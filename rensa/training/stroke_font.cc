// The letters, drawn on a grid.
#include "rensa/training/stroke_font.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace rensa {

namespace {

// The letters from ' ' to '~'. A point is a digit, to the right, and a letter, upwards: c is the
// base line, g the height of small letters, i that of capitals. A space begins a new stroke.
constexpr const char* kLetters[] = {
    "",                                  // space
    "0i0e 0c0c",                         // !
    "0i0g 2i2g",                         // "
    "1c1i 3c3i 0e4e 0g4g",               // #
    "4h3i1i0h0g1f3f4e4d3c1c0d 2b2j",     // $
    "0c4i 0i1i1h0h0i 3d4d4c3c3d",        // %
    "4c0g0h1i2i3h3g0e0d1c2c4e",          // &
    "0i0g",                              // '
    "1j0i0c1b",                          // (
    "0j1i1c0b",                          // )
    "2d2h 0e4g 0g4e",                    // *
    "2d2h 0f4f",                         // +
    "1d1c0b",                            // ,
    "0f3f",                              // -
    "0c0c",                              // .
    "0c3i",                              // /
    "1c3c4d4h3i1i0h0d1c",                // 0
    "0h2i2c 0c4c",                       // 1
    "0h1i3i4h4g0c4c",                    // 2
    "0h1i3i4h4g3f4e4d3c1c0d 2f3f",       // 3
    "3c3i0e4e",                          // 4
    "4i0i0f1g3g4f4d3c1c0d",              // 5
    "4h3i1i0h0d1c3c4d4e3f1f0e",          // 6
    "0i4i1c",                            // 7
    "1f0g0h1i3i4h4g3f1f0e0d1c3c4d4e3f",  // 8
    "0d1c3c4d4h3i1i0h0g1f3f4g",          // 9
    "0g0g 0c0c",                         // :
    "1g1g 1d1c0b",                       // ;
    "3h0f3d",                            // <
    "0g4g 0e4e",                         // =
    "0h3f0d",                            // >
    "0h1i3i4h4g2f2e 2c2c",               // ?
    "3e2e1f1g2h3g3e4e4h3i1i0h0d1c4c",    // @
    "0c2i4c 1e3e",                       // A
    "0c0i3i4h4g3f0f 3f4e4d3c0c",         // B
    "4h3i1i0h0d1c3c4d",                  // C
    "0c0i2i4g4e2c0c",                    // D
    "4c0c0i4i 0f3f",                     // E
    "0c0i4i 0f3f",                       // F
    "4h3i1i0h0d1c3c4d4f2f",              // G
    "0c0i 4c4i 0f4f",                    // H
    "0c0i",                              // I
    "0d1c2c3d3i",                        // J
    "0c0i 4i0e 1f4c",                    // K
    "0i0c4c",                            // L
    "0c0i2e4i4c",                        // M
    "0c0i4c4i",                          // N
    "1c3c4d4h3i1i0h0d1c",                // O
    "0c0i3i4h4g3f0f",                    // P
    "1c3c4d4h3i1i0h0d1c 2e4c",           // Q
    "0c0i3i4h4g3f0f 2f4c",               // R
    "4h3i1i0h0g1f3f4e4d3c1c0d",          // S
    "0i4i 2i2c",                         // T
    "0i0d1c3c4d4i",                      // U
    "0i2c4i",                            // V
    "0i1c2g3c4i",                        // W
    "0c4i 0i4c",                         // X
    "0i2f4i 2f2c",                       // Y
    "0i4i0c4c",                          // Z
    "1j0j0b1b",                          // [
    "0i3c",                              // backslash
    "0j1j1b0b",                          // ]
    "0g2i4g",                            // ^
    "0b4b",                              // _
    "0i1h",                              // `
    "0f1g2g3f3c 3d2c1c0d1e3e",           // a
    "0i0c 0d1c2c3d3f2g1g0f",             // b
    "3f2g1g0f0d1c2c3d",                  // c
    "3i3c 3d2c1c0d0f1g2g3f",             // d
    "0e3e3f2g1g0f0d1c2c3d",              // e
    "3i2i1h1c 0g2g",                     // f
    "3g3b2a1a0b 3d2c1c0d0f1g2g3f",       // g
    "0i0c 0f1g2g3f3c",                   // h
    "0g0c 0i0i",                         // i
    "1g1b0a 1i1i",                       // j
    "0i0c 0d3g 1e3c",                    // k
    "0i0c",                              // l
    "0g0c 0f1g2f2c 2f3g4f4c",            // m
    "0g0c 0f1g2g3f3c",                   // n
    "1c2c3d3f2g1g0f0d1c",                // o
    "0g0a 0d1c2c3d3f2g1g0f",             // p
    "3g3a 3d2c1c0d0f1g2g3f",             // q
    "0g0c 0f1g2g",                       // r
    "3f2g1g0f1e2e3d2c1c0d",              // s
    "1i1d2c 0g2g",                       // t
    "0g0d1c2c3d 3g3c",                   // u
    "0g2c4g",                            // v
    "0g1c2f3c4g",                        // w
    "0c3g 0g3c",                         // x
    "0g2c 4g1a0a",                       // y
    "0g3g0c3c",                          // z
    "2j1i1g0f1e1c2b",                    // {
    "0j0b",                              // |
    "0j1i1g2f1e1c0b",                    // }
    "0f1g3e4f",                          // ~
};
static_assert(std::size(kLetters) == '~' - ' ' + 1);

constexpr double kAcross = 0.105, kUp = 0.12;  // of the size: a step of the grid
constexpr int kBetween = 2, kSpace = 4;        // steps

}  // namespace

StrokedText stroked(std::string_view words, double size) {
  StrokedText text;
  int begin = 0;  // of a letter, in steps
  for (char c : words) {
    auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // goes on with what is no ASCII
    std::string_view letter = kLetters[byte >= ' ' && byte <= '~' ? byte - ' ' : '?' - ' '];
    int width = letter.empty() ? kSpace - kBetween : 0;
    bool is_new = true;
    for (std::size_t i = 0; i < letter.size(); i += 2) {
      if (letter[i] == ' ') is_new = true, ++i;
      if (is_new) text.strokes.emplace_back();
      is_new = false;
      int across = letter[i] - '0';
      width = std::max(width, across);
      text.strokes.back().emplace_back((begin + across) * kAcross * size,
                                       (letter[i + 1] - 'c') * kUp * size);
    }
    begin += width + kBetween;
  }
  text.width = std::max(0, begin - kBetween) * kAcross * size;
  return text;
}

}  // namespace rensa
