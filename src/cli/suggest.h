/* suggest.h - the word that a mistyped one probably stands for. */
#pragma once

/* The letters to add, drop, change or swap with their neighbour until `a` becomes `b`. Words are
 * compared as far as their first 63 bytes. Source: optimal string alignment; Damerau 1964, "A
 * technique for computer detection and correction of spelling errors". */
int zero_suggest_distance(const char *a, const char *b);

/* The word nearest to `word`, the first of equals, borrowed from `words`; NULL if none is
 * near: more than two fifths of the longer word would have to change. */
const char *zero_suggest(const char *word, int n, const char *const *words);
