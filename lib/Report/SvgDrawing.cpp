// Text of SVG.

#include "SvgDrawing.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace accel;

static void writeStyle(llvm::raw_ostream &os, bool dark,
                       llvm::function_ref<void(bool dark)> writeColours) {
  const char *grey = dark ? "#9ea7b3" : "#57606a";
  os << ".ground { fill: " << (dark ? "#161b22" : "#ffffff")
     << " }\ntext { fill: " << (dark ? "#e6edf3" : "#1f2328")
     << " }\n.small { fill: " << grey << " }\n.axis { stroke: " << grey
     << " }\n";
  writeColours(dark);
}

void report::beginSvg(llvm::raw_ostream &os, double width, double height,
                      llvm::function_ref<void(bool dark)> writeColours) {
  os << llvm::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 "
                     "%.0f %.0f\" font-family=\"sans-serif\" "
                     "font-size=\"13\">\n<style>\n",
                     width, height);
  writeStyle(os, /*dark=*/false, writeColours);
  os << "@media (prefers-color-scheme: dark) {\n";
  writeStyle(os, /*dark=*/true, writeColours);
  os << "}\n</style>\n<rect class=\"ground\" width=\"100%\" "
        "height=\"100%\"/>\n";
}

void report::endSvg(llvm::raw_ostream &os) { os << "</svg>\n"; }

void report::writeSvgText(llvm::raw_ostream &os, double x, double y,
                          const char *style, const char *anchor,
                          llvm::StringRef text) {
  os << llvm::format("<text x=\"%.1f\" y=\"%.1f\"", x, y) << " class=\""
     << style << "\" text-anchor=\"" << anchor << "\">";
  llvm::printHTMLEscaped(text, os);
  os << "</text>\n";
}
