"""Settings of config files, held against the libraries that define them: Accelerate's own
launch and plugins and DeepSpeed's own classes read the same files as acc-opt, and every
setting that both know is the same. Needs accelerate and deepspeed beside PyTorch, and is
skipped without them."""
import contextlib
import inspect
import io
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ACC_BIN = pathlib.Path(os.environ["ACC_BIN"])

# Where scripts/test-python puts them.
sys.path.append(str(pathlib.Path(sys.prefix) / "libraries"))
try:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    logging.disable(logging.WARNING)
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser
    from accelerate.parallelism_config import ParallelismConfig
    from accelerate.utils import (DeepSpeedPlugin, FullyShardedDataParallelPlugin,
                                  MegatronLMPlugin)
    from accelerate.utils.launch import (prepare_deepspeed_cmd_env, prepare_multi_gpu_env,
                                         prepare_simple_launcher_cmd_env)
    from deepspeed.ops.adam import FusedAdam
    from deepspeed.runtime import lr_schedules
    from deepspeed.runtime.config import DeepSpeedConfig
    MISSING = ""
except ImportError as error:
    MISSING = f"no accelerate or deepspeed: {error}"


def acc_settings(path, *flags):
    """What acc-opt makes of a file: values by names, and --json's whole answer."""
    run = subprocess.run([ACC_BIN / "acc-opt", "--config", path, "--print-config",
                          "--json", *flags], capture_output=True, text=True)
    if run.returncode:
        raise AssertionError(f"acc-opt refuses {path}: {run.stderr}")
    answer = json.loads(run.stdout)
    return {one["key"]: one["value"] for one in answer["settings"]}, answer


def tables():
    """The tables of docs/ConfigKeys.md: of each section a row by key, as (default, fate)."""
    run = subprocess.run([ACC_BIN / "acc-opt", "--print-config-keys"], check=True,
                         capture_output=True, text=True)
    sections = {}
    for line in run.stdout.splitlines():
        if line.startswith("### "):
            rows = sections.setdefault(line[4:], {})
        elif line.startswith("| `"):
            cells = [cell.strip() for cell in line.replace("\\|", "/").split("|")]
            rows[cells[1].strip("`")] = (cells[3], cells[4])
    return sections


class ConfigCase(unittest.TestCase):
    def setUp(self):
        if MISSING:
            self.skipTest(MISSING)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return path

    def hold(self, what, here, there):
        """Holds values of acc-opt against those of the library; numbers as numbers."""
        for name, value in there.items():
            found = here.get(name)
            if isinstance(value, bool):
                value = str(value).lower()
            elif isinstance(value, (list, tuple)):
                value, found = list(value), [float(x) for x in (found or "0").split(",")]
            elif isinstance(value, (int, float)):
                found = float(found) if found not in (None, "none") else found
            self.assertEqual(found, value, f"{what}: {name}, here {here}")
        return len(there)


def launched(path):
    """What Accelerate's launch makes of a file: its arguments, and its environment."""
    parser = launch_command_parser()
    arguments = parser.parse_args(["--config_file", str(path), "script.py"])
    with mock.patch.dict(os.environ, clear=True), contextlib.redirect_stdout(io.StringIO()):
        arguments, config, _ = _validate_launch_command(arguments)
        if arguments.use_deepspeed:
            arguments.deepspeed_fields_from_accelerate_config = ",".join(
                config.deepspeed_config)
            environment = prepare_deepspeed_cmd_env(arguments)[1]
        elif arguments.use_fsdp or arguments.multi_gpu or arguments.use_megatron_lm:
            environment = prepare_multi_gpu_env(arguments)
        else:
            environment = prepare_simple_launcher_cmd_env(arguments)[1]
    return arguments, environment


