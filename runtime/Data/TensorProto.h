// ONNX TensorProto files, as in ONNX test sets (input_0.pb). The wire format of
// this one message is decoded here: its definition is a dozen fields that have
// been stable since 2017, while protobuf would bring 3 MB, its own allocations
// and a build-time code generator into a runtime that needs neither.

#ifndef ACCEL_RUNTIME_DATA_TENSORPROTO_H
#define ACCEL_RUNTIME_DATA_TENSORPROTO_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// Reads an open TensorProto. Raw data stay in the file; typed data are decoded
/// into memory, which `memory` owns. `name` is the tensor's own name, perhaps
/// empty. Refuses fields it does not know, external data and strings.
Status openTensorProto(int fd, const std::string &path, TensorRange &range,
                       std::string &name, FileHandle &memory);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_TENSORPROTO_H
