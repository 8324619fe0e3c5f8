#include "cli/suggest.h"

#include <stddef.h>
#include <string.h>

#define LONGEST 63

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int length(const char *word)
{
    return (int)strnlen(word, LONGEST);
}

int zero_suggest_distance(const char *a, const char *b)
{
    int d[LONGEST + 1][LONGEST + 1]; /* d[i][j]: from a's first i letters to b's first j */
    int n = length(a), m = length(b);
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

const char *zero_suggest(const char *word, int n, const char *const *words)
{
    const char *best = NULL;
    int best_distance = LONGEST;
    for (int i = 0; i < n; i++) {
        int distance = zero_suggest_distance(word, words[i]);
        int longer = length(word) > length(words[i]) ? length(word) : length(words[i]);
        if (distance >= best_distance || 5 * distance > 2 * longer) continue;
        best = words[i];
        best_distance = distance;
    }
    return best;
}
