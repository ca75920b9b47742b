// RUN: acc-opt %s --split-input-file --verify-diagnostics

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected an offset of at least -1, found -2}}
  plan.buffer @a role input space device offset -2 bytes 4 slots 1 stride 4
}

// -----

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected at least one slot, not closer than 8 bytes, found 2 slots 4 bytes apart}}
  plan.buffer @a role input space device offset 0 bytes 8 slots 2 stride 4
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.entry @main {
    plan.segment cpu {
      // expected-error @below {{names no body @absent}}
      plan.run @absent micro_batch 0
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @main {
    // expected-error @below {{expected at least two turns, found 1: what runs once stands outside loops}}
    plan.loop 1 {
      plan.segment cpu {
        plan.run @f micro_batch turn + 0
      }
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @main {
    // expected-error @below {{expected segments, found none}}
    plan.loop 2 {
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @main {
    plan.loop 2 {
      plan.segment cpu {
        // expected-error @below {{expected 'turn + offset' in a loop}}
        plan.run @f micro_batch 0
      }
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @main {
    plan.segment cpu {
      // expected-error @below {{expected a micro-batch outside loops, found 'turn + offset'}}
      plan.run @f micro_batch turn + 0
    }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
  }
  plan.entry @main {
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
  plan.entry @main {
    // expected-error @below {{expected segments and loops in an entry}}
    builtin.module { }
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  // expected-error @below {{expected one copy of what all micro-batches share, found 2}}
  plan.buffer @a role state space device offset 0 bytes 64 slots 2 stride 64
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{names no buffer @a}}
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [4] strides [1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a role input space device offset 0 bytes 8 slots 1 stride 8
  plan.body @f engine cpu {
    // expected-error @below {{expected a view within the 8 bytes of @a, found one that ends at byte 16}}
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [4] strides [1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a role input space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected [b…, M, K] · [b…, K, N] -> [b…, M, N], found [4, 4] · [2, 4] -> [4, 4]}}
    plan.gemm <@a + 0 : f32 [4, 4] strides [4, 1]>, <@a + 0 : f32 [2, 4] strides [4, 1]> -> <@a + 0 : f32 [4, 4] strides [4, 1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a role input space device offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected a bias of shape [4], found [2]}}
    plan.gemm <@a + 0 : f32 [4, 4] strides [4, 1]>, <@a + 0 : f32 [4, 4] strides [4, 1]> -> <@a + 0 : f32 [4, 4] strides [4, 1]> {bias = #plan.view<@a + 0 : f32 [2] strides [1]>}
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a role input space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected as many outputs as inputs (1), found 0}}
    plan.collective all_gather ["dp"] [#plan.view<@a + 0 : f32 [4] strides [1]>] -> []
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a role input space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected 'combine' on all_reduce}}
    plan.collective all_reduce ["dp"] [#plan.view<@a + 0 : f32 [4] strides [1]>] -> [#plan.view<@a + 0 : f32 [4] strides [1]>]
  }
}

// -----

plan.program @p stage 0 ranks 2 {
  plan.buffer @a role input space shared offset 0 bytes 64 slots 1 stride 64
  plan.body @f engine cpu {
    // expected-error @below {{expected no 'combine' on all_gather}}
    plan.collective all_gather ["dp"] [#plan.view<@a + 0 : f32 [4] strides [1]>] -> [#plan.view<@a + 0 : f32 [4] strides [1]>] {combine = #plan<combine sum>}
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected as many strides as dimensions (2), found 1}}
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [4, 4] strides [1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected no negative offset, size or stride}}
    plan.fill 0.0 : f32 -> <@a + 0 : f32 [4] strides [-1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected 'row_offset' and 'column_offset' beside 'causal' only, found 2 and 0}}
    plan.attention <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]> -> <@b + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]> scale 1.0 {row_offset = 2}
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.body @f engine cpu {
    // expected-error @below {{expected 'row_offset' and 'column_offset' of at least 0 and below 2^56, found 0 and -1}}
    plan.attention_grad <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]> output <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@a + 0 : f32 [1, 1, 2] strides [2, 2, 1]> gradient <@a + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]> -> <@b + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@b + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]>, <@b + 0 : f32 [1, 1, 2, 2] strides [4, 4, 2, 1]> scale 1.0 {causal, column_offset = -1}
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a role activation space device offset 0 bytes 16 slots 1 stride 16
  plan.body @f engine cpu {
    // expected-error @below {{expected a value of type 'f32', found 1.500000e+00 : f64}}
    plan.fill 1.5 : f64 -> <@a + 0 : f32 [4] strides [1]>
  }
}

// -----

plan.program @p stage 0 ranks 1 {
  plan.buffer @a role activation space device offset 0 bytes 16 slots 1 stride 16
  plan.body @f engine cpu {
    // expected-error @below {{expected a value of type 'f32', found dense<1.000000e+00> : tensor<4xf32>}}
    plan.fill dense<1.0> : tensor<4xf32> -> <@a + 0 : f32 [4] strides [1]>
  }
}
