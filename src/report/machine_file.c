#include "report/machine_file.h"

#include "base/legible.h"
#include "base/quantity.h"
#include "io/bytes.h"

#define MOST_BYTES   ((size_t)64 << 10)
#define MOST_LINE    200
#define MOST_NUMBERS 2
#define HUGE_NUMBER  1e30
#define HUGE_MEMORY  1e18 /* a plan counts bytes in 64 bits */
#define BLANKS       " "
#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define FIELD(name)  offsetof(zero_machine_file, name)

/* ---- the keys ---- */

typedef struct {
    double low, high;
    size_t at; /* double of the struct */
} number;

/* A text, char[ZERO_MACHINE_TEXT] of the struct, where n is 0; else n numbers. */
typedef struct {
    const char *name, *expected;
    number numbers[MOST_NUMBERS];
    int n;
    bool is_whole;
} key_row;

/* clang-format off */
#define TEXT         "a text of 1 to 119 characters"
#define RATE(field)  {1.0, HUGE_NUMBER, FIELD(field)}
#define LINK(field)  {{0.0, 1e6, FIELD(field.latency)}, RATE(field.bandwidth)}, 2, false
_Static_assert(ZERO_MACHINE_TEXT == 120, "TEXT says it");
static const key_row keys[] = {
    {"name", TEXT, {{0.0, 0.0, FIELD(name)}}, 0, false},
    {"about", TEXT, {{0.0, 0.0, FIELD(about)}}, 0, false},
    {"source", TEXT, {{0.0, 0.0, FIELD(source)}}, 0, false},
    {"date", TEXT, {{0.0, 0.0, FIELD(date)}}, 0, false},
    {"fit", TEXT, {{0.0, 0.0, FIELD(fit)}}, 0, false},
    {"devices", "a whole number from 1 to 65536", {{1.0, 65536.0, FIELD(devices)}}, 1,
     true},
    {"memory", "bytes from 1 to 1e18, such as 32G", {{1.0, HUGE_MEMORY, FIELD(memory)}}, 1,
     false},
    {"memory-bandwidth", "bytes per second, such as 900G", {RATE(memory_bandwidth)}, 1,
     false},
    {"efficiency", "SHARE TOKENS: a share above 0 and up to 1, then a number from 0 on",
     {{1e-6, 1.0, FIELD(share)}, {0.0, 1e9, FIELD(tokens)}}, 2, false},
    {"unaligned", "EVERY SHARE: a number from 1 on, then a share above 0 and up to 1",
     {{1.0, 1e6, FIELD(unaligned_every)}, {1e-6, 1.0, FIELD(unaligned_share)}}, 2, false},
    {"inside", "SECONDS RATE, such as 2e-6 150G", LINK(inside)},
    {"between", "SECONDS RATE, such as 2e-6 100G", LINK(between)},
    {"host", "bytes per second, such as 48G", {RATE(host)}, 1, false},
    {"disk", "READ WRITE in bytes per second, such as 0.8G 1.2G",
     {RATE(disk.read), RATE(disk.write)}, 2, false},
    {"peak", "TYPE RATE, with fp32, bf16 or fp16, such as fp16 125T", {RATE(peak)}, 1,
     false},
};
/* clang-format on */
#define PEAK (COUNT(keys) - 1) /* one for each type, whose name comes first */
#define DISK (PEAK - 1)        /* may be left out */

typedef struct {
    const char *path;
    int line;
    zero_machine_file machine;
    bool has[COUNT(keys)];
} reader;

/* ---- one line ---- */

static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, BLANKS), *end = word + strcspn(word, BLANKS);
    *rest = *end ? end + 1 : end;
    *end = '\0';
    return word;
}

static zero_status wrong(const reader *r, const key_row *key, const char *found)
{
    return zero_fail(ZERO_ERR_INVALID, "%.300s:%d: %s: expected %s, found %s%s%s", r->path,
                     r->line, key->name, key->expected, *found ? "\"" : "nothing", found,
                     *found ? "\"" : "");
}

/* Numbers are stored `offset` bytes further on. */
static zero_status store(reader *r, const key_row *key, size_t offset, char *rest)
{
    if (key->n == 0) {
        rest += strspn(rest, BLANKS);
        size_t length = strlen(rest);
        while (length > 0 && strchr(BLANKS, rest[length - 1])) rest[--length] = '\0';
        if (length == 0 || length >= ZERO_MACHINE_TEXT) return wrong(r, key, rest);
        memcpy((char *)&r->machine + key->numbers[0].at, rest, length + 1);
        return ZERO_OK;
    }
    for (int k = 0; k < key->n; k++) {
        double value;
        const number *range = &key->numbers[k];
        const char *word = next_word(&rest);
        if (!zero_quantity_rate(word, &value) || value < range->low ||
            value > range->high || (key->is_whole && value != floor(value)))
            return wrong(r, key, word);
        memcpy((char *)&r->machine + range->at + offset, &value, sizeof value);
    }
    const char *more = next_word(&rest);
    return *more ? wrong(r, key, more) : ZERO_OK;
}

