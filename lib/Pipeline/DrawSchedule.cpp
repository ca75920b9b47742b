// Boxes, lines and words of a schedule's picture.

#include "DrawSchedule.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace accel::pipeline;
using llvm::format;

namespace {

struct Look {
  TaskKind kind;
  const char *style, *name, *light, *dark;
};
constexpr Look kLooks[] = {
    {TaskKind::Forward, "f", "forward", "#9ec9f5", "#1f5fa8"},
    {TaskKind::Backward, "b", "backward", "#ffb877", "#a85a10"},
    {TaskKind::BackwardInput, "i", "gradient of the input", "#ffd9a8",
     "#7d5524"},
    {TaskKind::BackwardWeight, "w", "gradient of the weights", "#8fdccb",
     "#14705f"}};

constexpr double kMargin = 24, kHead = 92, kLabel = 72, kPlot = 1120,
                 kFigures = 168, kFoot = 62, kDigit = 7.5;

/// A colour on its way to another, both as "#rrggbb".
std::string mix(llvm::StringRef from, llvm::StringRef to, double part) {
  std::string mixed = "#";
  for (size_t at : {1, 3, 5}) {
    unsigned a = 0, b = 0;
    from.substr(at, 2).getAsInteger(16, a);
    to.substr(at, 2).getAsInteger(16, b);
    llvm::raw_string_ostream(mixed) << format(
        "%02x", static_cast<unsigned>(std::lround(a + part * (double(b) - a))));
  }
  return mixed;
}

/// The rules of one colour scheme, for so many chunks of a rank.
void writeStyle(llvm::raw_ostream &out, bool dark, int64_t chunks) {
  const char *ink = dark ? "#e6edf3" : "#1f2328";
  const char *grey = dark ? "#9ea7b3" : "#57606a";
  const char *ground = dark ? "#161b22" : "#ffffff";
  out << ".ground { fill: " << ground
      << " }\n.idle { fill: " << (dark ? "#262c36" : "#eceff3")
      << " }\ntext { fill: " << ink << " }\n.small { fill: " << grey
      << " }\n.tick { stroke: " << grey << " }\n.box { stroke: " << ground
      << " }\n";
  for (const Look &look : kLooks)
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      out << "." << look.style << chunk << " { fill: "
          << mix(dark ? look.dark : look.light, ground,
                 chunk ? 0.55 * chunk / (chunks - 1) : 0)
          << " }\n";
  // Transfers have the colour of the tasks that wait for them, but stronger.
  out << ".value { stroke: " << (dark ? "#6fb1ff" : "#1f6fd0")
      << " }\n.gradient { stroke: " << (dark ? "#ffb877" : "#c96a0a") << " }\n";
}

/// "12", "0.25", "1.5e-05".
std::string shortly(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << format("%.4g", number);
  return text;
}

class SvgWriter {
public:
  SvgWriter(llvm::raw_ostream &out, const DrawnStep &step)
      : out(out), step(step), placement(step.schedule.placement) {
    row = placement.ranks > 8 ? 20 : 30;
    gap = placement.ranks > 8 ? 8 : 14;
    height = kHead + placement.ranks * (row + gap) + kFoot;
    positions.resize(placement.countChunks());
    std::vector<int64_t> chunks(placement.ranks);
    for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
      positions[chunk] = chunks[placement.rankOfChunk[chunk]]++;
    for (int64_t count : chunks)
      mostChunks = std::max(mostChunks, count);
  }

