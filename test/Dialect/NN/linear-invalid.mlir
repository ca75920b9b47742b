// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @inner(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // expected-error @below {{expected equal inner sizes, found 8 and 4}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @inner_transposed(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error @below {{expected equal inner sizes, found 4 and 8}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y {transpose_lhs} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @batch(%x: tensor<2x4x8xf32>, %y: tensor<3x8x4xf32>) {
  // expected-error @below {{expected batch dimensions [2] or none in the right operand, found 'tensor<3x8x4xf32>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<2x4x8xf32>, tensor<3x8x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @vector(%x: tensor<8xf32>, %y: tensor<8x4xf32>) {
  // expected-error @below {{expected matrices, found 'tensor<8xf32>' and 'tensor<8x4xf32>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @elements(%x: tensor<4x8xf32>, %y: tensor<8x4xf16>) {
  // expected-error @below {{expected one element type, found 'tensor<4x8xf32>' and 'tensor<8x4xf16>'}}
  // expected-error @below {{'nn.matmul' op failed to infer returned types}}
  %0 = nn.matmul %x, %y : (tensor<4x8xf32>, tensor<8x4xf16>) -> tensor<4x4xf32>
  return
}

// -----

func.func @grouped_rows(%x: tensor<2x8x4xf32>, %w: tensor<3x4x5xf32>, %g: tensor<8xi64>) {
  // expected-error @below {{expected rows [R, K], found 'tensor<2x8x4xf32>'}}
  // expected-error @below {{'nn.grouped_matmul' op failed to infer returned types}}
  %0 = nn.grouped_matmul %x, %w, %g : (tensor<2x8x4xf32>, tensor<3x4x5xf32>, tensor<8xi64>) -> tensor<8x5xf32>
  return
}

// -----

func.func @grouped_matrices(%x: tensor<8x4xf32>, %w: tensor<4x5xf32>, %g: tensor<8xi64>) {
  // expected-error @below {{expected a matrix for each group, found 'tensor<4x5xf32>'}}
  // expected-error @below {{'nn.grouped_matmul' op failed to infer returned types}}
  %0 = nn.grouped_matmul %x, %w, %g : (tensor<8x4xf32>, tensor<4x5xf32>, tensor<8xi64>) -> tensor<8x5xf32>
  return
}

// -----

func.func @grouped_inner(%x: tensor<8x4xf32>, %w: tensor<3x4x5xf32>, %g: tensor<8xi64>) {
  // expected-error @below {{expected equal inner sizes, found 4 and 5}}
  // expected-error @below {{'nn.grouped_matmul' op failed to infer returned types}}
  %0 = nn.grouped_matmul %x, %w, %g {transpose_rhs} : (tensor<8x4xf32>, tensor<3x4x5xf32>, tensor<8xi64>) -> tensor<8x4xf32>
  return
}

// -----

func.func @grouped_groups(%x: tensor<8x4xf32>, %w: tensor<3x4x5xf32>, %g: tensor<7xi64>) {
  // expected-error @below {{expected a group for each of 8 rows, found 'tensor<7xi64>'}}
  // expected-error @below {{'nn.grouped_matmul' op failed to infer returned types}}
  %0 = nn.grouped_matmul %x, %w, %g : (tensor<8x4xf32>, tensor<3x4x5xf32>, tensor<7xi64>) -> tensor<8x5xf32>
  return
}

// -----

func.func @grouped_elements(%x: tensor<8x4xf32>, %w: tensor<3x4x5xf64>, %g: tensor<8xi64>) {
  // expected-error @below {{expected one element type, found 'tensor<8x4xf32>' and 'tensor<3x4x5xf64>'}}
  // expected-error @below {{'nn.grouped_matmul' op failed to infer returned types}}
  %0 = nn.grouped_matmul %x, %w, %g : (tensor<8x4xf32>, tensor<3x4x5xf64>, tensor<8xi64>) -> tensor<8x5xf32>
  return
}

// -----

func.func @grouped_grad_rows(%x: tensor<8x4xf32>, %y: tensor<7x5xf32>, %g: tensor<8xi64>) {
  // expected-error @below {{expected as many rows, found 'tensor<8x4xf32>' and 'tensor<7x5xf32>'}}
  // expected-error @below {{'nn.grouped_matmul_grad' op failed to infer returned types}}
  %0 = nn.grouped_matmul_grad %x, %y, %g num_groups 3 : (tensor<8x4xf32>, tensor<7x5xf32>, tensor<8xi64>) -> tensor<3x4x5xf32>
  return
}

// -----

func.func @grouped_grad_none(%x: tensor<8x4xf32>, %y: tensor<8x5xf32>, %g: tensor<8xi64>) {
  // expected-error @below {{expected at least one group, found 0}}
  // expected-error @below {{'nn.grouped_matmul_grad' op failed to infer returned types}}
  %0 = nn.grouped_matmul_grad %x, %y, %g num_groups 0 : (tensor<8x4xf32>, tensor<8x5xf32>, tensor<8xi64>) -> tensor<0x4x5xf32>
  return
}

// -----

func.func @deal_uneven(%g: tensor<15xi64>, %r: tensor<i64>) {
  // expected-error @below {{expected rows and groups that 2 ranks divide, and room, found 15, 8 and 12}}
  // expected-error @below {{'nn.deal_rows' op failed to infer returned types}}
  %0:3 = nn.deal_rows %g, %r num_groups 8 ranks 2 room 12 : (tensor<15xi64>, tensor<i64>) -> (tensor<12xi64>, tensor<12xi64>, tensor<7xi64>)
  return
}

// -----

func.func @deal_types(%g: tensor<16xi32>, %r: tensor<i64>) {
  // expected-error @below {{expected groups [R] and a rank, of i64, found 'tensor<16xi32>' and 'tensor<i64>'}}
  // expected-error @below {{'nn.deal_rows' op failed to infer returned types}}
  %0:3 = nn.deal_rows %g, %r num_groups 8 ranks 2 room 12 : (tensor<16xi32>, tensor<i64>) -> (tensor<12xi64>, tensor<12xi64>, tensor<8xi64>)
  return
}

// -----

func.func @newton_schulz_rank(%x: tensor<8xf32>) {
  // expected-error @below {{expected matrices, found 'tensor<8xf32>'}}
  // expected-error @below {{'nn.newton_schulz' op failed to infer returned types}}
  %0 = nn.newton_schulz %x steps 5 coefficients [3.0, -4.0, 2.0] : tensor<8xf32>
  return
}

// -----

func.func @newton_schulz_coefficients(%x: tensor<8x8xf32>) {
  // expected-error @below {{expected coefficients a, b and c, found 2}}
  // expected-error @below {{'nn.newton_schulz' op failed to infer returned types}}
  %0 = nn.newton_schulz %x steps 5 coefficients [3.0, -4.0] : tensor<8x8xf32>
  return
}

// -----

func.func @newton_schulz_steps(%x: tensor<8x8xf32>) {
  // expected-error @below {{expected at least one step, found 0}}
  // expected-error @below {{'nn.newton_schulz' op failed to infer returned types}}
  %0 = nn.newton_schulz %x steps 0 coefficients [3.0, -4.0, 2.0] : tensor<8x8xf32>
  return
}
