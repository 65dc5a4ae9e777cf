/* Counts the instructions that an emulated program runs, by their address: a plugin of QEMU (its interface of
   version 1, declared here as far as it is used). At the end every block of instructions that ran is a line:
   its address within the program, how often it ran, the offset of each of its instructions. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_start_code(void);
void qemu_plugin_register_vcpu_tb_trans_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_inline(
    struct qemu_plugin_tb *tb, enum qemu_plugin_op op, void *to, uint64_t amount);
void qemu_plugin_register_atexit_cb(
    qemu_plugin_id_t id, void (*callback)(qemu_plugin_id_t, void *), void *data);

/* The version of the interface, which QEMU asks for. */
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* A block of instructions, translated once; the same code may be translated again. */
struct block {
    struct block *next;
    uint64_t address, length, runs;
};
static struct block *blocks;
static const char *path;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    struct block *block = calloc(1, sizeof *block);
    (void)id;
    if (block == NULL) abort();
    block->address = qemu_plugin_tb_vaddr(tb);
    block->length = qemu_plugin_tb_n_insns(tb);
    block->next = blocks;
    while (!__atomic_compare_exchange_n(
        &blocks, &block->next, block, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
    qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &block->runs, 1);
}

static void ended(qemu_plugin_id_t id, void *data) {
    const uint64_t start = qemu_plugin_start_code();
    FILE *file = fopen(path, "w");
    (void)id;
    (void)data;
    if (file == NULL) {
        perror(path);
        return;
    }
    fprintf(file, "%" PRIx64 "\n", start);
    for (const struct block *block = blocks; block != NULL; block = block->next)
        fprintf(file, "%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", block->address, block->length, block->runs);
    fclose(file);
}

/* What QEMU calls first; info describes its version. The one argument, to=FILE, is what is written. */
__attribute__((visibility("default"))) int qemu_plugin_install(
    qemu_plugin_id_t id, const void *info, int argc, char **argv) {
    (void)info;
    if (argc != 1 || strncmp(argv[0], "to=", 3) != 0) return 1;
    path = argv[0] + 3;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
