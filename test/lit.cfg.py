# The lit suite. A test is a .mlir or .test file under test/, or a row of a .rows
# file (rows.py), in a folder that mirrors lib/; it finds acc-opt, acc-run,
# FileCheck and not on PATH. Started on a file in the source tree, lit takes the
# build folder $ACCEL_BUILD (build/).
import os
import shutil
import sys

source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(source, "test"))

import rows

# lit started on the source tree has not read the build's site configuration.
if not hasattr(config, "accel_build"):
    build = os.path.join(source, os.environ.get("ACCEL_BUILD", "build"))
    site = os.path.join(build, "test", "lit.site.cfg.py")
    if not os.path.exists(site):
        lit_config.fatal(f"'{site}' does not exist: run scripts/setup first")
    lit_config.load_config(config, site)
    raise SystemExit

config.name = "acc"
config.test_format = rows.ShTestOrRows(execute_external=False)
config.suffixes = [".mlir", ".test", ".rows"]
config.excludes = ["Fixtures", "Inputs", "Unit"]
config.test_source_root = os.path.join(source, "test")
config.test_exec_root = os.path.join(config.accel_build, "test")

config.environment["PATH"] = os.pathsep.join([
    os.path.join(config.accel_build, "bin"), config.llvm_tools,
    os.environ.get("PATH", "")])
# ACCEL_MODEL_ORDER=last scripts/lit Integration: acc-run is accel-model-run, and its device
# runs what is enqueued in that order (test/ModelDevice).
if os.environ.get("ACCEL_MODEL_ORDER"):
    stand_in = os.path.join(config.accel_build, "test", "model-run")
    os.makedirs(stand_in, exist_ok=True)
    link = os.path.join(stand_in, "acc-run")
    if not os.path.islink(link):
        os.symlink(os.path.join(config.accel_build, "bin", "accel-model-run"), link)
    config.environment["PATH"] = os.pathsep.join([stand_in, config.environment["PATH"]])
    config.environment["ACCEL_MODEL_ORDER"] = os.environ["ACCEL_MODEL_ORDER"]
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
# Of the preset asan: LLVM's allocators mark memory in what we compile and not in
# its own libraries, which no sanitizer has seen.
if config.accel_asan_options:
    config.environment["ASAN_OPTIONS"] = config.accel_asan_options
    # Its allocator is its own: no preloaded one gets a call.
    config.available_features.add("asan")
for name in ("ACCEL_POISON", "ACCEL_CACHE", "ACCEL_SWEEPS", "ASAN_OPTIONS", "UBSAN_OPTIONS",
             "TMPDIR", "HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

models = os.path.abspath(os.environ.get(
    "ACCEL_MODELS", os.path.join(source, "..", "shared", "models")))
if os.path.isdir(os.path.join(models, "export")):
    config.available_features.add("models")
# Machines without a /dev/pts have no terminals to give.
try:
    for end in os.openpty():
        os.close(end)
    config.available_features.add("terminal")
except OSError:
    pass

if shutil.which("clang-tidy-14"):
    config.available_features.add("clang-tidy")

# Whether f32 may be multiplied as bf16 pieces, and whether oneDNN packs weights (x86 only,
# as all of this).
with open("/proc/cpuinfo") as cpuinfo:
    words = cpuinfo.read().split()
    config.available_features |= {feature for word, feature in (("amx_bf16", "amx"), ("avx512f", "avx512"))
                                  if word in words}

config.substitutions += [
    ("%models", models),
    ("%fixtures", os.path.join(source, "test", "Fixtures")),
    ("%scripts", os.path.join(source, "scripts")),
    ("%python", sys.executable),
    ("%build", config.accel_build),
    # Preloaded into acc-run, it counts what is allocated after load.
    ("%count-allocations", os.path.join(
        config.accel_build, "lib", "accel-count-allocations.so")),
    # Preloaded into acc-run, it changes a bit of what is read.
    ("%change-reads", os.path.join(
        config.accel_build, "lib", "accel-change-reads.so")),
    ("%fail-calls", os.path.join(
        config.accel_build, "lib", "accel-fail-calls.so")),
    # %inject: calls of the system that fail. See docs/Faults.md.
    ("%inject", sys.executable + " " + os.path.join(
        source, "test", "Faults", "inject.py") + " --library " + os.path.join(
            config.accel_build, "lib", "accel-fail-calls.so")),
    # %power: the power that goes. See docs/Faults.md.
    ("%power", sys.executable + " " + os.path.join(
        source, "test", "Faults", "power.py") + " --library " + os.path.join(
            config.accel_build, "lib", "accel-log-writes.so")),
    # Preloaded into acc-run: see test/Tools/ChangeSaves.cpp, SlowMemory.cpp.
    ("%change-saves", os.path.join(
        config.accel_build, "lib", "accel-change-saves.so")),
    ("%slow-memory", os.path.join(
        config.accel_build, "lib", "accel-slow-memory.so")),
    # %encode-onnx < model.textproto > model.onnx
    ("%encode-onnx", "protoc --proto_path=" + os.path.join(
        config.accel_build, "onnx-schema") +
     " --encode=onnx.ModelProto onnx-ml.proto"),
    ("%run-export", sys.executable + " " + os.path.join(
        source, "test", "Integration", "run_export.py")),
    ("%run-train", sys.executable + " " + os.path.join(
        source, "test", "Integration", "run_train.py")),
    ("%check-reports", sys.executable + " " + os.path.join(
        source, "test", "Integration", "check_reports.py")),
    ("%check-gradients", sys.executable + " " + os.path.join(
        source, "test", "Integration", "check_gradients.py")),
    # %npydiff A B --tolerance T: |a - b| / (1 + |b|) of two .npy or .pb tensors,
    # or of all tensors of two folders.
    ("%npydiff", sys.executable + " " + os.path.join(source, "scripts", "npydiff")),
]
