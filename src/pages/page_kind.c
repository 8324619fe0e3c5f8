#include "pages/page_kind.h"

#include "base/number.h"

zero_page_kind zero_kind_of(const char *name)
{
    static const struct {
        const char *name;
        zero_page_kind kind;
    } words[] = {{"FORWARD", ZERO_KIND_FORWARD},    {"BACKWARD", ZERO_KIND_BACKWARD},
                 {"RECOMPUTE", ZERO_KIND_BACKWARD}, {"LOSS", ZERO_KIND_ALL},
                 {"OVERFLOW", ZERO_KIND_ALL},       {"VERIFY", ZERO_KIND_ALL},
                 {"COMPARE", ZERO_KIND_ALL}};
    static const char wait[] = "_WAIT";
    size_t n = strcspn(name, " "), tail = sizeof wait - 1;
    for (int k = 0; k < ZERO_COUNT(words); k++)
        if (strlen(words[k].name) == n && strncmp(name, words[k].name, n) == 0)
            return words[k].kind;
    bool waits = n > tail && strncmp(name + n - tail, wait, tail) == 0;
    return waits ? ZERO_KIND_WAIT : ZERO_KIND_REST;
}

const char *zero_kind_class(zero_page_kind kind)
{
    static const char *const classes[ZERO_KINDS] = {"forward", "backward", "wait", "all",
                                                    "rest"};
    return classes[kind];
}

const char *zero_kind_name(zero_page_kind kind)
{
    static const char *const names[ZERO_KINDS] = {"forward", "backward", "waits for data",
                                                  "waits for all ranks", "the rest"};
    return names[kind];
}

void zero_kind_shorten(const char *name, char text[ZERO_KIND_SHORT])
{
    zero_page_kind kind = zero_kind_of(name);
    const char *unit = strchr(name, ' ');
    text[0] = '\0';
    if (!unit || (kind != ZERO_KIND_FORWARD && kind != ZERO_KIND_BACKWARD)) return;
    unit++;
    size_t word = strcspn(unit, " ,");
    /* "block 3": its number; else the unit's first letter. */
    bool is_numbered = unit[word] == ' ';
    const char *mark = is_numbered ? unit + word + 1 : unit;
    int n = is_numbered ? (int)strcspn(mark, " ,") : 1;
    snprintf(text, ZERO_KIND_SHORT, "%c%.*s", name[0], n > 8 ? 8 : n, mark);
}
