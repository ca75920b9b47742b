// Telling a list of inputs and files from the name of one file.

#include "Feed/DataSource.h"

#include <algorithm>

namespace accel::rt {

Status filesOf(const std::string &text, const std::vector<TensorPlan> &inputs,
               std::vector<InputFile> &files) {
  files.clear();
  // A folder's name may have '=', an input's name may have '/'.
  auto isInput = [&](const std::string &name) {
    return std::any_of(
        inputs.begin(), inputs.end(),
        [&](const TensorPlan &each) { return each.name == name; });
  };
  size_t equals = text.find('=');
  if (equals == std::string::npos ||
      (!isInput(text.substr(0, equals)) &&
       text.substr(0, equals).find('/') != std::string::npos))
    return Status();
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    equals = part.find('=');
    if (equals == std::string::npos && !files.empty()) {
      files.back().path += "," + part;
      continue;
    }
    files.push_back({part.substr(0, equals), equals == std::string::npos
                                                 ? ""
                                                 : part.substr(equals + 1)});
  }
  for (const InputFile &file : files) {
    if (!isInput(file.input)) {
      std::string names;
      for (const TensorPlan &input : inputs)
        names += (names.empty() ? "" : ", ") + inQuotes(input.name);
      return Status::error("expected INPUT=FILE for an input of the program (" +
                           names + "), found " + inQuotes(file.input) +
                           " in the data " + inQuotes(text));
    }
    if (file.path.empty())
      return Status::error("expected a file behind '=' for input " +
                           inQuotes(file.input) + ", found none in the data " +
                           inQuotes(text));
    if (std::count_if(files.begin(), files.end(), [&](const InputFile &other) {
          return other.input == file.input;
        }) > 1)
      return Status::error("expected one file for input " +
                           inQuotes(file.input) + ", found two in the data " +
                           inQuotes(text));
  }
  return Status();
}

} // namespace accel::rt
