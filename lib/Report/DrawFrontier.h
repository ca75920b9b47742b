// The picture of `--report=memory --what-if`.

#ifndef ACCEL_LIB_REPORT_DRAWFRONTIER_H
#define ACCEL_LIB_REPORT_DRAWFRONTIER_H

#include "lib/Cost/Frontier.h"
#include "llvm/Support/raw_ostream.h"

namespace accel::report {

/// The time of a step over the peak of a rank, a point each, as SVG. Requires
/// at least one.
void drawFrontier(llvm::ArrayRef<cost::FrontierPoint> points,
                  llvm::raw_ostream &os);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_DRAWFRONTIER_H
