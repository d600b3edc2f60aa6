// Decoding PNG. What libpng finds wrong comes back as an exception once its frames are gone.
#include "rensa/data/images/png.h"

#include <png.h>

#include <bit>
#include <cstring>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/images/pixels.h"

namespace rensa::images {

namespace {

/// One picture.
class PngDecoder {
 public:
  PngDecoder(std::string_view bytes, const std::string& name) : name_(name), left_(bytes) {}
  ~PngDecoder() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  Array decode(const ReadImageOptions& options) {
    run([this] {
      png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &calls_, on_error, on_warning);
      if (png_) info_ = png_create_info_struct(png_);
    });
    if (!info_) throw_out_of_host_memory("decode_image");
    run([this] {
      png_set_read_fn(png_, this, read);
      // Texts, profiles and the like are not wanted, nor what they unpack to.
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // check_pixels() says what is too large
      png_read_info(png_, info_);
    });
    std::int64_t height = png_get_image_height(png_, info_);
    std::int64_t width = png_get_image_width(png_, info_);
    check_pixels({1, height, width}, name_, options);
    bool deep = png_get_bit_depth(png_, info_) == 16 &&
                png_get_color_type(png_, info_) == PNG_COLOR_TYPE_GRAY &&
                options.mode == Mode::unchanged;
    run([&] {
      choose_pixels(deep, options.mode);
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    const Extents extents{png_get_channels(png_, info_), height, width};
    return deep ? pixels<std::uint16_t>(extents) : pixels<std::uint8_t>(extents);
  }

 private:
  template <class F> void run(F f) {
    if (!calls_.run(f)) throw_damaged(name_, "PNG", calls_.message());
  }

  static void on_error(png_structp png, png_const_charp message) {
    static_cast<LibraryCalls*>(png_get_error_ptr(png))->leave(message);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep out, std::size_t size) {
    auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (size > decoder->left_.size()) decoder->calls_.leave("the file ends too early");
    std::memcpy(out, decoder->left_.data(), size);
    decoder->left_.remove_prefix(size);
  }

  /// 8 bits, or 16 that stay, and the channels that the mode asks for.
  void choose_pixels(bool deep, Mode mode) {
    int kind = png_get_color_type(png_, info_);
    if (kind == PNG_COLOR_TYPE_PALETTE) {
      png_set_palette_to_rgb(png_);
    } else if (kind == PNG_COLOR_TYPE_GRAY && !deep) {
      png_set_expand_gray_1_2_4_to_8(png_);
    }
    if (!deep) png_set_strip_16(png_);
    if (deep && std::endian::native == std::endian::little) png_set_swap(png_);
    // A palette's colours may come with an alpha channel, too.
    if (mode != Mode::unchanged || kind == PNG_COLOR_TYPE_PALETTE) png_set_strip_alpha(png_);
  }

  template <class T> Array pixels(const Extents& extents) {
    auto [channels, height, width] = extents;
    const std::int64_t row = width * channels;
    if (static_cast<std::int64_t>(png_get_rowbytes(png_, info_)) !=
        row * static_cast<std::int64_t>(sizeof(T))) {
      throw_damaged(name_, "PNG", "its rows have another size than its header says");
    }
    Array out =
        xp::empty({channels, height, width}, sizeof(T) == 1 ? Dtype::uint8 : Dtype::uint16, cpu());
    // Passes of an interlaced picture fill up what the ones before left.
    auto all = host_vector<T>("decode_image", passes_ > 1 ? row * height : row);
    for (int pass = 0; pass < passes_; ++pass) {
      for (std::int64_t y = 0; y < height; ++y) {
        T* line = all.data() + (passes_ > 1 ? y * row : 0);
        run([this, line] { png_read_row(png_, reinterpret_cast<png_bytep>(line), nullptr); });
        if (pass == passes_ - 1) write_row(line, extents, y, static_cast<T*>(out.data()));
      }
    }
    run([this] { png_read_end(png_, nullptr); });  // the sums of what was read
    return out;
  }

  const std::string& name_;
  std::string_view left_;
  LibraryCalls calls_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
};

}  // namespace

Array decode_png(std::string_view bytes, const std::string& name, const ReadImageOptions& options) {
  return PngDecoder(bytes, name).decode(options);
}

}  // namespace rensa::images
