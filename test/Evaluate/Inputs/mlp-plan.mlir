// mlp.mlir as a plan of 2 x 2 ranks by hand: the first product and the kernel
// on one stream, the reduction on another, in slots and at axis strides.
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["dp" = 2, "tp" = 2]
  nn.state @w : tensor<4x8xf64> = dense<[
    [0.5, -1.0, 0.25, 2.0, 1.5, -0.5, 1.0, 0.75],
    [1.0, 0.5, -0.75, 1.25, -2.0, 0.25, 0.5, -1.5],
    [-0.5, 1.5, 1.0, -1.0, 0.75, 2.0, -0.25, 0.5],
    [0.25, -0.25, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0]]>
  nn.state @b : tensor<8xf64> = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]>
  func.func private @kernel_0(%x: tensor<2x4xf64>) -> tensor<2x4xf64> attributes {plan.kernel} {
    %0 = nn.gelu erf %x : tensor<2x4xf64>
    return %0 : tensor<2x4xf64>
  }
  plan.program @main stage 0 ranks 4 mesh @m {
    plan.arena device bytes 640 alignment 64 reserve 0
    plan.arena shared bytes 128 alignment 64 reserve 0
    // Every rank holds the whole weight and uses its half.
    plan.buffer @w role state space device offset 0 bytes 256 slots 1 stride 256
    plan.buffer @b role state space device offset 256 bytes 64 slots 1 stride 64
    plan.buffer @packed role packed space device offset 320 bytes 128 slots 1 stride 128
    plan.buffer @x role input space device offset 448 bytes 64 slots 1 stride 64
    plan.buffer @h role activation space device offset 512 bytes 64 slots 2 stride 64
    plan.buffer @p role communication space shared offset 0 bytes 64 slots 1 stride 64
    plan.buffer @y role output space shared offset 64 bytes 64 slots 1 stride 64
    plan.body @load_states engine cpu {
      plan.read state "w" <[4, 8] by [[], []]> -> <@w + 0 : f64[4, 8] strides[8, 1]>
      plan.read state "b" <[8] by [[]]> -> <@b + 0 : f64[8] strides[1]>
      plan.pack <@w + 0 axes [<"tp" * 32>] : f64[4, 4] strides[8, 1]> -> <@packed + 0 : i8[128] strides[1]> {form = {}}
    }
    plan.body @forward engine cpu {
      plan.read input "x" <[4, 4] by [["dp"], []]> -> <@x + 0 : f64[2, 4] strides[4, 1]>
      plan.gemm <@x + 0 : f64[2, 4] strides[4, 1]>, <@w + 0 axes [<"tp" * 32>] : f64[4, 4] strides[8, 1]> -> <@h + 0 : f64[2, 4] strides[4, 1]> {
        packed = #plan.view<@packed + 0 : i8[128] strides[1]>,
        bias = #plan.view<@b + 0 axes [<"tp" * 32>] : f64[4] strides[1]>, plan.releases = [#plan.view<@x + 0 : f64[2, 4] strides[4, 1]>]}
      plan.kernel @kernel_0 [#plan.view<@h + 0 : f64[2, 4] strides[4, 1]>] -> [#plan.view<@h + 0 : f64[2, 4] strides[4, 1]>] rows 2 grid 1
      plan.gemm <@h + 0 : f64[2, 4] strides[4, 1]>, <@w + 0 axes [<"tp" * 32>] : f64[4, 4] strides[1, 8]> -> <@p + 0 : f64[2, 4] strides[4, 1]> {plan.releases = [#plan.view<@h + 0 : f64[2, 4] strides[4, 1]>]}
      plan.record "p"
      plan.wait "p" {stream = "comm"}
      plan.collective all_reduce ["tp"] [#plan.view<@p + 0 : f64[2, 4] strides[4, 1]>] -> [#plan.view<@y + 0 : f64[2, 4] strides[4, 1]>] {combine = #plan<combine sum>, stream = "comm", plan.releases = [#plan.view<@p + 0 : f64[2, 4] strides[4, 1]>]}
      plan.record "y" {stream = "comm"}
      plan.wait "y"
      plan.write <@y + 0 : f64[2, 4] strides[4, 1]> -> output "y" <[4, 4] by [["dp"], []]>
    }
    plan.entry @main {
      plan.segment cpu capturable {
        plan.run @forward micro_batch 0
      }
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load_states micro_batch 0
      }
    }
  }
}
