// Replacement of kernels/instructions.cuh and CUDA itself on a CPU. A thread of a kernel is a
// fiber; the lanes of a warp, the threads of a block and the blocks of a cooperative launch take
// turns whenever they would wait for each other. Slow, but the kernels' own source runs unchanged.
#pragma once

// As few includes as possible, because it is compiled with every unit of every kernel.
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <utility>
#include <vector>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(8) uint2 { u32 x, y; };
struct alignas(16) uint4 { u32 x, y, z, w; };
inline uint2 make_uint2(u32 x, u32 y) { return {x, y}; }
inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// Blocks that have such arrays run one after the other.
#define __shared__ static
#define DYNAMIC_SHARED(type, name) type *name = reinterpret_cast<type *>(emulated::now->block->shared.data())
#define __CUDA_ARCH__ 750
#define LANES_MASK 0xffffffffu
inline void wait_for_launches_before() {}

namespace emulated {
struct dim { u32 x, y, z; };

// A meeting of waiting fibers: all continue once the required number has arrived.
struct Meeting {
    u32 come = 0, times = 0;
};
struct Warp {
    Meeting meeting;
    u32 values[2][32];
};
struct Block {
    dim index;
    std::vector<uint4> shared;
    std::vector<Warp> warps;
    Meeting all, some[16];
    u32 threads, ended = 0;
};
// Contexts only start a fiber. Switching with them would ask the system for the signal mask, which
// takes longer than the fibers' own work.
struct Fiber {
    ucontext_t beginning;
    jmp_buf here;
    bool begun = false;
    Block *block;
    Warp *warp;
    dim index;
    u32 lane;
    bool ended = false;
    // Not worth resuming while *meeting is still `times`.
    const u32 *meeting = nullptr;
    u32 times = 0;
};
inline Fiber *now;
inline jmp_buf scheduler;
inline dim grid_size, block_size;
inline void (*body)(void **);
inline void **body_arguments;

inline void pause() {
    if (!_setjmp(now->here)) _longjmp(scheduler, 1);
}

// Returns when the fiber pauses.
inline __attribute__((noinline)) void resume(Fiber &fiber) {
    now = &fiber;
    if (_setjmp(scheduler)) return;
    if (fiber.begun) _longjmp(fiber.here, 1);
    fiber.begun = true;
    setcontext(&fiber.beginning);
}

[[noreturn]] inline void waits_for_ever() {
    fprintf(stderr, "the threads of a kernel wait for what never comes, so the maps differ\n");
    exit(1);
}

inline void meet(Meeting &meeting, u32 needed) {
    if (++meeting.come >= needed) {
        meeting.come = 0;
        meeting.times++;
        return;
    }
    now->meeting = &meeting.times;
    now->times = meeting.times;
    pause();
    now->meeting = nullptr;
}

// Every lane's value in this meeting of a warp; those of the previous one may still be read.
inline const u32 *exchange(u32 value) {
    Warp &warp = *now->warp;
    u32 *values = warp.values[warp.meeting.times & 1];
    values[now->lane] = value;
    meet(warp.meeting, 32);
    return values;
}

inline void start() {
    body(body_arguments);
    now->ended = true;
    now->block->ended++;
    pause();
}

inline void run(std::vector<Block *> blocks) {
    const u32 count = block_size.x * block_size.y * block_size.z;
    const size_t stack = 64 << 10;
    static std::vector<char *> stacks; // Used again by every launch.
    std::vector<Fiber> fibers(blocks.size() * count);
    while (stacks.size() < fibers.size()) stacks.push_back(new char[stack]);
    for (size_t i = 0; i < fibers.size(); i++) {
        Fiber &fiber = fibers[i];
        u32 thread = i % count;
        fiber.block = blocks[i / count];
        fiber.warp = &fiber.block->warps[thread / 32];
        fiber.lane = thread % 32;
        fiber.index = {thread % block_size.x, thread / block_size.x % block_size.y, thread / block_size.x / block_size.y};
        getcontext(&fiber.beginning);
        fiber.beginning.uc_stack.ss_sp = stacks[i];
        fiber.beginning.uc_stack.ss_size = stack;
        fiber.beginning.uc_link = nullptr;
        makecontext(&fiber.beginning, start, 0);
    }
    // The order changes often, so that a kernel that relies on one fails here too. If no fiber can
    // continue in a round, the kernel has a deadlock.
    std::vector<u32> order(fibers.size());
    for (size_t i = 0; i < order.size(); i++) order[i] = i;
    u32 rounds = 0, random = 1;
    for (bool ended = false, moved = true; !ended;) {
        if (rounds++ % 16 == 0) {
            for (size_t i = order.size(); i-- > 1;) {
                random = random * 1664525 + 1013904223;
                const u32 other = (u64)random * (i + 1) >> 32, number = order[i];
                order[i] = order[other];
                order[other] = number;
            }
        }
        if (!moved) waits_for_ever();
        ended = true, moved = false;
        for (u32 number : order) {
            Fiber &fiber = fibers[number];
            if (fiber.ended) continue;
            ended = false;
            if (fiber.meeting && *fiber.meeting == fiber.times) continue;
            moved = true;
            resume(fiber);
        }
        moved |= ended;
    }
}

inline void launch(void (*function)(void **), void **arguments, const u32 *grid, const u32 *block, u32 shared, bool together) {
    grid_size = {grid[0], grid[1], grid[2]};
    block_size = {block[0], block[1], block[2]};
    body = function;
    body_arguments = arguments;
    std::vector<Block *> blocks;
    for (u32 i = 0; i < grid[0] * grid[1] * grid[2]; i++) {
        Block *made = new Block();
        made->index = {i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]};
        made->threads = block[0] * block[1] * block[2];
        made->warps.resize((made->threads + 31) / 32);
        made->shared.resize(shared / 16 + 1, uint4{0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5});
        if (together) {
            blocks.push_back(made);
        } else {
            run({made});
            delete made;
        }
    }
    if (together) run(blocks);
    for (Block *block : blocks) delete block;
}

