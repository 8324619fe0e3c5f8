#include "bench_lists.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"

#define WORD     32                  /* bytes of one word */
#define MAX_SIZE INT64_C(0x7fffffff) /* MPI counts elements of a piece in an int */

/* Takes a word of "a,b,c" and moves *list to the next one, or to NULL after the last. A word
 * that does not fit is cut: no name is that long. */
static void take_word(const char **list, char word[WORD])
{
    size_t length = strcspn(*list, ",");
    snprintf(word, WORD, "%.*s", (int)(length < WORD ? length : WORD - 1), *list);
    *list = (*list)[length] == ',' ? *list + length + 1 : NULL;
}

static zero_status expected(const char *option, const char *list,
                            const char *(*name_at)(int i))
{
    char names[256] = "";
    for (int i = 0; name_at(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? "," : "", name_at(i));
    }
    return zero_fail(ZERO_ERR_INVALID, "--%s %.80s: expected some of %s, each once", option,
                     list, names);
}

static int find(const char *word, const char *(*name_at)(int i))
{
    for (int i = 0; name_at(i); i++)
        if (strcmp(word, name_at(i)) == 0) return i;
    return -1;
}

static bool has(const int which[], int n, int number)
{
    for (int i = 0; i < n; i++)
        if (which[i] == number) return true;
    return false;
}

zero_status bench_list_read(const char *option, const char *list,
                            const char *(*name_at)(int i), int which[BENCH_LIST], int *n)
{
    const char *at = list;
    char word[WORD];
    int count = 0;
    while (at) {
        take_word(&at, word);
        int number = find(word, name_at);
        if (number < 0 || count == BENCH_LIST || has(which, count, number))
            return expected(option, list, name_at);
        which[count++] = number;
    }
    *n = count;
    return ZERO_OK;
}

zero_status bench_list_read_sizes(const char *option, const char *list,
                                  size_t sizes[BENCH_LIST], int *n)
{
    const char *at = list;
    char word[WORD];
    int count = 0;
    while (at) {
        int64_t size;
        take_word(&at, word);
        if (count == BENCH_LIST || !zero_quantity_whole(word, &size) || size < 1 ||
            size > MAX_SIZE)
            return zero_fail(ZERO_ERR_INVALID,
                             "--%s %.80s: expected up to %d sizes of 1 to 2147483647 bytes "
                             "with commas between them, as in 64KiB,16MiB,1GiB",
                             option, list, BENCH_LIST);
        sizes[count++] = (size_t)size;
    }
    *n = count;
    return ZERO_OK;
}
