// Opens files that hold one tensor, whose format accel-rt/TensorFileFormat.h
// knows, as ranges that pieces are moved from.

#ifndef ACCEL_RUNTIME_DATA_OPENTENSOR_H
#define ACCEL_RUNTIME_DATA_OPENTENSOR_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// Reads the header of an open .npy file; the elements stay in the file.
Status openNpy(int fd, const std::string &path, TensorRange &range);

/// Reads an open TensorProto. Raw data stay in the file; typed data are decoded
/// into memory, which `memory` owns. `name` is the tensor's own name, perhaps
/// empty.
Status openTensorProto(int fd, const std::string &path, TensorRange &range,
                       std::string &name, FileHandle &memory);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_OPENTENSOR_H