template <class... A, size_t... I>
void call(void (*function)(A...), void **arguments, std::index_sequence<I...>) {
    function(*static_cast<A *>(arguments[I])...);
}
template <class... A> void call(void (*function)(A...), void **arguments) {
    call(function, arguments, std::index_sequence_for<A...>());
}

// Applies a function to the halves, or to the bytes.
template <class F> u32 halves(F f) { return (f(0) & 0xffff) | (f(16) & 0xffff) << 16; }
template <class F> u32 bytes(F f) {
    u32 all = 0;
    for (int shift = 0; shift < 32; shift += 8) all |= (f(shift) & 0xff) << shift;
    return all;
}
inline u32 half(u32 a, int shift) { return a >> shift & 0xffff; }
inline int signed_half(u32 a, int shift) { return (int16_t)(a >> shift); }
// A half-float as a number of units of 2^-24. Exact for the small integers that kernels compute
// with; larger values only need to stay large.
inline int64_t units(u32 half) {
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    int64_t magnitude = exponent == 0 ? mantissa : (int64_t)(1024 + mantissa) << (exponent - 1);
    return half & 0x8000 ? -magnitude : magnitude;
}
inline u32 half_of(int64_t units) {
    u32 sign = units < 0 ? 0x8000 : 0;
    u64 magnitude = units < 0 ? -units : units;
    int exponent = 0;
    // Round to nearest, ties to even, if more than eleven bits are cut.
    u64 kept = magnitude;
    while (kept >= 2048) {
        exponent++;
        u64 unit = 1ull << exponent;
        kept = magnitude >> exponent;
        u64 rest = magnitude & (unit - 1);
        if (rest > unit / 2 || (rest == unit / 2 && kept & 1)) kept++;
    }
    if (kept < 1024) return sign | (u32)kept;
    return sign | (u32)(exponent + 1) << 10 | (u32)(kept - 1024);
}
}  // namespace emulated

