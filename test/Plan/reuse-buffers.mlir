// RUN: acc-opt %s -split-input-file --plan-reuse-buffers | FileCheck %s

func.func private @negate(%a: tensor<2x4xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<2x4xf32>
  %c = nn.reshape %b : (tensor<2x4xf32>) -> tensor<8xf32>
  return %c : tensor<8xf32>
}
func.func private @turn(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.reshape %a : (tensor<8xf32>) -> tensor<2x4xf32>
  %c = nn.transpose %b [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %d = nn.reshape %c : (tensor<4x2xf32>) -> tensor<8xf32>
  return %d : tensor<8xf32>
}
func.func private @normalise(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.softmax %a dim 0 : tensor<8xf32>
  return %b : tensor<8xf32>
}
func.func private @run(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.cumsum %a dim 0 {reverse} : tensor<8xf32>
  return %b : tensor<8xf32>
}

// @b takes @a's bytes, and @b's readers follow; rows are normalised in place;
// inputs, transposed readers, rows read elsewhere and buffers read later stay as
// they are.
// CHECK-LABEL: plan.program @p
// CHECK-NOT: plan.buffer @b
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @negate(@x[2x4xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@a[2x4xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.kernel @turn(@a[8xf32]) -> @c[8xf32] rows 1
// CHECK-NEXT: plan.kernel @normalise(@c[8xf32]) -> @c[8xf32] rows 1
// CHECK-NEXT: plan.kernel @run(@c[8xf32]) -> @d[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@d[2x4xf32]) -> @e[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@d[2x4xf32]) -> @d[8xf32] rows 1
plan.program @p stage 0 ranks 1 {
  plan.buffer @x : input device 32 bytes
  plan.buffer @a : activation device 32 bytes
  plan.buffer @b : activation device 32 bytes
  plan.buffer @c : activation device 32 bytes
  plan.buffer @n : activation device 32 bytes
  plan.buffer @d : activation device 32 bytes
  plan.buffer @e : activation device 32 bytes
  // CHECK-NOT: plan.buffer @negate
  plan.buffer @negate : activation device 32 bytes
  plan.body @f engine cpu {
    plan.kernel @negate(@x[2x4xf32]) -> @a[8xf32] rows 1
    plan.kernel @negate(@a[2x4xf32]) -> @b[8xf32] rows 1
    plan.kernel @turn(@b[8xf32]) -> @c[8xf32] rows 1
    plan.kernel @normalise(@c[8xf32]) -> @n[8xf32] rows 1
    plan.kernel @run(@n[8xf32]) -> @d[8xf32] rows 1
    plan.kernel @negate(@d[2x4xf32]) -> @e[8xf32] rows 1
    plan.kernel @negate(@d[2x4xf32]) -> @negate[8xf32] rows 1
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----

// New values of states are written where the old ones lay; not where another
// result has loops of its own, or where the old value is read afterwards.
func.func private @update(%p: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.add %m, %g : tensor<8xf32>
  %q = nn.sub %p, %n : tensor<8xf32>
  return %n, %q : tensor<8xf32>, tensor<8xf32>
}
func.func private @two_nests(%p: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) attributes {plan.kernel, plan.rows = 1 : i64} {
  %n = nn.neg %p : tensor<8xf32>
  %s = nn.reduce sum %p dims [0] : (tensor<8xf32>) -> tensor<f32>
  return %n, %s : tensor<8xf32>, tensor<f32>
}
func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// CHECK-LABEL: plan.program @states
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @update(@p[8xf32], @m[8xf32], @g[8xf32]) -> @m[8xf32], @p[8xf32] rows 1
// CHECK-NEXT: plan.kernel @two_nests(@q[8xf32]) -> @t[8xf32], @s[f32] rows 1
// CHECK-NEXT: plan.kernel @negate(@r[8xf32]) -> @u[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@r[8xf32]) -> @v[8xf32] rows 1
// CHECK-NEXT: plan.copy @t[8xf32] -> @q[8xf32]
// CHECK-NEXT: plan.copy @u[8xf32] -> @r[8xf32]
// CHECK-NEXT: }
plan.program @states stage 0 ranks 1 {
  plan.buffer @p : state device 32 bytes
  plan.buffer @m : state device 32 bytes
  plan.buffer @q : state device 32 bytes
  plan.buffer @r : state device 32 bytes
  plan.buffer @g : input device 32 bytes
  plan.buffer @m1 : activation device 32 bytes
  plan.buffer @p1 : activation device 32 bytes
  plan.buffer @t : activation device 32 bytes
  plan.buffer @s : activation device 4 bytes
  plan.buffer @u : activation device 32 bytes
  plan.buffer @v : activation device 32 bytes
  plan.body @f engine cpu {
    plan.kernel @update(@p[8xf32], @m[8xf32], @g[8xf32]) -> @m1[8xf32], @p1[8xf32] rows 1
    plan.kernel @two_nests(@q[8xf32]) -> @t[8xf32], @s[f32] rows 1
    plan.kernel @negate(@r[8xf32]) -> @u[8xf32] rows 1
    plan.kernel @negate(@r[8xf32]) -> @v[8xf32] rows 1
    plan.copy @m1[8xf32] -> @m[8xf32]
    plan.copy @p1[8xf32] -> @p[8xf32]
    plan.copy @t[8xf32] -> @q[8xf32]
    plan.copy @u[8xf32] -> @r[8xf32]
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----
func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// What other ranks read later is written, and changed, where they can: in space
// shared. What they do not read goes nowhere else.
// CHECK-LABEL: plan.program @shared
// CHECK: plan.buffer @a : activation shared
// CHECK-NOT: plan.buffer @b
// CHECK: plan.buffer @c : activation shared
// CHECK: plan.buffer @d : activation device
// CHECK: plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.kernel @negate(@a[8xf32]) -> @a[8xf32] rows 1
// CHECK-NEXT: plan.collective all_reduce sum over dp (@a[8xf32]) -> @c[8xf32]
// CHECK-NEXT: plan.kernel @negate(@c[8xf32]) -> @d[8xf32] rows 1
plan.program @shared stage 0 ranks 2 {
  plan.buffer @x : input device 32 bytes
  plan.buffer @a : activation device 32 bytes
  plan.buffer @b : activation shared 32 bytes
  plan.buffer @c : activation shared 32 bytes
  plan.buffer @d : activation device 32 bytes
  plan.body @f engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @a[8xf32] rows 1
    plan.kernel @negate(@a[8xf32]) -> @b[8xf32] rows 1
    plan.collective all_reduce sum over dp (@b[8xf32]) -> @c[8xf32]
    plan.kernel @negate(@c[8xf32]) -> @d[8xf32] rows 1
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----
func.func private @negate(%a: tensor<4xf32>) -> tensor<4xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @read(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// A gather writes the new value of @p into it; that of @q goes to a buffer first,
// since the old value is read after it began.
// CHECK-LABEL: plan.program @gathered
// CHECK: plan.body @f
// CHECK: plan.collective all_gather over dp (@s[4xf32]) -> @p[8xf32]
// CHECK-NEXT: plan.collective all_gather over dp (@s[4xf32]) -> @v[8xf32]
// CHECK-NEXT: plan.kernel @read(@q
// CHECK-NEXT: plan.copy @v[8xf32] -> @q[8xf32]
// CHECK-NEXT: }
plan.program @gathered stage 0 ranks 2 {
  plan.buffer @p : state device 32 bytes
  plan.buffer @q : state device 32 bytes
  plan.buffer @x : input device 16 bytes
  plan.buffer @s : activation shared 16 bytes
  plan.buffer @u : activation device 32 bytes
  plan.buffer @v : activation device 32 bytes
  plan.buffer @w : activation device 32 bytes
  plan.body @f engine cpu {
    plan.kernel @negate(@x[4xf32]) -> @s[4xf32] rows 1
    plan.collective all_gather over dp (@s[4xf32]) -> @u[8xf32]
    plan.collective all_gather over dp (@s[4xf32]) -> @v[8xf32]
    plan.kernel @read(@q[8xf32]) -> @w[8xf32] rows 1
    plan.copy @u[8xf32] -> @p[8xf32]
    plan.copy @v[8xf32] -> @q[8xf32]
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----
func.func private @negate(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %b = nn.neg %a : tensor<8xf32>
  return %b : tensor<8xf32>
}
// Two of twelve micro-batches in flight, of which four turns are followed. What
// the backward makes of @kept takes its copies, as what it makes of @early for a
// run behind it does; what the forward makes @left of is of its run alone, and they
// take its place. @late is read by another stream, for which the next micro-batch
// on its copy does not wait; @slowest is read behind the next forward but one;
// @peeked is read of one micro-batch afterwards, in a turn that is not followed:
// they stay.
// CHECK-LABEL: plan.program @in_flight
// CHECK: plan.buffer @kept : activation device 32 bytes slots 2
// CHECK-NOT: plan.buffer @made
// CHECK: plan.buffer @before : activation device 32 bytes slots 2
// CHECK-NOT: plan.buffer @left
// CHECK: plan.buffer @slow : activation device 32 bytes slots 2
// CHECK: plan.buffer @late : activation device 32 bytes
// CHECK: plan.buffer @early : activation device 32 bytes slots 2
// CHECK-NOT: plan.buffer @both
// CHECK: plan.buffer @one : activation device 32 bytes
// CHECK: plan.buffer @slowest : activation device 32 bytes
// CHECK: plan.body @forward
// CHECK: plan.kernel @negate(@before[8xf32]) -> @before[8xf32]
// CHECK: plan.body @backward
// CHECK: plan.kernel @negate(@kept[8xf32]) -> @kept[8xf32]
// CHECK: plan.kernel @negate(@kept[8xf32]) -> @grad[8xf32]
// CHECK: plan.kernel @negate(@slow[8xf32]) -> @late[8xf32]
// CHECK: plan.kernel @negate(@early[8xf32]) -> @early[8xf32]
// CHECK: plan.kernel @negate(@peeked[8xf32]) -> @other[8xf32]
// CHECK: plan.kernel @negate(@one[8xf32]) -> @slowest[8xf32]
plan.program @in_flight stage 0 ranks 1 {
  plan.buffer @x : input device 32 bytes
  plan.buffer @grad : state device 32 bytes
  plan.buffer @kept : activation device 32 bytes slots 2
  plan.buffer @made : activation device 32 bytes
  plan.buffer @before : activation device 32 bytes
  plan.buffer @left : activation device 32 bytes slots 2
  plan.buffer @slow : activation device 32 bytes slots 2
  plan.buffer @late : activation device 32 bytes
  plan.buffer @early : activation device 32 bytes slots 2
  plan.buffer @both : activation device 32 bytes slots 2
  plan.buffer @one : activation device 32 bytes
  plan.buffer @slowest : activation device 32 bytes
  plan.buffer @peeked : activation device 32 bytes slots 2
  plan.buffer @other : activation device 32 bytes
  plan.body @forward engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @kept[8xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @before[8xf32] rows 1
    plan.kernel @negate(@before[8xf32]) -> @left[8xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @slow[8xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @early[8xf32] rows 1
    plan.kernel @negate(@x[8xf32]) -> @peeked[8xf32] rows 1
  }
  plan.body @backward engine cpu {
    plan.kernel @negate(@kept[8xf32]) -> @made[8xf32] rows 1
    plan.kernel @negate(@made[8xf32]) -> @grad[8xf32] rows 1
    plan.kernel @negate(@left[8xf32]) -> @grad[8xf32] rows 1
    plan.kernel @negate(@slow[8xf32]) -> @late[8xf32] rows 1
    plan.record "made"
    plan.wait "made" on other
    plan.record "waited" on other
    plan.copy @late[8xf32] -> @grad[8xf32] on other
    plan.wait "waited"
    plan.kernel @negate(@early[8xf32]) -> @both[8xf32] rows 1
    plan.kernel @negate(@peeked[8xf32]) -> @other[8xf32] rows 1
  }
  // One copy of each is enough, but not for both together.
  plan.body @begin engine cpu {
    plan.kernel @negate(@x[8xf32]) -> @one[8xf32] rows 1
  }
  plan.body @middle engine cpu {
    plan.kernel @negate(@one[8xf32]) -> @slowest[8xf32] rows 1
  }
  plan.body @end engine cpu {
    plan.kernel @negate(@slowest[8xf32]) -> @grad[8xf32] rows 1
  }
  plan.body @peek engine cpu {
    plan.kernel @negate(@peeked[8xf32]) -> @grad[8xf32] rows 1
  }
  plan.body @last engine cpu {
    plan.kernel @negate(@both[8xf32]) -> @grad[8xf32] rows 1
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @forward
      plan.run @begin
    }
    plan.loop 11 {
      plan.segment cpu {
        plan.run @forward micro_batch turn + 1
        plan.run @backward micro_batch turn
        plan.run @last micro_batch turn
        plan.run @middle micro_batch turn
        plan.run @begin micro_batch turn + 1
        plan.run @end micro_batch turn
      }
    }
    plan.segment cpu {
      plan.run @backward micro_batch 11
      plan.run @last micro_batch 11
      plan.run @middle micro_batch 11
      plan.run @end micro_batch 11
      plan.run @peek micro_batch 5
    }
  }
}

// -----
// A row's sum stays in its row: what scales rows is in place, what adds the sums of others' is not.
func.func private @scale(%a: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
  %s = nn.reduce sum %a dims [1] : (tensor<2x4xf32>) -> tensor<2xf32>
  %r = nn.reshape %s : (tensor<2xf32>) -> tensor<2x1xf32>
  %b = nn.broadcast %r : (tensor<2x1xf32>) -> tensor<2x4xf32>
  %0 = nn.mul %a, %b : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
func.func private @cross(%a: tensor<2x4xf32>) -> tensor<2x4xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
  %i = nn.constant dense<[[1], [0]]> : tensor<2x1xi64>
  %s = nn.reduce sum %a dims [1] : (tensor<2x4xf32>) -> tensor<2xf32>
  %o = nn.gather_nd %s, %i : (tensor<2xf32>, tensor<2x1xi64>) -> tensor<2xf32>
  %r = nn.reshape %o : (tensor<2xf32>) -> tensor<2x1xf32>
  %b = nn.broadcast %r : (tensor<2x1xf32>) -> tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}
// CHECK-LABEL: plan.program @rows
// CHECK: plan.body @f
// CHECK-NEXT: plan.kernel @scale(@x[2x4xf32]) -> @a[2x4xf32] rows 2
// CHECK-NEXT: plan.kernel @scale(@a[2x4xf32]) -> @a[2x4xf32] rows 2
// CHECK-NEXT: plan.kernel @cross(@a[2x4xf32]) -> @c[2x4xf32] rows 2
plan.program @rows stage 0 ranks 1 mesh @m {
  plan.buffer @x : input device 32 bytes
  plan.buffer @a : activation device 32 bytes
  plan.buffer @b : activation device 32 bytes
  plan.buffer @c : activation device 32 bytes
  plan.body @f engine cpu {
    plan.kernel @scale(@x[2x4xf32]) -> @a[2x4xf32] rows 2
    plan.kernel @scale(@a[2x4xf32]) -> @b[2x4xf32] rows 2
    plan.kernel @cross(@b[2x4xf32]) -> @c[2x4xf32] rows 2
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----

// What is made of sums of rows is written over the rows where each sum is read
// in its own row, or all of them are read before: not where a running sum, or
// another row, reads a sum of elements that are written by then.
func.func private @make(%x: tensor<4x6x3xf32>) -> tensor<4x6x3xf32> attributes {plan.kernel, plan.rows = 4 : i64} {
  %y = nn.neg %x : tensor<4x6x3xf32>
  return %y : tensor<4x6x3xf32>
}
func.func private @make_few(%x: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
  %y = nn.neg %x : tensor<2x3x3xf32>
  return %y : tensor<2x3x3xf32>
}
func.func private @scale(%x: tensor<4x6x3xf32>) -> tensor<4x6x3xf32> attributes {plan.kernel, plan.rows = 4 : i64} {
  %n = nn.reduce sum %x dims [2] : (tensor<4x6x3xf32>) -> tensor<4x6xf32>
  %p = nn.softmax %n dim 1 : tensor<4x6xf32>
  %c = nn.reshape %p : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
  %b = nn.broadcast %c : (tensor<4x6x1xf32>) -> tensor<4x6x3xf32>
  %y = nn.mul %x, %b : tensor<4x6x3xf32>
  return %y : tensor<4x6x3xf32>
}
func.func private @run_of_sums(%x: tensor<4x6x3xf32>) -> tensor<4x6x3xf32> attributes {plan.kernel, plan.rows = 4 : i64} {
  %n = nn.reduce sum %x dims [2] : (tensor<4x6x3xf32>) -> tensor<4x6xf32>
  %c = nn.reshape %n : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
  %b = nn.broadcast %c : (tensor<4x6x1xf32>) -> tensor<4x6x3xf32>
  %y = nn.cumsum %b dim 1 {reverse} : tensor<4x6x3xf32>
  return %y : tensor<4x6x3xf32>
}
func.func private @sums_of_others(%x: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> attributes {plan.kernel, plan.rows = 2 : i64} {
  %n = nn.reduce sum %x dims [2] : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  %c = nn.reshape %n : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %b = nn.broadcast %c : (tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  %y = nn.mul %x, %b : tensor<2x3x3xf32>
  return %y : tensor<2x3x3xf32>
}
// CHECK-LABEL: plan.program @sums
// CHECK: plan.kernel @make(
// CHECK-NEXT: plan.kernel @scale(@a[4x6x3xf32]) -> @a[4x6x3xf32] rows 4
// CHECK-NEXT: plan.kernel @run_of_sums(@a[4x6x3xf32]) -> @c[4x6x3xf32] rows 4
// CHECK-NEXT: plan.kernel @make_few(
// CHECK-NEXT: plan.kernel @sums_of_others(@d[2x3x3xf32]) -> @e[2x3x3xf32] rows 2
plan.program @sums stage 0 ranks 1 {
  plan.buffer @x : input device 288 bytes
  plan.buffer @few : input device 72 bytes
  plan.buffer @a : activation device 288 bytes
  plan.buffer @b : activation device 288 bytes
  plan.buffer @c : activation device 288 bytes
  plan.buffer @d : activation device 72 bytes
  plan.buffer @e : activation device 72 bytes
  plan.body @f engine cpu {
    plan.kernel @make(@x[4x6x3xf32]) -> @a[4x6x3xf32] rows 4
    plan.kernel @scale(@a[4x6x3xf32]) -> @b[4x6x3xf32] rows 4
    plan.kernel @run_of_sums(@b[4x6x3xf32]) -> @c[4x6x3xf32] rows 4
    plan.kernel @make_few(@few[2x3x3xf32]) -> @d[2x3x3xf32] rows 2
    plan.kernel @sums_of_others(@d[2x3x3xf32]) -> @e[2x3x3xf32] rows 2
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
    }
  }
}

// -----

func.func private @halve(%a: tensor<8xf32>) -> tensor<8xf32> attributes {plan.kernel, plan.rows = 1 : i64} {
  %half = nn.constant dense<0.5> : tensor<8xf32>
  %b = nn.mul %a, %half : tensor<8xf32>
  return %b : tensor<8xf32>
}

// A new value is not written over the old one while a collective still sends it.
// CHECK-LABEL: plan.program @sent
// CHECK: plan.body @early
// CHECK: plan.kernel @halve(@v[8xf32]) -> @v.new[8xf32]
// CHECK: plan.copy @v.new[8xf32] -> @v[8xf32]
// CHECK: plan.body @late
// CHECK: plan.kernel @halve(@w[8xf32]) -> @w[8xf32]
// CHECK-NOT: plan.copy
plan.program @sent stage 0 ranks 2 {
  plan.buffer @v : state device 32 bytes
  plan.buffer @w : state device 32 bytes
  plan.buffer @v.all : activation device 64 bytes
  plan.buffer @w.all : activation device 64 bytes
  plan.buffer @v.new : activation device 32 bytes
  plan.buffer @w.new : activation device 32 bytes
  plan.body @early engine cpu {
    plan.record "c0"
    plan.wait "c0" on comm
    plan.collective all_gather over dp (@v[8xf32]) -> @v.all[16xf32] on comm
    plan.record "c0_done" on comm
    plan.kernel @halve(@v[8xf32]) -> @v.new[8xf32] rows 1
    plan.wait "c0_done"
    plan.copy @v.new[8xf32] -> @v[8xf32]
  }
  plan.body @late engine cpu {
    plan.record "c1"
    plan.wait "c1" on comm
    plan.collective all_gather over dp (@w[8xf32]) -> @w.all[16xf32] on comm
    plan.record "c1_done" on comm
    plan.wait "c1_done"
    plan.kernel @halve(@w[8xf32]) -> @w.new[8xf32] rows 1
    plan.copy @w.new[8xf32] -> @w[8xf32]
  }
  plan.entry @step {
    plan.segment cpu {
      plan.run @early
      plan.run @late
    }
  }
}
