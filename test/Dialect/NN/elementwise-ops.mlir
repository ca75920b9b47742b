// Every elementwise op prints and parses back.
// RUN: acc-opt %s --verify-roundtrip | FileCheck %s

// CHECK-LABEL: @unary(
func.func @unary(%x: tensor<2x3xf32>, %b: tensor<2x3xi1>) {
  // CHECK: nn.neg %{{.*}} : tensor<2x3xf32>
  %0 = nn.neg %x : tensor<2x3xf32>
  // CHECK: nn.abs
  %1 = nn.abs %x : tensor<2x3xf32>
  // CHECK: nn.exp
  %2 = nn.exp %x : tensor<2x3xf32>
  // CHECK: nn.log
  %3 = nn.log %x : tensor<2x3xf32>
  // CHECK: nn.sqrt
  %4 = nn.sqrt %x : tensor<2x3xf32>
  // CHECK: nn.rsqrt
  %5 = nn.rsqrt %x : tensor<2x3xf32>
  // CHECK: nn.reciprocal
  %6 = nn.reciprocal %x : tensor<2x3xf32>
  // CHECK: nn.tanh
  %7 = nn.tanh %x : tensor<2x3xf32>
  // CHECK: nn.erf
  %8 = nn.erf %x : tensor<2x3xf32>
  // CHECK: nn.sigmoid
  %9 = nn.sigmoid %x : tensor<2x3xf32>
  // CHECK: nn.relu
  %10 = nn.relu %x : tensor<2x3xf32>
  // CHECK: nn.sin
  %11 = nn.sin %x : tensor<2x3xf32>
  // CHECK: nn.cos
  %12 = nn.cos %x : tensor<2x3xf32>
  // CHECK: nn.floor
  %13 = nn.floor %x : tensor<2x3xf32>
  // CHECK: nn.floor_power2
  %power = nn.floor_power2 %x : tensor<2x3xf32>
  // CHECK: nn.round
  %round = nn.round %x : tensor<2x3xf32>
  // CHECK: nn.not %{{.*}} : tensor<2x3xi1>
  %14 = nn.not %b : tensor<2x3xi1>
  // CHECK: nn.is_nan %{{.*}} : tensor<2x3xf32>
  %15 = nn.is_nan %x : tensor<2x3xf32>
  // CHECK: nn.dynamic_encode %{{.*}} {is_signed} : (tensor<2x3xf32>) -> tensor<2x3xui8>
  %code = nn.dynamic_encode %x {is_signed} : (tensor<2x3xf32>) -> tensor<2x3xui8>
  // CHECK: nn.dynamic_decode %{{.*}} : (tensor<2x3xui8>) -> tensor<2x3xf64>
  %number = nn.dynamic_decode %code : (tensor<2x3xui8>) -> tensor<2x3xf64>
  // CHECK: nn.gelu tanh
  %16 = nn.gelu tanh %x : tensor<2x3xf32>
  // CHECK: nn.gelu erf
  %17 = nn.gelu erf %x : tensor<2x3xf32>
  // CHECK: nn.cast %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  %18 = nn.cast %x : (tensor<2x3xf32>) -> tensor<2x3xbf16>
  // CHECK: nn.cast %{{.*}} {saturate} : (tensor<2x3xf32>) -> tensor<2x3xf4E2M1FN>
  %four = nn.cast %x {saturate} : (tensor<2x3xf32>) -> tensor<2x3xf4E2M1FN>
  // CHECK: nn.transpose %{{.*}} [1, 0] : (tensor<2x3xf4E2M1FN>) -> tensor<3x2xf4E2M1FN>
  %turned = nn.transpose %four [1, 0] : (tensor<2x3xf4E2M1FN>) -> tensor<3x2xf4E2M1FN>
  // CHECK: nn.cast %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf8E8M0FNU>
  %exponent = nn.cast %x : (tensor<2x3xf32>) -> tensor<2x3xf8E8M0FNU>
  // CHECK: nn.constant dense<[5.000000e-01, -6.000000e+00]> : tensor<2xf4E2M1FN>
  %codes = nn.constant dense<[0.5, -6.0]> : tensor<2xf4E2M1FN>
  // CHECK: nn.log1p %{{.*}} : tensor<2x3xf32>
  %19 = nn.log1p %x : tensor<2x3xf32>
  return
}