  void write() {
    double width = kMargin + kLabel + kPlot + kFigures + kMargin;
    out << format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g "
                  "%g\" width=\"%g\" height=\"%g\" role=\"img\">\n",
                  width, height, width, height)
        << "<title>";
    llvm::printHTMLEscaped(step.title, out);
    out << "</title>\n<style>\n"
        << "text { font: 14px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif "
           "}\n.name { font: bold 15px ui-monospace, Menlo, 'DejaVu Sans "
           "Mono', monospace }\n.small, .label { font-size: 12px }\n.box { "
           "stroke-width: 1 }\n.tick, .value, .gradient { stroke-width: 1; "
           "opacity: 0.7 }\n";
    writeStyle(out, /*dark=*/false, mostChunks);
    out << "@media (prefers-color-scheme: dark) {\n";
    writeStyle(out, /*dark=*/true, mostChunks);
    out << "}\n</style>\n"
        << format("<rect class=\"ground\" width=\"%g\" height=\"%g\" "
                  "rx=\"10\"/>\n",
                  width, height);
    writeHead();
    writeRows();
    for (const TimedTransfer &transfer : step.simulation.transfers)
      writeTransfer(transfer);
    for (int64_t rank = 0; rank < placement.ranks; ++rank)
      for (size_t i = 0; i < step.schedule.ranks[rank].size(); ++i)
        writeTask(rank, step.schedule.ranks[rank][i],
                  step.simulation.tasks[rank][i]);
    writeTicks();
    out << "</svg>\n";
  }

private:
  double x(double seconds) const {
    return kMargin + kLabel +
           (step.simulation.seconds > 0
                ? kPlot * seconds / step.simulation.seconds
                : 0);
  }
  double y(int64_t rank) const { return kHead + rank * (row + gap); }

  void text(double atX, double atY, llvm::StringRef style,
            llvm::StringRef words, llvm::StringRef anchor = "start") {
    out << "<text class=\"" << style << "\""
        << format(" x=\"%.2f\" y=\"%.2f\"", atX, atY) << " text-anchor=\""
        << anchor << "\">";
    llvm::printHTMLEscaped(words, out);
    out << "</text>\n";
  }

  void writeHead() {
    const Simulation &got = step.simulation;
    std::string size = std::to_string(placement.ranks) + " ranks, " +
                       std::to_string(step.schedule.microBatches) +
                       " micro-batches";
    std::string bubble;
    llvm::raw_string_ostream(bubble)
        << "step " << shortly(got.seconds) << " " << step.unit << ", "
        << format("%.1f", 100 * got.getBubbleFraction())
        << " % of it idle; bubble " << shortly(got.getLongestIdle()) << " "
        << step.unit;
    text(kMargin, 34, "name", step.title);
    text(kMargin + 10 * (step.title.size() + 2), 34, "", size);
    text(kMargin + kLabel + kPlot, 34, "", bubble, "end");
    double at = kMargin + kLabel;
    auto legend = [&](llvm::StringRef mark, llvm::StringRef words) {
      out << mark;
      text(at + 20, 66, "small", words);
      at += 20 + 6.6 * words.size() + 22;
    };
    auto square = [&](llvm::StringRef style) {
      std::string mark;
      llvm::raw_string_ostream(mark)
          << "<rect class=\"" << style << "\""
          << format(" x=\"%.2f\" y=\"56\" width=\"14\" height=\"12\"/>\n", at);
      return mark;
    };
    auto line = [&](llvm::StringRef style) {
      std::string mark;
      llvm::raw_string_ostream(mark)
          << "<line class=\"" << style << "\""
          << format(" x1=\"%.2f\" y1=\"62\" x2=\"%.2f\" y2=\"62\"/>\n", at,
                    at + 14);
      return mark;
    };
    for (const Look &look : kLooks)
      for (const auto &rank : step.schedule.ranks)
        if (llvm::any_of(rank, [&](const Task &task) {
              return task.kind == look.kind;
            })) {
          legend(square(look.style + std::string("0")), look.name);
          break;
        }
    legend(square("idle"), "idle");
    if (mostChunks > 1)
      legend("", "paler: later chunks of the rank");
    if (!got.transfers.empty()) {
      legend(line("value"), "value sent");
      legend(line("gradient"), "gradient sent");
    }
    double right = kMargin + kLabel + kPlot;
    text(right + 70, 66, "small", "idle", "end");
    text(right + kFigures, 66, "small", "activations", "end");
  }

