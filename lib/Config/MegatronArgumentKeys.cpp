// Arguments of Megatron-LM's own scripts (megatron/training/arguments.py), as
// far as something is decided by them here; the others stand in the files
// beside (MegatronTrainingKeys.cpp, …ModelKeys, …KernelKeys, …RunKeys).

#include "Schema.h"

using namespace accel::config;
static constexpr Key kMegatronArgumentKeys[] = {
    // What torchrun has in front of the script.
    done("nproc_per_node", "int>=1", "null",
         "num_processes, times nnodes: of torchrun, in a script"),
    done("nnodes", "int>=1", "1",
         "num_processes, times nproc_per_node: of torchrun, in a script"),
    // What DeepSpeed adds, and its branch of Megatron-LM.
    done("--deepspeed", "switch", "false",
         "--deepspeed_config is read as a DeepSpeed JSON"),
    done("--deepspeed_config", "string", "null",
         "a DeepSpeed JSON, also one that the script writes; its "
         "gradient_clipping is the one, and --clip-grad is not read"),
    done("--zero-stage", "0,1,2,3", "null", "zero_stage").sets("zero_stage"),
    noted("--deepspeed_mpi", "switch", "false", "how ranks find each other"),
    noted("--no-pipeline-parallel", "switch", "false",
          "--pipeline-model-parallel-size says how many stages there are"),
    done("--deepspeed-activation-checkpointing", "switch", "false",
         "recompute full")
        .orSet("recompute"),
    done("--ds-sequence-parallel-size", "int>=1", "1",
         "axis sp of the mesh: heads are exchanged for positions")
        .sets("sp"),
    // How ranks share the work.
    done("--tensor-model-parallel-size", "int>=1", "1", "axis tp of the mesh")
        .sets("tp"),
    done("--pipeline-model-parallel-size", "int>=1", "1",
         "axis pp of the mesh: stages, which run 1F1B")
        .sets("pp")
        .beware("stages have as many layers each; here as much work"),
    done("--num-layers-per-virtual-pipeline-stage", "int>=1", "null",
         "schedule interleaved:V, of V = layers / stages / this chunks on each "
         "rank; without --num-layers --schedule says V"),
    done("--num-virtual-stages-per-pipeline-rank", "int>=1", "null",
         "schedule interleaved:V, of so many chunks on each rank"),
    later("--pipeline-model-parallel-split-rank", "int>=1", "null",
          "a stage at which the decoder begins: say --cut NODE for each stage")
        .beware("gone from Megatron-LM"),
    later("--decoder-first-pipeline-num-layers", "int>=1", "null",
          "a first stage of so many layers: say --cut NODE for each stage"),
    later("--decoder-last-pipeline-num-layers", "int>=1", "null",
          "a last stage of so many layers: say --cut NODE for each stage"),
    later("--pipeline-model-parallel-layout", "string", "null",
          "stages of layers by name: say --cut NODE for each chunk"),
    done("--context-parallel-size", "int>=1", "1",
         "axis cp of the mesh, which splits sequences; with --cp-comm-type a2a "
         "axis sp"),
    done("--cp-comm-type", "p2p,a2a,allgather,a2a+p2p|list", "p2p",
         "cp.strategy: allgather, or (p2p) ring; a2a: heads are exchanged for "
         "positions, over axis sp")
        .only("p2p|allgather|a2a")
        .orSet("cp.strategy"),
    done("--sequence-parallel", "switch", "false",
         "sequence_parallelism, which is over tp")
        .sets("sequence_parallelism")
        .beware("ignored, with a warning, where tp is 1; here refused"),
    done("--expert-model-parallel-size", "int>=1", "1",
         "axis ep of the mesh: ranks have different experts, and different "
         "samples")
        .sets("ep"),
    done("--expert-tensor-parallel-size", "int>=1", "null",
         "experts are split over tp, as everything else is")
        .sets("etp")
        .beware("1 beside tp leaves experts whole; here tp splits them, with "
                "the same result"),
    done("--use-distributed-optimizer", "switch", "false",
         "zero_stage 1, over dp_shard and cp"),
    done("--data-parallel-sharding-strategy",
         "no_shard,optim,optim_grads,optim_grads_params", "no_shard",
         "zero_stage 0, 1, 2 or 3"),
    noted("--use-megatron-fsdp", "switch", "false",
          "--data-parallel-sharding-strategy says what is sharded"),
    later("--use-torch-fsdp2", "switch", "false",
          "say --data-parallel-sharding-strategy optim_grads_params")
        .unless("false"),
    later("--num-distributed-optimizer-instances", "int>=1", "1",
          "say --mesh dp_replicate=N,dp_shard=M")
        .unless("1"),
    // Batch, precision, memory.
    done("--micro-batch-size", "int>=1", "null",
         "rows of a micro-batch on one rank")
        .sets("train_micro_batch_size_per_gpu"),
    done("--global-batch-size", "int>=1", "null", "rows of a step")
        .sets("train_batch_size"),
    later("--rampup-batch-size", "list", "null",
          "batch sizes that change with the step"),
    done("--bf16", "switch", "false", "mixed_precision bf16"),
    done("--fp16", "switch", "false",
         "mixed_precision fp16, with Megatron-LM's scaler")
        .orSet("mixed_precision"),
    done("--fp8-format", "e4m3,hybrid", "null",
         "mixed_precision fp8, with this fp8.format")
        .orSet("mixed_precision"),
    noted("--accumulate-allreduce-grads-in-fp32", "switch", "false",
          "gradients are accumulated in float32 always, and reduced so but "
          "for --grad-reduce-in-bf16"),
    noted("--attention-softmax-in-fp32", "switch", "false",
          "the exponentials of attention are in float32 always"),
    noted("--calculate-per-token-loss", "switch", "false",
          "the loss of a step is that of all its rows at once always"),
    done("--recompute-activations", "switch", "false",
         "recompute selective, where no granularity is said")
        .orSet("recompute"),
    done("--recompute-granularity", "full,selective", "null",
         "recompute, of full with the method, of selective with the modules")
        .orSet("recompute"),
    done("--recompute-method", "uniform,block", "null",
         "recompute full: all layers, so many together, or the first of a "
         "chunk"),
    done("--recompute-num-layers", "int>=1", "null",
         "recompute full: how many layers"),
    done("--optimizer-cpu-offload", "switch", "false",
         "true: offload.optimizer cpu")
        .orSet("offload.optimizer"),
    // The update.
    done("--optimizer", "adam,sgd,muon,dist_muon,lion,soap,adaptive_muon",
         "adam",
         "adam: AdamW, whose decay is decoupled in Megatron-LM; sgd; muon, "
         "beside AdamW for what is no matrix of a hidden layer")
        .only("adam|sgd|muon")
        .orSet("optimizer.type")
        .beware("adam is AdamW"),
    done("--lr", "number>=0", "null", "optimizer.lr").sets("optimizer.lr"),
    done("--min-lr", "number>=0", "0",
         "scheduler.min_lr: the rate that --lr-decay-style falls to")
        .beware("not read where the rate is constant"),
    done("--clip-grad", "number>=0", "1.0",
         "the largest norm of all gradients together; 0: no clipping"),
    done("--weight-decay", "number>=0", "0.01",
         "optimizer.weight_decay, of all but optimizer.no_decay vectors: what "
         "has one dimension (norms), and biases")
        .orSet("optimizer.weight_decay")
        .beware("norms and biases are not decayed"),
    done("--apply-wd-to-qk-layernorm", "switch", "false",
         "optimizer.decay qk_norms: norms of queries and keys are decayed all "
         "the same"),
    done("--no-weight-decay-cond-type", "apply_wd_to_qk_layernorm,qwen3_next",
         "null", "as --apply-wd-to-qk-layernorm")
        .beware("decays more, not less, in spite of its name"),
    done("--adam-beta1", "number>=0", "0.9", "the first of optimizer.betas"),
    done("--adam-beta2", "number>=0", "0.999", "the second of optimizer.betas"),
    done("--adam-eps", "number>=0", "1e-08", "optimizer.eps")
        .sets("optimizer.eps"),
    done("--sgd-momentum", "number>=0", "0.9", "optimizer.momentum"),
    done("--lr-decay-style", "constant,linear,cosine,inverse-square-root,WSD",
         "linear", "scheduler.type")
        .orSet("scheduler.type"),
    done("--lr-wsd-decay-style", "exponential,linear,cosine,minus_sqrt",
         "exponential",
         "scheduler.lr_wsd_decay_style: how the rate of WSD falls"),
    done("--lr-wsd-decay-iters", "int>=1", "null",
         "scheduler.wsd_decay_steps: how long it does"),
    done("--lr-wsd-decay-samples", "int>=1", "null",
         "scheduler.wsd_decay_steps, times --global-batch-size"),
    done("--lr-decay-iters", "int>=1", "--train-iters",
         "scheduler.total_steps"),
    done("--train-iters", "int>=1", "null",
         "scheduler.total_steps; how long training is, acc-run is told"),
    done("--train-samples", "int>=1", "null",
         "scheduler.total_steps, times --global-batch-size"),
    done("--lr-decay-samples", "int>=1", "--train-samples",
         "scheduler.total_steps, times --global-batch-size"),
    done("--lr-warmup-iters", "int>=0", "0", "scheduler.warmup_steps"),
    done("--lr-warmup-samples", "int>=0", "0",
         "scheduler.warmup_steps, times --global-batch-size"),
    done("--lr-warmup-fraction", "number>=0", "null",
         "scheduler.warmup_steps: that part of --lr-decay-iters, in whole "
         "steps"),
    done("--lr-warmup-init", "number>=0", "0",
         "scheduler.warmup_min_lr: the rate that the warmup begins at"),
    done("--weight-decay-incr-style", "constant,linear,cosine", "constant",
         "scheduler.weight_decay_incr_style: a decay that grows until "
         "--train-iters")
        .beware("--weight-decay is not read unless it is constant"),
    done("--start-weight-decay", "number>=0", "null",
         "scheduler.start_weight_decay: the decay of the first step"),
    done("--end-weight-decay", "number>=0", "null",
         "scheduler.end_weight_decay: what the decay grows to"),
    done("--seed", "int>=0", "1234", "seed of the dropout").sets("seed"),
    // The model.
    done("--num-layers", "int>=1", "null",
         "read with --num-layers-per-virtual-pipeline-stage; else the graph "
         "says it"),
};

const Section accel::config::kMegatronArgumentsSection = {
    "megatron", "Megatron-LM: arguments of its scripts", "",
    kMegatronArgumentKeys, &kMegatronTrainingSection};
