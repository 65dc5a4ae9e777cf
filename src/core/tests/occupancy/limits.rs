//! Number of blocks that a multiprocessor holds at once: the resources of a block against those
//! available.

use stereod_core::engine::cuda::Properties;

/// Threads of a warp.
const WARP: u32 = 32;

/// Parts of a multiprocessor, each with its own warps and registers.
const PARTS: u32 = 4;

/// Granularity in which registers of a warp are allocated, and bytes in which shared memory of a
/// block is.
const REGISTERS_AT_A_TIME: u32 = 256;
const SHARED_AT_A_TIME: u32 = 128;

/// Shared memory of every block that the system reserves, from Ampere on.
const KEPT: u32 = 1024;

/// Largest number of blocks of a multiprocessor, by architecture: the only figure of "Technical
/// Specifications per Compute Capability" in the CUDA programming guide that the engine does not
/// need (`Properties::typical` has the others).
fn blocks_at_most(sm: u32) -> u32 {
    match sm {
        75 | 86 | 87 => 16,
        89 | 110.. => 24,
        _ => 32,
    }
}

/// Resources of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Static and dynamic bytes.
    pub shared_bytes: u32,
}

impl Block {
    pub fn warps(&self) -> u32 {
        self.threads.div_ceil(WARP)
    }

    fn registers_of_warp(&self) -> u32 {
        (self.registers * WARP).next_multiple_of(REGISTERS_AT_A_TIME)
    }

    fn shared(&self, chip: &Properties) -> u32 {
        let kept = if chip.sm() < 80 { 0 } else { KEPT };
        (self.shared_bytes + kept).next_multiple_of(SHARED_AT_A_TIME)
    }
}

/// Largest number of warps of a multiprocessor.
pub fn warps_at_most(chip: &Properties) -> u32 {
    chip.threads_per_multiprocessor / WARP
}

/// Number of blocks that a multiprocessor holds at once in addition to `count` of another kernel,
/// and all resources that are then used up.
pub fn resident(
    block: &Block,
    beside: (u32, &Block),
    chip: &Properties,
) -> (u32, Vec<&'static str>) {
    let (count, other) = beside;
    // All registers of a warp lie in one part.
    let part = chip.registers_per_multiprocessor / PARTS;
    let warps = if other.registers == 0 {
        part / block.registers_of_warp() * PARTS
    } else {
        let taken = count * other.warps() * other.registers_of_warp();
        chip.registers_per_multiprocessor.saturating_sub(taken) / block.registers_of_warp()
    };
    let shared = chip.shared_per_multiprocessor.saturating_sub(count * other.shared(chip));
    let fits = block.threads <= 1024 && block.shared_bytes <= chip.shared_per_block;
    let of_shared = if fits { shared / block.shared(chip).max(1) } else { 0 };
    let most_warps = warps_at_most(chip).saturating_sub(count * other.warps());
    let limits = [
        (warps / block.warps(), "registers"),
        (of_shared, "shared memory"),
        (most_warps / block.warps(), "warps"),
        (blocks_at_most(chip.sm()).saturating_sub(count), "blocks"),
    ];
    let held = limits.map(|(blocks, _)| blocks).into_iter().min().unwrap_or(0);
    let wanting = limits.into_iter().filter(|&(blocks, _)| blocks == held);
    (held, wanting.map(|(_, what)| what).collect())
}

/// Blocks of one kernel alone.
pub fn alone(block: &Block, chip: &Properties) -> (u32, Vec<&'static str>) {
    resident(block, (0, &Block::default()), chip)
}

#[test]
fn blocks_are_counted_as_the_hardware_gives_out_its_parts() {
    let block = |threads, registers, shared_bytes| Block { threads, registers, shared_bytes };
    let on = |sm, block: Block| alone(&block, &Properties::typical(sm));
    // 97 registers are 3104 a warp, allocated as 3328; 16384 / 3328 = 4 warps a part, 16 in all, 2
    // blocks of 8.
    assert_eq!(on(90, block(256, 97, 0)), (2, vec!["registers"]));
    // 96 are 3072: 5 warps a part, 20 in all, 2 blocks of 7. A single pool of registers would have
    // room for 21, and 3 blocks.
    assert_eq!(on(90, block(224, 96, 0)), (2, vec!["registers"]));
    assert_eq!(on(90, block(160, 96, 0)), (4, vec!["registers"]));
    // 64 KiB for two blocks, of which Turing reserves nothing and Ampere 1 KiB for each.
    assert_eq!(on(75, block(256, 64, 32 << 10)), (2, vec!["shared memory"]));
    assert_eq!(on(75, block(256, 64, (32 << 10) + 1)), (1, vec!["shared memory"]));
    // 100 KiB are three times 32 + 1, and not three times 32.5 + 1.
    assert_eq!(on(86, block(256, 64, 32 << 10)), (3, vec!["shared memory"]));
    assert_eq!(on(86, block(256, 64, (32 << 10) + 512)), (2, vec!["shared memory"]));
    // More than a block may use, although the multiprocessor has it.
    assert_eq!(on(86, block(256, 64, 100 << 10)), (0, vec!["shared memory"]));
    // 1024, 1536 and 2048 threads; with 64 registers each, 65536 registers suffice for 1024.
    assert_eq!([75, 86, 90].map(|sm| on(sm, block(512, 32, 0)).0), [2, 3, 4]);
    assert_eq!(on(89, block(512, 32, 0)), (3, vec!["warps"]));
    assert_eq!(on(75, block(512, 64, 0)), (2, vec!["registers", "warps"]));
    // 48 warps are 24 blocks of two, but 16 blocks are the limit.
    assert_eq!(on(86, block(64, 32, 0)), (16, vec!["blocks"]));
    // One block of 512 threads with 64 registers and 41 KiB leaves 32768 registers, 10 warps of 3072 and 16 of 2048,
    // and 59 KiB, 5 blocks of 10 + 1.
    let other = block(512, 64, 40 << 10);
    let beside = |one: Block| resident(&one, (1, &other), &Properties::typical(86));
    assert_eq!(beside(block(64, 96, 10 << 10)), (5, vec!["registers", "shared memory"]));
    assert_eq!(beside(block(64, 96, 8 << 10)), (5, vec!["registers"]));
    assert_eq!(beside(block(64, 64, 10 << 10)), (5, vec!["shared memory"]));
}
