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

std::string accel::report::formatDifference(int64_t predicted,
                                            int64_t planned) {
  return llvm::formatv("{0}{1:f2} %", predicted < planned ? "" : "+",
                       cost::getDifferencePercent(predicted, planned))
      .str();
}
