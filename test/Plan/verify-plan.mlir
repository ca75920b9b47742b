// RUN: acc-opt %s --split-input-file --plan-verify --verify-diagnostics

// Two streams, one waiting for the other: accepted.
plan.program @ordered stage 0 ranks 1 {
  plan.arena device 192 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.buffer @c : activation device at 128, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.record "ready"
    plan.wait "ready" on comm
    plan.copy @a[16xf32] -> @b[16xf32] on comm
    plan.copy @a[16xf32] -> @c[16xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @race stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{races: it and a command of stream 'compute' touch the same bytes, one of them writes or releases them, and neither waits for the other}}
    plan.copy @a[16xf32] -> @b[16xf32] on comm
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

// What nobody reads after a command another stream may still read beside it.
plan.program @early_release stage 0 ranks 1 {
  plan.arena device 192 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.buffer @c : activation device at 128, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.record "ready"
    // expected-note @below {{the other command}}
    plan.fill @c[16xf32] with 2.0 releases @a[64xi8]
    plan.wait "ready" on comm
    // expected-error @below {{races: it and a command of stream 'compute' touch the same bytes, one of them writes or releases them, and neither waits for the other}}
    plan.copy @a[16xf32] -> @b[16xf32] on comm
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @deadlock stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{waits for event 'b', which no command can record before it}}
    plan.wait "b"
    plan.record "a"
    plan.wait "a" on comm
    plan.record "b" on comm
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @unwritten stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[8xf32] with 1.0
    // expected-error @below {{reads byte 32 of @a, which nothing has written}}
    plan.copy @a[16xf32] -> @b[16xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

// The state is whole after load, and gone after the first call of main.
plan.program @overwritten stage 0 ranks 1 {
  plan.arena device 64 bytes
  plan.buffer @w : state device at 0, 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @l engine cpu {
    plan.fill @w[16xf32] with 1.0
  }
  plan.body @f engine cpu {
    // expected-error @below {{reads byte 0 of @w, which @a has overwritten}}
    // expected-note @below {{overwritten here}}
    plan.copy @w[16xf32] -> @a[16xf32]
  }
  plan.entry @load { plan.segment cpu { plan.run @l } }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @released stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{released here}}
    plan.fill @a[16xf32] with 1.0 releases @a[64xi8]
    // expected-error @below {{reads byte 0 of @a, which was released}}
    plan.copy @a[16xf32] -> @b[16xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @places stage 0 ranks 1 {
  plan.arena device 64 bytes
  // expected-error @below {{expected an offset that is a multiple of 64, found 4}}
  plan.buffer @a : activation device at 4, 60 bytes
}

// -----

plan.program @outside stage 0 ranks 1 {
  plan.arena device 64 bytes
  // expected-error @below {{expected a place within the 64 bytes of its arena, found an end at 192}}
  plan.buffer @a : activation device at 0, 64 bytes slots 2 stride 128
}

// -----

plan.program @size stage 0 ranks 1 {
  // expected-error @below {{expected the 64 bytes that its buffers need, found 128}}
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
}

// -----

plan.program @twice stage 0 ranks 1 {
  plan.arena device 0 bytes
  // expected-error @below {{expected one arena of space 'device'}}
  plan.arena device 0 bytes
}

// -----

plan.program @nowhere stage 0 ranks 1 {
  // expected-error @below {{expected an arena of space 'device', found none}}
  plan.buffer @a : activation device at 0, 64 bytes
}

// -----

dist.mesh @m ["dp" = 4]
plan.program @coordinates stage 0 ranks 4 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 64 bytes of @a for every rank, found one that ends at byte 80}}
    plan.fill @a[4xf32 at 16 + dp*16] with 1.0
  }
}

// -----

plan.program @axis stage 0 ranks 1 {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected an axis of the mesh, found 'dp'}}
    plan.fill @a[4xf32 at 16 + dp*16] with 1.0
  }
}

// -----

// Micro-batch 1 has a copy of its own, which nothing has written.
dist.mesh @m ["mb" = 2]
plan.program @copies stage 0 ranks 1 mesh @m {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes slots 2
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.body @g engine cpu {
    // expected-error @below {{reads byte 64 of @a, which nothing has written}}
    plan.copy @a[16xf32] -> @a[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu {
      plan.run @f
      plan.run @g micro_batch 1
    }
  }
}

// -----

dist.mesh @m ["dp" = 2]
plan.program @shared stage 0 ranks 2 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected @a, which other ranks access, in space 'shared', found 'device'}}
    plan.send @a[16xf32] to dp + 1 tag 0
  }
}

// -----

// Where that is, the target says that the engine names.
dist.mesh @m ["dp" = 2]
plan.program @other stage 0 ranks 2 mesh @m {
  plan.arena shared 64 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.body @f engine null {
    // expected-error @below {{expected @a, which other ranks access, in space 'device', found 'shared'}}
    plan.send @a[16xf32] to dp + 1 tag 0
  }
}