def of_accelerate(path):
    """Accelerate's settings, by acc-opt's names."""
    arguments, environment = launched(path)
    there = {"mixed_precision": environment["ACCELERATE_MIXED_PRECISION"],
             "num_processes": arguments.num_processes}
    with mock.patch.dict(os.environ, environment):
        if arguments.use_fsdp:
            # These ask for a device.
            os.environ.update(FSDP_SYNC_MODULE_STATES="false",
                              FSDP_CPU_RAM_EFFICIENT_LOADING="false")
            plugin = FullyShardedDataParallelPlugin()
            if plugin.fsdp_version == 2:
                stage, once = 3, not plugin.reshard_after_forward
            else:
                strategy = plugin.sharding_strategy.name.lstrip("_")
                stage = 0 if strategy == "NO_SHARD" else 3
                once = strategy in ("SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2")
            there["zero_stage"] = stage
            if stage == 3:
                there["zero.gather_once"] = once
        if getattr(arguments, "use_parallelism_config", False):
            axes = ParallelismConfig()
            for axis in ("dp_replicate", "dp_shard", "tp", "cp", "sp"):
                size = getattr(axes, axis + "_size")
                if size > 1 or axis.startswith("dp"):
                    there[axis] = size
        if arguments.use_deepspeed:
            plugin = DeepSpeedPlugin()
            config = plugin.deepspeed_config
            there["zero_stage"] = plugin.zero_stage
            steps = config.get("gradient_accumulation_steps", 1)
            there["gradient_accumulation_steps"] = 1 if steps == "auto" else int(steps)
            clipping = config.get("gradient_clipping", 1.0)  # DeepSpeed's default
            there["gradient_clipping"] = 1.0 if clipping == "auto" else float(clipping)
        if arguments.use_megatron_lm:
            plugin = MegatronLMPlugin()
            sent = plugin.megatron_lm_default_args
            for name, key in (("tp", "tensor_model_parallel_size"),
                              ("pp", "pipeline_model_parallel_size"),
                              ("cp", "context_parallel_size"),
                              ("ep", "expert_model_parallel_size")):
                if sent[key] > 1:
                    there[name] = sent[key]
            there["sequence_parallelism"] = sent["sequence_parallel"]
            there["zero_stage"] = int(sent["use_distributed_optimizer"])
            there["gradient_clipping"] = sent["clip_grad"]
            there["gradient_accumulation_steps"] = sent["num_micro_batches"]
            if there["gradient_clipping"] == 0:
                there["gradient_clipping"] = "none"
            if not there["sequence_parallelism"]:
                del there["sequence_parallelism"]
    return there


