// Programs in which each step is one that other programs make, and that compute
// something else: what a rank has of a value, and of which ranks, must be right in
// every step.
// RUN: rm -rf %t && split-file %s %t
// DEFINE: %{case} =
// DEFINE: %{refused} = not acc-opt %t/%{case}.local.mlir --dist-verify-equivalence=logical=%t/%{case}.train.mlir -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: {{.*(does not follow from the logical program|found something else)}}

// Rows of one term and columns of the other over the same ranks: each has a block
// of the diagonal, of which a gather makes no rows.
// REDEFINE: %{case} = diagonal
// RUN: %{refused}
// Each rank cuts its own part before the parts are exchanged: joined along the same
// dimension they are other elements than before. Along another one they are its part of it.
// REDEFINE: %{case} = shuffled
// RUN: %{refused}
// RUN: sed 's/split 0 concat 0/split 1 concat 0/; /all_to_all/s/-> tensor<4x2xf64>/-> tensor<8x1xf64>/; s/return %y : tensor<4x2/return %y : tensor<8x1/; s/-> (tensor<4x2xf64> {dist.layout = #dist.layout<@mesh \[8 by {dp}, 2\]>/-> (tensor<8x1xf64> {dist.layout = #dist.layout<@mesh [8, 2 by {dp}]>/' %t/shuffled.local.mlir > %t/columns.mlir
// RUN: acc-opt %t/columns.mlir --dist-verify-equivalence=logical=%t/shuffled.train.mlir -o /dev/null
// The rank's number in a type that has no such number; in one that has it.
// REDEFINE: %{case} = narrow
// RUN: %{refused}
// RUN: sed 's/tensor<i1>/tensor<i8>/' %t/narrow.local.mlir > %t/wide.mlir
// RUN: acc-opt %t/wide.mlir --dist-verify-equivalence=logical=%t/narrow.train.mlir -o /dev/null
// Terms that go to other ranks than those that add them.
// REDEFINE: %{case} = exchanged
// RUN: %{refused}
// The largest of sums is not the sum of the largest.
// REDEFINE: %{case} = largest
// RUN: %{refused}
// Terms stay what they are in another shape: of a maximum, not of a sum.
// REDEFINE: %{case} = reshaped
// RUN: %{refused}
// RUN: sed 's/all_reduce sum/all_reduce max/' %t/reshaped.local.mlir > %t/max.mlir
// RUN: acc-opt %t/max.mlir --dist-verify-equivalence=logical=%t/reshaped.train.mlir -o /dev/null
// Sums of indices that have no place in 32 bits; and that have.
// REDEFINE: %{case} = wraps
// RUN: %{refused}
// RUN: sed 's/2147483645/1000/' %t/wraps.local.mlir > %t/fits.mlir
// RUN: acc-opt %t/fits.mlir --dist-verify-equivalence=logical=%t/wraps.train.mlir -o /dev/null
// A table of equal rows: each of them must be some rank's.
// REDEFINE: %{case} = few
// RUN: %{refused}
// RUN: sed '/nn.broadcast .w :\|%29 = \|%32 = \|%43 = /s/2x4xf64/4x4xf64/; /%29 = \|%32 = /s/<2>/<4>/' %t/few.local.mlir > %t/all.mlir
// RUN: acc-opt %t/all.mlir --dist-verify-equivalence=logical=%t/few.train.mlir -o /dev/null
// Two key heads on ranks that share them: two of eight query heads would read one each, and read
// the same one. With one key head to share, it is so.
// REDEFINE: %{case} = heads
// RUN: %{refused}
// RUN: sed 's/%k: tensor<1x4x/%k: tensor<1x2x/; s/, tensor<1x4x8x4xf64>, tensor<1x4x/, tensor<1x2x8x4xf64>, tensor<1x2x/' %t/heads.train.mlir > %t/one.train.mlir
// RUN: sed 's/%k: tensor<1x2x/%k: tensor<1x1x/; s/4 by {tp_kv},/2 by {tp_kv},/; s/, tensor<1x2x8x4xf64>, tensor<1x2x/, tensor<1x1x8x4xf64>, tensor<1x1x/' %t/heads.local.mlir > %t/one.local.mlir
// RUN: acc-opt %t/one.local.mlir --dist-verify-equivalence=logical=%t/one.train.mlir -o /dev/null

