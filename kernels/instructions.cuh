// The instructions that CUDA C++ has no name for, and those that differ from chip to chip.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LANES_MASK 0xffffffffu

// Takes `right`. Tests (cuda_emulated.rs) let the kernels take `wrong` at one of these hooks at a
// time, and see that the maps differ then.
#define BREAK(name, right, wrong) (right)

// Shared memory of the size that the launch asks for, as an array of `type`.
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]

// Every kernel begins with this: its blocks start while those of the launch before on its stream end
// (frames.rs), and wait here for all that it and earlier ones have written.
__device__ __forceinline__ void wait_for_launches_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ u32 both(u32 value) { return value * 0x00010001u; }

// Minimum of each half. Halves below 0x7c00 order as integers and as half-floats alike, so chips
// without packed integer minima (before sm_90) use those of half-floats.
__device__ __forceinline__ u32 min2(u32 a, u32 b) {
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
    u32 least;
    asm("min.f16x2 %0, %1, %2;" : "=r"(least) : "r"(a), "r"(b));
    return least;
#else
    return __vminu2(a, b);
#endif
}

__device__ __forceinline__ u32 min3(u32 a, u32 b, u32 c) {
#if __CUDA_ARCH__ >= 900
    return __vimin3_u16x2(a, b, c);
#else
    return min2(min2(a, b), c);
#endif
}

// Sum and difference of each half, and a * factor + b. An integer n from 0 to 2047 is the bits of
// the half-float n * 2^-24, so half-float arithmetic on these bits is exact integer arithmetic as
// long as results stay within 0 to 2047, and INFINITE stays where it is. It is worth it because
// half-floats are added by the units that multiply, at twice the rate of packed integers, while the
// others find minima.
__device__ __forceinline__ u32 add2(u32 a, u32 b) {
    u32 sum;
    asm("add.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}
__device__ __forceinline__ u32 sub2(u32 a, u32 b) {
    u32 difference;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
    return difference;
}
// `factor` is a true half-float in both halves.
__device__ __forceinline__ u32 fma2(u32 a, u32 factor, u32 b) {
    u32 sum;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(factor), "r"(b));
    return sum;
}

// Minimum of unsigned halves that use all 16 bits.
__device__ __forceinline__ u32 min3_full(u32 a, u32 b, u32 c) {
#if __CUDA_ARCH__ >= 900
    return __vimin3_u16x2(a, b, c);
#else
    return __vminu2(__vminu2(a, b), c);
#endif
}

// min(|a|, limit) of halves that are half-floats whose bits are integers and a sign.
__device__ __forceinline__ u32 least_magnitude(u32 a, u32 limit) {
#if __CUDA_ARCH__ >= 800
    u32 least;
    asm("{.reg .b32 t; abs.f16x2 t, %1; min.f16x2 %0, t, %2;}" : "=r"(least) : "r"(a), "r"(limit));
    return least;
#else
    return __vminu2(a & 0x7fff7fffu, limit);
#endif
}

// The signs of the halves of a and then of b, as bytes that are all ones or zeros.
__device__ __forceinline__ u32 signs(u32 a, u32 b) {
    u32 bytes;
    asm("prmt.b32 %0, %1, %2, 0xfdb9;" : "=r"(bytes) : "r"(a), "r"(b));
    return bytes;
}

// Copies of 4 and 16 bytes to shared memory that the thread need not wait for.
__device__ __forceinline__ u32 shared_address(const void *p) {
    return (u32)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void copy4(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
    *(u32 *)to = *(const u32 *)from;
#endif
}
__device__ __forceinline__ void copy16(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
#else
    *(uint4 *)to = *(const uint4 *)from;
#endif
}
// Bypasses the multiprocessor's own cache, which does not see writes of other blocks.
__device__ __forceinline__ void copy16_fresh(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
    copy16(to, from);
#else
    *(uint4 *)to = __ldcg((const uint4 *)from);
#endif
}
__device__ __forceinline__ void copies_end_group() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int PENDING> __device__ __forceinline__ void copies_wait() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Stores 16 bytes. Written out because the compiler split such a store into four in a loop, which
// took four times the transactions. No kernel reads what it has stored so, and the next loads need
// not wait behind it.
__device__ __forceinline__ void store4(u32 *to, const u32 *words) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]));
}

// Words that other blocks read and write meanwhile: each is written or read whole.
template <int N> __device__ __forceinline__ void store_relaxed(u32 *to, const u32 *words) {
    static_assert(N == 1 || N == 2 || N == 4, "as many words as an instruction takes");
    if (N == 4)
        asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words[0]), "r"(words[N > 1]), "r"(words[N > 2 ? 2 : 0]), "r"(words[N > 2 ? 3 : 0]) : "memory");
    else if (N == 2)
        asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(words[0]), "r"(words[N > 1]) : "memory");
    else
        asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(words[0]) : "memory");
}
template <int N> __device__ __forceinline__ void load_relaxed(const u32 *from, u32 *words) {
    static_assert(N == 1 || N == 2 || N == 4, "as many words as an instruction takes");
    if (N == 4)
        asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(words[0]), "=r"(words[N > 1]), "=r"(words[N > 2 ? 2 : 0]), "=r"(words[N > 2 ? 3 : 0]) : "l"(from) : "memory");
    else if (N == 2)
        asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[N > 1]) : "l"(from) : "memory");
    else
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(words[0]) : "l"(from) : "memory");
}

// Release and acquire: a block that has loaded the word sees all that was written before the word
// was stored.
__device__ __forceinline__ u32 load_acquire(const u32 *from) {
    u32 word;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ void store_release(u32 *to, u32 word) {
    __threadfence();
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}

// Adds the products of 16 rows and 8 columns of signed bytes to sums, by all lanes of a warp. A row or column has 16
// bytes, four in each of four lanes: lane l has those of row l / 4, of row l / 4 + 8, and of column l / 4. It gets the
// sums of its two rows and columns 2 (l % 4) and 2 (l % 4) + 1.
__device__ __forceinline__ void add_products(int *sums, u32 row, u32 row_below, u32 column) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) : "r"(row), "r"(row_below), "r"(column));
#else
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(sums[0]), "+r"(sums[1]) : "r"(row), "r"(column));
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(sums[2]), "+r"(sums[3]) : "r"(row_below), "r"(column));
#endif
}
// The same for rows and columns of 32 bytes, which are two words of each lane.
__device__ __forceinline__ void add_products(int *sums, uint2 row, uint2 row_below, uint2 column) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3]) : "r"(row.x), "r"(row_below.x), "r"(row.y), "r"(row_below.y), "r"(column.x), "r"(column.y));
#else
    add_products(sums, row.x, row_below.x, column.x);
    add_products(sums, row.y, row_below.y, column.y);
#endif
}

// Barriers among THREADS threads of a block, by a number other than 0, which is that of the whole
// block's. A thread waits at one, or only says that it has come.
template <int THREADS> __device__ __forceinline__ void barrier_wait(int number) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}
template <int THREADS> __device__ __forceinline__ void barrier_come(int number) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}
