// RUN: acc-opt %s -split-input-file --verify-diagnostics

func.func @rank(%q: tensor<4x3x8xf32>) {
  // expected-error @below {{expected tensors of rank 4, found 'tensor<4x3x8xf32>', 'tensor<4x3x8xf32>' and 'tensor<4x3x8xf32>'}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<4x3x8xf32>, tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x3xf32>)
  return
}

// -----

func.func @groups(%q: tensor<1x4x3x8xf32>, %k: tensor<1x3x3x8xf32>) {
  // expected-error @below {{expected query [B, H, S, D], key [B, G, T, D] and value [B, G, T, E] with G dividing H}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x3x3x8xf32>, tensor<1x3x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @depth(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x3x6xf32>) {
  // expected-error @below {{expected query [B, H, S, D], key [B, G, T, D] and value [B, G, T, E] with G dividing H}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x6xf32>, tensor<1x4x3x6xf32>) -> (tensor<1x4x3x6xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @mask_shape(%q: tensor<1x4x3x8xf32>, %m: tensor<1x1x3x1xi1>) {
  // expected-error @below {{expected a mask of i1 or of the query's element type that broadcasts to [1, 4, 3, 3], found 'tensor<1x1x3x1xi1>'}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %q, %q mask %m {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x1x3x1xi1>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @mask_with_levels(%q: tensor<1x4x3x8xf32>, %m: tensor<1x1x3x4xi1>) {
  // expected-error @below {{expected a mask of i1 or of the query's element type that broadcasts to [1, 4, 3, 3], found 'tensor<1x1x3x4xi1>'}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %q, %q mask %m {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x1x3x4xi1>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @mask_element(%q: tensor<1x4x3x8xf32>, %m: tensor<1x1x3x3xi64>) {
  // expected-error @below {{expected a mask of i1 or of the query's element type that broadcasts to [1, 4, 3, 3], found 'tensor<1x1x3x3xi64>'}}
  // expected-error @below {{'nn.attention' op failed to infer returned types}}
  %0:2 = nn.attention %q, %q, %q mask %m {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x1x3x3xi64>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @gradient(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %g: tensor<1x4x3x6xf32>) {
  // expected-error @below {{expected a gradient of type 'tensor<1x4x3x8xf32>', found 'tensor<1x4x3x6xf32>'}}
  // expected-error @below {{'nn.attention_grad' op failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %g {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x6xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @mask_of_gradient(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %m: tensor<1x1x3x1xi1>) {
  // expected-error @below {{expected a mask of i1 or of the query's element type that broadcasts to [1, 4, 3, 3], found 'tensor<1x1x3x1xi1>'}}
  // expected-error @below {{'nn.attention_grad' op failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q mask %m {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>, tensor<1x1x3x1xi1>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @output(%q: tensor<1x4x3x8xf32>, %o: tensor<1x4x2x8xf32>, %l: tensor<1x4x3xf32>) {
  // expected-error @below {{expected an output of type 'tensor<1x4x3x8xf32>', found 'tensor<1x4x2x8xf32>'}}
  // expected-error @below {{'nn.attention_grad' op failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %q, %q output %o, %l gradient %q {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x2x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @log_sum_exp(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xbf16>) {
  // expected-error @below {{expected a log-sum-exp of type 'tensor<1x4x3xf32>', found 'tensor<1x4x3xbf16>'}}
  // expected-error @below {{'nn.attention_grad' op failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xbf16>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @log_sum_exp_gradient(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>, %d: tensor<1x4x1xf32>) {
  // expected-error @below {{expected a gradient of the log-sum-exp of type 'tensor<1x4x3xf32>', found 'tensor<1x4x1xf32>'}}
  // expected-error @below {{'nn.attention_grad' op failed to infer returned types}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q, %d {scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>, tensor<1x4x1xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @offset_without_causal(%q: tensor<1x4x3x8xf32>) {
  // expected-error @below {{'nn.attention' op expected 'row_offset' and 'column_offset' beside 'causal' only, found 2 and 0}}
  %0:2 = nn.attention %q, %q, %q {row_offset = 2, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @offset_below_zero(%q: tensor<1x4x3x8xf32>) {
  // expected-error @below {{'nn.attention' op expected 'row_offset' and 'column_offset' of at least 0 and below 2^56, found 0 and -1}}
  %0:2 = nn.attention %q, %q, %q {causal, column_offset = -1, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @offset_of_gradient(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>) {
  // expected-error @below {{'nn.attention_grad' op expected 'row_offset' and 'column_offset' of at least 0 and below 2^56, found 72057594037927936 and 0}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {causal, row_offset = 72057594037927936, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @turn_of_all_keys(%q: tensor<1x4x3x8xf32>) {
  // expected-error @below {{'nn.attention' op expected a 'turn' of at least 0, beside 'column_steps' only, found 1}}
  %0:2 = nn.attention %q, %q, %q {causal, turn = 1, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @steps_without_causal(%q: tensor<1x4x3x8xf32>) {
  // expected-error @below {{'nn.attention' op expected 'column_steps' beside 'causal' only, and an axis in it, found {cp = 3 : i64}}}
  %0:2 = nn.attention %q, %q, %q {column_steps = {cp = 3}, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @steps_back(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>) {
  // expected-error @below {{'nn.attention_grad' op expected a number of at least 0 and below 2^56 for axis 'cp' in 'column_steps', found -3 : i64}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {causal, column_steps = {cp = -3}, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}

// -----

func.func @stride_without_causal(%q: tensor<1x4x3x8xf32>) {
  // expected-error @below {{'nn.attention' op expected a 'stride' of at least 1 and below 2^56, and of 1 but beside 'causal', found 2}}
  %0:2 = nn.attention %q, %q, %q {stride = 2, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3xf32>)
  return
}

// -----

func.func @stride_of_nothing(%q: tensor<1x4x3x8xf32>, %l: tensor<1x4x3xf32>) {
  // expected-error @below {{'nn.attention_grad' op expected a 'stride' of at least 1 and below 2^56, and of 1 but beside 'causal', found 0}}
  %0:3 = nn.attention_grad %q, %q, %q output %q, %l gradient %q {causal, stride = 0, scale = 1.0 : f64} : (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3xf32>, tensor<1x4x3x8xf32>) -> (tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>, tensor<1x4x3x8xf32>)
  return
}
