// RUN: acc-opt %s --plan-allocate-buffers="storage-path=/local_nvme block-size=8192 queue-depth=2" --plan-reserve-for-libraries | FileCheck %s
// RUN: not acc-opt %s --plan-allocate-buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: 'plan.arena' op expected 'plan.storage' with path, block_size and queue_depth: the folder of the file that space 'nvme' is (--set offload.nvme_path=DIR), and how it is moved

// A file has buffers of whole sectors, whatever the target wants, says where it lies and is moved by way
// of as many blocks of memory as are under way, and one.
// CHECK-LABEL: plan.program @stored
// CHECK-NEXT: plan.arena device 8 bytes
// CHECK-NEXT: plan.arena nvme 4196 bytes alignment 4096 reserve 24576 {plan.storage = {block_size = 8192 : i64, path = "/local_nvme", queue_depth = 2 : i64}}
// CHECK-NEXT: plan.buffer @s : state device at 0, 8 bytes
// CHECK-NEXT: plan.buffer @w : state nvme at 0, 8 bytes
// CHECK-NEXT: plan.buffer @v : state nvme at 4096, 100 bytes
plan.program @stored stage 0 ranks 1 {
  plan.buffer @s : state device 8 bytes
  plan.buffer @w : state nvme 8 bytes
  plan.buffer @v : state nvme 100 bytes
}
