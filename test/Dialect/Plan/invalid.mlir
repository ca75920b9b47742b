// RUN: acc-opt %s --split-input-file --verify-diagnostics

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected an offset of at least -1, found -2}}
  plan.buffer @a : input device at -2, 4 bytes
}

// -----

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected at least one slot, not closer than 8 bytes, found 2 slots 4 bytes apart}}
  plan.buffer @a : input device at 0, 8 bytes slots 2 stride 4
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.entry @forward {
    plan.segment cpu {
      // expected-error @below {{names no body @absent}}
      plan.run @absent
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    // expected-error @below {{expected at least two turns, found 1: what runs once stands outside loops}}
    plan.loop 1 {
      plan.segment cpu {
        plan.run @f micro_batch turn
      }
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    // expected-error @below {{expected segments, found none}}
    plan.loop 2 {
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    plan.loop 2 {
      plan.segment cpu {
        // expected-error @below {{expected 'turn + offset' in a loop}}
        plan.run @f
      }
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    plan.segment cpu {
      // expected-error @below {{expected a micro-batch outside loops, found 'turn + offset'}}
      plan.run @f micro_batch turn
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    plan.loop 2 {
      // expected-error @below {{expected segments alone in a loop}}
      builtin.module { }
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @forward {
    // expected-error @below {{expected segments and loops in an entry}}
    builtin.module { }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected one copy of what all micro-batches share, found 2}}
  plan.buffer @a : state device at 0, 64 bytes slots 2
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{names no buffer @a}}
    plan.fill @a[4xf32] with 0.0
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 8 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 8 bytes of @a, found one that ends at byte 16}}
    plan.fill @a[4xf32] with 0.0
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected [b…, M, K] · [b…, K, N] -> [b…, M, N], found [4, 4] · [2, 4] -> [4, 4]}}
    plan.gemm @a[4x4xf32], @a[2x4xf32] -> @a[4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a bias of shape [4], found [2]}}
    plan.gemm @a[4x4xf32], @a[4x4xf32] + @a[2xf32] -> @a[4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected groups that 2 ranks divide, found 3}}
    plan.deal_rows @a[4xi64], @a[i64] -> @a[3xi64], @a[3xi64], @a[2xi64] num_groups 3 ranks 2
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected [R] and a rank -> [room], [room] and the rank's part of [R], found [4] -> [3], [2] and [2]}}
    plan.deal_rows @a[4xi64], @a[i64] -> @a[3xi64], @a[2xi64], @a[2xi64] num_groups 4 ranks 2
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected views of i64, found #plan.view<@a[3xf32]>}}
    plan.deal_rows @a[4xi64], @a[i64] -> @a[3xf32], @a[3xi64], @a[2xi64] num_groups 4 ranks 2
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected one input, and an index of i64 on fetch_rows}}
    plan.collective fetch_rows over dp (@a[4x4xf32]) -> @a[3x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected no index on all_gather}}
    plan.collective all_gather over dp (@a[2xf32]) at @a[1xi64] -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected strides, dilations and low paddings of one to three dimensions of space}}
    plan.conv forward @a[1x1x2x4xf32], @a[1x3x2x3xf32] -> @a[1x1x3x4xf32] strides [1, 1] dilations [1] low [1]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected an input [N, G, C, S…], a weight [G, O, C, K…] and an output [N, G, O, P…], found [1, 1, 2, 4], [1, 3, 4, 3] and [1, 1, 3, 4]}}
    plan.conv forward @a[1x1x2x4xf32], @a[1x3x4x3xf32] -> @a[1x1x3x4xf32] strides [1] dilations [1] low [1]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected an input [N, G, C, S…], a weight [G, O, C, K…] and an output [N, G, O, P…], found [1, 1, 3, 4], [1, 3, 2, 3] and [1, 1, 2, 4]}}
    plan.conv input_grad @a[1x1x2x4xf32], @a[1x3x2x3xf32] -> @a[1x1x3x4xf32] strides [1] dilations [1] low [1]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected strides and dilations of at least 1 and low paddings of at least 0}}
    plan.conv forward @a[1x1x2x4xf32], @a[1x3x2x3xf32] -> @a[1x1x3x4xf32] strides [0] dilations [1] low [1]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected positions, and places of the weight, evenly apart, found #plan.view<@a[1x1x1x2x4xf32 strides [16, 16, 16, 5, 1]]>}}
    plan.conv forward @a[1x1x1x2x4xf32 strides [16, 16, 16, 5, 1]], @a[1x3x1x1x1xf32] -> @a[1x1x3x2x4xf32] strides [1, 1] dilations [1, 1] low [0, 0]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected [R, K] · [G, K, N] -> [R, N], found [4, 4] · [2, 2, 4] -> [4, 4]}}
    plan.grouped_gemm @a[4x4xf32], @a[2x2x4xf32] of @a[4xi64] -> @a[4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a group, of i64 or i32, for each of 4 rows, found #plan.view<@a[2xi64]>}}
    plan.grouped_gemm @a[4x2xf32], @a[2x2x4xf32] of @a[2xi64] -> @a[4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a group, of i64 or i32, for each of 4 rows, found #plan.view<@a[4xf32]>}}
    plan.grouped_gemm @a[4x2xf32], @a[2x2x4xf32] of @a[4xf32] -> @a[4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : input device at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected [R, K]ᵀ · [R, N] -> [G, K, N], found [4, 4] · [2, 4] -> [1, 4, 4]}}
    plan.grouped_gemm_grad @a[4x4xf32], @a[2x4xf32] of @a[4xi64] -> @a[1x4x4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected as many outputs as inputs (1), found 0}}
    plan.collective all_gather over dp (@a[4xf32]) -> 
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected 'combine' on all_reduce}}
    plan.collective all_reduce over dp (@a[4xf32]) -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a : input shared at 0, 64 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected no 'combine' on all_gather}}
    plan.collective all_gather sum over dp (@a[4xf32]) -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected as many strides as dimensions (2), found 1}}
    plan.fill @a[4x4xf32 strides [1]] with 0.0
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected no negative offset, size or stride}}
    plan.fill @a[4xf32 strides [-1]] with 0.0
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected 'row_offset' and 'column_offset' beside 'causal' only, found 2 and 0}}
    plan.attention @a[1x1x2x2xf32], @a[1x1x2x2xf32], @a[1x1x2x2xf32] -> @b[1x1x2x2xf32] scale 1.0 row_offset 2
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected 'row_offset' and 'column_offset' of at least 0 and below 2^56, found 0 and -1}}
    plan.attention_grad @a[1x1x2x2xf32], @a[1x1x2x2xf32], @a[1x1x2x2xf32] output @a[1x1x2x2xf32], @a[1x1x2xf32] gradient @a[1x1x2x2xf32] -> @b[1x1x2x2xf32], @b[1x1x2x2xf32], @b[1x1x2x2xf32] scale 1.0 causal column_offset -1
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : activation device at 0, 16 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a value of type 'f32', found 1.500000e+00 : f64}}
    "plan.fill"() <{stream = "compute", target = #plan.view<@a[4xf32]>, value = 1.5 : f64}> : () -> ()
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a : activation device at 0, 16 bytes
  plan.body @f engine cpu {
    // expected-error @below {{expected a value of type 'f32', found dense<1.000000e+00> : tensor<4xf32>}}
    "plan.fill"() <{stream = "compute", target = #plan.view<@a[4xf32]>, value = dense<1.0> : tensor<4xf32>}> : () -> ()
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected static shape}}
    plan.copy @a[4x?xf32] -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected '['}}
    plan.copy @a -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected '*'}}
    plan.copy @a[4xf32 at dp] -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected ']'}}
    plan.copy @a[4xf32 stride [1]] -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected an integer or float element type, found 'index'}}
    plan.copy @a[4xindex] -> @a[4xf32]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected attributes of dialects in braces, found 'stream': what a command has of its own is written before them}}
    plan.copy @a[4xf32] -> @a[4xf32] {stream = "comm"}
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected attributes of dialects in braces, found 'plan.releases': what a command has of its own is written before them}}
    plan.copy @a[4xf32] -> @a[4xf32] {plan.releases = []}
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+2 {{expected valid '@'-identifier for symbol name}}
    plan.copy @a[4xf32] -> @a[4xf32] releases @a[4xf32],
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected valid keyword or string}}
    plan.read input "x" -> @a[4xf32] of [4/]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected integer value}}
    plan.send @a[4xf32] to dp plus 1 tag 0
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected 'over'}}
    plan.collective all_reduce most over dp (@a[4xf32]) -> @a[4xf32]
  }
}

