// Matrix products by oneDNN's matmul primitive: one single-threaded primitive
// per size of chunk, created when the product is prepared. Everything that an
// execution touches exists by then: streams and memory objects per thread,
// scratch from the caller.

#include "Device/CPU/Gemm/GemmForms.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <dnnl.h>

extern "C" void omp_set_num_threads(int); // of oneDNN's own OpenMP

using namespace accel::rt;
using namespace accel::rt::cpu;

namespace {
Status check(dnnl_status_t status, const char *what) {
  if (status == dnnl_success)
    return Status();
  return Status::error(std::string("onednn cannot ") + what + ": status " +
                       std::to_string(static_cast<int>(status)));
}

dnnl_engine_t getEngine() {
  static dnnl_engine_t engine = [] {
    dnnl_engine_t made = nullptr;
    dnnl_engine_create(&made, dnnl_cpu, 0);
    return made;
  }();
  return engine;
}

dnnl_data_type_t getType(GemmType type) {
  return type == GemmType::BF16 ? dnnl_bf16 : dnnl_f32;
}

/// Outer dimensions of a packed b in row-major order, then its inner blocks:
/// {first outer dimension, number of blocks, sizes…, dimensions…}.
std::vector<int64_t> encodeLayout(const dnnl_memory_desc_t &md) {
  const dnnl_blocking_desc_t &blocking = md.format_desc.blocking;
  std::vector<int64_t> layout{blocking.strides[0] >= blocking.strides[1] ? 0
                                                                         : 1};
  layout.push_back(blocking.inner_nblks);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    layout.push_back(blocking.inner_blks[i]);
  for (int i = 0; i < blocking.inner_nblks; ++i)
    layout.push_back(blocking.inner_idxs[i]);
  return layout;
}

bool isLayout(const std::vector<int64_t> &layout) {
  if (layout.size() < 2 || layout[0] < 0 || layout[0] > 1 || layout[1] < 0 ||
      layout[1] > 8 || layout.size() != static_cast<size_t>(2 + 2 * layout[1]))
    return false;
  for (int64_t i = 0; i < layout[1]; ++i) {
    int64_t block = layout[2 + i], dim = layout[2 + layout[1] + i];
    if (block < 1 || block > 4096 || dim < 0 || dim > 1)
      return false;
  }
  return true;
}

dnnl_memory_desc_t decodeLayout(const std::vector<int64_t> &layout, int64_t k,
                                int64_t n, GemmType type) {
  dnnl_memory_desc_t md;
  std::memset(&md, 0, sizeof(md));
  md.ndims = 2;
  md.dims[0] = k;
  md.dims[1] = n;
  md.data_type = getType(type);
  md.format_kind = dnnl_blocked;
  dnnl_blocking_desc_t &blocking = md.format_desc.blocking;
  blocking.inner_nblks = static_cast<int>(layout[1]);
  int64_t block[2] = {1, 1}, inner = 1;
  for (int64_t i = 0; i < layout[1]; ++i) {
    blocking.inner_blks[i] = layout[2 + i];
    blocking.inner_idxs[i] = layout[2 + layout[1] + i];
    block[blocking.inner_idxs[i]] *= blocking.inner_blks[i];
    inner *= blocking.inner_blks[i];
  }
  for (int dim = 0; dim < 2; ++dim)
    md.padded_dims[dim] =
        (md.dims[dim] + block[dim] - 1) / block[dim] * block[dim];
  int64_t major = layout[0], minor = 1 - major;
  blocking.strides[minor] = inner;
  blocking.strides[major] = inner * (md.padded_dims[minor] / block[minor]);
  return md;
}

struct PrimitiveDesc {
  ~PrimitiveDesc() {
    if (handle)
      dnnl_primitive_desc_destroy(handle);
  }
  dnnl_memory_desc_t get(dnnl_query_t what) const {
    return *dnnl_primitive_desc_query_md(handle, what, 0);
  }
  dnnl_primitive_desc_t handle = nullptr;
};

/// A matrix of elements of `bytes` bytes: sizes and strides.
struct Matrix {
  int64_t rows, columns, rowStride, columnStride, bytes;

