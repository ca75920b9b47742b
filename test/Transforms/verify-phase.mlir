// What is not legal at the end of phase nn, once each.
// RUN: acc-opt %s -split-input-file --nn-verify-phase --verify-diagnostics

#name = loc("MatMul#3")
nn.state @w : tensor<2xf32> = dense<0.0>
func.func @main(%x: tensor<2xf32> {nn.input = "x"}, %w: tensor<2xf32> {nn.state = @w}) -> (tensor<2xf32> {nn.output = "y"}) attributes {nn.entry} {
  %c = nn.constant dense<1.0> : tensor<2xf32>
  %0 = nn.add %x, %w : tensor<2xf32> loc(#name)
  %1 = nn.add %0, %c : tensor<2xf32> loc(fused["Add#4", "Add#5"])
  return %1 : tensor<2xf32>
}

// -----

// expected-error @below {{expected an entry, found none}}
module {}

// -----

func.func @one() attributes {nn.entry} { return }
// expected-error @below {{'func.func' op is a second entry, expected one}}
func.func @two() attributes {nn.entry} { return }

// -----

func.func @one() attributes {nn.entry} { return }
// expected-error @below {{'func.func' op is not legal in phase 'nn', expected states and an entry}}
func.func private @helper()

// -----

// expected-error @below {{'func.func' op argument #0 is neither an input nor a state}}
func.func @main(%x: tensor<2xf32>) attributes {nn.entry} { return }

// -----

// expected-error @below {{'func.func' op result #0 is neither an output nor a state}}
func.func @main(%x: tensor<2xf32> {nn.input = "x"}) -> tensor<2xf32> attributes {nn.entry} {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{'func.func' op has type 'tensor<?xf32>', expected a tensor of static shape without encoding}}
func.func @main(%x: tensor<?xf32> {nn.input = "x"}) attributes {nn.entry} { return }

// -----

func.func @main(%x: tensor<2xf32> {nn.input = "x"}) attributes {nn.entry} {
  // expected-error @below {{'nn.neg' op has no name, expected that of its ONNX node}}
  %0 = nn.neg %x : tensor<2xf32>
  return
}

// -----

func.func @main(%x: tensor<2xf32> {nn.input = "x"}) attributes {nn.entry} {
  // expected-error @below {{'func.call' op is not legal in phase 'nn', expected ops of nn}}
  func.call @main(%x) : (tensor<2xf32>) -> ()
  return
}