//--- diagonal.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<4xf64> {nn.input = "a"}, %b: tensor<4xf64> {nn.input = "b"}) -> (tensor<4x4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %a1 = nn.reshape %a : (tensor<4xf64>) -> tensor<4x1xf64>
    %a2 = nn.broadcast %a1 : (tensor<4x1xf64>) -> tensor<4x4xf64>
    %b2 = nn.broadcast %b : (tensor<4xf64>) -> tensor<4x4xf64>
    %y = nn.add %a2, %b2 : tensor<4x4xf64>
    return %y : tensor<4x4xf64>
  }
}

//--- diagonal.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%a: tensor<2xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.input = "a"}, %b: tensor<2xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.input = "b"}) -> (tensor<2x4xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 4]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %a1 = nn.reshape %a : (tensor<2xf64>) -> tensor<2x1xf64>
    %a2 = nn.broadcast %a1 : (tensor<2x1xf64>) -> tensor<2x2xf64>
    %b2 = nn.broadcast %b : (tensor<2xf64>) -> tensor<2x2xf64>
    %s = nn.add %a2, %b2 : tensor<2x2xf64>
    %y = dist.all_gather %s over @mesh {dp} dim 1 : (tensor<2x2xf64>) -> tensor<2x4xf64>
    return %y : tensor<2x4xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- narrow.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<4xi64> {nn.input = "a"}) -> (tensor<4xi64> {nn.output = "y"}) attributes {nn.entry} {
    %i = nn.iota {dim = 0 : i64, start = 0 : i64} : tensor<4xi64>
    %y = nn.add %i, %a : tensor<4xi64>
    return %y : tensor<4xi64>
  }
}

//--- narrow.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 4]
  func.func @main(%a: tensor<1xi64> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.input = "a"}) -> (tensor<1xi64> {dist.layout = #dist.layout<@mesh [4 by {dp}]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %i = nn.iota {dim = 0 : i64, start = 0 : i64} : tensor<1xi64>
    %r = dist.axis_index @mesh {dp} : tensor<i64>
    %r1 = nn.cast %r : (tensor<i64>) -> tensor<i1>
    %r2 = nn.cast %r1 : (tensor<i1>) -> tensor<i64>
    %r3 = nn.broadcast %r2 : (tensor<i64>) -> tensor<1xi64>
    %i2 = nn.add %i, %r3 : tensor<1xi64>
    %y = nn.add %i2, %a : tensor<1xi64>
    return %y : tensor<1xi64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- exchanged.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<4x4xf64> {nn.input = "a"}) -> (tensor<4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.reduce sum %a dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    return %y : tensor<4xf64>
  }
}

//--- exchanged.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2, "tp" = 2]
  func.func @main(%a: tensor<2x2xf64> {dist.layout = #dist.layout<@mesh [4 by {dp}, 4 by {tp}]>, nn.input = "a"}) -> (tensor<2xf64> {dist.layout = #dist.layout<@mesh [4 by {tp}]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %s = nn.reduce sum %a dims [1] : (tensor<2x2xf64>) -> tensor<2xf64>
    %p = dist.permute %s over @mesh {dp, tp} sources [0, 2, 1, 3] : tensor<2xf64>
    %y = dist.all_reduce sum %p over @mesh {tp} : tensor<2xf64>
    return %y : tensor<2xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- few.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%w: tensor<4xf64> {nn.input = "w"}, %ids: tensor<5xi64> {nn.input = "ids"}) -> (tensor<5x4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %t = nn.broadcast %w : (tensor<4xf64>) -> tensor<8x4xf64>
    %y = nn.gather %t, %ids dim 0 {non_negative} : (tensor<8x4xf64>, tensor<5xi64>) -> tensor<5x4xf64>
    return %y : tensor<5x4xf64>
  }
}

