// Two stages of one text exchange halves by messages in a group: y = x with its
// halves swapped.
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["dp" = 2, "pp" = 2]
  plan.program @s0 stage 0 ranks 4 mesh @m {
    plan.buffer @x role input space device offset -1 bytes 16 slots 1 stride 16
    plan.buffer @y role output space device offset -1 bytes 16 slots 1 stride 16
    plan.body @b engine cpu {
      plan.read input "x" <[2, 4] by [["pp"], ["dp"]]> -> <@x + 0 : f64[1, 2] strides[2, 1]>
      plan.group {
        plan.send <@x + 0 : f64[1, 2] strides[2, 1]> to "pp" 1 tag 0
        plan.recv <@y + 0 : f64[1, 2] strides[2, 1]> from "pp" 1 tag 1
      }
      plan.write <@y + 0 : f64[1, 2] strides[2, 1]> -> output "y" <[2, 4] by [["pp"], ["dp"]]>
    }
    plan.entry @forward { plan.segment cpu { plan.run @b micro_batch 0 } }
  }
  plan.program @s1 stage 1 ranks 4 mesh @m {
    plan.buffer @x role input space device offset -1 bytes 16 slots 1 stride 16
    plan.buffer @y role output space device offset -1 bytes 16 slots 1 stride 16
    plan.body @b engine cpu {
      plan.read input "x" <[2, 4] by [["pp"], ["dp"]]> -> <@x + 0 : f64[1, 2] strides[2, 1]>
      plan.group {
        plan.send <@x + 0 : f64[1, 2] strides[2, 1]> to "pp" -1 tag 1
        plan.recv <@y + 0 : f64[1, 2] strides[2, 1]> from "pp" -1 tag 0
      }
      plan.write <@y + 0 : f64[1, 2] strides[2, 1]> -> output "y" <[2, 4] by [["pp"], ["dp"]]>
    }
    plan.entry @forward { plan.segment cpu { plan.run @b micro_batch 0 } }
  }
}
