// What scripts give Accelerate as `kwargs_handlers`, written down by the names
// of its classes: no file of Accelerate's has a place for them.

#include "Schema.h"

using namespace accel::config;

static constexpr Key kHandlers[] = {
    noted("DistributedDataParallelKwargs", "%DistributedDataParallelKwargs",
          "{}", "how gradients are reduced"),
};

static constexpr Key kDdp[] = {
    later("dim", "int>=0", "0", "another batch dimension: --batch-dim says it")
        .unless("0"),
    noted("broadcast_buffers", "bool", "true",
          "buffers are the same on all ranks: none is trained batch norm's"),
    noted("bucket_cap_mb", "number>0", "25",
          "gradients are reduced in buckets of 25 MiB"),
    noted("find_unused_parameters", "bool", "false",
          "unused parameters are known when compiling"),
    noted("check_reduction", "bool", "false",
          "which ranks reduce what is proved when compiling")
        .beware("deprecated: nothing reads it"),
    noted("gradient_as_bucket_view", "bool", "false",
          "a bucket's gradients lie in one buffer where that spares a copy"),
    noted("static_graph", "bool", "false", "the graph is static always"),
    done("comm_hook", "~no,fp16,bf16,power_sgd,batched_power_sgd", "no",
         "comm_hook: the type in which data-parallel ranks send gradients")
        .only("no|fp16|bf16")
        .sets("comm_hook"),
    done("comm_wrapper", "~no,fp16,bf16", "no",
         "rounds once more: to the type of comm_hook, or, without a hook, not "
         "at all"),
    later("comm_state_option", "mapping", "{}",
          "gradients that are sent as products of low rank (PowerSGD)")
        .unless("{}"),
};

const Section accel::config::kHandlersSection = {
    "kwargs_handlers", "Accelerate: kwargs_handlers of a script", "",
    kHandlers};
const Section accel::config::kDdpSection = {
    "DistributedDataParallelKwargs",
    "Accelerate: DistributedDataParallelKwargs", "", kDdp};
