// Prints tables and sizes.

#include "Table.h"

#include "lib/Cost/Prediction.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace accel::report;

void Table::print(llvm::raw_ostream &os) const {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t column = 0; column < row.size(); ++column) {
      if (column == widths.size())
        widths.push_back(0);
      widths[column] = std::max(widths[column], row[column].size());
    }
  for (const auto &row : rows) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string &cell = row[column];
      std::string space(widths[column] - cell.size(), ' ');
      bool isNumber = !cell.empty() && llvm::isDigit(cell.front());
      line += (column ? "  " : "  ") + (isNumber ? space + cell : cell + space);
    }
    os << llvm::StringRef(line).rtrim() << "\n";
  }
}

std::string accel::report::formatBytes(int64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit)
    value /= 1024;
  if (unit == 0)
    return std::to_string(bytes) + " B";
  return llvm::formatv("{0:f1} {1} ({2})", value, kUnits[unit], bytes).str();
}

std::string accel::report::formatDifference(int64_t predicted,
                                            int64_t planned) {
  return llvm::formatv("{0}{1:f2} %", predicted < planned ? "" : "+",
                       cost::getDifferencePercent(predicted, planned))
      .str();
}
