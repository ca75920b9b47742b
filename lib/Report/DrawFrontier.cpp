// Axes, a line of steps, points and words.

#include "DrawFrontier.h"

#include "SvgDrawing.h"
#include "lib/Names/Bytes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace accel;
using namespace accel::report;
using llvm::format;
using llvm::StringRef;

namespace {
constexpr double kMargin = 24, kHead = 64, kLabel = 64, kPlot = 640,
                 kHeight = 320, kFoot = 56, kTicks = 5;

/// A range of numbers with round ends, on a length of the picture.
struct Axis {
  double low, high, step, from, length;

  Axis(double low, double high, double from, double length)
      : low(low), high(high), from(from), length(length) {
    double span = std::max(high - low, std::abs(high) * 1e-3 + 1e-9);
    double power = std::pow(10, std::floor(std::log10(span / kTicks)));
    for (double digit : {1.0, 2.0, 5.0, 10.0}) {
      step = digit * power;
      if (span / step <= kTicks)
        break;
    }
    this->low = std::floor(low / step) * step;
    this->high = std::ceil(high / step) * step;
    if (this->high <= this->low)
      this->high = this->low + step;
  }
  double place(double value) const {
    return from + length * (value - low) / (high - low);
  }
  int countTicks() const { return int(std::lround((high - low) / step)); }
};
} // namespace

/// The unit in which bytes are said, and its name.
static std::pair<double, const char *> chooseUnit(double most) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double unit = 1;
  size_t index = 0;
  for (; most / unit >= 1024 && index + 1 < std::size(kUnits); ++index)
    unit *= 1024;
  return {unit, kUnits[index]};
}

static void writeAxes(llvm::raw_ostream &out, const Axis &x, const Axis &y,
                      double bottom, StringRef unit) {
  for (int tick = 0; tick <= y.countTicks(); ++tick) {
    double value = y.low + tick * y.step, at = y.place(value);
    out << format("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>\n", x.from, at,
                  x.from + x.length);
    writeSvgText(out, x.from - 8, at + 4, "small", "end",
                 llvm::formatv("{0:f2}", value).str());
  }
  for (int tick = 0; tick <= x.countTicks(); ++tick) {
    double value = x.low + tick * x.step;
    writeSvgText(out, x.place(value), bottom + 18, "small", "middle",
                 llvm::formatv("{0}", llvm::format("%g", value)).str());
  }
  out << format("<path class=\"axis\" fill=\"none\" d=\"M%.1f "
                "%.1fV%.1fH%.1f\"/>\n",
                x.from, y.from + y.length, bottom, x.from + x.length);
  writeSvgText(out, x.from + x.length, bottom + 38, "small", "end",
               ("peak of a rank, " + unit).str());
  writeSvgText(out, x.from - kLabel + 8, kHead - 16, "small", "start",
               "time of a step, times that without recomputation");
}

void report::drawFrontier(llvm::ArrayRef<cost::FrontierPoint> points,
                          llvm::raw_ostream &os) {
  double fewest = points.front().bytes, most = fewest, slowest = 1;
  for (const cost::FrontierPoint &point : points) {
    fewest = std::min(fewest, double(point.bytes));
    most = std::max(most, double(point.bytes));
    slowest = std::max(slowest, point.time);
  }
  auto [unit, name] = chooseUnit(most);
  double left = kMargin + kLabel, bottom = kHead + kHeight;
  Axis x(fewest / unit, most / unit, left, kPlot);
  Axis y(1, slowest, bottom, -kHeight);
  beginSvg(os, left + kPlot + kMargin, bottom + kFoot, [&](bool dark) {
    const char *blue = dark ? "#6fb1ff" : "#1f6fd0";
    os << ".grid { stroke: " << (dark ? "#262c36" : "#eceff3")
       << " }\n.line { stroke: " << blue << " }\n.point { fill: " << blue
       << " }\n";
  });
  writeSvgText(os, kMargin, kMargin, "title", "start",
               "what a step takes with less memory (--memory-budget)");
  writeAxes(os, x, y, bottom, name);
  os << "<path class=\"line\" fill=\"none\" stroke-width=\"2\" d=\"";
  for (auto [index, point] : llvm::enumerate(points))
    os << (index ? "L" : "M")
       << format("%.1f %.1f", x.place(double(point.bytes) / unit),
                 y.place(point.time));
  os << "\"/>\n";
  for (const cost::FrontierPoint &point : points) {
    os << format("<circle class=\"point\" r=\"4\" cx=\"%.1f\" cy=\"%.1f\">",
                 x.place(double(point.bytes) / unit), y.place(point.time))
       << "<title>";
    std::string text =
        llvm::formatv("{0}, {1:f3} times: {2}", formatBytes(point.bytes),
                      point.time, point.what);
    if (!point.decided.empty())
      text += "; " + point.decided;
    llvm::printHTMLEscaped(text, os);
    os << "</title></circle>\n";
  }
  endSvg(os);
}
