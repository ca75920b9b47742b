// What a script launches, as a document. How the script is run stands in
// Shell/.

#include "lib/Config/ReadScript.h"
#include "lib/Config/ParseArguments.h"
#include "lib/Config/Shell/Run.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace accel::config;

static constexpr size_t kLargestScript = 1 << 20;

/// Why there is no text, and what to do.
static std::string describe(const shell::Unknown &unknown) {
  return unknown.what + " is not known: " + unknown.wayOut;
}

static Error failUndecided(StringRef name, const shell::Unknown &unknown) {
  return failAt(Place{name.str(), unknown.line},
                unknown.what +
                    " is not known, and decides what the arguments are: " +
                    unknown.wayOut);
}

/// The launch of a script that has one.
static Expected<shell::Launch> pickLaunch(shell::Ran ran, StringRef name) {
  auto at = [&](unsigned line) { return Place{name.str(), line}; };
  if (ran.launches.empty() && ran.endedAt)
    return failAt(at(*ran.endedAt),
                  "the script ends here, before it starts a command of "
                  "Python: --set-var 1=VALUE says an argument of the script, "
                  "--set-var NAME=VALUE a variable");
  if (ran.launches.empty())
    return failAt(at(1), "expected a command of Python in this script, "
                         "FILE.py with arguments, found none");
  const shell::Launch &first = ran.launches.front();
  if (ran.launches.size() == 1)
    return first;
  const shell::Launch &second = ran.launches[1];
  const shell::Reason &why =
      second.condition ? second.condition : first.condition;
  return failAt(at(second.line),
                "expected one command of Python, found another: the first is "
                "in line " +
                    Twine(first.line) +
                    (why ? ", and which of them is started depends on more "
                           "than is known: " +
                               describe(*why)
                         : "; one is compiled: leave out the others"));
}

/// Refuses what another library's launcher or trainer takes from elsewhere.
static Error refuseOthers(const shell::Launch &launch, StringRef name) {
  ArrayRef<shell::Text> words = launch.words;
  Place place{name.str(), launch.line};
  ArrayRef<shell::Text> front = words.take_front(launch.script);
  auto isAccelerate = [](const shell::Text &word) {
    return sys::path::filename(word.text) == "accelerate";
  };
  if (any_of(front, isAccelerate)) {
    std::string file = shell::valueOf(front, {"--config_file"}).text;
    return failAt(place, "accelerate launch takes the run from " +
                             (file.empty() ? std::string("its own flags")
                                           : "'" + file + "'") +
                             ": give --config " +
                             (file.empty() ? "the file that `accelerate "
                                             "config` writes of them"
                                           : file) +
                             " in the place of the script");
  }
  std::string file =
      shell::valueOf(words.drop_front(launch.script + 1), {"--deepspeed"}).text;
  if (StringRef(file).ends_with(".json"))
    return failAt(place, "a script that takes --deepspeed " + file +
                             " is no Megatron-LM: give --config " + file +
                             " in its place, and by --set what its other "
                             "arguments say");
  return Error::success();
}

Expected<Document> accel::config::readScript(StringRef text, StringRef name,
                                             const shell::Given &given) {
  auto at = [&](unsigned line) { return Place{name.str(), line}; };
  if (text.size() > kLargestScript)
    return failAt(at(1), "expected at most 1 MiB of configuration, found " +
                             Twine(text.size()) + " bytes");
  Expected<shell::Ran> ran = shell::run(text, name, given);
  if (!ran)
    return ran.takeError();
  Expected<shell::Launch> launch = pickLaunch(std::move(*ran), name);
  if (!launch)
    return launch.takeError();
  if (Error error = refuseOthers(*launch, name))
    return std::move(error);
  std::vector<Argument> arguments;
  ArrayRef<shell::Text> words = launch->words;
  for (auto [i, word] : enumerate(words)) {
    const shell::Unknown *unknown = word.unknown.get();
    if (i <= launch->script)
      continue;
    if (unknown && unknown->isUndecided)
      return failUndecided(name, *unknown);
    bool isValue = StringRef(words[i - 1].text).starts_with("--") &&
                   !StringRef(words[i - 1].text).contains('=');
    // It may be of several words, of none, and of other arguments.
    if (unknown && word.mayBeSeveral && !isValue)
      return failAt(at(word.line), "expected arguments, found '" + word.text +
                                       "': " + describe(*unknown));
    arguments.push_back(
        {word.text, word.line, unknown ? describe(*unknown) : ""});
  }
  Expected<Document> document = documentOfArguments(arguments, name);
  if (!document)
    return document;
  for (const auto &[path, file] : launch->files) {
    bool isRead = any_of(arguments, [&, &path = path](const Argument &one) {
      return StringRef(one.text).ends_with(path);
    });
    if (file.unknown && isRead)
      return failAt(at(file.line), "'" + path + "' is written here, and " +
                                       describe(*file.unknown));
    document->written.emplace_back(path, file.text);
  }
  shell::Ranks ranks = countRanks(*launch, shell::variablesOfSlurm(text));
  for (auto [key, value] : {std::pair<StringRef, const shell::Text *>{
                                "nproc_per_node", &ranks.ofMachine},
                            {"nnodes", &ranks.machines}}) {
    if (value->text.empty())
      continue;
    if (!all_of(value->text, isDigit) || value->unknown)
      return failAt(at(launch->line),
                    "expected a number as '" + key + "' of torchrun, found '" +
                        value->text + "'" +
                        (value->unknown ? ": " + describe(*value->unknown)
                                        : std::string()));
    Node node, said;
    node.text = key.str();
    said.text = value->text;
    node.place = said.place = at(launch->line);
    document->root.entries.emplace_back(std::move(node), std::move(said));
  }
  return document;
}

bool accel::config::looksLikeScript(StringRef text, StringRef name) {
  if (name.ends_with(".sh") ||
      (text.starts_with("#!") && text.split('\n').first.contains("sh")))
    return true;
  for (StringRef rest = text; !rest.empty(); rest = rest.split('\n').second) {
    StringRef line = rest.split('\n').first.trim();
    if (!line.empty() && !line.starts_with("#"))
      return line.starts_with("torchrun ") || line.starts_with("python ") ||
             line.starts_with("python3 ") || line.starts_with("deepspeed ");
  }
  return false;
}

/// Whether `name` stands in the text, not as a part of a longer one.
static bool namesWord(StringRef text, StringRef name) {
  for (size_t at = text.find(name); at != StringRef::npos;
       at = text.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !shell::isNameLetter(text[at - 1])) &&
        (end == text.size() || !shell::isNameLetter(text[end])))
      return true;
  }
  return false;
}

bool accel::config::hasPlaceFor(StringRef variable, StringRef text) {
  if (namesWord(text, "source") || text.starts_with(". ") ||
      text.contains("\n. "))
    return true;
  if (!all_of(variable, isDigit))
    return namesWord(text, variable);
  for (StringRef all : {"$@", "$*", "$#", "${@", "${*", "${#"})
    if (text.contains(all))
      return true;
  return namesWord(text, "shift") || namesWord(text, "getopts") ||
         text.contains(("$" + variable).str()) ||
         text.contains(("${" + variable).str());
}
