// Tables for people: columns as wide as their widest cell.

#ifndef ACCEL_LIB_REPORT_TABLE_H
#define ACCEL_LIB_REPORT_TABLE_H

#include "lib/Names/Bytes.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace accel::report {

/// The rows of a table, the first one its head. Numbers, which begin with a
/// digit, are set flush right.
class Table {
public:
  explicit Table(std::vector<std::string> head) { rows.push_back(head); }
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  void print(llvm::raw_ostream &os) const;

private:
  std::vector<std::vector<std::string>> rows;
};

/// Of what was predicted from what is so, in percent of that: "+0.31 %".
std::string formatDifference(int64_t predicted, int64_t planned);

} // namespace accel::report

#endif // ACCEL_LIB_REPORT_TABLE_H
