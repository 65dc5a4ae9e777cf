// The state that the spatio-temporal stage keeps of a stream, and the limit between residuals and
// noise (matching/temporal/).
#pragma once
#include "picture.cuh"

typedef long long i64;

// The state as matching/temporal/layout.rs lays it out; the places come from there.
struct State {
    int *words;
    int width, height;
    __device__ __forceinline__ size_t picture_words() const { return ((size_t)width * height + 3) / 4; }
    __device__ __forceinline__ int half_width() const { return (width + 1) / 2; }
    __device__ __forceinline__ int half_height() const { return (height + 1) / 2; }
    __device__ __forceinline__ size_t half_words() const { return ((size_t)half_width() * half_height() + 3) / 4; }
    __device__ __forceinline__ size_t pictures(int eye) const {
        return STATE_HEADER + 2 * HISTORY + eye * HISTORY * picture_words();
    }
    __device__ __forceinline__ size_t halves(int eye) const { return pictures(2) + eye * HISTORY * half_words(); }
    __device__ __forceinline__ u8 *bytes(size_t at) const { return (u8 *)(words + at); }
    __device__ __forceinline__ u8 *picture(int eye, int slot) const {
        return bytes(pictures(eye) + slot * picture_words());
    }
    __device__ __forceinline__ u8 *half(int eye, int slot) const { return bytes(halves(eye) + slot * half_words()); }
    __device__ __forceinline__ u8 *ages(int eye) const { return bytes(halves(2) + eye * picture_words()); }
    __device__ __forceinline__ int count() const { return words[PLACE_COUNT]; }
    __device__ __forceinline__ int newest() const { return words[PLACE_NEWEST]; }
    // The slot of the next picture.
    __device__ __forceinline__ int next_slot() const { return count() == 0 ? 0 : (newest() + 1) % HISTORY; }
};