  /// Whether rows (or columns) follow each other without gaps. Only such
  /// matrices reach oneDNN's own loops: for others it falls back to a form that
  /// allocates.
  bool hasDenseRows() const {
    return (columns == 1 || columnStride == 1) &&
           (rows == 1 || rowStride == columns);
  }
  bool hasDenseColumns() const {
    return (rows == 1 || rowStride == 1) &&
           (columns == 1 || columnStride == rows);
  }
  bool isDense() const { return hasDenseRows() || hasDenseColumns(); }
  /// The dense matrix that a copy is made into: in the order it is stored in.
  Matrix getDense() const {
    bool byRows = rows == 1 || columns == 1 || hasDenseRows() ||
                  (!hasDenseColumns() && columnStride == 1);
    Matrix dense = *this;
    dense.rowStride = byRows ? columns : 1;
    dense.columnStride = byRows ? 1 : rows;
    return dense;
  }
  int64_t getBytes() const { return rows * columns * bytes; }
};

int64_t alignUp(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Copies between two matrices of the same sizes, one of which is dense.
void copyMatrix(const Matrix &from, const void *source, const Matrix &to,
                void *target) {
  auto *in = static_cast<const char *>(source);
  auto *out = static_cast<char *>(target);
  bool byRows = from.columnStride == 1 && to.columnStride == 1;
  bool byColumns = from.rowStride == 1 && to.rowStride == 1;
  if (byRows) {
    for (int64_t row = 0; row < from.rows; ++row)
      std::memcpy(out + row * to.rowStride * to.bytes,
                  in + row * from.rowStride * from.bytes,
                  from.columns * from.bytes);
  } else if (byColumns) {
    for (int64_t column = 0; column < from.columns; ++column)
      std::memcpy(out + column * to.columnStride * to.bytes,
                  in + column * from.columnStride * from.bytes,
                  from.rows * from.bytes);
  } else {
    for (int64_t row = 0; row < from.rows; ++row)
      for (int64_t column = 0; column < from.columns; ++column)
        std::memcpy(out + (row * to.rowStride + column * to.columnStride) *
                              to.bytes,
                    in + (row * from.rowStride + column * from.columnStride) *
                             from.bytes,
                    from.bytes);
  }
}

/// An operand of a chunk size: as it lies in memory, and as oneDNN gets it.
struct Operand {
  Matrix stored{}, dense{};
  bool copied = false;
  int64_t scratch = 0; ///< where the copy is

  explicit Operand(const Matrix &matrix)
      : stored(matrix), dense(matrix.getDense()), copied(!matrix.isDense()) {}
  Operand() = default;
};

/// The memory objects with which one thread runs a primitive.
struct Arguments {
  dnnl_memory_t a = nullptr, b = nullptr, bias = nullptr, c = nullptr,
                scratch = nullptr;
};

/// A chunk size's primitive; empty until a chunk of that size exists.
struct Variant {
  dnnl_primitive_t primitive = nullptr;
  Operand a, b, c;
  dnnl_memory_desc_t weights;
  std::vector<Arguments> threads;
};

class DnnlGemm : public Gemm {
public:
  DnnlGemm(const GemmDesc &desc, const GemmForm &form)
      : prepared(form), grid(desc, form) {}

  ~DnnlGemm() override {
    for (Variant &variant : variants) {
      for (Arguments &arguments : variant.threads)
        for (dnnl_memory_t memory : {arguments.a, arguments.b, arguments.bias,
                                     arguments.c, arguments.scratch})
          if (memory)
            dnnl_memory_destroy(memory);
      if (variant.primitive)
        dnnl_primitive_destroy(variant.primitive);
    }
    for (dnnl_stream_t stream : streams)
      dnnl_stream_destroy(stream);
  }

  const GemmForm &form() const override { return prepared; }
  int64_t chunks() const override { return grid.count; }
  int64_t scratchBytes() const override { return scratch; }
  int64_t packedBytes() const override {
    return prepared.packed ? packedStride * grid.columnChunks : 0;
  }

  Status prepare(int threads) {
    omp_set_num_threads(1);
    for (int thread = 0; thread < threads; ++thread) {
      dnnl_stream_t stream;
      ACCEL_RT_RETURN_IF_ERROR(check(
          dnnl_stream_create(&stream, getEngine(), dnnl_stream_default_flags),
          "create a stream"));
      streams.push_back(stream);
    }
    int64_t lastRows = grid.desc.m - (grid.rowChunks - 1) * grid.rows;
    int64_t lastColumns = grid.desc.n - (grid.columnChunks - 1) * grid.columns;
    for (int edgeRow = 0; edgeRow < 2; ++edgeRow)
      for (int edgeColumn = 0; edgeColumn < 2; ++edgeColumn) {
        bool rowsExist = edgeRow ? lastRows != grid.rows : true;
        bool columnsExist = edgeColumn ? lastColumns != grid.columns : true;
        if (rowsExist && columnsExist)
          ACCEL_RT_RETURN_IF_ERROR(
              prepare(variants[edgeRow * 2 + edgeColumn], threads,
                      edgeRow ? lastRows : grid.rows,
                      edgeColumn ? lastColumns : grid.columns));
      }
    return Status();
  }

  Status pack(const void *b, void *packed) const override {
    if (!prepared.packed)
      return Status::error("expected a form that packs");
    omp_set_num_threads(1);
    for (int64_t column = 0; column < grid.columnChunks; ++column) {
      Chunk chunk = grid.get(column);
      dnnl_memory_desc_t from = describe(select(chunk).b.stored);
      dnnl_memory_desc_t to = select(chunk).weights;
      dnnl_memory_t source = nullptr, target = nullptr;
      dnnl_primitive_desc_t desc = nullptr;
      dnnl_primitive_t reorder = nullptr;
      char *address = static_cast<char *>(packed) + column * packedStride;
      Status status =
          check(dnnl_reorder_primitive_desc_create(&desc, &from, getEngine(),
                                                   &to, getEngine(), nullptr),
                "pack weights");
      if (status.ok())
        status = check(dnnl_primitive_create(&reorder, desc), "pack weights");
      if (status.ok())
        status = check(
            dnnl_memory_create(&source, &from, getEngine(), offset(b, chunk.b)),
            "read weights");
      if (status.ok())
        status = check(dnnl_memory_create(&target, &to, getEngine(), address),
                       "write packed weights");
      if (status.ok()) {
        dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source},
                                       {DNNL_ARG_TO, target}};
        status =
            check(dnnl_primitive_execute(reorder, streams[0], 2, arguments),
                  "pack weights");
      }
      if (source)
        dnnl_memory_destroy(source);
      if (target)
        dnnl_memory_destroy(target);
      if (reorder)
        dnnl_primitive_destroy(reorder);
      if (desc)
        dnnl_primitive_desc_destroy(desc);
      ACCEL_RT_RETURN_IF_ERROR(std::move(status));
    }
    return Status();
  }

