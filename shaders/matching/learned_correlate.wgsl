// The comparison of the features of left cells with those of right ones (`Correlation` of matching/learned.rs).

struct Correlation {
    columns: u32,
    rows: u32,
    // Channels of a group.
    channels: u32,
    candidates: u32,
    groups: u32,
    shift: u32,
    // Place of the left features in the memory of all values, their words a cell, and the place of the right ones.
    left: u32,
    words: u32,
    right: u32,
    // Place of the output, and its words a cell.
    first: u32,
    words_out: u32,
}

@group(0) @binding(0) var<uniform> correlation: Correlation;
@group(0) @binding(1) var<storage, read_write> memory: array<u32>;

fn compare(left: u32, right: u32, group: u32) -> i32 {
    let first = group * correlation.channels;
    let end = first + correlation.channels;
    var sum = 0;
    for (var word = first / 4u; 4u * word < end; word++) {
        // The word may begin or end within another group.
        let before = 8u * (max(first, 4u * word) - 4u * word);
        let after = 8u * (4u * word + 4u - min(end, 4u * word + 4u));
        let mask = (0xffffffffu << before) & (0xffffffffu >> after);
        sum += dot4I8Packed(memory[left + word] & mask, memory[right + word]);
    }
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= correlation.columns * correlation.rows * correlation.words_out) {
        return;
    }
    let cell = i / correlation.words_out;
    let column = cell % correlation.columns;
    var word = 0u;
    for (var k = 0u; k < 4u; k++) {
        let channel = i % correlation.words_out * 4u + k;
        let group = channel / correlation.candidates;
        let d = channel % correlation.candidates;
        if (group < correlation.groups && d <= column) {
            let left = correlation.left + cell * correlation.words;
            let right = correlation.right + (cell - d) * correlation.words;
            let sum = compare(left, right, group);
            word |= u32(clamp(sum >> correlation.shift, 0, 127)) << (8u * k);
        }
    }
    memory[correlation.first + i] = word;
}
