// Which updates of a scatter concern a row of its table.

#ifndef ACCEL_LIB_TARGET_ELEMENT_SCATTER_H
#define ACCEL_LIB_TARGET_ELEMENT_SCATTER_H

#include "dialects/Interfaces/ElementBuilder.h"
#include "dialects/NN/NN.h"

namespace accel::element {

/// The places, among the indices, of those that name a row in [first, last), in
/// scratch (a pointer to i64), and how many there are; two null values where
/// scratch has no room for all.
ElementBuilder::Values findUpdatesWithin(ElementBuilder &e,
                                         nn::ScatterAddOp scatter,
                                         mlir::Value first, mlir::Value last);

/// Of those places, or of all where `near` is empty, the ones that name `row`.
/// Emitted once per row.
ElementBuilder::Values findUpdates(ElementBuilder &e, nn::ScatterAddOp scatter,
                                   mlir::Value row, mlir::ValueRange near);

} // namespace accel::element

#endif // ACCEL_LIB_TARGET_ELEMENT_SCATTER_H