  void run(int64_t index, int thread, const void *a, const void *b,
           const void *bias, void *c, void *scratchpad) const override {
    omp_set_num_threads(1);
    Chunk chunk = grid.get(index);
    const Variant &variant = select(chunk);
    const Arguments &memory = variant.threads[thread];
    auto *own = static_cast<char *>(scratchpad);
    char *result =
        static_cast<char *>(c) + chunk.c * getBytes(grid.desc.outType);
    void *weights = offset(b, chunk.b);
    if (prepared.packed)
      weights = const_cast<char *>(static_cast<const char *>(b)) +
                chunk.column * packedStride;
    else
      weights = gather(variant.b, weights, own);
    dnnl_memory_set_data_handle(memory.a,
                                gather(variant.a, offset(a, chunk.a), own));
    dnnl_memory_set_data_handle(memory.b, weights);
    void *target = variant.c.copied ? own + variant.c.scratch : result;
    if (variant.c.copied && grid.desc.accumulate)
      copyMatrix(variant.c.stored, result, variant.c.dense, target);
    dnnl_memory_set_data_handle(memory.c, target);
    dnnl_memory_set_data_handle(memory.scratch, scratchpad);
    dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, memory.a},
                                    {DNNL_ARG_WEIGHTS, memory.b},
                                    {DNNL_ARG_DST, memory.c},
                                    {DNNL_ARG_SCRATCHPAD, memory.scratch}};
    int count = 4;
    if (grid.desc.bias) {
      dnnl_memory_set_data_handle(memory.bias, offset(bias, chunk.bias));
      arguments[count++] = {DNNL_ARG_BIAS, memory.bias};
    }
    dnnl_primitive_execute(variant.primitive, streams[thread], count,
                           arguments);
    if (variant.c.copied)
      copyMatrix(variant.c.dense, target, variant.c.stored, result);
  }

