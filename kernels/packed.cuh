// Vectors of candidates that fit bytes, in memory: a word holds registers 2k and 2k + 1 of a lane,
// byte 0 and 1 their low halves, byte 2 and 3 their high ones. Lanes lie behind each other, so that
// a pixel's words are the same however its candidates are spread over lanes.
#pragma once
#include "lanes.cuh"

#define BYTE_WORDS (REGISTERS / 2)

// Registers as bytes; their halves are below 256.
__device__ __forceinline__ void pack(const Vector &a, u32 (&words)[BYTE_WORDS]) {
#pragma unroll
    for (int k = 0; k < BYTE_WORDS; k++) words[k] = a.v[2 * k] + (a.v[2 * k + 1] << 8);
}

// Bytes 1 and 3, as halves.
__device__ __forceinline__ u32 odd_bytes(u32 word) { return __byte_perm(word, 0, ODD_BYTES); }

// The vector that pack() made words of.
__device__ __forceinline__ Vector unpacked(const u32 (&words)[BYTE_WORDS]) {
    Vector a;
#pragma unroll
    for (int k = 0; k < BYTE_WORDS; k++) {
        a.v[2 * k + 1] = odd_bytes(words[k]);
        a.v[2 * k] = words[k] - (a.v[2 * k + 1] << 8);
    }
    return a;
}

// Stores or loads words (Words).
template <int N> __device__ __forceinline__ void store_words(u32 *to, const u32 (&words)[N]) {
    if (N % 4 != 0) put_words<N>(to, words);
#pragma unroll
    for (int k = 0; k + 4 <= N && N % 4 == 0; k += 4) store4(to + k, words + k);
}
template <int N> __device__ __forceinline__ void load_words(const u32 *from, u32 (&words)[N]) { get_words<N>(from, words); }
template <int N> __device__ __forceinline__ void copy_words(u32 *to, const u32 *from) {
    if (N % 4 == 0) {
#pragma unroll
        for (int k = 0; k < N; k += 4) copy16(to + k, from + k);
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) copy4(to + k, from + k);
    }
}
