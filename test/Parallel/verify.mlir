// RUN: acc-opt %s --dist-verify -split-input-file -verify-diagnostics

dist.mesh @m ["dp" = 2, "tp" = 2]
// expected-error @below {{expected a sharding on every type, found 'tensor<4xf32>'}}
func.func @plain(%x: tensor<4xf32>) {
  return
}

// -----
dist.mesh @m ["dp" = 2]
// expected-error @below {{expected a sharding on every type, found 'tensor<4xf32>'}}
nn.state @w : tensor<4xf32> = dense<1.0>

// -----
dist.mesh @m ["dp" = 3]
// expected-error @below {{dimension 0 of size 4 cannot be split into 3 equal parts}}
func.func @divides(%x: tensor<4xf32, #dist.sharding<@m, [{dp}]>>) {
  return
}

// -----
dist.mesh @m ["dp" = 2]
!rows = tensor<4x8xf32, #dist.sharding<@m, [{dp}, {}]>>
!whole = tensor<4x8xf32, #dist.sharding<@m, [{}, {}]>>
func.func @factors(%x: !rows, %y: !whole) {
  // expected-error @below {{expected operand 1 to be split like the operands before it}}
  %0 = nn.add %x, %y : (!rows, !whole) -> !rows
  return
}

// -----
dist.mesh @m ["dp" = 2]
!rows = tensor<4x8xf32, #dist.sharding<@m, [{dp}, {}]>>
!whole = tensor<4x8xf32, #dist.sharding<@m, [{}, {}]>>
func.func @result(%x: !whole) {
  // expected-error @below {{expected result 0 to be split like the operands before it}}
  %0 = nn.exp %x : (!whole) -> !rows
  return
}

// -----
dist.mesh @m ["dp" = 2]
!rows = tensor<4x8xf32, #dist.sharding<@m, [{dp}, {}]>>
func.func @whole_only(%x: !rows) {
  // expected-error @below {{cannot have dimension 0 of operand 0 split over "dp"}}
  %0 = nn.cumsum %x dim 0 : (!rows) -> !rows
  return
}

// -----
dist.mesh @m ["dp" = 2]
!partial = tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>>
!whole = tensor<8xf32, #dist.sharding<@m, [{}]>>
func.func @nonlinear(%x: !partial) {
  // expected-error @below {{is not linear in operand 0 alone, which is partial over "dp"}}
  %0 = nn.exp %x : (!partial) -> !whole
  return
}

// -----
dist.mesh @m ["dp" = 2]
!partial = tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>>
!whole = tensor<8xf32, #dist.sharding<@m, [{}]>>
func.func @half(%x: !partial, %y: !whole) {
  // expected-error @below {{is not linear in operand 0 alone, which is partial over "dp"}}
  %0 = nn.add %x, %y : (!partial, !whole) -> !partial
  return
}

// -----
dist.mesh @m ["dp" = 2]
!max = tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}, reduce = max>>
func.func @maximum(%x: !max) {
  // expected-error @below {{is not linear in operand 0 alone, which is partial over "dp"}}
  %0 = nn.neg %x : (!max) -> !max
  return
}

// -----
dist.mesh @m ["dp" = 2]
!rows = tensor<4x8xf32, #dist.sharding<@m, [{dp}, {}]>>
!whole = tensor<8xf32, #dist.sharding<@m, [{}]>>
func.func @forgotten(%x: !rows) {
  // expected-error @below {{expected a result partial over exactly the axes that it reduces over or that its operands are partial over}}
  %0 = nn.reduce sum %x dims [0] : (!rows) -> !whole
  return
}

// -----
dist.mesh @m ["dp" = 2]
!rows = tensor<4x8xf32, #dist.sharding<@m, [{dp}, {}]>>
!max = tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}, reduce = max>>
func.func @kind(%x: !rows) {
  // expected-error @below {{expected a result partial over exactly the axes that it reduces over or that its operands are partial over}}
  %0 = nn.reduce sum %x dims [0] : (!rows) -> !max
  return
}

// -----
dist.mesh @m ["dp" = 2]
!partial = tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>>
func.func @returned(%x: !partial) -> !partial {
  // expected-error @below {{returns a partial value}}
  return %x : !partial
}

// -----
dist.mesh @m ["dp" = 2]
!whole = tensor<8xf32, #dist.sharding<@m, [{}]>>
func.func @collective(%x: !whole) {
  // expected-error @below {{is not legal in phase dist: it has no sharding rule}}
  %0 = dist.all_reduce sum %x over @m {dp} : !whole
  return
}

// -----
dist.mesh @m ["dp" = 2]
dist.mesh @n ["dp" = 2]
!m = tensor<8xf32, #dist.sharding<@m, [{}]>>
!n = tensor<8xf32, #dist.sharding<@n, [{}]>>
func.func @meshes(%x: !m, %y: !n) {
  // expected-error @below {{expected one mesh, found @m and @n}}
  %0 = nn.add %x, %y : (!m, !n) -> !m
  return
}
