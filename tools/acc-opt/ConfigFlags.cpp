// acc-opt's flags of configuration: files, and what they resolve to.

#include "ConfigFlags.h"
#include "FlagCategories.h"

using namespace accel::config;
namespace cl = llvm::cl;

static cl::list<std::string> files(
    "config",
    cl::desc("Accelerate's default_config.yaml, a DeepSpeed JSON, arguments of "
             "Megatron-LM's or a shell script that launches it, told apart "
             "by content; repeatable"),
    cl::value_desc("file"), cl::cat(configFlags));
static cl::list<std::string> variables(
    "set-var",
    cl::desc("A variable of the shell script of --config, or by its number an "
             "argument of it (1=VALUE); beats what the script assigns; "
             "repeatable"),
    cl::value_desc("NAME=VALUE"), cl::cat(configFlags));
static cl::opt<bool> printsSettings(
    "print-config",
    cl::desc("Print every setting and where it comes from; with -o compile "
             "too"),
    cl::cat(configFlags));
static cl::opt<std::string>
    compat("compat",
           cl::desc("accelerate: drop what Accelerate drops of a config file"),
           cl::value_desc("accelerate"), cl::cat(configFlags));
static cl::opt<bool>
    diffs("diff-accelerate",
          cl::desc("Print where Accelerate would not do what a config file "
                   "says"),
          cl::cat(configFlags));
static cl::opt<bool>
    printsKeys("print-config-keys", cl::Hidden,
               cl::desc("Print the tables of docs/ConfigKeys.md"));

std::vector<std::string> configFiles() { return {files.begin(), files.end()}; }

bool hasConfigFiles() { return !files.empty(); }
bool printsConfig() { return printsSettings || diffs || printsKeys; }

llvm::Expected<Config> readConfigFlags(Request request, bool json) {
  if (!compat.empty() && compat != "accelerate")
    return failFlag("expected --compat=accelerate, found '" + compat + "'");
  for (cl::Option *option :
       {static_cast<cl::Option *>(&compat), static_cast<cl::Option *>(&diffs)})
    if (option->getNumOccurrences() && files.empty())
      return failFlag("expected --config with '--" + option->ArgStr + "'");
  if (!variables.empty() && files.empty())
    return failFlag("expected --config with '--set-var'");
  request.files.assign(files.begin(), files.end());
  request.variables.assign(variables.begin(), variables.end());
  request.likeAccelerate = false;
  if (printsKeys)
    printSchema(llvm::outs());
  std::optional<Config> honoured;
  if (diffs) {
    llvm::Expected<Config> config = resolveConfig(request);
    if (!config)
      return config;
    compareWithAccelerate(request, *config);
    honoured = std::move(*config);
  }
  request.likeAccelerate = compat == "accelerate";
  llvm::Expected<Config> config = resolveConfig(request);
  if (!config)
    return config;
  if (honoured)
    config->differences = std::move(honoured->differences);
  if (printsSettings || diffs) {
    PrintOptions options;
    options.settings = printsSettings;
    options.differences = diffs;
    options.json = json;
    printConfig(*config, options, llvm::outs());
  }
  return config;
}