private:
  void *offset(const void *data, int64_t elements) const {
    return const_cast<char *>(static_cast<const char *>(data)) +
           elements * getBytes(grid.desc.type);
  }

  const Variant &select(const Chunk &chunk) const {
    return variants[(chunk.rows != grid.rows) * 2 +
                    (chunk.columns != grid.columns)];
  }

  /// The operand where oneDNN can read it: in place, or copied into scratch.
  static void *gather(const Operand &operand, void *data, char *scratch) {
    if (!operand.copied)
      return data;
    void *copy = scratch + operand.scratch;
    copyMatrix(operand.stored, data, operand.dense, copy);
    return copy;
  }

  static dnnl_memory_desc_t describe(const Matrix &matrix,
                                     dnnl_data_type_t type) {
    dnnl_memory_desc_t md;
    dnnl_dims_t dims = {matrix.rows, matrix.columns};
    dnnl_dims_t strides = {matrix.rowStride, matrix.columnStride};
    dnnl_memory_desc_init_by_strides(&md, 2, dims, type, strides);
    return md;
  }
  dnnl_memory_desc_t describe(const Matrix &matrix) const {
    return describe(matrix, getType(grid.desc.type));
  }
  dnnl_memory_desc_t describeBias(int64_t columns) const {
    return describe({1, columns, columns, 1, 0});
  }

  Status createDesc(PrimitiveDesc &made, const Variant &variant,
                    const dnnl_memory_desc_t &b) const {
    const GemmDesc &desc = grid.desc;
    dnnl_memory_desc_t a = describe(variant.a.dense);
    dnnl_memory_desc_t c = describe(variant.c.dense, getType(desc.outType));
    dnnl_memory_desc_t bias = describeBias(variant.c.dense.columns);
    dnnl_matmul_desc_t op;
    ACCEL_RT_RETURN_IF_ERROR(check(
        dnnl_matmul_desc_init(&op, &a, &b, desc.bias ? &bias : nullptr, &c),
        "describe a matrix product"));
    dnnl_primitive_attr_t attr;
    dnnl_primitive_attr_create(&attr);
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (desc.accumulate) {
      dnnl_post_ops_t sums;
      dnnl_post_ops_create(&sums);
      dnnl_post_ops_append_sum(sums, 1.0f);
      dnnl_primitive_attr_set_post_ops(attr, sums);
      dnnl_post_ops_destroy(sums);
    }
    dnnl_status_t status = dnnl_primitive_desc_create(&made.handle, &op, attr,
                                                      getEngine(), nullptr);
    dnnl_primitive_attr_destroy(attr);
    ACCEL_RT_RETURN_IF_ERROR(check(status, "compute this matrix product"));
    const char *name = "";
    dnnl_primitive_desc_query(made.handle, dnnl_query_impl_info_str, 0, &name);
    if (std::strncmp(name, "brg:", 4) != 0)
      return Status::error(std::string("expected oneDNN's blocked product, "
                                       "found its '") +
                           name + "', which allocates");
    return Status();
  }

  Status prepare(Variant &variant, int threads, int64_t rows, int64_t columns) {
    const GemmDesc &desc = grid.desc;
    // Its blocked product counts in 32 bits, and divides by what wraps to 0.
    if (int64_t most = std::max({rows, columns, desc.k}); most > INT32_MAX)
      return Status::error("expected chunks of a product of fewer than 2^31 "
                           "rows, columns and inner elements, found " +
                           std::to_string(most));
    int64_t bytes = getBytes(desc.type);
    variant.a = Operand({rows, desc.k, desc.aRow, desc.aCol, bytes});
    variant.b = Operand({desc.k, columns, desc.bRow, desc.bCol, bytes});
    variant.c = Operand({rows, columns, desc.cRow, 1, getBytes(desc.outType)});
    if (!variant.c.dense.hasDenseRows() ||
        (variant.c.copied && variant.c.dense.columnStride != 1))
      return Status::error("expected rows of the result without gaps");
    if (!prepared.packed) {
      variant.weights = describe(variant.b.dense);
    } else {
      if (prepared.layout.empty())
        ACCEL_RT_RETURN_IF_ERROR(askForLayout(variant));
      variant.weights =
          decodeLayout(prepared.layout, desc.k, columns, desc.type);
      variant.b.copied = false;
      packedStride = std::max(
          packedStride, alignUp(static_cast<int64_t>(
                            dnnl_memory_desc_get_size(&variant.weights))));
    }
    PrimitiveDesc made;
    ACCEL_RT_RETURN_IF_ERROR(createDesc(made, variant, variant.weights));
    ACCEL_RT_RETURN_IF_ERROR(
        check(dnnl_primitive_create(&variant.primitive, made.handle),
              "create a matrix product"));
    dnnl_memory_desc_t pad = made.get(dnnl_query_scratchpad_md);
    int64_t end =
        alignUp(static_cast<int64_t>(dnnl_memory_desc_get_size(&pad)));
    for (Operand *operand : {&variant.a, &variant.b, &variant.c}) {
      operand->scratch = end;
      if (operand->copied)
        end += alignUp(operand->dense.getBytes());
    }
    scratch = std::max(scratch, end);
    dnnl_memory_desc_t a = made.get(dnnl_query_src_md);
    dnnl_memory_desc_t c = made.get(dnnl_query_dst_md);
    dnnl_memory_desc_t bias = describeBias(columns);
    variant.threads.resize(threads);
    for (Arguments &arguments : variant.threads) {
      auto make = [&](dnnl_memory_t &memory, dnnl_memory_desc_t &md) {
        return check(
            dnnl_memory_create(&memory, &md, getEngine(), DNNL_MEMORY_NONE),
            "describe memory");
      };
      ACCEL_RT_RETURN_IF_ERROR(make(arguments.a, a));
      ACCEL_RT_RETURN_IF_ERROR(make(arguments.b, variant.weights));
      ACCEL_RT_RETURN_IF_ERROR(make(arguments.c, c));
      ACCEL_RT_RETURN_IF_ERROR(make(arguments.bias, bias));
      ACCEL_RT_RETURN_IF_ERROR(make(arguments.scratch, pad));
    }
    return Status();
  }

  Status askForLayout(const Variant &variant) {
    dnnl_memory_desc_t any;
    dnnl_dims_t dims = {grid.desc.k, variant.c.dense.columns};
    dnnl_memory_desc_init_by_tag(&any, 2, dims, getType(grid.desc.type),
                                 dnnl_format_tag_any);
    PrimitiveDesc made;
    ACCEL_RT_RETURN_IF_ERROR(createDesc(made, variant, any));
    dnnl_memory_desc_t chosen = made.get(dnnl_query_weights_md);
    if (chosen.format_kind != dnnl_blocked || chosen.extra.flags != 0)
      return Status::error("expected a blocked layout of packed weights");
    prepared.layout = encodeLayout(chosen);
    return Status();
  }

  GemmForm prepared;
  Chunks grid;
  Variant variants[4]; ///< last row chunk · 2 + last column chunk
  std::vector<dnnl_stream_t> streams;
  int64_t scratch = 0, packedStride = 0;
};
} // namespace

Status cpu::createDnnlGemm(const GemmDesc &desc, const GemmForm &form,
                           int threads, std::unique_ptr<Gemm> &gemm) {
  if (form.packed) {
    for (int64_t stride : desc.bBatch)
      if (stride != 0)
        return Status::error(
            "expected packed weights without batch dimensions");
    if (!form.layout.empty() && !isLayout(form.layout))
      return Status::error("expected a layout of packed weights");
  }
  auto made = std::make_unique<DnnlGemm>(desc, form);
  ACCEL_RT_RETURN_IF_ERROR(made->prepare(threads));
  gemm = std::move(made);
  return Status();
}

Status accel::rt::cpu::limitInstructions(bool avx512) {
  dnnl_cpu_isa_t wanted = avx512 ? dnnl_cpu_isa_avx512_core : dnnl_cpu_isa_avx2;
  // Asking what is in effect fixes it, so it is set first.
  if (dnnl_set_max_cpu_isa(wanted) == dnnl_success ||
      dnnl_get_effective_cpu_isa() == wanted)
    return Status();
  return Status::error("cannot keep onednn to the instructions of the target: "
                       "it has prepared a product already");
}
