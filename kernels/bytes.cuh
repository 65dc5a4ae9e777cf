// Selectors of __byte_perm(a, b, selector), by name.
#pragma once
#include "instructions.cuh"

// Names give the source of the result's low half first, then that of its high half.
#define A_LOW_A_HIGH 0x3210u
#define A_HIGH_A_LOW 0x1032u
#define A_LOW_A_LOW 0x1010u
#define A_HIGH_A_HIGH 0x3232u
#define A_LOW_B_LOW 0x5410u
#define A_HIGH_B_LOW 0x5432u
#define B_LOW_A_LOW 0x1054u
// Bytes 0 and 2 of a, or 1 and 3, as halves; b is 0.
#define EVEN_BYTES 0x4240u
#define ODD_BYTES 0x4341u
// Bytes 1 and 3 of both, in turn.
#define A_ODD_B_ODD 0x7351u
// One byte of a in both halves, b being 0, or in all bytes.
#define IN_BOTH_HALVES(byte) (0x4040u + 0x0101u * (byte))
#define IN_ALL_BYTES(byte) (0x1111u * (byte))