// -----

// expected-error @below {{expected a target ('cpu' or 'cpu:NAME', 'null' or 'null:queues=N'), found 'cuda'}}
module {
  plan.program @unknown stage 0 ranks 1 {
    plan.body @f engine cuda {
    }
  }
}

// -----

dist.mesh @m ["dp" = 2]
plan.program @meeting stage 0 ranks 2 mesh @m {
  plan.arena shared 256 bytes
  plan.buffer @a : activation shared at 0, 64 bytes
  plan.buffer @b : activation shared at 64, 64 bytes
  plan.buffer @c : activation shared at 128, 64 bytes
  plan.buffer @d : activation shared at 192, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.fill @c[16xf32] with 1.0 on comm
    // expected-note @below {{the earlier collective}}
    plan.collective all_reduce sum over dp (@a[16xf32]) -> @b[16xf32]
    // expected-error @below {{may meet the ranks of its group in another order than an earlier collective: expected one to wait for the other}}
    plan.collective all_reduce sum over dp (@c[16xf32]) -> @d[16xf32] on comm
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

// A segment's end holds no stream up.
plan.program @segments stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill @a[16xf32] with 1.0 on comm
  }
  plan.body @g engine cpu {
    // expected-error @below {{races: it and a command of stream 'comm' touch the same bytes}}
    plan.copy @a[16xf32] -> @b[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
    plan.segment cpu { plan.run @g }
  }
}

// -----

// In one turn the copy waits for the fill; the next turn's fill waits for nobody.
dist.mesh @m ["mb" = 3]
plan.program @back_edge stage 0 ranks 1 mesh @m {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{the other command}}
    plan.fill @a[16xf32] with 1.0
    plan.record "filled"
    plan.wait "filled" on comm
    // expected-error @below {{races: it and a command of stream 'compute' touch the same bytes}}
    plan.copy @a[16xf32] -> @b[16xf32] on comm
  }
  plan.entry @forward {
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn } }
  }
}

// -----

plan.program @one_turn stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.record "filled"
    plan.wait "filled" on comm
    plan.copy @a[16xf32] -> @b[16xf32] on comm
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

// What stood before the loop the first turn finds, and the second does not.
dist.mesh @m ["mb" = 2]
plan.program @second_turn stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.body @g engine cpu {
    // expected-error @below {{reads byte 0 of @a, which @b has overwritten}}
    // expected-note @below {{overwritten here}}
    plan.copy @a[16xf32] -> @b[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
    plan.loop 2 { plan.segment cpu { plan.run @g micro_batch turn } }
  }
}

// -----

// A view by micro-batch lies in its buffer for the last turn too.
dist.mesh @m ["mb" = 4, "dp" = 1]
plan.program @last_turn stage 0 ranks 1 mesh @m {
  plan.arena device 48 bytes
  plan.buffer @a : activation device at 0, 48 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 48 bytes of @a for every rank, found one that ends at byte 64}}
    plan.fill @a[4xf32 at mb*16] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// A micro-batch is lost.
dist.mesh @m ["mb" = 4]
plan.program @lost stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.loop 2 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// As many runs as micro-batches, one of which comes twice.
dist.mesh @m ["mb" = 4]
plan.program @shifted stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f micro_batch 1 }
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 1 } }
  }
}

// -----

// What is read of all micro-batches is read of as many as there are.
dist.mesh @m ["mb" = 4]
plan.program @each stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.read input "x" each_micro_batch -> @a[4x4xf32] of [16/mb]
    // expected-error @below {{expected a view of the parts of 4 micro-batches, found one of 2}}
    plan.write @a[2x4xf32] of [16/mb] -> output "y" each_micro_batch
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
  }
}

// -----

// Once would be well, if it did not read one micro-batch of four.
dist.mesh @m ["mb" = 4]
plan.program @part stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.read input "x" -> @a[16xf32] of [64/mb]
  }
  plan.entry @forward {
    // expected-error @below {{expected @f to run once for each of 4 micro-batches, found some twice or never}}
    plan.segment cpu { plan.run @f }
  }
}

// -----

dist.mesh @m ["mb" = 4]
plan.program @beyond stage 0 ranks 1 mesh @m {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.entry @forward {
    // expected-error @below {{expected one of 4 micro-batches in every turn, found 2 in the first of 3}}
    plan.loop 3 { plan.segment cpu { plan.run @f micro_batch turn + 2 } }
  }
}

// -----