def accelerate_files():
    """Files of every distributed type: names and texts."""
    def file(kind, processes=4, precision="bf16", **sections):
        lines = ["compute_environment: LOCAL_MACHINE", f"distributed_type: '{kind}'",
                 f"mixed_precision: '{precision}'", f"num_processes: {processes}",
                 "num_machines: 1", "machine_rank: 0", "main_training_function: main",
                 "use_cpu: false"]
        for section, keys in sections.items():
            lines.append(section + ":")
            lines += [f"  {name}: {value}" for name, value in keys.items()]
        return "\n".join(lines) + "\n"

    for precision in ("no", "bf16"):
        yield f"multi-gpu-{precision}", file("MULTI_GPU", 2, precision)
        yield f"single-{precision}", file("NO", 1, precision)
        for stage in range(4):
            yield (f"zero{stage}-{precision}",
                   file("DEEPSPEED", 2, precision, deepspeed_config={
                       "zero_stage": stage, "gradient_accumulation_steps": stage + 1,
                       "gradient_clipping": 0.5 + stage, "zero3_init_flag": "false"}))
    yield "zero-none", file("DEEPSPEED", 2, deepspeed_config={"zero_stage": 2})
    yield "zero-auto", file("DEEPSPEED", 2, deepspeed_config={
        "zero_stage": 1, "gradient_accumulation_steps": "auto", "gradient_clipping": "auto"})
    yield "zero-clip-0", file("DEEPSPEED", 2, deepspeed_config={
        "zero_stage": 1, "gradient_clipping": 0.0})
    yield "zero-offload", file("DEEPSPEED", 2, deepspeed_config={
        "zero_stage": 3, "offload_optimizer_device": "cpu", "offload_param_device": "cpu"})
    for strategy in ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD",
                     "HYBRID_SHARD_ZERO2", "1", "2", "3"):
        yield f"fsdp1-{strategy}", file("FSDP", 4, fsdp_config={
            "fsdp_version": 1, "fsdp_sharding_strategy": strategy,
            "fsdp_auto_wrap_policy": "NO_WRAP"})
    yield "fsdp1-questionnaire", file("FSDP", 4, fsdp_config={
        "fsdp_version": 1, "fsdp_reshard_after_forward": "SHARD_GRAD_OP"})
    yield "fsdp1-same", file("FSDP", 4, fsdp_config={
        "fsdp_version": 1, "fsdp_reshard_after_forward": "FULL_SHARD"})
    yield "fsdp1-offload", file("FSDP", 4, fsdp_config={
        "fsdp_version": 1, "fsdp_offload_params": "true"})
    for reshard in ("true", "false"):
        yield f"fsdp2-{reshard}", file("FSDP", 4, fsdp_config={
            "fsdp_version": 2, "fsdp_reshard_after_forward": reshard})
    yield "fsdp2-strategy", file("FSDP", 4, fsdp_config={
        "fsdp_version": 2, "fsdp_sharding_strategy": "SHARD_GRAD_OP"})
    for axes in ({"dp_shard": 4}, {"dp_replicate": 2, "dp_shard": 2},
                 {"dp_shard": 2, "tp": 2}, {"dp_shard": 2, "cp": 2},
                 {"dp_replicate": 2, "dp_shard": 2, "tp": 2}):
        ranks = 1
        for size in axes.values():
            ranks *= size
        yield "axes-" + "-".join(axes), file(
            "FSDP", ranks, fsdp_config={"fsdp_version": 2},
            parallelism_config={f"parallelism_config_{axis}_size": size
                                for axis, size in axes.items()})
    for name, keys in (("tp", {"tp_degree": 2}), ("pp", {"pp_degree": 2,
                                                         "num_micro_batches": 4}),
                       ("sequences", {"tp_degree": 2, "sequence_parallelism": "true"}),
                       ("clipping", {"tp_degree": 2, "gradient_clipping": 0.25}),
                       ("no-clipping", {"tp_degree": 2, "gradient_clipping": 0.0}),
                       ("moments", {"tp_degree": 2, "use_distributed_optimizer": "true"}),
                       ("contexts", {"tp_degree": 2, "context_parallel_size": 4}),
                       ("experts", {"tp_degree": 1, "expert_model_parallel_size": 2})):
        yield f"megatron-{name}", file("MEGATRON_LM", 16, megatron_lm_config={
            f"megatron_lm_{key}": value for key, value in keys.items()})


