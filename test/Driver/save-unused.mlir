// A parameter that the loss does not depend on keeps its first value, in saved
// weights and after a resume: nothing of a rank's memory holds it.
// RUN: rm -rf %t && mkdir -p %t/in && cd %t
// RUN: %python -c "import sys, pathlib; sys.path.insert(0, '%S/../../scripts'); import tensorfiles; tensorfiles.write_npy(pathlib.Path('in/x.npy'), ((2,), 'float32', (1, 3)))"
// RUN: acc-opt %s --train --loss=loss --optimizer=sgd --set=optimizer.lr=0.5 -o m.accx 2>&1 | FileCheck %s --check-prefix=WARNS
// WARNS: warning: the loss does not depend on parameters 'other'
// RUN: acc-run m.accx --inputs in --steps 2 --checkpoint ck --save-weights w.safetensors
// RUN: %python %S/../Runtime/show_safetensors.py w.safetensors | FileCheck %s --check-prefix=TWO
// TWO-DAG: other F32 [2] 5 5
// TWO-DAG: w F32 [2] 0 -2
// RUN: acc-run m.accx --inputs in --steps 3 --resume ck --save-weights w.safetensors
// RUN: %python %S/../Runtime/show_safetensors.py w.safetensors | FileCheck %s --check-prefix=THREE
// THREE-DAG: other F32 [2] 5 5
// THREE-DAG: w F32 [2] -0.5 -3.5
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<2xf32> = dense<1.0>
  nn.state @other : tensor<2xf32> = dense<5.0>
  func.func @main(%x: tensor<2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w}, %other: tensor<2xf32> {nn.state = @other}) -> (tensor<f32> {nn.output = "loss"}, tensor<2xf32> {nn.output = "side"}) attributes {nn.entry} {
    %y = nn.mul %x, %w : tensor<2xf32>
    %loss = nn.reduce sum %y dims [0] : (tensor<2xf32>) -> tensor<f32>
    %side = nn.mul %x, %other : tensor<2xf32>
    return %loss, %side : tensor<f32>, tensor<2xf32>
  }
}
