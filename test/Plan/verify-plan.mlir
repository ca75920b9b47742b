// RUN: acc-opt %s --split-input-file --plan-verify --verify-diagnostics

// Two streams, one waiting for the other: accepted.
plan.program @ordered stage 0 ranks 1 {
  plan.arena device bytes 192 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.buffer @c role activation space device offset 128 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    plan.record "ready"
    plan.wait "ready" {stream = "comm"}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]> {stream = "comm"}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@c + 0 : f32[16] strides[1]>
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

plan.program @race stage 0 ranks 1 {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    // expected-error @below {{races: it and a command of stream 'compute' touch the same bytes, one of them writes, and neither waits for the other}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]> {stream = "comm"}
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

plan.program @deadlock stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{waits for event 'b', which no command can record before it}}
    plan.wait "b"
    plan.record "a"
    plan.wait "a" {stream = "comm"}
    plan.record "b" {stream = "comm"}
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

plan.program @unwritten stage 0 ranks 1 {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[8] strides[1]>
    // expected-error @below {{reads byte 32 of @a, which nothing has written}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]>
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

// The state is whole after load, and gone after the first call of main.
plan.program @overwritten stage 0 ranks 1 {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @w role state space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @l engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@w + 0 : f32[16] strides[1]>
  }
  plan.body @f engine cpu {
    // expected-error @below {{reads byte 0 of @w, which @a has overwritten}}
    // expected-note @below {{overwritten here}}
    plan.copy #plan.view<@w + 0 : f32[16] strides[1]> -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @load { plan.segment cpu { plan.run @l micro_batch 0 } }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

plan.program @released stage 0 ranks 1 {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-note @below {{released here}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]> {plan.releases = [#plan.view<@a + 0 : i8[64] strides[1]>]}
    // expected-error @below {{reads byte 0 of @a, which was released}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]>
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

plan.program @places stage 0 ranks 1 {
  plan.arena device bytes 64 alignment 64 reserve 0
  // expected-error @below {{expected an offset that is a multiple of 64, found 4}}
  plan.buffer @a role activation space device offset 4 bytes 60 slots 1 stride 60
}

// -----

plan.program @outside stage 0 ranks 1 {
  plan.arena device bytes 64 alignment 64 reserve 0
  // expected-error @below {{expected a place within the 64 bytes of its arena, found an end at 192}}
  plan.buffer @a role activation space device offset 0 bytes 64 slots 2 stride 128
}

// -----

plan.program @size stage 0 ranks 1 {
  // expected-error @below {{expected the 64 bytes that its buffers need, found 128}}
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
}

// -----

plan.program @twice stage 0 ranks 1 {
  plan.arena device bytes 0 alignment 64 reserve 0
  // expected-error @below {{expected one arena of space 'device'}}
  plan.arena device bytes 0 alignment 64 reserve 0
}

// -----

plan.program @nowhere stage 0 ranks 1 {
  // expected-error @below {{expected an arena of space 'device', found none}}
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
}

// -----

dist.mesh @m ["dp" = 4]
plan.program @coordinates stage 0 ranks 4 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 64 bytes of @a for every rank, found one that ends at byte 80}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 16 axes[<"dp" * 16>] : f32[4] strides[1]>
  }
}

// -----

plan.program @axis stage 0 ranks 1 {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected an axis of the mesh, found 'dp'}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 16 axes[<"dp" * 16>] : f32[4] strides[1]>
  }
}

// -----

// Micro-batch 1 has a copy of its own, which nothing has written.
dist.mesh @m ["mb" = 2]
plan.program @copies stage 0 ranks 1 mesh @m {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 2 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.body @g engine cpu {
    // expected-error @below {{reads byte 64 of @a, which nothing has written}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f micro_batch 0
      plan.run @g micro_batch 1
    }
  }
}

// -----

dist.mesh @m ["dp" = 2]
plan.program @shared stage 0 ranks 2 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected @a, which other ranks access, in space 'shared', found 'device'}}
    plan.send #plan.view<@a + 0 : f32[16] strides[1]> to "dp" 1 tag 0
  }
}

// -----

// Where that is, the target says that the engine names.
dist.mesh @m ["dp" = 2]
plan.program @other stage 0 ranks 2 mesh @m {
  plan.arena shared bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine null {
    // expected-error @below {{expected @a, which other ranks access, in space 'device', found 'shared'}}
    plan.send #plan.view<@a + 0 : f32[16] strides[1]> to "dp" 1 tag 0
  }
}

// -----

// expected-error @below {{expected a target ('cpu' or 'cpu:NAME', 'null'), found 'cuda'}}
module {
  plan.program @unknown stage 0 ranks 1 {
    plan.body @f engine cuda {
    }
  }
}

// -----

