// Decoding JPEG. What libjpeg finds wrong comes back as an exception once its frames are gone.
#include "rensa/data/images/jpeg.h"

#include <cstdio>  // libjpeg's header uses FILE

#include <jpeglib.h>
// The numbers of its messages depend on the version, which the header above says.
#include <jerror.h>

#include <algorithm>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/core/host_memory.h"
#include "rensa/data/images/cpu_pixel_kernels.h"
#include "rensa/data/images/pixels.h"

namespace rensa::images {

namespace {

struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg gives its address back
  LibraryCalls calls;
};

LibraryCalls& calls_of(j_common_ptr info) { return reinterpret_cast<Errors*>(info->err)->calls; }

extern "C" {
void rensa_jpeg_error(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  calls_of(info).leave(message);
}
void rensa_jpeg_message(j_common_ptr, int) {}
void rensa_jpeg_start(j_decompress_ptr) {}
boolean rensa_jpeg_fill(j_decompress_ptr info) {
  info->err->msg_code = JERR_INPUT_EOF;
  calls_of(reinterpret_cast<j_common_ptr>(info)).leave("the file ends too early");
}
void rensa_jpeg_skip(j_decompress_ptr info, long size) {
  if (size <= 0) return;
  if (static_cast<std::size_t>(size) > info->src->bytes_in_buffer) rensa_jpeg_fill(info);
  info->src->next_input_byte += size;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(size);
}
// Each scan of a progressive picture goes over all of it, and costs a file few bytes.
void rensa_jpeg_progress(j_common_ptr info) {
  constexpr int kMostScans = 500;
  if (info->is_decompressor &&
      reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) {
    calls_of(info).leave("it has more than 500 scans");
  }
}
}

/// One picture.
class JpegDecoder {
 public:
  JpegDecoder(std::string_view bytes, const std::string& name) : name_(name) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = rensa_jpeg_error;
    errors_.manager.emit_message = rensa_jpeg_message;
    progress_.progress_monitor = rensa_jpeg_progress;
    source_.init_source = source_.term_source = rensa_jpeg_start;
    source_.fill_input_buffer = rensa_jpeg_fill;
    source_.skip_input_data = rensa_jpeg_skip;
    source_.resync_to_restart = jpeg_resync_to_restart;
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
    source_.bytes_in_buffer = bytes.size();
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  Array decode(const ReadImageOptions& options) {
    run([this] {
      jpeg_create_decompress(&info_);
      info_.src = &source_;
      info_.progress = &progress_;
      jpeg_read_header(&info_, TRUE);
    });
    choose_scale(options.min_size);
    choose_colours(options.mode);
    run([this] { jpeg_calc_output_dimensions(&info_); });
    std::int64_t height = info_.output_height, width = info_.output_width;
    bool cmyk = info_.out_color_space == JCS_CMYK;
    const Extents extents{info_.out_color_space == JCS_GRAYSCALE ? 1 : 3, height, width};
    check_pixels(extents, name_, options);
    // A progressive picture is held as coefficients, of all its pixels.
    check_pixels({extents.channels, info_.image_height, info_.image_width}, name_, options);

    Array out = xp::empty({extents.channels, height, width}, uint8, cpu());
    auto row = host_vector<std::uint8_t>("decode_image", 4 * width);
    auto* planes = static_cast<std::uint8_t*>(out.data());
    run([this] { jpeg_start_decompress(&info_); });
    for (std::int64_t y = 0; y < height; ++y) {
      std::uint8_t* pixels = row.data();
      run([this, pixels] {
        JSAMPROW rows[1] = {pixels};
        jpeg_read_scanlines(&info_, rows, 1);
      });
      if (cmyk) rgb_of_cmyk(pixels, width);
      if (extents.channels == 3) {
        std::uint8_t* row_of_red = planes + y * width;
        host::pixel_kernels().split(width, pixels, row_of_red, row_of_red + height * width,
                                    row_of_red + 2 * height * width);
      } else {
        write_row(pixels, extents, y, planes);
      }
    }
    return out;
  }

 private:
  template <class F> void run(F f) {
    if (errors_.calls.run(f)) return;
    if (errors_.manager.msg_code == JERR_OUT_OF_MEMORY) throw_out_of_host_memory("decode_image");
    throw_damaged(name_, "JPEG", errors_.calls.message());
  }

  /// The least of 1/8, 1/4, 1/2 and 1 that leaves both sides `min_size`.
  void choose_scale(std::int64_t min_size) {
    std::int64_t side = std::min(info_.image_height, info_.image_width);
    info_.scale_num = 1;
    info_.scale_denom = 8;
    while (info_.scale_denom > 1 &&
           (min_size <= 0 || (side + info_.scale_denom - 1) / info_.scale_denom < min_size)) {
      info_.scale_denom /= 2;
    }
  }

  void choose_colours(Mode mode) {
    switch (info_.num_components) {
      case 1: info_.out_color_space = JCS_GRAYSCALE; break;
      case 3: info_.out_color_space = mode == Mode::gray ? JCS_GRAYSCALE : JCS_RGB; break;
      case 4: info_.out_color_space = JCS_CMYK; break;
      default: throw_damaged(name_, "JPEG", "it has neither 1, 3 nor 4 components");
    }
  }

  /// As PIL converts, which takes the inks to be inverted, as Adobe's programs write them.
  static void rgb_of_cmyk(std::uint8_t* pixels, std::int64_t width) {
    for (std::int64_t x = 0; x < width; ++x) {
      const std::uint8_t* inverted = pixels + 4 * x;
      const int light = inverted[3];  // what black leaves
      const int inks[3] = {255 - inverted[0], 255 - inverted[1], 255 - inverted[2]};
      for (int c = 0; c < 3; ++c) {
        int product = inks[c] * light + 128;
        pixels[3 * x + c] =
            static_cast<std::uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
      }
    }
  }

  const std::string& name_;
  Errors errors_;
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
};

}  // namespace

Array decode_jpeg(std::string_view bytes, const std::string& name,
                  const ReadImageOptions& options) {
  return JpegDecoder(bytes, name).decode(options);
}

}  // namespace rensa::images
