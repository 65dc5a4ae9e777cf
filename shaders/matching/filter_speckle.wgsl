// Invalidates small regions (matching/filter/speckle.rs). Runs of alike neighbours in a row are found first. Regions
// are trees of runs, whose root is the first pixel of the region; runs that touch runs of the row above are joined.

@group(0) @binding(0) var<storage, read_write> map: array<i32>;
@group(0) @binding(1) var<storage, read_write> labels: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> sizes: array<atomic<u32>>;

var<workgroup> starts: array<u32, 256>;

fn is_alike(a: i32, b: i32) -> bool {
    return a != INVALID && b != INVALID && abs(a - b) <= SPECKLE_RANGE;
}

// Whether pixel i belongs to the region of the pixel before it in its row.
fn joins_left(i: u32) -> bool {
    return i % WIDTH > 0u && is_alike(map[i], map[i - 1u]);
}

fn joins_up(i: u32) -> bool {
    return i >= WIDTH && is_alike(map[i], map[i - WIDTH]);
}

// Labels each pixel of a row with the first pixel of its run: the greatest start so far.
@compute @workgroup_size(256)
fn label_runs(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = (group.x + group.y * 65535u);
    let each = (WIDTH + 255u) / 256u;
    let first = min(local * each, WIDTH);
    let past = min(first + each, WIDTH);
    var start = 0u;
    if (row < HEIGHT) {
        for (var x = first; x < past; x++) {
            let i = row * WIDTH + x;
            start = select(i, start, joins_left(i));
        }
    }
    starts[local] = start;
    for (var apart = 1u; apart < 256u; apart <<= 1u) {
        workgroupBarrier();
        var before = 0u;
        if (local >= apart) {
            before = starts[local - apart];
        }
        workgroupBarrier();
        starts[local] = max(starts[local], before);
    }
    workgroupBarrier();
    start = 0u;
    if (local > 0u) {
        start = starts[local - 1u];
    }
    if (row < HEIGHT) {
        for (var x = first; x < past; x++) {
            let i = row * WIDTH + x;
            start = select(i, start, joins_left(i));
            atomicStore(&labels[i], start);
            atomicStore(&sizes[i], 0u);
        }
    }
}

fn root(of_pixel: u32) -> u32 {
    var i = of_pixel;
    var label = atomicLoad(&labels[i]);
    while (label != i) {
        i = label;
        label = atomicLoad(&labels[i]);
    }
    return i;
}

@compute @workgroup_size(256)
fn join_rows(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT || !joins_up(i)) {
        return;
    }
    // The pixel before may have joined the same two runs.
    if (joins_left(i) && joins_up(i - 1u) && joins_left(i - WIDTH)) {
        return;
    }
    var a = i;
    var b = i - WIDTH;
    loop {
        a = root(a);
        b = root(b);
        if (a == b) {
            break;
        }
        let greater = max(a, b);
        let less = min(a, b);
        let old = atomicMin(&labels[greater], less);
        if (old == greater) {
            break;
        }
        // Someone else joined it meanwhile: what that was joined to belongs to the same region.
        a = old;
        b = less;
    }
}

// Counts the pixels of each region, run by run.
@compute @workgroup_size(256)
fn count_pixels(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= WIDTH * HEIGHT || map[i] == INVALID) {
        return;
    }
    let is_last = i % WIDTH == WIDTH - 1u || !joins_left(i + 1u);
    if (is_last) {
        // Labels of pixels that begin no run still are the beginnings of their runs.
        var first = i;
        if (joins_left(i)) {
            first = atomicLoad(&labels[i]);
        }
        atomicAdd(&sizes[root(first)], i - first + 1u);
    }
}

@compute @workgroup_size(256)
fn remove_small(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i < WIDTH * HEIGHT && map[i] != INVALID && atomicLoad(&sizes[root(i)]) < SPECKLE_SIZE) {
        map[i] = INVALID;
    }
}