// The active hook: the one that EMULATED_BROKEN names.
namespace emulated {
constexpr u32 hash(const char *name) {
    u32 sum = 2166136261u;
    while (*name) sum = (sum ^ (u8)*name++) * 16777619u;
    return sum;
}
inline const u32 broken = getenv("EMULATED_BROKEN") ? hash(getenv("EMULATED_BROKEN")) : 0;
}  // namespace emulated
#define BREAK(name, right, wrong) \
    (emulated::broken == std::integral_constant<u32, emulated::hash(#name)>::value ? (wrong) : (right))

#define threadIdx (emulated::now->index)
#define blockIdx (emulated::now->block->index)
#define gridDim (emulated::grid_size)
#define blockDim (emulated::block_size)

inline int min(int a, int b) { return a < b ? a : b; }
inline u32 min(u32 a, u32 b) { return a < b ? a : b; }
inline u32 min(u32 a, int b) { return min(a, (u32)b); }
inline u32 min(int a, u32 b) { return min((u32)a, b); }
inline size_t min(size_t a, size_t b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline u32 max(u32 a, u32 b) { return a > b ? a : b; }

inline void __syncthreads() {
    emulated::Block &block = *emulated::now->block;
    emulated::meet(block.all, block.threads - block.ended);
}
template <int THREADS> void barrier_wait(int number) { emulated::meet(emulated::now->block->some[number], THREADS); }
template <int THREADS> void barrier_come(int number) {
    emulated::Meeting &meeting = emulated::now->block->some[number];
    if (++meeting.come >= THREADS) meeting.come = 0, meeting.times++;
}
inline void __syncwarp() { emulated::exchange(0); }
inline u32 __shfl_sync(u32, u32 value, u32 lane) { return emulated::exchange(value)[lane & 31]; }
inline u32 __shfl_xor_sync(u32, u32 value, u32 mask) { return emulated::exchange(value)[emulated::now->lane ^ mask]; }
inline int __shfl_up_sync(u32, int value, u32 by) {
    const u32 *values = emulated::exchange(value);
    u32 lane = emulated::now->lane;
    return lane >= by ? (int)values[lane - by] : value;
}
inline u32 __ballot_sync(u32, bool value) {
    const u32 *values = emulated::exchange(value);
    u32 ballot = 0;
    for (int lane = 0; lane < 32; lane++) ballot |= (u32)(values[lane] != 0) << lane;
    return ballot;
}
inline bool __any_sync(u32, bool value) { return __ballot_sync(0, value) != 0; }

template <class F> u32 emulated_atomic(u32 *at, F f) { u32 before = *at; *at = f(before); return before; }
inline u32 atomicMin(u32 *at, u32 value) { return emulated_atomic(at, [&](u32 old) { return min(old, value); }); }
inline u32 atomicAdd(u32 *at, u32 value) { return emulated_atomic(at, [&](u32 old) { return old + value; }); }
inline u32 atomicMax(u32 *at, u32 value) { return emulated_atomic(at, [&](u32 old) { return max(old, value); }); }
inline int atomicAdd(int *at, int value) { return atomicAdd((u32 *)at, (u32)value); }
inline u64 atomicAdd(u64 *at, u64 value) { u64 before = *at; *at = before + value; return before; }
inline void __threadfence() {}

// Separately rounded operations: the CPU's compiler is told not to fuse them.
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return __builtin_sqrt(a); }
inline int __double2int_rd(double a) { return (int)__builtin_floor(a); }

inline u32 atomicOr(u32 *at, u32 value) { return emulated_atomic(at, [&](u32 old) { return old | value; }); }

inline u32 __byte_perm(u32 a, u32 b, u32 selector) {
    u64 both = (u64)b << 32 | a;
    u32 result = 0;
    for (int k = 0; k < 4; k++) result |= (u32)(both >> 8 * (selector >> 4 * k & 7) & 0xff) << 8 * k;
    return result;
}
inline int __popc(u32 a) { return __builtin_popcount(a); }
inline int __clz(u32 a) { return a ? __builtin_clz(a) : 32; }
inline int __ffs(u32 a) { return __builtin_ffs(a); }
inline u32 __dp4a(u32 a, u32 b, u32 c) {
    for (int shift = 0; shift < 32; shift += 8) c += (a >> shift & 0xff) * (b >> shift & 0xff);
    return c;
}
inline int __dp4a(int a, int b, int c) {
    for (int shift = 0; shift < 32; shift += 8) c += (int8_t)(a >> shift) * (int8_t)(b >> shift);
    return c;
}
inline u32 __vminu4(u32 a, u32 b) { return emulated::bytes([&](int s) { return min(a >> s & 0xff, b >> s & 0xff); }); }
inline u32 __vabsdiffu4(u32 a, u32 b) {
    return emulated::bytes([&](int s) { return (u32)abs((int)(a >> s & 0xff) - (int)(b >> s & 0xff)); });
}
inline u32 __vminu2(u32 a, u32 b) {
    return emulated::halves([&](int s) { return min(emulated::half(a, s), emulated::half(b, s)); });
}
inline u32 __vmins2(u32 a, u32 b) {
    return emulated::halves([&](int s) { return (u32)min(emulated::signed_half(a, s), emulated::signed_half(b, s)); });
}
inline u32 __vmaxs2(u32 a, u32 b) {
    return emulated::halves([&](int s) { return (u32)max(emulated::signed_half(a, s), emulated::signed_half(b, s)); });
}
inline u32 __vcmpeq2(u32 a, u32 b) {
    return emulated::halves([&](int s) { return emulated::half(a, s) == emulated::half(b, s) ? 0xffffu : 0u; });
}

// Definitions of kernels/instructions.cuh.
inline u32 both(u32 value) { return value * 0x00010001u; }
inline u32 min2(u32 a, u32 b) { return __vminu2(a, b); }
inline u32 min3(u32 a, u32 b, u32 c) { return min2(min2(a, b), c); }
inline u32 min3_full(u32 a, u32 b, u32 c) { return min2(min2(a, b), c); }
inline u32 add2(u32 a, u32 b) {
    using namespace emulated;
    return halves([&](int s) { return half_of(units(half(a, s)) + units(half(b, s))); });
}
inline u32 sub2(u32 a, u32 b) {
    using namespace emulated;
    return halves([&](int s) { return half_of(units(half(a, s)) - units(half(b, s))); });
}
// `factor` is a whole number of at most 8.
inline u32 fma2(u32 a, u32 factor, u32 b) {
    using namespace emulated;
    return halves([&](int s) { return half_of(units(half(a, s)) * (units(half(factor, s)) >> 24) + units(half(b, s))); });
}
inline u32 least_magnitude(u32 a, u32 limit) { return __vminu2(a & 0x7fff7fffu, limit); }
inline u32 signs(u32 a, u32 b) {
    u32 halves[4] = {a & 0xffff, a >> 16, b & 0xffff, b >> 16}, bytes = 0;
    for (int k = 0; k < 4; k++) bytes |= (halves[k] & 0x8000 ? 0xffu : 0u) << 8 * k;
    return bytes;
}
inline void add_products(int *sums, u32 row, u32 row_below, u32 column) {
    using namespace emulated;
    u32 rows[2][4], columns[2][4];
    const u32 lane = now->lane;
    memcpy(rows[0], exchange(row) + lane / 4 * 4, sizeof rows[0]);
    memcpy(rows[1], exchange(row_below) + lane / 4 * 4, sizeof rows[1]);
    memcpy(columns, exchange(column) + lane % 4 * 8, sizeof columns);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) sums[i] = __dp4a((int)rows[i / 2][k], (int)columns[i % 2][k], sums[i]);
}
inline void add_products(int *sums, uint2 row, uint2 row_below, uint2 column) {
    add_products(sums, row.x, row_below.x, column.x);
    add_products(sums, row.y, row_below.y, column.y);
}
inline void copy4(void *to, const void *from) { memcpy(to, from, 4); }
inline void copy16(void *to, const void *from) {
    if (((uintptr_t)to | (uintptr_t)from) & 15) { fprintf(stderr, "a copy of 16 bytes is not aligned\n"); abort(); }
    memcpy(to, from, 16);
}
inline void copy16_fresh(void *to, const void *from) { copy16(to, from); }
inline void copies_end_group() {}
template <int PENDING> void copies_wait() {}
inline void store4(u32 *to, const u32 *words) { memcpy(to, words, 16); }
template <int N> void store_relaxed(u32 *to, const u32 *words) { memcpy(to, words, 4 * N); }
// Kernels poll with this; a broken kernel may wait for ever.
template <int N> void load_relaxed(const u32 *from, u32 *words) {
    static long reads = 0;
    if (++reads > 50000000) emulated::waits_for_ever();
    emulated::pause();
    memcpy(words, from, 4 * N);
}
// Called each time a block checks whether it may continue.
inline u32 load_acquire(const u32 *from) {
    static long reads = 0;
    if (++reads > 300000) emulated::waits_for_ever();
    emulated::pause();
    return *from;
}
inline void store_release(u32 *to, u32 word) { *to = word; }