//--- few.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%w: tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "w"}, %ids: tensor<5xi64> {dist.layout = #dist.layout<@mesh [5]>, nn.input = "ids"}) -> (tensor<5x4xf64> {dist.layout = #dist.layout<@mesh [5, 4]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %t = nn.broadcast %w : (tensor<4xf64>) -> tensor<2x4xf64>
    %26 = nn.constant dense<0> : tensor<5xi64>
    %27 = nn.constant dense<8> : tensor<5xi64>
    %28 = dist.axis_index @mesh {tp} : tensor<i64>
    %29 = nn.constant dense<2> : tensor<i64>
    %30 = nn.mul %28, %29 : tensor<i64>
    %31 = nn.broadcast %30 : (tensor<i64>) -> tensor<5xi64>
    %32 = nn.constant dense<2> : tensor<5xi64>
    %33 = nn.add %31, %32 : tensor<5xi64>
    %34 = nn.compare ge %ids, %31 : tensor<5xi64>
    %35 = nn.compare lt %ids, %33 : tensor<5xi64>
    %36 = nn.and %34, %35 : tensor<5xi1>
    %37 = nn.compare ge %ids, %26 : tensor<5xi64>
    %38 = nn.compare lt %ids, %27 : tensor<5xi64>
    %39 = nn.and %37, %38 : tensor<5xi1>
    %40 = nn.select %39, %26, %ids : tensor<5xi64>
    %41 = nn.sub %ids, %31 : tensor<5xi64>
    %42 = nn.select %36, %41, %40 : tensor<5xi64>
    %43 = nn.gather %t, %42 dim 0 {non_negative} : (tensor<2x4xf64>, tensor<5xi64>) -> tensor<5x4xf64>
    %44 = nn.reshape %36 : (tensor<5xi1>) -> tensor<5x1xi1>
    %45 = nn.broadcast %44 : (tensor<5x1xi1>) -> tensor<5x4xi1>
    %46 = nn.constant dense<0.000000e+00> : tensor<5x4xf64>
    %47 = nn.select %45, %43, %46 : tensor<5x4xf64>
    %y = dist.all_reduce sum %47 over @mesh {tp} : tensor<5x4xf64>
    return %y : tensor<5x4xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- largest.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<4x4xf64> {nn.input = "a"}, %b: tensor<4x4xf64> {nn.input = "b"}, %c: tensor<4xf64> {nn.input = "c"}) -> (tensor<4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %p = nn.reduce max %a dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    %q = nn.reduce max %b dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    %s = nn.add %p, %q : tensor<4xf64>
    %y = nn.add %s, %c : tensor<4xf64>
    return %y : tensor<4xf64>
  }
}

//--- largest.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%a: tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [4, 4 by {tp}]>, nn.input = "a"}, %b: tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [4, 4 by {tp}]>, nn.input = "b"}, %c: tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.input = "c"}) -> (tensor<4xf64> {dist.layout = #dist.layout<@mesh [4]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %p = nn.reduce max %a dims [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %q = nn.reduce max %b dims [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %s = nn.add %p, %q : tensor<4xf64>
    %r = dist.all_reduce max %s over @mesh {tp} : tensor<4xf64>
    %y = nn.add %r, %c : tensor<4xf64>
    return %y : tensor<4xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- reshaped.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<4x4xf64> {nn.input = "a"}) -> (tensor<2x2xf64> {nn.output = "y"}) attributes {nn.entry} {
    %p = nn.reduce max %a dims [1] : (tensor<4x4xf64>) -> tensor<4xf64>
    %y = nn.reshape %p : (tensor<4xf64>) -> tensor<2x2xf64>
    return %y : tensor<2x2xf64>
  }
}

//--- reshaped.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%a: tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [4, 4 by {tp}]>, nn.input = "a"}) -> (tensor<2x2xf64> {dist.layout = #dist.layout<@mesh [2, 2]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %p = nn.reduce max %a dims [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %q = nn.reshape %p : (tensor<4xf64>) -> tensor<2x2xf64>
    %y = dist.all_reduce sum %q over @mesh {tp} : tensor<2x2xf64>
    return %y : tensor<2x2xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- wraps.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%w: tensor<8x3xf64> {nn.input = "w"}, %ids: tensor<64xi32> {nn.input = "ids"}) -> (tensor<64x3xf64> {nn.output = "y"}) attributes {nn.entry} {
    %y = nn.gather %w, %ids dim 0 {non_negative} : (tensor<8x3xf64>, tensor<64xi32>) -> tensor<64x3xf64>
    return %y : tensor<64x3xf64>
  }
}