// A file may have bodies of two engines, each held against its own target: what
// other ranks read lies elsewhere for each.
dist.mesh @m ["dp" = 2]
plan.program @engines stage 0 ranks 2 mesh @m {
  plan.arena device 64 bytes
  plan.arena shared 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation shared at 0, 64 bytes
  plan.body @f engine null {
    plan.fill @a[16xf32] with 1.0
    plan.collective broadcast over dp permutation [0] (@a[16xf32]) -> @a[16xf32]
    plan.record "made"
  }
  plan.body @g engine cpu {
    plan.wait "made" of @f on host
    plan.copy @a[16xf32] -> @b[16xf32] on host
    plan.collective broadcast over dp permutation [0] (@b[16xf32]) -> @b[16xf32] on host
    plan.record "back" on host
  }
  plan.body @h engine null {
    plan.wait "back" of @g
    plan.fill @a[16xf32] with 2.0
  }
  plan.entry @forward {
    plan.segment null { plan.run @f }
    plan.segment cpu { plan.run @g }
    plan.segment null { plan.run @h }
  }
}

// -----

plan.program @engine_of_segment stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    plan.segment null {
      // expected-error @below {{expected a body of engine 'null', as its segment is, found 'cpu'}}
      plan.run @f
    }
  }
}

// -----

plan.program @engine_of_stream stage 0 ranks 1 {
  plan.arena device 64 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
  }
  plan.body @g engine null {
    // expected-error @below {{expected a stream of one engine, found 'compute' in bodies of 'cpu' and 'null'}}
    plan.fill @a[16xf32] with 2.0
  }
  plan.entry @forward {
    plan.segment cpu { plan.run @f }
    plan.segment null { plan.run @g }
  }
}

// -----

plan.program @captured_files stage 0 ranks 1 {
  plan.arena device 64 bytes
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-note @below {{found what it cannot}}
    plan.read input "x" -> @a[16xf32]
  }
  plan.entry @forward {
    plan.segment cpu capturable {
      // expected-error @below {{expected a body that target 'cpu' can capture}}
      plan.run @f
    }
  }
}

// -----

// In the streams' order the record comes first, but devices are told of the wait
// before it.
plan.program @told_too_early stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    // expected-error @below {{waits for event 'ready', whose record stands behind it: a device that is told of the wait first has nothing to wait for}}
    plan.wait "ready" on comm
    plan.copy @a[16xf32] -> @b[16xf32] on comm
    plan.record "ready"
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

// A file is copied from and to, and read into.
plan.program @stored stage 0 ranks 1 {
  plan.arena device 128 bytes
  plan.arena nvme 64 bytes alignment 4096 {plan.storage = {block_size = 4096 : i64, path = "/d", queue_depth = 1 : i64}}
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @b : activation device at 64, 64 bytes
  plan.buffer @w : activation nvme at 0, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.copy @a[16xf32] -> @w[16xf32]
    plan.copy @w[16xf32] -> @b[16xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @computed_in_a_file stage 0 ranks 1 {
  plan.arena nvme 64 bytes alignment 4096 {plan.storage = {block_size = 4096 : i64, path = "/d", queue_depth = 1 : i64}}
  plan.buffer @w : activation nvme at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected @w, which lies in a file (space 'nvme'), to be read as a state's first value, or copied from there or to it in bytes that follow each other}}
    plan.fill @w[16xf32] with 1.0
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @file_to_file stage 0 ranks 1 {
  plan.arena device 64 bytes
  plan.arena nvme 4160 bytes alignment 4096 {plan.storage = {block_size = 4096 : i64, path = "/d", queue_depth = 1 : i64}}
  plan.buffer @a : activation device at 0, 64 bytes
  plan.buffer @v : activation nvme at 0, 64 bytes
  plan.buffer @w : activation nvme at 4096, 64 bytes
  plan.body @f engine cpu {
    plan.fill @a[16xf32] with 1.0
    plan.copy @a[16xf32] -> @v[16xf32]
    // expected-error @below {{which lies in a file (space 'nvme')}}
    plan.copy @v[16xf32] -> @w[16xf32]
  }
  plan.entry @forward { plan.segment cpu { plan.run @f } }
}

// -----

plan.program @no_file stage 0 ranks 1 {
  // expected-error @below {{expected 'plan.storage' with path, block_size and queue_depth}}
  plan.arena nvme 64 bytes alignment 4096
  plan.buffer @w : activation nvme at 0, 64 bytes
}

// -----

plan.program @odd_blocks stage 0 ranks 1 {
  // expected-error @below {{expected blocks (aio.block_size) of a multiple of 4096 bytes, at most 1073741824, found 5000}}
  plan.arena nvme 64 bytes alignment 4096 {plan.storage = {block_size = 5000 : i64, path = "/d", queue_depth = 1 : i64}}
  plan.buffer @w : activation nvme at 0, 64 bytes
}

// -----

plan.program @no_depth stage 0 ranks 1 {
  // expected-error @below {{expected from 1 to 4096 blocks under way at once (aio.queue_depth), found 0}}
  plan.arena nvme 64 bytes alignment 4096 {plan.storage = {block_size = 4096 : i64, path = "/d", queue_depth = 0 : i64}}
  plan.buffer @w : activation nvme at 0, 64 bytes
}
