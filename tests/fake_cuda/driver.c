/* A CUDA driver without a GPU, for the tests of the engine's host side. Memory is the host's, copies
 * are synchronous, and kernels do nothing or, under the emulation (nvrtc.cpp), run on the CPU.
 * It counts every allocation, detects use after free, and fails on request:
 *
 * FAKE_DRIVER    CUDA version of the driver, 13000
 * FAKE_DEVICES   number of devices, 1
 * FAKE_SM        their architecture, 90
 * FAKE_FREE_MIB  free memory
 * FAKE_FAIL_AT   number of the launch, from 1, that fails with CUDA_ERROR_ILLEGAL_ADDRESS; all later
 *                calls fail as well, as on a real device
 * FAKE_EMULATES  modules are paths of libraries that contain the kernels
 * FAKE_MULTIPROCESSORS  multiprocessors of a device, 24
 * FAKE_SHARED    shared memory of a block in KiB, 99
 * FAKE_REPORT    file for the report at the end: leaks and wrong uses */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, BAD_DEVICE = 101, NO_CONTEXT = 201, ILLEGAL_ADDRESS = 700 };

enum kind { CONTEXT, STREAM, EVENT, DEVICE_MEMORY, PINNED_MEMORY, MODULE, KINDS };
static const char *const NAMES[KINDS] = {"contexts", "streams", "events", "device memory",
                                         "pinned memory", "modules"};

struct thing {
    enum kind kind;
    int alive;
    size_t bytes;
    void *memory;
    struct thing *next; /* of the device's memory */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long live[KINDS];
static long direct, misuses, launches, unrecorded;
static size_t used;
static int failed, stream_priority;
static __thread struct thing *current;
static struct thing *context;

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? atol(text) : otherwise;
}

__attribute__((destructor)) static void report(void) {
    const char *path = getenv("FAKE_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int kind = 0; kind < KINDS; kind++)
        if (live[kind]) fprintf(file, "%ld %s left\n", live[kind], NAMES[kind]);
    if (misuses) fprintf(file, "%ld misuses\n", misuses);
    if (unrecorded) fprintf(file, "%ld waits for events that were never recorded\n", unrecorded);
    fprintf(file, "streams of priority %d, %ld launches, %ld pictures uploaded from where they were\n",
            stream_priority, launches, direct);
    fclose(file);
}

/* Objects are never really freed, so that use after free is detected. */
static struct thing *make(enum kind kind, size_t bytes) {
    struct thing *thing = calloc(1, sizeof *thing);
    thing->kind = kind;
    thing->alive = 1;
    thing->bytes = bytes;
    pthread_mutex_lock(&lock);
    live[kind]++;
    pthread_mutex_unlock(&lock);
    return thing;
}

static int is(const struct thing *thing, enum kind kind) {
    int good = thing && thing->alive && thing->kind == kind && (kind == CONTEXT || (current && current->alive));
    if (!good) __sync_fetch_and_add(&misuses, 1);
    return good;
}

static int destroy(struct thing *thing, enum kind kind) {
    if (!is(thing, kind)) return INVALID;
    thing->alive = 0;
    pthread_mutex_lock(&lock);
    live[kind]--;
    pthread_mutex_unlock(&lock);
    return failed;
}

int cuInit(unsigned flags) { return setting("FAKE_DEVICES", 1) ? OK : NO_DEVICE; }
int cuDriverGetVersion(int *version) { *version = setting("FAKE_DRIVER", 13000); return OK; }
int cuDeviceGetCount(int *count) { *count = setting("FAKE_DEVICES", 1); return OK; }
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return ordinal < setting("FAKE_DEVICES", 1) ? OK : BAD_DEVICE;
}
int cuDeviceGetName(char *name, int length, int device) { snprintf(name, length, "Fake GPU %d", device); return OK; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)16 << 30; return OK; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int sm = setting("FAKE_SM", 90);
    switch (attribute) {
    case 75: *value = sm / 10; break;
    case 76: *value = sm % 10; break;
    case 16: *value = setting("FAKE_MULTIPROCESSORS", 24); break;
    case 97: *value = setting("FAKE_SHARED", 99) << 10; break;       /* shared memory of a block */
    case 81: *value = (setting("FAKE_SHARED", 99) + 1) << 10; break;      /* of a multiprocessor */
    case 39: *value = 1536; break;           /* threads */
    case 82: *value = 65536; break;          /* registers */
    case 95: *value = setting("FAKE_COOPERATIVE", 1); break; /* cooperative launches */
    default: *value = 0; return INVALID;
    }
    return OK;
}

int cuDevicePrimaryCtxRetain(struct thing **out, int device) {
    if (!context) context = make(CONTEXT, 0);
    else context->bytes++;
    *out = context;
    return OK;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    if (!context) return INVALID;
    if (context->bytes) { context->bytes--; return OK; }
    int result = destroy(context, CONTEXT);
    context = NULL;
    return result;
}
int cuCtxSetCurrent(struct thing *thing) {
    if (!is(thing, CONTEXT)) return NO_CONTEXT;
    current = thing;
    return OK;
}
int cuCtxSynchronize(void) { return current ? failed : NO_CONTEXT; }
int cuMemGetInfo_v2(size_t *free, size_t *total) {
    *total = (size_t)16 << 30;
    *free = ((size_t)setting("FAKE_FREE_MIB", 8192) << 20) - used;
    return current ? failed : NO_CONTEXT;
}

