// Two stages of one text exchange halves by messages in a group: y = x with its
// halves swapped.
module attributes {accel.phase = "plan"} {
  dist.mesh @m ["dp" = 2, "pp" = 2]
  plan.program @s0 stage 0 ranks 4 mesh @m {
    plan.buffer @x : input device 16 bytes
    plan.buffer @y : output device 16 bytes
    plan.body @b engine cpu {
      plan.read input "x" -> @x[1x2xf64] of [2/pp, 4/dp]
      plan.group {
        plan.recv @y[1x2xf64] from pp + 1 tag 1
        plan.send @x[1x2xf64] to pp + 1 tag 0
      }
      plan.write @y[1x2xf64] of [2/pp, 4/dp] -> output "y"
    }
    plan.entry @forward { plan.segment cpu { plan.run @b } }
  }
  plan.program @s1 stage 1 ranks 4 mesh @m {
    plan.buffer @x : input device 16 bytes
    plan.buffer @y : output device 16 bytes
    plan.body @b engine cpu {
      plan.read input "x" -> @x[1x2xf64] of [2/pp, 4/dp]
      plan.group {
        plan.recv @y[1x2xf64] from pp - 1 tag 0
        plan.send @x[1x2xf64] to pp - 1 tag 1
      }
      plan.write @y[1x2xf64] of [2/pp, 4/dp] -> output "y"
    }
    plan.entry @forward { plan.segment cpu { plan.run @b } }
  }
}
