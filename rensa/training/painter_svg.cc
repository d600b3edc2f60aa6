// Painting as SVG.
#include <fmt/format.h>

#include "rensa/core/xml.h"
#include "rensa/training/painter.h"

namespace rensa {

namespace {

constexpr double kFont = 12;

class SvgPainter final : public Painter {
 public:
  SvgPainter(int width, int height) { head({}, width, height); }

  void begin_part(int x, int y, int width, int height) override {
    head(fmt::format(" x=\"{}\" y=\"{}\"", x, y), width, height);
  }
  void end_part() override { out_ += "</svg>\n"; }

  void text(double x, double y, std::string_view words, const TextStyle& style) override {
    constexpr const char* anchors[] = {"start", "middle", "end"};
    std::string more = style.bold ? " font-weight=\"bold\"" : "";
    if (style.upward) more += fmt::format(" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y);
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y,
                        anchors[static_cast<int>(style.anchor)], more,
                        detail::xml_escaped(std::string(words)));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour, double width) override {
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"{}\"/>\n",
        x1, y1, x2, y2, colour, width);
  }
  void path(const std::vector<Points>& runs, const char* colour, double width) override {
    std::string path;
    for (const Points& run : runs) {
      for (std::size_t i = 0; i < run.size(); ++i) {
        path += fmt::format("{}{:.2f} {:.2f}", i == 0 ? "M" : "L", run[i].first, run[i].second);
      }
    }
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", path,
                        colour, width);
  }
  void circle(double x, double y, double radius, const char* colour) override {
    out_ += fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\" fill=\"{}\"/>\n", x, y,
                        radius, colour);
  }
  void box(double x, double y, double width, double height, double opacity,
           const char* stroke) override {
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"white\" "
        "fill-opacity=\"{}\" stroke=\"{}\"/>\n",
        x, y, width, height, opacity, stroke);
  }
  std::string str() override { return out_ + "</svg>\n"; }

 private:
  void head(const std::string& place, int width, int height) {
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\"{3} width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
        "{0} {1}\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
        width, height, kFont, place);
  }
  std::string out_;
};

}  // namespace

std::unique_ptr<Painter> svg_painter(int width, int height) {
  return std::make_unique<SvgPainter>(width, height);
}

}  // namespace rensa
