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
    plan.arena device 640 bytes
    plan.arena shared 128 bytes
    // Every rank holds the whole weight and uses its half.
    plan.buffer @w : state device at 0, 256 bytes
    plan.buffer @b : state device at 256, 64 bytes
    plan.buffer @packed : packed device at 320, 128 bytes
    plan.buffer @x : input device at 448, 64 bytes
    plan.buffer @h : activation device at 512, 64 bytes slots 2
    plan.buffer @p : communication shared at 0, 64 bytes
    plan.buffer @y : output shared at 64, 64 bytes
    plan.body @load_states engine cpu {
      plan.read state "w" -> @w[4x8xf64]
      plan.read state "b" -> @b[8xf64]
      plan.pack @w[4x4xf64 at tp*32 strides [8, 1]] -> @packed[128xi8] form {}
    }
    plan.body @forward engine cpu {
      plan.read input "x" -> @x[2x4xf64] of [4/dp, 4]
      plan.gemm @x[2x4xf64], @w[4x4xf64 at tp*32 strides [8, 1]] packed @packed[128xi8] + @b[4xf64 at tp*32] -> @h[2x4xf64] releases @x[2x4xf64]
      plan.kernel @kernel_0(@h[2x4xf64]) -> @h[2x4xf64] rows 2 by 1
      plan.gemm @h[2x4xf64], @w[4x4xf64 at tp*32 strides [1, 8]] -> @p[2x4xf64] releases @h[2x4xf64]
      plan.record "p"
      plan.wait "p" on comm
      plan.collective all_reduce sum over tp (@p[2x4xf64]) -> @y[2x4xf64] on comm releases @p[2x4xf64]
      plan.record "y" on comm
      plan.wait "y"
      plan.write @y[2x4xf64] of [4/dp, 4] -> output "y"
    }
    plan.entry @forward {
      plan.segment cpu capturable {
        plan.run @forward
      }
    }
    plan.entry @load {
      plan.segment cpu {
        plan.run @load_states
      }
    }
  }
}
