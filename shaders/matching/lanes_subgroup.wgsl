// GROUP neighbouring lanes of a subgroup share the candidates of a pixel. Least numbers and sums are exchanged step by
// step: with subgroupMin, driver 580 of NVIDIA lost winners of some ranges.

var<private> lane: u32;

fn set_lane(local: u32) {
    lane = local % GROUP;
}

// The number of the lane before, or `end` in the first one.
fn lanes_up(number: u32, end: u32) -> u32 {
    return select(subgroupShuffleUp(number, 1u), end, lane == 0u);
}

// The number of the lane after, or `end` in the last one.
fn lanes_down(number: u32, end: u32) -> u32 {
    return select(subgroupShuffleDown(number, 1u), end, lane == GROUP - 1u);
}

// The number of the lane whose own differs by these bits.
fn lanes_xor(number: u32, bits: u32) -> u32 {
    return subgroupShuffleXor(number, bits);
}

fn lanes_min(number: u32) -> u32 {
    var least = number;
    for (var apart = 1u; apart < GROUP; apart <<= 1u) {
        least = min(least, lanes_xor(least, apart));
    }
    return least;
}

fn lanes_sum(number: u32) -> u32 {
    var sum = number;
    for (var apart = 1u; apart < GROUP; apart <<= 1u) {
        sum += lanes_xor(sum, apart);
    }
    return sum;
}

fn any_lane(is_true: bool) -> bool {
    return subgroupAny(is_true);
}