//--- wraps.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["tp" = 2]
  func.func @main(%w: tensor<4x3xf64> {dist.layout = #dist.layout<@mesh [8 by {tp}, 3]>, nn.input = "w"}, %ids: tensor<64xi32> {dist.layout = #dist.layout<@mesh [64]>, nn.input = "ids"}) -> (tensor<64x3xf64> {dist.layout = #dist.layout<@mesh [64, 3]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %zero = nn.constant dense<0> : tensor<64xi32>
    %all = nn.constant dense<8> : tensor<64xi32>
    %own = nn.constant dense<4> : tensor<64xi32>
    %far = nn.constant dense<2147483645> : tensor<64xi32>
    %rank = dist.axis_index @mesh {tp} : tensor<i64>
    %size = nn.constant dense<4> : tensor<i64>
    %begin = nn.mul %rank, %size : tensor<i64>
    %narrow = nn.cast %begin : (tensor<i64>) -> tensor<i32>
    %first = nn.broadcast %narrow : (tensor<i32>) -> tensor<64xi32>
    %end = nn.add %first, %own : tensor<64xi32>
    %farIds = nn.add %ids, %far : tensor<64xi32>
    %farFirst = nn.add %first, %far : tensor<64xi32>
    %ge = nn.compare ge %farIds, %farFirst : tensor<64xi32>
    %nonneg = nn.compare ge %ids, %first : tensor<64xi32>
    %lt = nn.compare lt %ids, %end : tensor<64xi32>
    %isSmall = nn.compare lt %ids, %all : tensor<64xi32>
    %isThere = nn.compare ge %ids, %zero : tensor<64xi32>
    %isRow = nn.and %isThere, %isSmall : tensor<64xi1>
    %both = nn.and %isRow, %lt : tensor<64xi1>
    %mine = nn.and %both, %ge : tensor<64xi1>
    %offset = nn.sub %ids, %first : tensor<64xi32>
    %else = nn.select %isRow, %zero, %ids : tensor<64xi32>
    %row = nn.select %mine, %offset, %else : tensor<64xi32>
    %found = nn.gather %w, %row dim 0 {non_negative} : (tensor<4x3xf64>, tensor<64xi32>) -> tensor<64x3xf64>
    %mask = nn.reshape %mine : (tensor<64xi1>) -> tensor<64x1xi1>
    %masks = nn.broadcast %mask : (tensor<64x1xi1>) -> tensor<64x3xi1>
    %zeros = nn.constant dense<0.0> : tensor<64x3xf64>
    %terms = nn.select %masks, %found, %zeros : tensor<64x3xf64>
    %y = dist.all_reduce sum %terms over @mesh {tp} : tensor<64x3xf64>
    return %y : tensor<64x3xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- heads.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%q: tensor<1x8x8x4xf64> {nn.input = "q"}, %k: tensor<1x4x8x4xf64> {nn.input = "k"}) -> (tensor<1x8x8x4xf64> {nn.output = "y"}) attributes {nn.entry} {
    %y, %l = nn.attention %q, %k, %k {causal, scale = 0.5 : f64} : (tensor<1x8x8x4xf64>, tensor<1x4x8x4xf64>, tensor<1x4x8x4xf64>) -> (tensor<1x8x8x4xf64>, tensor<1x8x8xf64>)
    return %y : tensor<1x8x8x4xf64>
  }
}

//--- heads.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["tp_kv" = 2, "tp" = 2]
  func.func @main(%q: tensor<1x2x8x4xf64> {dist.layout = #dist.layout<@mesh [1, 8 by {tp_kv, tp}, 8, 4]>, nn.input = "q"}, %k: tensor<1x2x8x4xf64> {dist.layout = #dist.layout<@mesh [1, 4 by {tp_kv}, 8, 4]>, nn.input = "k"}) -> (tensor<1x2x8x4xf64> {dist.layout = #dist.layout<@mesh [1, 8 by {tp_kv, tp}, 8, 4]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %y, %l = nn.attention %q, %k, %k {causal, scale = 0.5 : f64} : (tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>, tensor<1x2x8x4xf64>) -> (tensor<1x2x8x4xf64>, tensor<1x2x8xf64>)
    return %y : tensor<1x2x8x4xf64>
  }
  dist.schedule @main_schedule entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}

//--- shuffled.train.mlir
module attributes {accel.phase = "train"} {
  func.func @main(%a: tensor<8x2xf64> {nn.input = "a"}) -> (tensor<8x2xf64> {nn.output = "y"}) attributes {nn.entry} {
    return %a : tensor<8x2xf64>
  }
}

//--- shuffled.local.mlir
module attributes {accel.phase = "local"} {
  dist.mesh @mesh ["dp" = 2]
  func.func @main(%a: tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [8 by {dp}, 2]>, nn.input = "a"}) -> (tensor<4x2xf64> {dist.layout = #dist.layout<@mesh [8 by {dp}, 2]>, nn.output = "y"}) attributes {dist.task = #dist.task<forward stage 0>, nn.entry} {
    %y = dist.all_to_all %a over @mesh {dp} split 0 concat 0 : (tensor<4x2xf64>) -> tensor<4x2xf64>
    return %y : tensor<4x2xf64>
  }
  dist.schedule @s entry @main micro_batches 1 {
    dist.stage 0 {
      dist.run @main[0]
    }
  }
}
