"""The embedding: rows gathered, and its gradient in a fixed order, by ranks and sums of runs."""

from emit import THREAD, flat, kernel, load, store

F4 = "vector<4xf32>"
VOC = 50257
T, E = 8192, 768
body = (
    f"""{THREAD}
  %c8 = arith.constant 8 : index
  %cE = arith.constant {E} : index
  %id = memref.load %a1[%b] : memref<{T}xi32>
  %r = arith.index_cast %id : i32 to index
  %o = arith.muli %r, %cE : index
  %c = arith.muli %t, %c8 : index
  %s = arith.addi %o, %c : index
  %d0 = arith.muli %b, %cE : index
  %d = arith.addi %d0, %c : index
"""
    + load("x", "%a0", "%s", 8, "bf16", VOC * E, 16)
    + store("%x", "%a2", "%d", 8, "bf16", T * E, 16)
)
kernel(
    "embed_gather",
    [("bf16", VOC * E), ("i32", T), ("bf16", T * E)],
    body,
    T,
    E // 8,
    bytes=4 * T * E,
)
body = (
    flat(32, 1)
    + f"""
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %cT = arith.constant {T} : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %me = memref.load %a0[%i] : memref<{T}xi32>
  %n = scf.for %j = %c0 to %cT step %c1 iter_args(%acc = %z) -> i32 {{
    %o = memref.load %a0[%j] : memref<{T}xi32>
    %lt = arith.cmpi slt, %o, %me : i32
    %eq = arith.cmpi eq, %o, %me : i32
    %be = arith.cmpi ult, %j, %i : index
    %tie = arith.andi %eq, %be : i1
    %c = arith.ori %lt, %tie : i1
    %a = arith.extui %c : i1 to i32
    %s = arith.addi %acc, %a : i32
    scf.yield %s : i32
  }}
  %p = arith.index_cast %n : i32 to index
  %i32 = arith.index_cast %i : index to i32
  memref.store %i32, %a1[%p] : memref<{T}xi32>
"""
)
kernel("embed_rank", [("i32", T), ("i32", T)], body, T // 32, 32, bytes=8 * T)
body = f"""{THREAD}
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %cE = arith.constant {E} : index
  %cT = arith.constant {T} : index
  %true = arith.constant true
  %c = arith.muli %t, %c4 : index
  %i0 = memref.load %a1[%b] : memref<{T}xi32>
  %x0 = arith.index_cast %i0 : i32 to index
  %id = memref.load %a0[%x0] : memref<{T}xi32>
  %has = arith.cmpi ugt, %b, %c0 : index
  %bm = arith.subi %b, %c1 : index
  %bp = arith.select %has, %bm, %c0 : index
  %ip = memref.load %a1[%bp] : memref<{T}xi32>
  %xp = arith.index_cast %ip : i32 to index
  %idp = memref.load %a0[%xp] : memref<{T}xi32>
  %ne = arith.cmpi ne, %id, %idp : i32
  %nh = arith.xori %has, %true : i1
  %head = arith.ori %ne, %nh : i1
  scf.if %head {{
    %z = arith.constant dense<0.0> : {F4}
    %e, %s = scf.while (%k = %b, %acc = %z) : (index, {F4}) -> (index, {F4}) {{
      %in = arith.cmpi ult, %k, %cT : index
      %same = scf.if %in -> i1 {{
        %ik = memref.load %a1[%k] : memref<{T}xi32>
        %xk = arith.index_cast %ik : i32 to index
        %idk = memref.load %a0[%xk] : memref<{T}xi32>
        %q = arith.cmpi eq, %idk, %id : i32
        scf.yield %q : i1
      }} else {{
        %no = arith.constant false
        scf.yield %no : i1
      }}
      scf.condition(%same) %k, %acc : index, {F4}
    }} do {{
    ^bb0(%k: index, %acc: {F4}):
      %ik = memref.load %a1[%k] : memref<{T}xi32>
      %xk = arith.index_cast %ik : i32 to index
      %o0 = arith.muli %xk, %cE : index
      %o = arith.addi %o0, %c : index
    {load("v", "%a2", "%o", 4, "f32", T * E, 16)}
      %n = arith.addf %acc, %v : {F4}
      %kn = arith.addi %k, %c1 : index
      scf.yield %kn, %n : index, {F4}
    }}
    %r = arith.index_cast %id : i32 to index
    %w0 = arith.muli %r, %cE : index
    %w = arith.addi %w0, %c : index
  {store("%s", "%a3", "%w", 4, "f32", VOC * E, 16)}
  }}
"""
kernel(
    "embed_sum",
    [("i32", T), ("i32", T), ("f32", T * E), ("f32", VOC * E)],
    body,
    T,
    E // 4,
    bytes=8 * T * E,
)
