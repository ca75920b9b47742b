// How the parts of plan ops are written, for the formats in PlanOps.td and
// PlanCommands.td: `custom<View>($a)` calls parseView and printView. What is as
// it would be by default is not written.

#ifndef ACCEL_DIALECTS_PLAN_PLANSYNTAX_H
#define ACCEL_DIALECTS_PLAN_PLANSYNTAX_H

#include "dialects/Plan/Plan.h"

namespace accel::plan {

/// `@x[4x16xf32 at 256 + dp*1024 strides [1, 4]]`: row-major from the buffer's
/// first byte where nothing else is said.
mlir::ParseResult parseView(mlir::AsmParser &parser, ViewAttr &view);
void printView(mlir::AsmPrinter &printer, ViewAttr view);
inline void printView(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      ViewAttr view) {
  printView(static_cast<mlir::AsmPrinter &>(printer), view);
}

/// Views with commas between them; perhaps none.
mlir::ParseResult parseViews(mlir::OpAsmParser &parser, mlir::ArrayAttr &views);
void printViews(mlir::OpAsmPrinter &printer, mlir::Operation *,
                mlir::ArrayAttr views);

/// `[8/mb/dp, 64]`: 64 rows of a dimension of 8 that mb and, within it, dp
/// divide.
mlir::ParseResult parsePart(mlir::AsmParser &parser, PartAttr &part);
void printPart(mlir::AsmPrinter &printer, PartAttr part);
inline void printPart(mlir::OpAsmPrinter &printer, mlir::Operation *,
                      PartAttr part) {
  printPart(static_cast<mlir::AsmPrinter &>(printer), part);
}

/// `@x[4x16xf32] of [8/dp, 16]`; where the view is the whole, no more than it.
mlir::ParseResult parseViewOf(mlir::OpAsmParser &parser, ViewAttr &view,
                              PartAttr &part);
void printViewOf(mlir::OpAsmPrinter &printer, mlir::Operation *, ViewAttr view,
                 PartAttr part);

/// `dp, tp`: names, in quotes if they are no words; perhaps none.
mlir::ParseResult parseNames(mlir::OpAsmParser &parser, mlir::ArrayAttr &names);
void printNames(mlir::OpAsmPrinter &printer, mlir::Operation *,
                mlir::ArrayAttr names);
mlir::ParseResult parseName(mlir::OpAsmParser &parser, mlir::StringAttr &name);
void printName(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::StringAttr name);

/// ` sum`; nothing where a collective does not combine.
mlir::ParseResult parseCombine(mlir::OpAsmParser &parser, CombineAttr &combine);
void printCombine(mlir::OpAsmPrinter &printer, mlir::Operation *,
                  CombineAttr combine);

/// `{chunk_rows = 8, packed}`: integers are i64, numbers f64.
mlir::ParseResult parseForm(mlir::OpAsmParser &parser,
                            mlir::DictionaryAttr &form);
void printForm(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::DictionaryAttr form);

/// ` stride 64`, nothing where copies follow each other.
mlir::ParseResult parseSlotStride(mlir::OpAsmParser &parser,
                                  mlir::IntegerAttr &stride,
                                  mlir::IntegerAttr bytes);
void printSlotStride(mlir::OpAsmPrinter &printer, mlir::Operation *,
                     mlir::IntegerAttr stride, mlir::IntegerAttr bytes);

/// ` micro_batch 2`, ` micro_batch turn + 2`; nothing for the first, where no
/// loop stands around it.
mlir::ParseResult parseMicroBatch(mlir::OpAsmParser &parser,
                                  mlir::IntegerAttr &offset,
                                  mlir::UnitAttr &turn);
void printMicroBatch(mlir::OpAsmPrinter &printer, mlir::Operation *,
                     mlir::IntegerAttr offset, mlir::UnitAttr turn);

/// `64 by 8`: rows, of which so many are handed out at once; `64` for all.
mlir::ParseResult parseRows(mlir::OpAsmParser &parser, mlir::IntegerAttr &rows,
                            mlir::IntegerAttr &grid);
void printRows(mlir::OpAsmPrinter &printer, mlir::Operation *,
               mlir::IntegerAttr rows, mlir::IntegerAttr grid);

/// `pp + 1`, `pp - 1`: the rank so far away on an axis.
mlir::ParseResult parseNeighbour(mlir::OpAsmParser &parser,
                                 mlir::StringAttr &axis,
                                 mlir::IntegerAttr &delta);
void printNeighbour(mlir::OpAsmPrinter &printer, mlir::Operation *,
                    mlir::StringAttr axis, mlir::IntegerAttr delta);

/// A number of the view's element type.
mlir::ParseResult parseValue(mlir::OpAsmParser &parser, mlir::TypedAttr &value,
                             ViewAttr target);
void printValue(mlir::OpAsmPrinter &printer, mlir::Operation *,
                mlir::TypedAttr value, ViewAttr target);

/// What is no argument of a command: ` releases @x[64xi8], …`, and the
/// attributes of dialects in braces.
mlir::ParseResult parseAttributes(mlir::OpAsmParser &parser,
                                  mlir::NamedAttrList &attributes);
void printAttributes(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     mlir::DictionaryAttr attributes);

} // namespace accel::plan

#endif // ACCEL_DIALECTS_PLAN_PLANSYNTAX_H