def deepspeed_files():
    """DeepSpeed JSONs: names, texts, ranks."""
    def file(**keys):
        return json.dumps(keys)

    for stage in range(4):
        yield f"stage{stage}", file(train_batch_size=16,
                                    zero_optimization={"stage": stage}), 4
    yield "nothing", file(train_batch_size=8), 2
    yield "micro", file(train_micro_batch_size_per_gpu=3), 2
    yield "micro-steps", file(train_micro_batch_size_per_gpu=2,
                              gradient_accumulation_steps=3), 4
    yield "batch-micro", file(train_batch_size=24, train_micro_batch_size_per_gpu=2), 4
    yield "batch-steps", file(train_batch_size=24, gradient_accumulation_steps=3), 4
    yield "all", file(train_batch_size=24, train_micro_batch_size_per_gpu=2,
                      gradient_accumulation_steps=3), 4
    for clipping in (0.0, 0.3, 1.0, 5):
        yield f"clip-{clipping}", file(train_batch_size=4, gradient_clipping=clipping), 2
    for enabled in (True, False):
        yield f"bf16-{enabled}", file(train_batch_size=4, bf16={"enabled": enabled}), 2
        yield f"bfloat16-{enabled}", file(train_batch_size=4,
                                          bfloat16={"enabled": enabled}), 2
    yield "hpz", file(train_batch_size=8, zero_optimization={
        "stage": 3, "zero_hpz_partition_size": 2}), 4
    yield "offload", file(train_batch_size=8, zero_optimization={
        "stage": 3, "offload_param": {"device": "cpu"},
        "offload_optimizer": {"device": "cpu"}}), 4
    yield "offload-of-old", file(train_batch_size=8, zero_optimization={
        "stage": 2, "cpu_offload": True}), 4
    for name in ("Adam", "AdamW", "SGD"):
        momentum = {"momentum": 0.8} if name == "SGD" else {"betas": [0.8, 0.99]}
        yield f"optimizer-{name}", file(train_batch_size=4, optimizer={
            "type": name, "params": {"lr": 3e-4, "weight_decay": 0.1, **momentum}}), 2
        yield f"optimizer-bare-{name}", file(train_batch_size=4, optimizer={
            "type": name, "params": {"lr": 3e-4} if name == "SGD" else {}}), 2
    for name, keys in (("WarmupLR", {"warmup_num_steps": 20}), ("WarmupLR", {}),
                       ("WarmupLR", {"warmup_min_lr": 1e-5, "warmup_max_lr": 1e-2,
                                     "warmup_type": "linear"}),
                       ("WarmupDecayLR", {"total_num_steps": 2000}),
                       ("WarmupDecayLR", {"total_num_steps": 50, "warmup_num_steps": 5,
                                          "warmup_max_lr": 2e-3}),
                       ("WarmupCosineLR", {"total_num_steps": 2000}),
                       ("WarmupCosineLR", {"total_num_steps": 90, "warmup_min_ratio": 0.1,
                                           "cos_min_ratio": 0.2,
                                           "warmup_num_steps": 9})):
        yield (f"scheduler-{name}-{len(keys)}", file(
            train_batch_size=4, optimizer={"type": "Adam", "params": {"lr": 1e-3}},
            scheduler={"type": name, "params": keys}), 2)
    # As DeepSpeed's reader takes them, which is not JSON's.
    yield "comments", ("// of a forum\n{ # here\n \"train_batch_size\": 8, /* and\n here */"
                       "\n \"zero_optimization\": {\"stage\": 2,},}"), 2
    yield "floats", "{\"train_batch_size\": 8.0, \"gradient_clipping\": 5e-1}", 2
    yield "bare", "{train_batch_size: 8\n zero_optimization: {stage: 1}\n}", 2
    yield "quotes", "{'train_batch_size': 8, 'bf16': {'enabled': true}}", 2
    yield "no-braces", "train_batch_size: 8\ngradient_clipping: 2\n", 2
    yield "words", "{\"train_batch_size\": 4\n\"optimizer\": {\n\"type\": Adam\n}}", 2


def default_of(function, name):
    return inspect.signature(function).parameters[name].default