// -----

plan.program @order stage 0 ranks 1 {
  plan.body @f engine cpu {
    plan.group {
      plan.send @a[4xf32] to pp + 1 tag 0
      // expected-error @below {{expected the receives of a group first}}
      plan.recv @b[4xf32] from pp + 1 tag 1
    }
  }
}

// -----

plan.program @streams stage 0 ranks 1 {
  plan.body @f engine cpu {
    plan.group {
      plan.recv @b[4xf32] from pp + 1 tag 1 on x
      // expected-error @below {{expected a group on one stream, found 'x' and 'compute'}}
      plan.send @a[4xf32] to pp + 1 tag 0
    }
  }
}

// -----

plan.program @strangers stage 0 ranks 1 {
  plan.body @f engine cpu {
    plan.group {
      // expected-error @below {{expected sends and receives in a group}}
      plan.record "x"
    }
  }
}

// -----

plan.program @empty stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected sends and receives, found none}}
    plan.group {
    }
  }
}

// -----

plan.program @released stage 0 ranks 1 {
  plan.buffer @a : activation device 16 bytes
  plan.body @f engine cpu {
    // expected-error @below {{names no buffer @b}}
    plan.fill @a[4xf32] with 1.0 releases @b[16xi8]
  }
}

// -----

// A part has an attribute of dialect dist, which nothing else of the text names.
// expected-error @below {{expects parent op 'plan.program'}}
plan.buffer @b : state device at 0, 192 bytes source @b part [96/tp] interleaved <0[32, 32, 32] by 2>

// -----

plan.program @p stage 0 ranks 2 {
  // expected-error @below {{expected parts of dimension 0 of [-1], found 32, 32, 32}}
  plan.buffer @b : state device at 0, 192 bytes source @b part [-1/tp] interleaved <0[32, 32, 32] by 2>
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected a view of one dimension more than the part has, which counts micro-batches, found 1 and 1}}
    plan.read input "x" each_micro_batch -> @a[4xf32] of [4/mb]
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected a view of one dimension more than the part has, which counts micro-batches, found 1 and 1}}
    plan.write @a[4xf32] of [4/mb] -> output "x" each_micro_batch
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @+1 {{expected an input or an output of each micro-batch, found a state}}
    plan.read state "x" each_micro_batch -> @a[2x4xf32] of [8/mb]
  }
}
