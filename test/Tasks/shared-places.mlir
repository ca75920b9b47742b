// What a loss reads of the places of a sequence is the same for all micro-batches,
// also where as many samples as places share what it is made of: a causal mask
// and one of labels. The loss is a sum over samples, and is trained.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{layout} =
// DEFINE: %{program} = masks
// DEFINE: %{phase} = local
// DEFINE: %{step} = acc-opt %t/%{program}.mlir --train --loss loss --optimizer sgd --emit-gradients --entries step
// DEFINE: %{compare} = %{step} --compile-to train -o %t/whole.mlir && %{step} %{layout} --compile-to %{phase} -o %t/parts.mlir && acc-eval %t/parts.mlir --compare %t/whole.mlir --tolerance 1e-12
// REDEFINE: %{layout} = --micro-batches 2
// RUN: %{compare}
// REDEFINE: %{phase} = plan
// RUN: %{compare}
// REDEFINE: %{layout} = --micro-batches 2 --mesh dp=2 --set zero_stage=3
// RUN: %{compare}
// A gradient of equal elements, of rows that are counted place by place.
// REDEFINE: %{program} = mean
// RUN: %{compare}
// REDEFINE: %{layout} = --micro-batches 2
// RUN: %{compare}
// Where one sample's mask chooses places of all the others, samples meet.
// REDEFINE: %{program} = meet
// RUN: not %{step} %{layout} --compile-to local 2>&1 | FileCheck %s
// CHECK: error: needs the samples of all micro-batches at once, which run one after another

//--- masks.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x2xf64> = dense<[[0.5, -0.25], [0.125, 0.75], [-0.5, 0.25], [1.0, -1.0]]>
  func.func @main(%scores: tensor<4x1x4x4xf64> {nn.input = "scores"}, %x: tensor<4x4xf64> {nn.input = "x"}, %w: tensor<4x2xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %rows = nn.iota {dim = 0} : tensor<4x4xi64>
    %columns = nn.iota {dim = 1} : tensor<4x4xi64>
    %causal = nn.compare ge %rows, %columns : tensor<4x4xi64>
    %zeros = nn.constant dense<0.0> : tensor<4x1x4x4xf64>
    %mask = nn.broadcast %causal : (tensor<4x4xi1>) -> tensor<4x1x4x4xi1>
    %seen = nn.select %mask, %scores, %zeros : tensor<4x1x4x4xf64>
    %y = nn.matmul %seen, %w : (tensor<4x1x4x4xf64>, tensor<4x2xf64>) -> tensor<4x1x4x2xf64>
    %sum = nn.reduce sum %y dims [1, 3] : (tensor<4x1x4x2xf64>) -> tensor<4x4xf64>
    %two = nn.constant dense<2> : tensor<4x4xi64>
    %late = nn.compare ge %columns, %two : tensor<4x4xi64>
    %target = nn.select %late, %x, %sum : tensor<4x4xf64>
    %square = nn.mul %target, %target : tensor<4x4xf64>
    %loss = nn.reduce sum %square dims [0, 1] : (tensor<4x4xf64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
}

//--- mean.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<2x2xf64> = dense<[[0.5, -0.25], [0.125, 0.75]]>
  nn.state @v : tensor<2x2xf64> = dense<[[-0.5, 0.25], [1.0, -1.0]]>
  func.func @main(%x: tensor<4x3x2xf64> {nn.input = "x"}, %w: tensor<2x2xf64> {nn.state = @w}, %v: tensor<2x2xf64> {nn.state = @v}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %h = nn.matmul %x, %v : (tensor<4x3x2xf64>, tensor<2x2xf64>) -> tensor<4x3x2xf64>
    %g = nn.tanh %h : tensor<4x3x2xf64>
    %t = nn.transpose %g [1, 0, 2] : (tensor<4x3x2xf64>) -> tensor<3x4x2xf64>
    %rows = nn.reshape %t : (tensor<3x4x2xf64>) -> tensor<12x2xf64>
    %y = nn.matmul %rows, %w : (tensor<12x2xf64>, tensor<2x2xf64>) -> tensor<12x2xf64>
    %apart = nn.reshape %y : (tensor<12x2xf64>) -> tensor<3x4x2xf64>
    %back = nn.transpose %apart [1, 0, 2] : (tensor<3x4x2xf64>) -> tensor<4x3x2xf64>
    %sum = nn.reduce sum %back dims [1] : (tensor<4x3x2xf64>) -> tensor<4x2xf64>
    %third = nn.constant dense<0.25> : tensor<4x2xf64>
    %mean = nn.mul %sum, %third : tensor<4x2xf64>
    %loss = nn.reduce sum %mean dims [0, 1] : (tensor<4x2xf64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
}

//--- meet.mlir
module attributes {accel.phase = "nn"} {
  nn.state @w : tensor<4x2xf64> = dense<[[0.5, -0.25], [0.125, 0.75], [-0.5, 0.25], [1.0, -1.0]]>
  func.func @main(%scores: tensor<4x1x4x4xf64> {nn.input = "scores"}, %x: tensor<4x4xi64> {nn.input = "x"}, %w: tensor<4x2xf64> {nn.state = @w}) -> (tensor<f64> {nn.output = "loss"}) attributes {nn.entry} {
    %columns = nn.iota {dim = 1} : tensor<4x4xi64>
    %chosen = nn.compare ge %x, %columns : tensor<4x4xi64>
    %zeros = nn.constant dense<0.0> : tensor<4x1x4x4xf64>
    %mask = nn.broadcast %chosen : (tensor<4x4xi1>) -> tensor<4x1x4x4xi1>
    %seen = nn.select %mask, %scores, %zeros : tensor<4x1x4x4xf64>
    %y = nn.matmul %seen, %w : (tensor<4x1x4x4xf64>, tensor<4x2xf64>) -> tensor<4x1x4x2xf64>
    %square = nn.mul %y, %y : tensor<4x1x4x2xf64>
    %loss = nn.reduce sum %square dims [0, 1, 2, 3] : (tensor<4x1x4x2xf64>) -> tensor<f64>
    return %loss : tensor<f64>
  }
}
