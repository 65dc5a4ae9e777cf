// GROUP neighbouring lanes of a subgroup share the candidates of a pixel.

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

fn lanes_min(number: u32) -> u32 {
    var least = number;
    if (WHOLE_SUBGROUP != 0) {
        least = subgroupMin(number);
    } else {
        for (var apart = 1u; apart < GROUP; apart <<= 1u) {
            least = min(least, subgroupShuffleXor(least, apart));
        }
    }
    return least;
}

fn lanes_sum(number: u32) -> u32 {
    var sum = number;
    if (WHOLE_SUBGROUP != 0) {
        sum = subgroupAdd(number);
    } else {
        for (var apart = 1u; apart < GROUP; apart <<= 1u) {
            sum += subgroupShuffleXor(sum, apart);
        }
    }
    return sum;
}

fn any_lane(is_true: bool) -> bool {
    return subgroupAny(is_true);
}