def of_deepspeed(path, ranks):
    """DeepSpeed's settings, by acc-opt's names."""
    with mock.patch.multiple("deepspeed.runtime.config.dist", get_rank=lambda: 0,
                             get_world_size=lambda: ranks):
        config = DeepSpeedConfig(str(path))
    there = {"train_batch_size": config.train_batch_size,
             "train_micro_batch_size_per_gpu": config.train_micro_batch_size_per_gpu,
             "gradient_accumulation_steps": config.gradient_accumulation_steps,
             "zero_stage": config.zero_config.stage,
             "mixed_precision": "bf16" if config.bfloat16_config.enabled else "no",
             "gradient_clipping": config.gradient_clipping or "none"}
    if config.zero_config.zero_hpz_partition_size > 1:
        there["zero.hpz_partition_size"] = config.zero_config.zero_hpz_partition_size
    rate = None
    if config.optimizer_name:
        params = config.optimizer_params or {}
        sgd = config.optimizer_name.lower() == "sgd"
        names = ["lr", "weight_decay", *(["momentum"] if sgd else ["betas", "eps"])]
        import torch
        maker = torch.optim.SGD if sgd else FusedAdam
        for name in names:
            there["optimizer." + name] = params.get(name, default_of(maker, name))
        there["optimizer.type"] = "sgd" if sgd else "adamw"  # adam_w_mode, its default
        rate = there["optimizer.lr"]
    if config.scheduler_name:
        params = config.scheduler_params or {}
        maker = getattr(lr_schedules, config.scheduler_name)
        def value(name):
            return params.get(name, default_of(maker, name))
        there["scheduler.warmup_steps"] = value("warmup_num_steps")
        there["scheduler.warmup"] = value("warmup_type")
        if config.scheduler_name == "WarmupCosineLR":
            there["scheduler.warmup_min_ratio"] = value("warmup_min_ratio")
            there["scheduler.cos_min_ratio"] = value("cos_min_ratio")
            there["optimizer.lr"] = rate
        else:
            there["scheduler.warmup_min_lr"] = value("warmup_min_lr")
            there["optimizer.lr"] = value("warmup_max_lr") or rate
        if "total_num_steps" in params:
            there["scheduler.total_steps"] = params["total_num_steps"]
    return there


class TestAccelerate(ConfigCase):
    def test_settings_are_accelerates(self):
        """--compat=accelerate comes to what Accelerate's launch and plugins do."""
        files = dict(accelerate_files())
        self.assertGreaterEqual(len(files), 40)
        held = 0
        for name, text in files.items():
            with self.subTest(name):
                path = self.write(name + ".yaml", text)
                here, _ = acc_settings(path, "--compat=accelerate")
                held += self.hold(name, here, of_accelerate(path))
        self.assertGreater(held, 3 * len(files))

    def test_differences_are_those_of_settings(self):
        """A setting that differs from Accelerate's is told, and none that does not."""
        for name, text in accelerate_files():
            with self.subTest(name):
                path = self.write(name + ".yaml", text)
                here, answer = acc_settings(path, "--diff-accelerate")
                told = {one["key"]: one for one in answer["differences"]}
                for one in told.values():
                    self.assertNotEqual(one["here"], one["accelerate"], one)
                for key, value in of_accelerate(path).items():
                    value = str(value).lower() if isinstance(value, bool) else str(value)
                    same = here.get(key) == value
                    with contextlib.suppress(TypeError, ValueError):
                        same = same or float(here.get(key)) == float(value)
                    self.assertTrue(same or key in told, f"{key}: {value}, {here}")


class TestDeepSpeed(ConfigCase):
    def test_settings_are_deepspeeds(self):
        """What a JSON comes to is what DeepSpeedConfig reads, defaults and all."""
        files = list(deepspeed_files())
        self.assertGreaterEqual(len(files), 40)
        defaults = tables()["DeepSpeed: scheduler.params"]
        for name, text, ranks in files:
            with self.subTest(name):
                path = self.write(name + ".json", text)
                here, _ = acc_settings(path, "--set", f"num_processes={ranks}")
                there = of_deepspeed(path, ranks)
                for key in there:  # what is not printed is the table's default
                    if key not in here and key.startswith("scheduler."):
                        here[key] = defaults[key.split(".")[1]][0]
                self.assertGreaterEqual(self.hold(name, here, there), 6)

    def test_refuses_what_the_reader_of_deepspeed_refuses(self):
        """Malformed in both, a key that is said twice too."""
        for number, text in enumerate((
                "{\"train_batch_size\": 8, \"train_batch_size\": 8}", "{\"a\": }", "{\"a\" 1}",
                "{\"a\": [1, 2}", "{\"a\": \"b}", "{\"a\": 1 /* }", "{, \"a\": 1}",
                "{\"train_batch_size\": 8} 5", "{\"a\": \"\\x\"}", "{\"a\": 1")):
            with self.subTest(text):
                path = self.write(f"{number}.json", text)
                with self.assertRaises(Exception):
                    DeepSpeedConfig(str(path))
                run = subprocess.run([ACC_BIN / "acc-opt", "--config", path,
                                      "--print-config"], capture_output=True, text=True)
                self.assertEqual(run.returncode, 1, run.stdout)
                self.assertRegex(run.stderr, r"\.json:1:\d+: error: (malformed JSON|key)")


