// What the pictures of reports have in common: the frame of an SVG file, its
// colours by day and by night, and words.

#ifndef ACCEL_LIB_REPORT_SVGDRAWING_H
#define ACCEL_LIB_REPORT_SVGDRAWING_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace accel::report {

/// Begins a picture of so many pixels, with its ground. Its classes: `ground`,
/// `small` (words in grey), `axis`, and what `writeColours` writes, a rule of
/// CSS a line, of a light ground and of a dark one.
void beginSvg(llvm::raw_ostream &os, double width, double height,
              llvm::function_ref<void(bool dark)> writeColours);
void endSvg(llvm::raw_ostream &os);

/// Words at a place; `anchor` is "start", "middle" or "end".
void writeSvgText(llvm::raw_ostream &os, double x, double y, const char *style,
                  const char *anchor, llvm::StringRef text);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_SVGDRAWING_H
