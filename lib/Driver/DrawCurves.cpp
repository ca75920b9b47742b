// The picture of `--report=scheduler`.

#include "lib/Driver/SchedulerReport.h"

#include "lib/Report/SvgDrawing.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace accel::driver;
using namespace accel::report;
using llvm::format;

namespace {
constexpr double kMargin = 24, kHead = 48, kLabel = 88, kPlot = 720,
                 kHeight = 180, kGap = 56;
constexpr const char *kColours[][2] = {{"#1f6fd0", "#6fb1ff"},
                                       {"#c96a0a", "#ffb877"},
                                       {"#14705f", "#8fdccb"},
                                       {"#8a3ab9", "#d3a4f0"}};

/// Curves of one hyperparameter: of all parameters, and of groups.
using Frame = SmallVector<const Curves::Curve *>;
} // namespace

static std::string spellTick(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << format("%.4g", number);
  return text;
}

static void writeFrame(llvm::raw_ostream &out, const Curves &curves,
                       const Frame &frame, double top) {
  double low = frame.front()->values.front(), high = low;
  for (const Curves::Curve *curve : frame)
    for (double value : curve->values) {
      low = std::min(low, value);
      high = std::max(high, value);
    }
  // A curve that stays is a line in the middle.
  double range = high > low ? high - low : 1;
  double middle = high > low ? 0 : 0.5;
  double left = kMargin + kLabel, bottom = top + kHeight;
  out << format("<path class=\"axis\" fill=\"none\" d=\"M%.1f %.1fV%.1fH%.1f"
                "\"/>\n",
                left, top, bottom, left + kPlot);
  writeSvgText(out, left - 6, top + 5, "small", "end", spellTick(high));
  if (high > low)
    writeSvgText(out, left - 6, bottom, "small", "end", spellTick(low));
  writeSvgText(out, left, bottom + 16, "small", "middle", "1");
  writeSvgText(out, left + kPlot, bottom + 16, "small", "middle",
               std::to_string(curves.steps));
  for (auto [index, curve] : llvm::enumerate(frame)) {
    std::string colour = std::to_string(index % std::size(kColours));
    writeSvgText(out, left + kPlot, top - 8 + 16 * double(index),
                 ("t" + colour).c_str(), "end", curve->name);
    out << "<path class=\"c" << colour
        << "\" fill=\"none\" stroke-width=\"2\" d=\"";
    for (auto [place, value] : llvm::enumerate(curve->values)) {
      double steps = double(std::max<int64_t>(curves.steps - 1, 1));
      double x = left + kPlot * double(curves.at[place] - 1) / steps;
      double y = bottom - kHeight * ((value - low) / range + middle);
      out << (place == 0 ? "M" : "L") << format("%.1f %.1f", x, y);
    }
    out << "\"/>\n";
  }
}

void accel::driver::writeCurvesSvg(llvm::raw_ostream &out,
                                   const Curves &curves) {
  llvm::MapVector<StringRef, Frame> frames;
  for (const Curves::Curve &curve : curves.curves)
    frames[StringRef(curve.name).split(" of ").first].push_back(&curve);
  double width = 2 * kMargin + kLabel + kPlot;
  double height = kMargin + kHead + double(frames.size()) * (kHeight + kGap);
  beginSvg(out, width, height, [&](bool dark) {
    for (auto [index, colours] : llvm::enumerate(kColours))
      out << ".c" << index << " { stroke: " << colours[dark] << " }\n.t"
          << index << " { fill: " << colours[dark] << " }\n";
  });
  writeSvgText(out, kMargin, kMargin + 8, "title", "start",
               "schedule " + curves.title + ", steps 1 to " +
                   std::to_string(curves.steps));
  double top = kMargin + kHead;
  for (auto &[name, frame] : frames) {
    writeFrame(out, curves, frame, top);
    top += kHeight + kGap;
  }
  endSvg(out);
}
