// acc-opt: an mlir-opt that also reads .onnx and writes .accx.

#include "accel/InitAll.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

using namespace mlir;

int main(int argc, char **argv) {
  DialectRegistry registry;
  accel::registerAllDialects(registry);
  accel::registerAllPasses();
  return asMainReturnCode(
      MlirOptMain(argc, argv, "acc-opt: compiles a model for a mesh\n", registry));
}