// CHECK-LABEL: @binary(
func.func @binary(%x: tensor<4xf16>, %y: tensor<4xf16>, %b: tensor<4xi1>) {
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<4xf16>
  %0 = nn.add %x, %y : tensor<4xf16>
  // CHECK: nn.sub
  %1 = nn.sub %x, %y : tensor<4xf16>
  // CHECK: nn.mul
  %2 = nn.mul %x, %y : tensor<4xf16>
  // CHECK: nn.div
  %3 = nn.div %x, %y : tensor<4xf16>
  // CHECK: nn.mod
  %4 = nn.mod %x, %y : tensor<4xf16>
  // CHECK: nn.pow
  %5 = nn.pow %x, %y : tensor<4xf16>
  // CHECK: nn.min
  %6 = nn.min %x, %y : tensor<4xf16>
  // CHECK: nn.max
  %7 = nn.max %x, %y : tensor<4xf16>
  // CHECK: nn.and %{{.*}} : tensor<4xi1>
  %8 = nn.and %b, %b : tensor<4xi1>
  // CHECK: nn.or
  %9 = nn.or %b, %b : tensor<4xi1>
  // CHECK: nn.compare le %{{.*}} : tensor<4xf16>
  %10 = nn.compare le %x, %y : tensor<4xf16>
  // CHECK: nn.select %{{.*}} : tensor<4xf16>
  %11 = nn.select %b, %x, %y : tensor<4xf16>
  return
}

// CHECK-LABEL: @stop_gradient(
func.func @stop_gradient(%x: tensor<4xf32>) {
  // CHECK: nn.stop_gradient %{{.*}} : tensor<4xf32>
  %0 = nn.stop_gradient %x : tensor<4xf32>
  return
}

// CHECK-LABEL: @random(
func.func @random(%x: tensor<4xf32>, %n: tensor<4xi64>) {
  // CHECK: nn.dropout %{{.*}} ratio 1.0{{0*}}e-01 site 3 : tensor<4xf32>
  %0 = nn.dropout %x ratio 0.1 site 3 : tensor<4xf32>
  // CHECK: nn.random_uniform %{{.*}}, %{{.*}} : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  %1 = nn.random_uniform %n, %n : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xf32>
  return
}

#rows = #dist.sharding<@m, [{dp}, {}]>
#terms = #dist.sharding<@m, [{}, {}], partial = {dp}>

// One type where all agree, encodings included; else a function type.
// CHECK-LABEL: @types(
func.func @types(%a: tensor<2x3xf32, #rows>, %t: tensor<2x3xf32, #terms>, %c: tensor<2x3xi1>, %d: tensor<2x3xi1, #rows>) {
  // CHECK: nn.add %{{.*}} : tensor<2x3xf32, #dp-all>{{$}}
  %0 = nn.add %a, %a : tensor<2x3xf32, #rows>
  // CHECK: nn.add %{{.*}} : (tensor<2x3xf32, #dp-all>, tensor<2x3xf32, #all-all-sum_over_dp>) -> tensor<2x3xf32, #dp-all>
  %1 = nn.add %a, %t : (tensor<2x3xf32, #rows>, tensor<2x3xf32, #terms>) -> tensor<2x3xf32, #rows>
  // CHECK: nn.neg %{{.*}} : (tensor<2x3xf32, #dp-all>) -> tensor<2x3xf32>
  %2 = nn.neg %a : (tensor<2x3xf32, #rows>) -> tensor<2x3xf32>
  // CHECK: nn.compare lt %{{.*}} : tensor<2x3xf32, #dp-all>{{$}}
  %3 = nn.compare lt %a, %a : (tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows>) -> tensor<2x3xi1, #rows>
  // CHECK: nn.compare lt %{{.*}} : (tensor<2x3xf32, #dp-all>, tensor<2x3xf32, #dp-all>) -> tensor<2x3xi1>
  %4 = nn.compare lt %a, %a : (tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows>) -> tensor<2x3xi1>
  // CHECK: nn.is_nan %{{.*}} : tensor<2x3xf32, #dp-all>{{$}}
  %5 = nn.is_nan %a : tensor<2x3xf32, #rows>
  // CHECK: nn.select %{{.*}} : tensor<2x3xf32, #dp-all>{{$}}
  %6 = nn.select %d, %a, %a : tensor<2x3xf32, #rows>
  // CHECK: nn.select %{{.*}} : (tensor<2x3xi1>, tensor<2x3xf32, #dp-all>, tensor<2x3xf32, #dp-all>) -> tensor<2x3xf32, #dp-all>
  %7 = nn.select %c, %a, %a : (tensor<2x3xi1>, tensor<2x3xf32, #rows>, tensor<2x3xf32, #rows>) -> tensor<2x3xf32, #rows>
  return
}
