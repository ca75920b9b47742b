// RUN: acc-opt %s --split-input-file --verify-diagnostics --plan-verify -o /dev/null

// Two stages that exchange values: each posts both ends at once.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.group {
      plan.recv @b[16xf32] from pp + 1 tag 1
      plan.send @a[16xf32] to pp + 1 tag 0
    }
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 2.0
    plan.group {
      plan.recv @b[16xf32] from pp - 1 tag 0
      plan.send @a[16xf32] to pp - 1 tag 1
    }
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// One after the other they wait for each other.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-note @below {{stream 'compute' of stage 0 waits here for stream 'compute' of stage 1}}
    plan.send @a[16xf32] to pp + 1 tag 0
    plan.recv @b[16xf32] from pp + 1 tag 1
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 2.0
    // expected-error @below {{waits for ever: the stages wait for each other}}
    // expected-note @below {{stream 'compute' of stage 1 waits here for stream 'compute' of stage 0}}
    plan.send @a[16xf32] to pp - 1 tag 1
    plan.recv @b[16xf32] from pp - 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// On streams of their own they do not.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.record "made"
    plan.wait "made" on out
    plan.send @a[16xf32] to pp + 1 tag 0 on out
    plan.recv @b[16xf32] from pp + 1 tag 1 on in
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.record "made"
    plan.wait "made" on out
    plan.send @a[16xf32] to pp - 1 tag 1 on out
    plan.recv @b[16xf32] from pp - 1 tag 0 on in
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// Unless what is sent is made when something has come.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{stream 'in' of stage 0 waits here for stream 'compute' of stage 1}}
    plan.recv @b[16xf32] from pp + 1 tag 1 on in
    plan.record "there" on in
    // expected-note @below {{stream 'compute' of stage 0 waits here for stream 'in' of stage 0}}
    plan.wait "there"
    plan.fill @a[16xf32] with 1.0
    plan.send @a[16xf32] to pp + 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{stream 'in' of stage 1 waits here for stream 'compute' of stage 0}}
    plan.recv @b[16xf32] from pp - 1 tag 0 on in
    plan.record "there" on in
    // expected-error @below {{waits for ever: the stages wait for each other}}
    // expected-note @below {{stream 'compute' of stage 1 waits here for stream 'in' of stage 1}}
    plan.wait "there"
    plan.fill @a[16xf32] with 1.0
    plan.send @a[16xf32] to pp - 1 tag 1
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{sends what no rank receives}}
    plan.send @a[16xf32] to pp + 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{receives what no rank sends}}
    plan.recv @b[16xf32] from pp - 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// Three are sent, one is received.
dist.mesh @m ["mb" = 3, "pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{sends what no rank receives}}
    plan.send @a[16xf32] to pp + 1 tag 0
  }
  plan.entry @forward {
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn } }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.recv @b[16xf32] from pp - 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// No other axis has a text of its own for the last rank.
dist.mesh @m ["dp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{expected a message along 'pp', the axis of stages, found 'dp'}}
    plan.send @a[16xf32] to dp + 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{expected another one of 2 stages, found 2}}
    plan.send @a[16xf32] to pp + 2 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["pp" = 2]
// expected-error @below {{expected one of 2 stages, found 2}}
plan.program @s2 stage 2 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// Both ends have one shape.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{expected a tensor of one type at both ends, found others}}
    plan.send @a[16xf32] to pp + 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.recv @b[4x4xf32] from pp - 1 tag 0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{expected no message at load}}
    plan.send @a[16xf32] to pp + 1 tag 0
  }
  plan.entry @load {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.recv @b[16xf32] from pp - 1 tag 0
  }
  plan.entry @load {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// What comes in is not where something is sent from.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.group {
      plan.recv @a[16xf32] from pp + 1 tag 1
      // expected-error @below {{expected bytes that no other message of its group has}}
      plan.send @a[16xf32] to pp + 1 tag 0
    }
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
plan.program @s1 stage 1 ranks 2 mesh @m {
  plan.arena shared 128 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 2.0
    plan.group {
      plan.recv @b[16xf32] from pp - 1 tag 0
      plan.send @a[16xf32] to pp - 1 tag 1
    }
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// A collective's ranks must have one text.
dist.mesh @m ["pp" = 2]
plan.program @s0 stage 0 ranks 2 mesh @m {
  plan.arena shared 64 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{expected a collective of ranks of one stage, which have one text, found one along 'pp'}}
    plan.collective broadcast over pp permutation [0] (@a[16xf32]) -> @a[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}
