// Every error of the dist dialect, once.
// RUN: acc-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected every axis once, found 'dp' twice}}
dist.mesh @m ["dp" = 2, "dp" = 3]
// -----
// expected-error @below {{expected a size of at least 1 for axis 'dp', found 0}}
dist.mesh @m ["dp" = 0]
// -----
// expected-error @below {{expected at most 2147483647 ranks}}
dist.mesh @m ["dp" = 65536, "tp" = 65536]
// -----
// expected-error @below {{expected a link for each of 2 axes, found 1}}
dist.mesh @m ["dp" = 2, "tp" = 2] links [#dist.link<alpha = 1.0 : f64, beta = 1.0 : f64>]
// -----
// expected-error @below {{expected a device for each of 2 ranks, found 1}}
dist.mesh @m ["mb" = 4, "dp" = 2] device_ids [0]
// -----
// expected-error @below {{expected distinct devices from 0 up, found 1}}
dist.mesh @m ["dp" = 2] device_ids [1, 1]
// -----
// expected-error @below {{expected every axis once, found "dp" twice}}
func.func private @f(tensor<8x8xf32, #dist.sharding<@m, [{dp}, {dp}]>>)
// -----
// expected-error @below {{expected every axis once, found "dp" twice}}
func.func private @f(tensor<8x8xf32, #dist.sharding<@m, [{dp}, {}], partial = {dp}>>)
// -----
// expected-error @below {{expected a sharding of 2 dimensions, found 1}}
func.func private @f(tensor<8x8xf32, #dist.sharding<@m, [{dp}]>>)
// -----
// expected-error @below {{expected closed lists of axes in a tensor's type}}
func.func private @f(tensor<8x8xf32, #dist.sharding<@m, [{?}, {}]>>)
// -----
// expected-error @below {{expected '?' to end a list of axes}}
func.func private @f(tensor<8x8xf32, #dist.sharding<@m, [{?, dp}, {}]>>)
// -----
// expected-error @below {{expected sum, max or min, found 'prod'}}
func.func private @f(tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}, reduce = prod>>)
// -----
// expected-error @below {{expected a closed list of partial axes}}
func.func private @f(tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp, ?}>>)
// -----
// expected-error @below {{expected no reduction other than sum without partial axes, found 'max'}}
func.func private @f(tensor<8xf32, #dist.sharding<@m, [{}], partial = {}, reduce = max>>)
// -----
// expected-error @below {{unexpected attribute 'dist.order'; of dist, functions may carry 'dist.task', ops 'dist.instance', 'dist.recompute', 'dist.discard', 'dist.recomputed', 'dist.loss_chunks', 'dist.loss_chunk' and 'dist.ring' and ops of dist 'dist.inserted_by' and 'dist.unit'}}
func.func private @f() attributes {dist.order = 1}
// -----
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{unexpected attribute 'dist.inserted_by'}}
  nn.exp %x {dist.inserted_by = "me"} : tensor<8xf32>
  return
}
// -----
// expected-error @below {{expected a #dist.layout as 'dist.layout', found 'dist.layout' = 1 : i64}}
func.func private @f(tensor<8xf32> {dist.layout = 1})
// -----
// expected-error @below {{no dist.mesh named @m}}
func.func private @f(tensor<8xf32> {dist.layout = #dist.layout<@m [8]>})
// -----
dist.mesh @m ["dp" = 2]
// expected-error @below {{mesh @m has no axis "tp"}}
func.func private @f(tensor<8xf32> {dist.layout = #dist.layout<@m [8 by {tp}]>})
// -----
dist.mesh @m ["dp" = 2]
// expected-error @below {{expected a piece of #dist.layout<@m [8 by {dp}]>, found 'tensor<8xf32>'}}
func.func private @f(tensor<8xf32> {dist.layout = #dist.layout<@m [8 by {dp}]>})
// -----
dist.mesh @m ["dp" = 2]
// expected-error @below {{expected a piece of #dist.layout<@m [8 by {dp}]>, found 'tensor<8xf32>'}}
func.func private @f() -> (tensor<8xf32> {dist.layout = #dist.layout<@m [8 by {dp}]>})
// -----
// expected-error @below {{expected integer value}}
func.func private @f(tensor<8x8xf32> {dist.layout = #dist.layout<@m [8, by {dp}]>})
// -----
// expected-error @below {{expected closed lists of axes in a layout}}
func.func private @f(tensor<8xf32> {dist.layout = #dist.layout<@m [8 by {?}]>})
// -----
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{no dist.mesh named @m}}
  dist.constraint %x to <@m, [{dp}]> : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{mesh @m has no axis "tp"}}
  dist.constraint %x to <@m, [{tp}]> : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 3]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{dimension 0 of size 8 cannot be split into 3 equal parts}}
  dist.constraint %x to <@m, [{dp, ?}]> : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a sharding of 1 dimensions, found 2}}
  dist.constraint %x to <@m, [{dp}, {}]> : tensor<8xf32>
  return
}
// -----
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected types with shardings, found 'tensor<8xf32>' and 'tensor<8xf32>'}}
  dist.reshard %x : tensor<8xf32> -> tensor<8xf32>
  return
}
// -----
func.func @f(%x: tensor<8xf32, #dist.sharding<@m, [{}]>>) {
  // expected-error @below {{expected the same shape and element type}}
  dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{}]>> -> tensor<4xf32, #dist.sharding<@m, [{}]>>
  return
}
// -----
func.func @f(%x: tensor<8xf32, #dist.sharding<@m, [{}]>>) {
  // expected-error @below {{expected one mesh, found @m and @n}}
  dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{}]>> -> tensor<8xf32, #dist.sharding<@n, [{}]>>
  return
}
// -----
func.func @f(%x: tensor<8xf32, #dist.sharding<@m, [{}]>>) {
  // expected-error @below {{expected a result partial over axes of the input's only, found "dp"}}
  dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{}]>> -> tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>>
  return
}
// -----
func.func @f(%x: tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>>) {
  // expected-error @below {{expected partial results to combine by 'sum', found 'max'}}
  dist.reshard %x : tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}>> -> tensor<8xf32, #dist.sharding<@m, [{}], partial = {dp}, reduce = max>>
  return
}
// -----
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{no dist.mesh named @m}}
  dist.all_reduce sum %x over @m {dp} : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a closed list of axes}}
  dist.all_reduce sum %x over @m {dp, ?} : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{mesh @m has no axis "tp"}}
  dist.all_gather %x over @m {tp} dim 0 : (tensor<8xf32>) -> tensor<16xf32>
  return
}
// -----
dist.mesh @m ["mb" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{axis 'mb' runs on one rank: no message goes along it}}
  dist.reduce_scatter sum %x over @m {mb} dim 0 : (tensor<8xf32>) -> tensor<4xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected every axis once, found "dp" twice}}
  dist.broadcast %x over @m {dp, dp} root 0 : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a float type on the wire, found 'i8'}}
  dist.all_reduce sum %x over @m {dp} wire i8 : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 3]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{dimension 0 of size 8 cannot be split into 3 equal parts}}
  dist.all_slice %x over @m {dp} dim 0 : (tensor<8xf32>) -> tensor<2xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a dimension in [0, 1), found 1}}
  dist.reduce_scatter sum %x over @m {dp} dim 1 : (tensor<8xf32>) -> tensor<4xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @below {{expected a result of type 'tensor<4x8xf32>', found 'tensor<8x4xf32>'}}
  dist.all_to_all %x over @m {dp} split 0 concat 1 : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8x4xf32>, %i: tensor<3xi64>) {
  // expected-error @below {{expected a result of type 'tensor<3x4xf32>', found 'tensor<8x4xf32>'}}
  dist.fetch_rows %x, %i over @m {dp} : (tensor<8x4xf32>, tensor<3xi64>) -> tensor<8x4xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<f32>, %i: tensor<3xi64>) {
  // expected-error @below {{expected rows, found 'tensor<f32>'}}
  dist.fetch_rows %x, %i over @m {dp} : (tensor<f32>, tensor<3xi64>) -> tensor<3xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a permutation of 2 ranks as sources, found [0, 0]}}
  dist.permute %x over @m {dp} sources [0, 0] : tensor<8xf32>
  return
}
// -----
dist.mesh @m ["dp" = 2]
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{expected a root in [0, 2), found 2}}
  dist.broadcast %x over @m {dp} root 2 : tensor<8xf32>
  return
}
// -----
func.func private @t()
// expected-error @below {{expected at least one micro-batch, found 0}}
dist.schedule @s entry @t micro_batches 0 {
}
// -----
func.func private @t()
dist.schedule @s entry @t micro_batches 1 {
  // expected-error @below {{expected the stages in order, before all edges, found stage 1}}
  dist.stage 1 {
  }
}
// -----
func.func private @t()
dist.schedule @s entry @t micro_batches 1 {
  // expected-error @below {{expected stages and edges in a schedule}}
  func.call @t() : () -> ()
}
// -----
func.func private @t()
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    // expected-error @below {{function @t is no task: it has no 'dist.task'}}
    dist.run @t[0]
  }
}
// -----
func.func private @t()
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    // expected-error @below {{no function named @u}}
    dist.run @u[0]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 1>}
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    // expected-error @below {{expected a task of stage 0, found @t of stage 1}}
    dist.run @t[0]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    // expected-error @below {{expected a micro-batch below 1, found 1}}
    dist.run @t[1]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected at least two turns, found 1: what runs once stands outside loops}}
    dist.loop 1 { dist.run @t[turn] }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected runs, found none}}
    dist.loop 2 { }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected a micro-batch below 2, found 1 in turn 0 of 2}}
    dist.loop 2 { dist.run @t[turn + 1] }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected a micro-batch below 2, found 0 in turn 0 of 3}}
    dist.loop 3 { dist.run @t[turn] }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected 'turn + offset' in a loop}}
    dist.loop 2 { dist.run @t[0] }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected a micro-batch outside loops, found 'turn + offset'}}
    dist.run @t[turn]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    dist.loop 2 {
      // expected-error @below {{expected runs alone in a loop}}
      builtin.module { }
    }
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    // expected-error @below {{expected runs and loops in a stage}}
    builtin.module { }
  }
}
// -----
func.func private @t(tensor<2xf32>) -> tensor<4xf32> attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 1 {
  // expected-error @below {{expected one type at both ends, found 'tensor<4xf32>' and 'tensor<2xf32>'}}
  dist.edge @t 0 -> @t 0
}
// -----
func.func private @t(tensor<2xf32>) -> tensor<4xf32> attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 1 {
  // expected-error @below {{expected a result of 1 and an argument of 1, found 1 and 0}}
  dist.edge @t 1 -> @t 0
}
// -----
// expected-error @below {{expected stage, chunk and round from 0 up, found 0, -1 and 0}}
func.func private @t() attributes {dist.task = #dist.task<forward stage 0 chunk -1>}
// -----
// expected-error @below {{expected stage, chunk and round from 0 up, found -1, 0 and 0}}
func.func private @t() attributes {dist.task = #dist.task<forward stage -1>}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
func.func private @u() attributes {dist.task = #dist.task<forward stage 0>}
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    dist.run @t[0]
    // expected-error @below {{expected one task #dist.task<forward stage 0>, found @t and @u}}
    dist.run @u[0]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
func.func private @u() attributes {dist.task = #dist.task<forward stage 0 chunk 1>}
func.func private @v() attributes {dist.task = #dist.task<backward stage 0 chunk 1>}
func.func private @w() attributes {dist.task = #dist.task<backward stage 0 chunk 1>}
dist.schedule @s entry @t micro_batches 2 {
  dist.stage 0 {
    dist.run @t[0]
    dist.loop 2 {
      dist.run @u[turn]
      dist.run @v[turn]
    }
    // expected-error @below {{expected one task #dist.task<backward stage 0 chunk 1>, found @v and @w}}
    dist.run @w[0]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0>}
func.func private @u() attributes {dist.task = #dist.task<forward stage 0 chunk 2>}
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    dist.run @t[0]
    // expected-error @below {{expected a task of chunk 1 as well, found @u of chunk 2 of stage 0}}
    dist.run @u[0]
  }
}
// -----
func.func private @t() attributes {dist.task = #dist.task<forward stage 0 chunk 1>}
func.func private @u() attributes {dist.task = #dist.task<forward stage 1>}
dist.schedule @s entry @t micro_batches 1 {
  dist.stage 0 {
    // expected-error @below {{expected a task of chunk 0 as well, found @t of chunk 1 of stage 0}}
    dist.run @t[0]
  }
  dist.stage 1 {
    dist.run @u[0]
  }
}
