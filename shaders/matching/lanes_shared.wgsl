// GROUP neighbouring invocations share the candidates of a pixel through shared memory, for devices without
// subgroups. All invocations of a workgroup must call these functions together.

var<private> lane: u32;
var<private> slot: u32;
var<workgroup> exchanged: array<u32, LINES * GROUP>;

fn set_lane(local: u32) {
    lane = local % GROUP;
    slot = local;
}

fn exchange(number: u32, other: u32) -> u32 {
    workgroupBarrier();
    exchanged[slot] = number;
    workgroupBarrier();
    return exchanged[other];
}

// The number of the lane before, or `end` in the first one.
fn lanes_up(number: u32, end: u32) -> u32 {
    let before = exchange(number, select(slot - 1u, slot, lane == 0u));
    return select(before, end, lane == 0u);
}

// The number of the lane after, or `end` in the last one.
fn lanes_down(number: u32, end: u32) -> u32 {
    let after = exchange(number, select(slot + 1u, slot, lane == GROUP - 1u));
    return select(after, end, lane == GROUP - 1u);
}

// The number of the lane whose own differs by these bits.
fn lanes_xor(number: u32, bits: u32) -> u32 {
    return exchange(number, slot ^ bits);
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

// Whether a lane may have `is_true`: here always, because all must come along.
fn any_lane(is_true: bool) -> bool {
    return true;
}