dist.mesh @m ["dp" = 2]
plan.program @unreceived stage 0 ranks 2 mesh @m {
  plan.arena shared bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    // expected-error @below {{sends what no rank receives}}
    plan.send #plan.view<@a + 0 : f32[16] strides[1]> to "dp" 1 tag 0
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

dist.mesh @m ["dp" = 2]
plan.program @meeting stage 0 ranks 2 mesh @m {
  plan.arena shared bytes 256 alignment 64 reserve 0
  plan.buffer @a role activation space shared offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space shared offset 64 bytes 64 slots 1 stride 64
  plan.buffer @c role activation space shared offset 128 bytes 64 slots 1 stride 64
  plan.buffer @d role activation space shared offset 192 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    plan.fill 1.0 : f32 -> #plan.view<@c + 0 : f32[16] strides[1]> {stream = "comm"}
    // expected-note @below {{the earlier collective}}
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 : f32[16] strides[1]>] -> [#plan.view<@b + 0 : f32[16] strides[1]>] {combine = #plan<combine sum>}
    // expected-error @below {{may meet the ranks of its group in another order than an earlier collective: expected one to wait for the other}}
    plan.collective all_reduce ["dp"] [#plan.view<@c + 0 : f32[16] strides[1]>] -> [#plan.view<@d + 0 : f32[16] strides[1]>] {combine = #plan<combine sum>, stream = "comm"}
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

// A segment's end holds no stream up.
plan.program @segments stage 0 ranks 1 {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]> {stream = "comm"}
  }
  plan.body @g engine cpu {
    // expected-error @below {{races: it and a command of stream 'comm' touch the same bytes}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 0 }
    plan.segment cpu { plan.run @g micro_batch 0 }
  }
}

// -----

// In one turn the copy waits for the fill; the next turn's fill waits for nobody.
dist.mesh @m ["mb" = 3]
plan.program @back_edge stage 0 ranks 1 mesh @m {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    plan.record "filled"
    plan.wait "filled" {stream = "comm"}
    // expected-error @below {{races: it and a command of stream 'compute' touch the same bytes}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]> {stream = "comm"}
  }
  plan.entry @forward {
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 0 } }
  }
}

// -----

plan.program @one_turn stage 0 ranks 1 {
  plan.arena device bytes 128 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 64 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    plan.record "filled"
    plan.wait "filled" {stream = "comm"}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]> {stream = "comm"}
  }
  plan.entry @forward { plan.segment cpu { plan.run @f micro_batch 0 } }
}

// -----

// What stood before the loop the first turn finds, and the second does not.
dist.mesh @m ["mb" = 2]
plan.program @second_turn stage 0 ranks 1 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.buffer @b role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.body @g engine cpu {
    // expected-error @below {{reads byte 0 of @a, which @b has overwritten}}
    // expected-note @below {{overwritten here}}
    plan.copy #plan.view<@a + 0 : f32[16] strides[1]> -> #plan.view<@b + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 0 }
    plan.loop 2 { plan.segment cpu { plan.run @g micro_batch turn + 0 } }
  }
}

// -----

// A view by micro-batch lies in its buffer for the last turn too.
dist.mesh @m ["mb" = 4, "dp" = 1]
plan.program @last_turn stage 0 ranks 1 mesh @m {
  plan.arena device bytes 48 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 48 slots 1 stride 48
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 48 bytes of @a for every rank, found one that ends at byte 64}}
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 axes [<"mb" * 16>] : f32[4] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 0 }
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// As many messages come as go: three are sent, one is received.
dist.mesh @m ["mb" = 3, "dp" = 2]
plan.program @messages stage 0 ranks 2 mesh @m {
  plan.arena shared bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
    plan.send #plan.view<@a + 0 : f32[16] strides[1]> to "dp" 1 tag 0
  }
  plan.body @g engine cpu {
    // expected-error @below {{sends what no rank receives}}
    plan.recv #plan.view<@a + 0 : f32[16] strides[1]> from "dp" -1 tag 0
  }
  plan.entry @forward {
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 0 } }
    plan.segment cpu { plan.run @g micro_batch 0 }
  }
}

// -----

// A micro-batch is lost.
dist.mesh @m ["mb" = 4]
plan.program @lost stage 0 ranks 1 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 0 }
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.loop 2 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// As many runs as micro-batches, one of which comes twice.
dist.mesh @m ["mb" = 4]
plan.program @shifted stage 0 ranks 1 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 1 }
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// Once would be well, if it did not read one micro-batch of four.
dist.mesh @m ["mb" = 4]
plan.program @part stage 0 ranks 1 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role input space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.read input "x" <[64] by [["mb"]]> -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.segment cpu { plan.run @f micro_batch 0 }
  }
}

// -----

dist.mesh @m ["mb" = 4]
plan.program @beyond stage 0 ranks 1 mesh @m {
  plan.arena device bytes 64 alignment 64 reserve 0
  plan.buffer @a role activation space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    plan.fill 1.0 : f32 -> #plan.view<@a + 0 : f32[16] strides[1]>
  }
  plan.entry @forward {
    // expected-error @below {{expected one of 4 micro-batches in every turn, found 2 in the first of 3}}
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 2 } }
  }
}
