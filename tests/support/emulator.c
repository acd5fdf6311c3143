/* Runs native images for aarch64 under qemu-user, on the orders of `emulated_cpu.py`.
 *
 * Usage: emulator FILE ADDRESS SIZE. FILE is a descriptor of shared memory, which is mapped at ADDRESS here and in the
 * process that gives the orders, so pointers mean the same in both. An order is four words of 8 bytes on standard input;
 * its answer is one word on standard output.
 *
 * | operation | words | answer |
 * | --- | --- | --- |
 * | LOOK_UP | number of a row of `functions` | its address |
 * | PROTECT | address, bytes, whether it is code | 0: the memory is code, or may not be touched here |
 * | CALL | function, first and second argument | what `int function(pointer, word)` returns |
 * | START | function, first and second argument | 0: the call is made by a new thread |
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_UP, PROTECT, CALL, START };

typedef struct {
    uint64_t operation, words[3];
} order;

typedef int (*function)(void *, uint64_t);

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int call(const order *o) {
    return ((function)(uintptr_t)o->words[0])((void *)(uintptr_t)o->words[1], o->words[2]);
}

static void *run_thread(void *memory) {
    call(memory);
    free(memory);
    return NULL;
}

static void start(const order *o) {
    order *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (copy == NULL)
        fail("malloc");
    *copy = *o;
    if (pthread_create(&thread, NULL, run_thread, copy) != 0 || pthread_detach(thread) != 0)
        fail("pthread_create");
}

static void protect(void *memory, size_t size, int code) {
    if (mprotect(memory, size, code ? PROT_READ | PROT_EXEC : PROT_NONE) != 0)
        fail("mprotect");
    __builtin___clear_cache(memory, (char *)memory + size);
}

static int64_t obey(const order *o) {
    /* the functions of the C library whose addresses a pool holds (`hal/cpu/layout.py`) */
    const uintptr_t functions[] = {(uintptr_t)syscall, (uintptr_t)clock_gettime, (uintptr_t)memmove,
                                   (uintptr_t)sched_getcpu};
    switch (o->operation) {
    case LOOK_UP:
        return (int64_t)functions[o->words[0]];
    case PROTECT:
        protect((void *)(uintptr_t)o->words[0], o->words[1], o->words[2] != 0);
        return 0;
    case CALL:
        return call(o);
    case START:
        start(o);
        return 0;
    default:
        exit(2);
    }
}

int main(int count, char **arguments) {
    order next;
    if (count != 4)
        return 2;
    void *wanted = (void *)(uintptr_t)strtoull(arguments[2], NULL, 10);
    void *memory = mmap(wanted, strtoull(arguments[3], NULL, 10), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED_NOREPLACE, atoi(arguments[1]), 0);
    if (memory != wanted)
        fail("mmap");
    while (fread(&next, sizeof next, 1, stdin) == 1) {
        int64_t answer = obey(&next);
        if (fwrite(&answer, sizeof answer, 1, stdout) != 1 || fflush(stdout) != 0)
            fail("answer");
    }
    return 0;
}
