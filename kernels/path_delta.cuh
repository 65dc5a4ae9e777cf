// Path deltas L_r(p, d) - C(p, d), which the aggregation stores instead of path costs. They lie
// between 0 and P2, so they fit a byte; readers add C again. A volume is [height][columns][GROUP
// lanes][BYTE_WORDS] (packed.cuh). Sums that do not fit bytes take one word per register.
#pragma once
#include "packed.cuh"

static_assert(4 * GROUP * BYTE_WORDS == EXPECTED_DELTA_BYTES, "geometry.rs: VectorLayout::padded");
