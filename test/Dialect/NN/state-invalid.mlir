// Every verifier message of states, constants and the attributes of entries.
// RUN: acc-opt %s -split-input-file --verify-diagnostics

// expected-error @below {{'nn.state' op expected a file range of 32 bytes for 'tensor<4x2xf32>', found 16}}
nn.state @short : tensor<4x2xf32> from #nn.file<"m.onnx">[0 : 16] hash 1

// -----

// expected-error @below {{'nn.state' op expected the permutation of the file range to permute 2 dimensions, found [0, 0]}}
nn.state @permutation : tensor<4x2xf32> from #nn.file<"m.onnx">[0 : 32] hash 1 transposed [0, 0]

// -----

// expected-error @below {{'nn.state' op expected the permutation of an initializer to permute 2 dimensions, found [0]}}
nn.state @initializer : tensor<4x2xf32> = dense<0.0> {initializers = [#nn.initializer<"w", [0]>]}

// -----

// expected-error @below {{'nn.state' op expected #nn.initializer in 'initializers', found "w"}}
nn.state @name : tensor<4x2xf32> = dense<0.0> {initializers = ["w"]}

// -----

// expected-error @below {{'nn.state' op expected a range of a file, elements or members as 'init', found unit}}
nn.state @number : tensor<4x2xf32> = unit

// -----

// expected-error @below {{'nn.state' op expected 'init' of type 'tensor<4x2xf32>', found 'tensor<4xf32>'}}
"nn.state"() <{sym_name = "shape", type = tensor<4x2xf32>, init = dense<0.0> : tensor<4xf32>}> : () -> ()

// -----

#vector = dense<0.0> : tensor<4xf32>
// expected-error @+2 {{attribute type different than expected: expected 'tensor<4x2xf32>', but got 'tensor<4xf32>'}}
nn.state @alias : tensor<4x2xf32> = #vector

// -----

// expected-error @below {{'nn.state' op expected 'stored' only for floats in a file, found 'f32'}}
nn.state @stored : tensor<2xf64> = dense<0.0> {stored = f32}

// -----

// expected-error @below {{'nn.state' op expected 'stored' only for floats in a file, found 'i32'}}
nn.state @stored_integer : tensor<2xf64> from #nn.file<"m.onnx">[0 : 8] hash 1 {stored = i32}

// -----

// expected-error @below {{'nn.state' op expected a 'logical' shape within 'tensor<4x2xf32>', found [3, 3]}}
nn.state @wider : tensor<4x2xf32> logical [3, 3] = dense<0.0>

// -----

// expected-error @below {{'nn.state' op expected a 'logical' shape within 'tensor<4x2xf32>', found [8]}}
nn.state @flat : tensor<4x2xf32> logical [8] = dense<0.0>

// -----

// expected-error @below {{'nn.state' op expected a file range of 24 bytes for 'tensor<3x2xf32>', found 32}}
nn.state @padded_file : tensor<4x2xf32> logical [3, 2] from #nn.file<"m.onnx">[0 : 32] hash 1

// -----

func.func @constant() {
  // expected-error @below {{'nn.constant' op expected a value of type 'tensor<3xf32>', found 'tensor<2xf32>'}}
  %0 = "nn.constant"() <{value = dense<0.0> : tensor<2xf32>}> : () -> tensor<3xf32>
  return
}

// -----

func.func @iota() {
  // expected-error @below {{expected 'dim' in [0, 1), found 1}}
  %0 = nn.iota {dim = 1 : i64} : tensor<4xi64>
  return
}

// -----

// expected-error @below {{expected a string as 'nn.input', found 1 : i64}}
func.func @input(%x: tensor<2xf32> {nn.input = 1 : i64}) {
  return
}

// -----

// expected-error @below {{no nn.state named @absent}}
func.func @state(%x: tensor<2xf32> {nn.state = @absent}) {
  return
}

// -----
// expected-error @below {{no nn.state named @absent}}
func.func @new_state_of_nothing(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.state = @absent}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{expected a symbol as 'nn.state', found "w"}}
func.func @symbol(%x: tensor<2xf32> {nn.state = "w"}) {
  return
}

// -----

// expected-error @below {{expected 'nn.output' or 'nn.state', found attribute 'nn.input'}}
func.func @result(%x: tensor<2xf32>) -> (tensor<2xf32> {nn.input = "x"}) {
  return %x : tensor<2xf32>
}

// -----

// expected-error @below {{unexpected attribute 'nn.entry'; of nn, modules may carry 'nn.calls' and 'nn.autocast', functions 'nn.entry', casts and nn.complete 'nn.reason', matrix products that and 'nn.product', and products 'nn.mean'}}
module attributes {nn.entry} {}

// -----

func.func @gradient(%g: tensor<2xf32>) {
  // expected-error @below {{'nn.gradient' op expected a state, found none called @absent}}
  %0 = nn.gradient %g of @absent : tensor<2xf32>
  return
}

// -----

// expected-error @below {{expected a role (parameter, moment, accumulator, counter, buffer) or a name, found 'weight'}}
nn.state weight @role : tensor<2xf32> = dense<0.0>

// -----

// expected-error @below {{expected a tensor, found 'f32'}}
nn.state @scalar : f32 = 0.0 : f32

// -----

// expected-error @below {{expected '='}}
nn.state @nothing : tensor<2xf32>

// -----

// expected-error @below {{expected '['}}
nn.state @range : tensor<2xf32> from #nn.file<"m.onnx">

// -----

func.func @no_elements() {
  // expected-error @below {{expected the elements of a tensor, found "x"}}
  %0 = nn.constant "x"
  return
}

// -----

#half = #dist.sharding<@m, [{dp}]>
func.func @encoding() {
  // expected-error @below {{'nn.constant' op expected a value without encoding, found 'tensor<2xf32, #dist.sharding<@m, [{dp}]>>'}}
  %0 = "nn.constant"() <{value = dense<0.0> : tensor<2xf32, #half>}> : () -> tensor<2xf32, #half>
  return
}

// -----

nn.state @a : tensor<2xf32> = dense<0.0>
// expected-error @below {{'nn.state' op expected a parameter without other names and the name of a member for each of its rows, found 'tensor<2x2xf32>' = [@a]}}
nn.state @few : tensor<2x2xf32> = [@a]

// -----

nn.state @a : tensor<2xf32> = dense<0.0>
// expected-error @below {{'nn.state' op expected a parameter without other names}}
nn.state @aliased : tensor<1x2xf32> = [@a] {aliases = ["b"]}

// -----

nn.state @a : tensor<2xf32> = dense<0.0>
// expected-error @below {{'nn.state' op expected a parameter without other names}}
nn.state moment @role : tensor<1x2xf32> = [@a]

// -----

nn.state @a : tensor<2xf32> = dense<0.0>
// expected-error @below {{'nn.state' op expected other states as members, each once, found @a}}
nn.state @twice : tensor<2x2xf32> = [@a, @a]

// -----

// expected-error @below {{'nn.state' op expected other states as members, each once, found @gone}}
nn.state @none : tensor<1x2xf32> = [@gone]

// -----

nn.state @a : tensor<3xf32> = dense<0.0>
// expected-error @below {{'nn.state' op expected a member that is one of its rows, without aliases, and frozen as it is, found @a of 'tensor<3xf32>'}}
nn.state @shape : tensor<1x2xf32> = [@a]

// -----

nn.state @a : tensor<2xf32> = dense<0.0> {frozen}
// expected-error @below {{'nn.state' op expected a member that is one of its rows}}
nn.state @trained : tensor<1x2xf32> = [@a]

// -----

nn.state @a : tensor<2xf32> = dense<0.0> {aliases = ["b"]}
// expected-error @below {{'nn.state' op expected a member that is one of its rows}}
nn.state @tied : tensor<1x2xf32> = [@a]

// -----

nn.state @a : tensor<2xf32> = dense<0.0>
nn.state @b : tensor<1x2xf32> = [@a]
// expected-error @below {{'nn.state' op expected a member that is one of its rows}}
nn.state @nested : tensor<1x1x2xf32> = [@b]

// -----

// expected-error @below {{expected strings by names of nodes as 'nn.calls', found {node_pow = 2 : i64}}}
module attributes {nn.calls = {node_pow = 2 : i64}} {
}

// -----

// expected-error @below {{expected a string as 'nn.autocast', found 1 : i64}}
module attributes {nn.autocast = 1} {
}

// -----

// expected-error @below {{'nn.state' op expected numbers that take whole bytes in files, found 'tensor<4xf4E2M1FN>'}}
nn.state @packed : tensor<4xf4E2M1FN> = dense<0.0>