class TestTables(ConfigCase):
    """The tables of docs/ConfigKeys.md have the keys and the defaults of the classes."""

    def same(self, text, value):
        """Whether a cell of the table says this default."""
        if hasattr(value, "value"):
            value = value.value
        if value is None or value in ([], {}, ""):
            return text in ("null", "none", "", "{}")
        if isinstance(value, bool):
            return text == str(value).lower()
        if isinstance(value, (int, float)):
            try:
                return float(text) == float(value)
            except ValueError:
                return False
        return text == str(value)

    def hold_table(self, title, fields, derived=(), unknown=()):
        """`fields` are the library's names and defaults. `derived`: defaults that are no
        constants; `unknown`: names that no file can say."""
        rows = tables()[title]
        for name, value in fields.items():
            if name in unknown:
                continue
            with self.subTest(f"{title}: {name}"):
                self.assertIn(name, rows)
                if name not in derived:
                    self.assertTrue(self.same(rows[name][0], value),
                                    f"{name}: {rows[name][0]} here, {value!r} there")

    def of_model(self, model):
        """The fields of one of DeepSpeed's pydantic classes, by what a file calls them."""
        fields = {}
        for name, field in model.model_fields.items():
            default = field.get_default(call_default_factory=True)
            if hasattr(default, "model_fields"):
                default = {}
            fields[field.alias or name] = default
        return fields

    def test_deepspeed_sections(self):
        from deepspeed.runtime.precision_config import DeepSpeedBF16Config, DeepSpeedFP16Config
        from deepspeed.runtime.zero.config import DeepSpeedZeroConfig
        from deepspeed.runtime.zero.offload_config import (DeepSpeedZeroOffloadOptimizerConfig,
                                                           DeepSpeedZeroOffloadParamConfig)
        for title, model in (
                ("zero_optimization", DeepSpeedZeroConfig),
                ("zero_optimization.offload_param", DeepSpeedZeroOffloadParamConfig),
                ("zero_optimization.offload_optimizer", DeepSpeedZeroOffloadOptimizerConfig),
                ("fp16", DeepSpeedFP16Config), ("bf16", DeepSpeedBF16Config)):
            self.hold_table("DeepSpeed: " + title, self.of_model(model),
                            derived={"overlap_comm"})

    def test_schedules(self):
        for name in ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR"):
            signature = inspect.signature(getattr(lr_schedules, name))
            self.hold_table("DeepSpeed: scheduler.params", {
                key: one.default for key, one in signature.parameters.items()
                if one.default is not inspect.Parameter.empty},
                derived={"warmup_max_lr"}, unknown={"last_batch_iteration"})

    def test_accelerates_keys(self):
        """Each flag of the launch that a section's key becomes is in the table."""
        parser = launch_command_parser()
        flags = {action.dest: action.default for action in parser._actions}
        for title, prefix in (("Accelerate: fsdp_config", "fsdp_"),
                              ("Accelerate: megatron_lm_config", "megatron_lm_"),
                              ("Accelerate: parallelism_config", "parallelism_config_")):
            fields = {name: value for name, value in flags.items() if name.startswith(prefix)}
            self.assertGreater(len(fields), 5)
            self.hold_table(title, fields, derived=set(fields))
