/* fail.h - how functions of ours fail: zero/status.h from the inside.
 *
 * The function that meets an error first describes it, with the numbers that explain it;
 * callers pass the status on with ZERO_TRY and add nothing.
 *
 * It brings along the headers of the C library that nearly every file needs, so that files
 * that include it, also by other headers, need not name them. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "zero/status.h"

/* Before a parameter that a table of functions has, and this one does without. */
#define ZERO_UNUSED __attribute__((unused))

/* snprintf() into an array, all of it. */
#define zero_print(array, ...) snprintf((array), sizeof(array), __VA_ARGS__)

static inline bool zero_same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* n items of an array: copied from another, set to zeros, or sorted. */
#define zero_copy(to, from, n) memcpy((to), (from), (size_t)(n) * sizeof *(to))
#define zero_clear(array, n)   memset((array), 0, (size_t)(n) * sizeof *(array))
#define zero_sort(array, n, in_order) \
    qsort((array), (size_t)(n), sizeof *(array), (in_order))

/* For qsort(): -1, 0 or 1. */
#define zero_order(a, b) (((a) > (b)) - ((a) < (b)))

/* Records the message for this thread, with the place it came from, and returns the code.
 * The last error may be among the arguments. */
#define zero_fail(code, ...) zero_fail_at(__FILE__, __LINE__, (code), __VA_ARGS__)
zero_status zero_fail_at(const char *file, int line, zero_status code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ZERO_ERR_INVALID, with its name, unless the value is from `least` to `most`. */
zero_status zero_check_whole(const char *name, int64_t value, int64_t least, int64_t most);

/* ZERO_OK if memory was taken, else ZERO_ERR_NOMEM with this message. */
#define zero_allocated(taken, ...) \
    ((taken) ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, __VA_ARGS__))

/* Leaves the function with the callee's status unless it is ZERO_OK. */
#define ZERO_TRY(call) \
    do { \
        zero_status st_ = (call); \
        if (st_ != ZERO_OK) return st_; \
    } while (0)

/* Leaves the function with this failure if the condition holds. */
#define ZERO_FAIL_IF(condition, code, ...) \
    do { \
        if (condition) return zero_fail(code, __VA_ARGS__); \
    } while (0)
#define ZERO_INVALID_IF(condition, ...) \
    ZERO_FAIL_IF(condition, ZERO_ERR_INVALID, __VA_ARGS__)
#define ZERO_FORMAT_IF(condition, ...) ZERO_FAIL_IF(condition, ZERO_ERR_FORMAT, __VA_ARGS__)

/* Before a variable: what is called with its address where its scope is left, whatever way
 * that is. So a function may fail with ZERO_TRY while it holds something:
 *
 *     ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
 *     ZERO_FREED float *block = NULL; */
#define ZERO_AT_END(call) __attribute__((cleanup(call)))
#define ZERO_FREED        ZERO_AT_END(zero_free_at)
static inline void zero_free_at(void *pointer)
{
    void *taken;
    memcpy(&taken, pointer, sizeof taken); /* whatever it points to */
    free(taken);
}

/* free() of each. */
#define zero_free(...) \
    zero_free_all((void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))
static inline void zero_free_all(void *const *pointers, size_t n)
{
    for (size_t i = 0; i < n; i++) free(pointers[i]);
}

/* *to = made, which is zeroed: nothing is left that ends with its scope. */
#define ZERO_GIVE(to, made) (*(to) = (made), memset(&(made), 0, sizeof(made)))

/* A failure, to keep while something else may fail, or to send. It has no pointers: it may
 * travel as bytes. */
typedef struct {
    zero_status status;
    int line;
    bool is_agreed; /* all ranks have it already, also with words that callers have added */
    char file[52], text[1024];
} zero_failure;

/* This thread's last failure, whose status is given; with ZERO_OK an empty one. */
zero_failure zero_failure_keep(zero_status status);
/* Makes a kept failure the last one again and returns its status. */
zero_status zero_failure_restore(const zero_failure *kept);
