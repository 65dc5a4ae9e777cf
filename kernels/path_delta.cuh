// Path deltas L_r(p, d) - C(p, d), which the aggregation keeps in memory instead of path costs. They lie within
// 0 and P2, so they fit a byte; readers add C again. A volume is [height][columns][GROUP lanes][BYTE_WORDS]
// (packed.cuh). Sums that do not fit bytes have a word a register.
#pragma once
#include "packed.cuh"

static_assert(4 * GROUP * BYTE_WORDS == EXPECTED_DELTA_BYTES, "geometry.rs: VectorLayout::padded");
