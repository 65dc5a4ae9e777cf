// Path deltas, which is what aggregation keeps in memory: L_r(p, d) - C(p, d), which lies within 0 and
// P2 and so fits a byte; whoever reads it knows C. A volume is [height][columns][GROUP lanes][BYTE_WORDS]
// (packed.cuh). Sums that do not fit bytes have a word a register.
#pragma once
#include "packed.cuh"

static_assert(4 * GROUP * BYTE_WORDS == EXPECTED_DELTA_BYTES, "geometry.rs: Lanes::padded");