static zero_status read_line(reader *r, char *line)
{
    char *rest = line, all[300] = "";
    const char *name = next_word(&rest);
    if (*name == '\0' || *name == '#') return ZERO_OK;
    for (int i = 0; i < COUNT(keys); i++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", keys[i].name);
        if (!zero_same_text(name, keys[i].name)) continue;
        zero_type type = ZERO_FP32; /* the first: no bytes further on */
        bool is_twice = r->has[i];
        if (i == PEAK) {
            const char *word = next_word(&rest);
            if (!zero_type_find(word, &type)) return wrong(r, &keys[i], word);
            name = zero_type_name(type);
            is_twice = r->machine.peak[type] > 0.0;
        }
        ZERO_INVALID_IF(is_twice, "%.300s:%d: \"%s\" stands twice; keep one of them",
                        r->path, r->line, name);
        r->has[i] = true;
        return store(r, &keys[i], type * sizeof r->machine.peak[0], rest);
    }
    return zero_fail(ZERO_ERR_INVALID, "%.300s:%d: no such key: \"%s\"; expected one of %s",
                     r->path, r->line, name, all);
}

/* ---- all lines ---- */

zero_status zero_machine_file_parse(const char *path, const char *text, size_t len,
                                    zero_machine_file *machine)
{
    char shown[ZERO_SHOWN_BYTES], line[MOST_LINE];
    reader r = {.path = zero_shown(path, shown)};
    const char *missing = NULL; /* the peak only if nothing else is */
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t length = end ? (size_t)(end - (text + at)) : len - at;
        r.line++;
        ZERO_INVALID_IF(length >= MOST_LINE,
                        "%.300s:%d: expected a line of at most %d characters, found %zu",
                        r.path, r.line, MOST_LINE - 1, length);
        for (size_t i = 0; i < length; i++) {
            unsigned char c = (unsigned char)(text + at)[i];
            if (c >= ' ' && c < 0x7f) continue;
            return zero_fail(ZERO_ERR_INVALID,
                             "%.300s:%d: expected ASCII without tabs, found the byte "
                             "0x%02x in column %zu",
                             r.path, r.line, c, i + 1);
        }
        memcpy(line, text + at, length);
        line[length] = '\0';
        ZERO_TRY(read_line(&r, line));
        at += length + 1;
    }
    for (int i = 0; i < COUNT(keys); i++)
        if (!r.has[i] && i != DISK && !(missing && i == PEAK)) missing = keys[i].name;
    ZERO_INVALID_IF(
        missing,
        "%.300s:%d: the file ends, and \"%s\" is missing; every key but disk is needed",
        r.path, r.line, missing);
    *machine = r.machine;
    return ZERO_OK;
}

/* ---- by name ---- */

const char *zero_machine_name_at(int i)
{
    return zero_machine_texts[i].name;
}

zero_status zero_machine_file_find(const char *name, zero_machine_file *machine)
{
    char all[300] = "", shown[ZERO_SHOWN_BYTES];
    static const char ending[] = ".machine";
    size_t length = strlen(name), n = sizeof ending - 1;
    if (strchr(name, '/') || (length > n && zero_same_text(name + length - n, ending))) {
        /* An unreadable file is a usage error (2), not damaged data (4). */
        zero_bytes text = {0};
        zero_status st = zero_bytes_read_at_most(&text, name, MOST_BYTES);
        if (st == ZERO_OK)
            st = zero_machine_file_parse(name, (const char *)text.bytes, text.len, machine);
        else if (st != ZERO_ERR_NOMEM)
            st = zero_fail(ZERO_ERR_INVALID, "--machine: %s", zero_last_error());
        zero_bytes_destroy(&text);
        return st;
    }
    for (const zero_embedded *t = zero_machine_texts; t->name; t++) {
        if (zero_same_text(name, t->name))
            return zero_machine_file_parse(name, t->text, strlen(t->text), machine);
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used > 0 ? ", " : "", t->name);
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "--machine %.80s: no such machine; there are %s (zero plan --machine "
                     "help lists them); the path of a file has a / or ends in .machine",
                     zero_shown(name, shown), all);
}

/* ---- products ---- */

double zero_machine_products(const zero_machine_file *m, zero_type type,
                             const zero_shape *s, double tokens)
{
    double rate = m->peak[type] * m->share * tokens / (tokens + m->tokens);
    double head = (double)zero_shape_complete(s).head_size;
    if (fmod(head, m->unaligned_every) == 0.0) return rate;
    /* The share of a step's flops in products of scores and values, whose width is a
     * head's. */
    double h = (double)s->hidden, L = (double)s->layers;
    double attention = (double)s->seq / (6.0 * h);
    return rate / (1.0 + attention / (1.0 + attention + (double)s->vocab / (16.0 * L * h)) *
                             (1.0 / m->unaligned_share - 1.0));
}
