// A config file as it was written: YAML or JSON as a tree whose every node
// keeps its text, its quotes and its line. What a scalar's text means is
// decided in Scalar.h, because YAML 1.1 and JSON disagree about it.

#ifndef ACCEL_LIB_CONFIG_DOCUMENT_H
#define ACCEL_LIB_CONFIG_DOCUMENT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace accel::config {

/// Where something was said: a line of a file, or a flag (then line is 0). Of
/// malformed JSON the column, from 1, is known too.
struct Place {
  std::string file;
  unsigned line = 0, column = 0;

  /// `FILE:LINE`, `FILE:LINE:COLUMN`, or the flag.
  std::string str() const;
  bool isFile() const { return line != 0; }
};

/// An error about the user's configuration; it prints as `FILE:LINE: error: …`,
/// or as `acc-opt: error: …` where no file is to blame.
class ConfigError : public llvm::ErrorInfo<ConfigError> {
public:
  static char ID;
  ConfigError(Place place, llvm::StringRef text);
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;
  const Place &where() const { return place; }
  llvm::StringRef text() const { return message; }

private:
  Place place;
  std::string message;
};

llvm::Error failAt(const Place &place, const llvm::Twine &message);
/// The error of a flag, which has no place in a file.
inline llvm::Error failFlag(const llvm::Twine &message) {
  return failAt(Place{}, message);
}

struct Node {
  enum class Kind { Scalar, Sequence, Mapping };
  Kind kind = Kind::Scalar;
  std::string text;    ///< of a scalar, its quotes and escapes undone
  bool quoted = false; ///< a quoted or a block scalar: never but a string
  /// Of a scalar that only a shell knows: why, and the way out, for messages.
  std::string unknown;
  Place place;
  std::vector<Node> items;                    ///< of a sequence
  std::vector<std::pair<Node, Node>> entries; ///< of a mapping, in order
};

/// Of arguments, scalars mean what they mean in JSON; one that has no value is
/// a scalar without text or quotes.
enum class Syntax { Yaml, Json, Arguments };

struct Document {
  Syntax syntax = Syntax::Yaml;
  Node root; ///< a mapping
  /// The first thing of a JSON that JSON itself has not ("a comment"), which
  /// DeepSpeed reads and Accelerate does not.
  std::optional<std::pair<Place, std::string>> beyondJson;
  /// Names and texts of files that a script writes before it launches.
  std::vector<std::pair<std::string, std::string>> written;
};

/// Parses `text`, which comes from `name`: JSON where its name says so or it
/// opens with a brace and a quoted key (which is how `accelerate config
/// default` writes .yaml files too), YAML else. Refuses, with the line:
/// malformed text, more than one document, a root that is no mapping, a key
/// that is said twice, anchors, aliases and tags (neither Accelerate nor
/// DeepSpeed writes them), nesting deeper than 32, more than 1 MiB.
llvm::Expected<Document> parseDocument(llvm::StringRef text,
                                       llvm::StringRef name);

} // namespace accel::config

#endif // ACCEL_LIB_CONFIG_DOCUMENT_H
