// NumPy's .npy files (format of NEP 1, versions 1 to 3).

#ifndef ACCEL_RUNTIME_DATA_NPY_H
#define ACCEL_RUNTIME_DATA_NPY_H

#include "Data/TensorFile.h"

namespace accel::rt {

/// Reads the header of an open .npy file; the elements stay in the file.
/// Refuses element types that are not numbers, big-endian ones among them.
Status openNpy(int fd, const std::string &path, TensorRange &range);

/// The header of a .npy file for row-major elements; padded to 64 bytes.
std::string npyHeader(DType dtype, const std::vector<int64_t> &shape);

} // namespace accel::rt

#endif // ACCEL_RUNTIME_DATA_NPY_H
