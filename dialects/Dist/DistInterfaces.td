// What every collective can be asked, and what every op that names a mesh is
// checked for.

#ifndef ACCEL_DIST_INTERFACES_TD
#define ACCEL_DIST_INTERFACES_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::accel::dist";
  let description = [{
    An op on one rank's tensors whose meaning involves the group of ranks that
    differ only in their coordinates along `axes`, numbered row-major over these
    axes, the first one major. All ranks of a group run it together.
  }];
  let methods = [
    InterfaceMethod<"The mesh.", "::mlir::FlatSymbolRefAttr", "getMeshAttr">,
    InterfaceMethod<"The axes of the group.", "::accel::dist::AxesAttr", "getAxes">,
    InterfaceMethod<"Whether ranks exchange data: all_slice and axis_index only "
      "look at their own coordinates.", "bool", "communicates", (ins), [{}],
      [{ return true; }]>,
    InterfaceMethod<"Element type on the wire, if not the tensor's.",
      "std::optional<::mlir::Type>", "getWireType", (ins), [{}],
      [{
        auto wire = $_op->template getAttrOfType<::mlir::TypeAttr>("wire");
        return wire ? std::optional<::mlir::Type>(wire.getValue()) : std::nullopt;
      }]>,
  ];
}

#endif