static struct thing *device_memory;

/* Returns the allocation that begins at this address; an offset into one is an error. */
static struct thing *at(uint64_t address) {
    pthread_mutex_lock(&lock);
    struct thing *thing = device_memory;
    while (thing && (uint64_t)thing->memory != address) thing = thing->next;
    pthread_mutex_unlock(&lock);
    return thing;
}
int cuMemAlloc_v2(uint64_t *out, size_t bytes) {
    if (!current) return NO_CONTEXT;
    if (used + bytes > (size_t)setting("FAKE_FREE_MIB", 8192) << 20) return NO_MEMORY;
    struct thing *thing = make(DEVICE_MEMORY, bytes);
    thing->memory = aligned_alloc(512, (bytes + 511) / 512 * 512);
    memset(thing->memory, 0xa5, bytes);
    pthread_mutex_lock(&lock);
    used += bytes;
    thing->next = device_memory;
    device_memory = thing;
    pthread_mutex_unlock(&lock);
    *out = (uint64_t)thing->memory;
    return failed;
}
int cuMemFree_v2(uint64_t address) {
    struct thing *thing = at(address);
    int result = destroy(thing, DEVICE_MEMORY);
    if (result != INVALID) { used -= thing->bytes; free(thing->memory); thing->memory = NULL; }
    return result;
}
int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    if (!current) return NO_CONTEXT;
    /* A lost device gives nothing to a source that still asks. */
    if (failed) return failed;
    *out = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(*out, 0x5a, bytes);
    __sync_fetch_and_add(&live[PINNED_MEMORY], 1);
    return OK;
}
int cuMemFreeHost(void *memory) {
    if (!current || !current->alive) __sync_fetch_and_add(&misuses, 1);
    __sync_fetch_and_sub(&live[PINNED_MEMORY], 1);
    free(memory);
    return failed;
}

static int memory(uint64_t address, size_t bytes) {
    struct thing *thing = at(address);
    if (!is(thing, DEVICE_MEMORY)) return 0;
    if (bytes > thing->bytes) __sync_fetch_and_add(&misuses, 1);
    return bytes <= thing->bytes;
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
    if (!memory(to, bytes)) return INVALID;
    memset((void *)to, value, bytes);
    return failed;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
    if (!memory(to, bytes)) return INVALID;
    memcpy((void *)to, from, bytes);
    return failed;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    if (!memory(from, bytes)) return INVALID;
    memcpy(to, (const void *)from, bytes);
    return failed;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, struct thing *stream) {
    return is(stream, STREAM) ? cuMemsetD8_v2(to, value, bytes) : INVALID;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, struct thing *stream) {
    return is(stream, STREAM) ? cuMemcpyHtoD_v2(to, from, bytes) : INVALID;
}
struct copy {
    size_t from_x, from_y; int from_kind; const char *from_host; uint64_t from; void *from_array; size_t from_pitch;
    size_t to_x, to_y; int to_kind; char *to_host; uint64_t to; void *to_array; size_t to_pitch;
    size_t width, height;
};
int cuMemcpy2DAsync_v2(const struct copy *copy, struct thing *stream) {
    if (!is(stream, STREAM) || copy->from_kind != 1 || copy->to_kind != 2 || copy->width > copy->to_pitch) return INVALID;
    if (!memory(copy->to, copy->to_pitch * copy->height)) return INVALID;
    for (size_t y = 0; y < copy->height; y++)
        memcpy((char *)copy->to + y * copy->to_pitch,
               copy->from_host + y * copy->from_pitch, copy->width);
    direct++;
    return failed;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, struct thing *stream) {
    if (!is(stream, STREAM) || !memory(from, bytes)) return INVALID;
    memcpy(to, (const void *)from, bytes);
    return failed;
}

/* A part of a device. The numbers of multiprocessors stand 96 bytes into a resource. */
static unsigned *count_of(unsigned char *resource) { return (unsigned *)(resource + 96); }
int cuDeviceGetDevResource(int device, unsigned char *out, int type) {
    memset(out, 0, 144);
    *(int *)out = type;
    *count_of(out) = 24;
    return type == 1 ? OK : INVALID;
}
int cuDevSmResourceSplitByCount(unsigned char *out, unsigned *groups, const unsigned char *in, unsigned char *rest,
                                unsigned flags, unsigned least) {
    memcpy(out, in, 144);
    /* Eight at a time, as newer devices do. */
    *count_of(out) = (least + 7) / 8 * 8;
    return *groups == 1 ? OK : INVALID;
}
int cuDevResourceGenerateDesc(void **out, unsigned char *resources, unsigned count) {
    *out = resources;
    return count == 1 ? OK : INVALID;
}
int cuGreenCtxCreate(struct thing **out, void *description, int device, unsigned flags) {
    *out = make(CONTEXT, 0);
    return flags == 1 ? OK : INVALID;
}
int cuCtxFromGreenCtx(struct thing **out, struct thing *green) { *out = green; return OK; }
int cuGreenCtxDestroy(struct thing *green) { return destroy(green, CONTEXT); }

int cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = 0, *greatest = -5; return current ? failed : NO_CONTEXT; }
int cuStreamCreateWithPriority(struct thing **out, unsigned flags, int priority) {
    if (priority > 0 || priority < -5) return INVALID;
    stream_priority = priority;
    *out = make(STREAM, 0);
    return current ? failed : NO_CONTEXT;
}
int cuStreamDestroy_v2(struct thing *stream) { return destroy(stream, STREAM); }
int cuStreamSynchronize(struct thing *stream) { return is(stream, STREAM) ? failed : INVALID; }
int cuStreamWaitEvent(struct thing *stream, struct thing *event, unsigned flags) {
    if (!is(stream, STREAM) || !is(event, EVENT)) return INVALID;
    if (!event->bytes) __sync_fetch_and_add(&unrecorded, 1);
    return failed;
}

int cuEventCreate(struct thing **out, unsigned flags) { *out = make(EVENT, 0); return current ? failed : NO_CONTEXT; }
int cuEventDestroy_v2(struct thing *event) { return destroy(event, EVENT); }
int cuEventRecord(struct thing *event, struct thing *stream) {
    if (!is(event, EVENT) || !is(stream, STREAM)) return INVALID;
    event->bytes++;
    return failed;
}
int cuEventQuery(struct thing *event) { return is(event, EVENT) ? failed : INVALID; }
int cuEventSynchronize(struct thing *event) { return is(event, EVENT) ? failed : INVALID; }
static int elapsed(float *ms, struct thing *begin, struct thing *end) {
    if (!is(begin, EVENT) || !is(end, EVENT)) return INVALID;
    if (!begin->bytes || !end->bytes) __sync_fetch_and_add(&unrecorded, 1);
    *ms = 0.25f;
    return failed;
}
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
    *function = strcmp(name, "cuEventElapsedTime") ? NULL : (void *)elapsed;
    return *function && version <= setting("FAKE_DRIVER", 13000) ? OK : INVALID;
}

int cuModuleLoadData(struct thing **out, const void *image) {
    *out = make(MODULE, 0);
    if (setting("FAKE_EMULATES", 0)) {
        (*out)->memory = dlopen(image, RTLD_NOW | RTLD_LOCAL);
        if (!(*out)->memory) { fprintf(stderr, "%s\n", dlerror()); return INVALID; }
    }
    return current ? failed : NO_CONTEXT;
}
int cuModuleUnload(struct thing *module) { return destroy(module, MODULE); }
/* A function is its module, or in the emulation a thing of its own that is never counted. */
typedef void kernel(void **arguments, const unsigned *grid, const unsigned *block, unsigned shared, int together);
int cuModuleGetFunction(struct thing **out, struct thing *module, const char *name) {
    *out = module;
    if (!is(module, MODULE)) return INVALID;
    if (module->memory) {
        char symbol[256];
        snprintf(symbol, sizeof symbol, "emulated_%s", name);
        *out = calloc(1, sizeof **out);
        **out = (struct thing){.kind = MODULE, .alive = 1, .memory = dlsym(module->memory, symbol),
                                 /* Its blocks wait for each other. */
                                 .bytes = !strcmp(name, "aggregate_sweep")};
        if (!(*out)->memory) return INVALID;
    }
    return failed;
}
int cuFuncGetAttribute(int *value, int attribute, struct thing *function) {
    *value = 75;
    return is(function, MODULE) ? failed : INVALID;
}
int cuFuncSetAttribute(struct thing *function, int attribute, int value) { return is(function, MODULE) ? failed : INVALID; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct thing *function, int threads, size_t shared) {
    *blocks = 2;
    return is(function, MODULE) ? failed : INVALID;
}

static int launch(void) {
    long number = __sync_add_and_fetch(&launches, 1);
    if (number == setting("FAKE_FAIL_AT", 0)) failed = ILLEGAL_ADDRESS;
    return failed;
}
struct config { unsigned grid[3], block[3], shared; struct thing *stream; void *attributes; unsigned count; };
int cuLaunchKernelEx(const struct config *config, struct thing *function, void **arguments, void **extra) {
    if (!is(function, MODULE) || !is(config->stream, STREAM)) return INVALID;
    int result = launch();
    if (result == OK && function->memory) {
        /* One kernel at a time: the emulation keeps its state in globals. */
        static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&running);
        kernel *run = (kernel *)function->memory;
        run(arguments, config->grid, config->block, config->shared, config->count > 0 || function->bytes);
        pthread_mutex_unlock(&running);
    }
    return result;
}