  void writeRows() {
    const Simulation &got = step.simulation;
    double right = kMargin + kLabel + kPlot;
    for (int64_t rank = 0; rank < placement.ranks; ++rank) {
      double middle = y(rank) + row / 2 + 5;
      text(kMargin, middle, "", "rank " + std::to_string(rank));
      out << format("<rect class=\"idle\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" "
                    "height=\"%g\"/>\n",
                    x(0), y(rank), kPlot, row);
      std::string idle;
      llvm::raw_string_ostream(idle) << format(
          "%.1f %%", got.seconds > 0
                         ? 100 * (1 - got.busySeconds[rank] / got.seconds)
                         : 0);
      text(right + 70, middle, "small", idle, "end");
      text(right + kFigures, middle, "small",
           std::to_string(got.peakActivations[rank]), "end");
    }
  }

  /// From the side of the sender's row that faces the receiver's to that row.
  void writeTransfer(const TimedTransfer &timed) {
    int64_t from = placement.rankOfChunk[getSender(timed.transfer, step.edges)];
    int64_t to = placement.rankOfChunk[getReceiver(timed.transfer, step.edges)];
    bool down = to > from;
    out << "<line class=\"" << (timed.transfer.gradient ? "gradient" : "value")
        << "\""
        << format(" x1=\"%.2f\" y1=\"%.2f\"", x(timed.span.begin),
                  y(from) + (down ? row : 0))
        << format(" x2=\"%.2f\" y2=\"%.2f\"/>\n", x(timed.span.end),
                  y(to) + (down ? 0 : row));
  }

  void writeTask(int64_t rank, const Task &task, const Span &span) {
    double left = x(span.begin), width = x(span.end) - left;
    out << "<rect class=\"box " << kLooks[static_cast<int>(task.kind)].style
        << positions[task.chunk] << "\""
        << format(" x=\"%.2f\" y=\"%.2f\"", left, y(rank))
        << format(" width=\"%.2f\" height=\"%g\"", width, row);
    out << "><title>" << toString(task) << ": " << shortly(span.begin) << " to "
        << shortly(span.end) << " " << step.unit << "</title></rect>\n";
    std::string label = std::to_string(task.microBatch);
    if (kDigit * label.size() + 3 <= width)
      text(left + width / 2, y(rank) + row / 2 + 4.5, "label", label, "middle");
  }

  /// About eight of them, at 1, 2 or 5 times a power of ten.
  void writeTicks() {
    double seconds = step.simulation.seconds, bottom = y(placement.ranks);
    if (seconds <= 0)
      return;
    double power = std::pow(10, std::floor(std::log10(seconds / 8))),
           apart = power * 10;
    for (double factor : {5, 2, 1})
      if (seconds / (factor * power) <= 12)
        apart = factor * power;
    for (int64_t i = 0; i * apart <= seconds * (1 + 1e-9); ++i) {
      double at = x(i * apart);
      out << format("<line class=\"tick\" x1=\"%.2f\" y1=\"%.2f\"", at, bottom)
          << format(" x2=\"%.2f\" y2=\"%.2f\"/>\n", at, bottom + 6);
      text(at, bottom + 22, "small", shortly(i * apart), "middle");
    }
    text(x(seconds) + 20, bottom + 22, "small", step.unit);
  }

  llvm::raw_ostream &out;
  const DrawnStep &step;
  const Placement &placement;
  double row, gap, height;
  std::vector<int64_t> positions; ///< Of each chunk on its rank.
  int64_t mostChunks = 1;         ///< Of a rank.
};

} // namespace

void accel::pipeline::writeScheduleSvg(llvm::raw_ostream &out,
                                       const DrawnStep &step) {
  SvgWriter(out, step).write();
}
