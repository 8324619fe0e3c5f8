#include "facts/facts.h"

#include <ctype.h>

#include "base/number.h"

#define KEY_BYTES ZERO_FACT_NAME

/* An expression being read. The first error is kept; what is read after it has no
 * meaning. */
typedef struct {
    const char *begin, *at, *end;
    const zero_scope *scope;
    zero_status status;
} reader;

static const zero_fact missing;

static zero_fact number_fact(double number)
{
    return (zero_fact){.kind = ZERO_FACT_NUMBER, .number = number};
}

static zero_fact node_fact(const json_t *node)
{
    zero_fact fact = {.node = node};
    if (!node) return fact;
    fact.kind = json_is_string(node)                          ? ZERO_FACT_TEXT
                : json_is_array(node) || json_is_object(node) ? ZERO_FACT_TREE
                                                              : ZERO_FACT_NUMBER;
    fact.number = json_is_null(node)      ? NAN
                  : json_is_boolean(node) ? (double)json_is_true(node)
                                          : json_number_value(node);
    fact.text = json_string_value(node);
    fact.length = fact.text ? json_string_length(node) : 0;
    return fact;
}

static void complain(reader *r, const char *what)
{
    if (r->status == ZERO_OK)
        r->status = zero_fail(ZERO_ERR_FORMAT, "\"%.*s\": %s, at \"%.*s\"",
                              (int)(r->end - r->begin), r->begin, what,
                              (int)(r->end - r->at), r->at);
    r->at = r->end;
}

static bool is_name(const char *name, size_t n, const char *word)
{
    return strlen(word) == n && strncmp(name, word, n) == 0;
}

/* ---- paths ---- */

static zero_fact look_up(const zero_scope *scope, const char *path, const char *end);

/* One step down: `name` has n characters. */
static const json_t *child(const json_t *node, const char *name, size_t n,
                           const zero_scope *scope)
{
    char key[KEY_BYTES];
    if (!node || n >= sizeof key) return NULL;
    for (size_t i = 0; i < n; i++) key[i] = name[i] == '~' ? ' ' : name[i];
    key[n] = '\0';
    if (key[0] == '@' && scope) {
        zero_fact named = look_up(scope, name + 1, name + n);
        zero_print(key, "%.*s", (int)named.length, named.text ? named.text : "");
        if (!named.text) zero_print(key, "%.0f", named.number);
    }
    if (json_is_array(node) && isdigit((unsigned char)key[0]))
        return json_array_get(node, strtoul(key, NULL, 10));
    return json_object_get(node, key);
}

static const json_t *descend(const json_t *node, const char *path, const char *end,
                             const zero_scope *scope)
{
    while (node && path < end) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        size_t n = (size_t)((slash ? slash : end) - path);
        node = child(node, path, n, scope);
        path += n + (slash != NULL);
    }
    return node;
}

const json_t *zero_fact_at(const json_t *tree, const char *path)
{
    return descend(tree, path, path + strlen(path), NULL);
}

static zero_fact look_up(const zero_scope *scope, const char *path, const char *end)
{
    const char *slash = memchr(path, '/', (size_t)(end - path));
    size_t n = (size_t)((slash ? slash : end) - path);
    const char *rest = slash ? slash + 1 : end;
    int items = 0; /* from the innermost one on */
    for (const zero_scope *s = scope; s; s = s->outer) {
        const json_t *first = child(s->node, path, n, NULL);
        bool is_item = s->outer && !s->is_bound;
        if (first) return node_fact(descend(first, rest, end, scope));
        items += is_item;
        if (is_item && items == 1 && is_name(path, n, "item"))
            return node_fact(descend(s->node, rest, end, scope));
        if (is_item && is_name(path, n, items == 1 ? "index" : "outer"))
            return number_fact((double)s->index);
        if (s->key && is_name(path, n, "key"))
            return (zero_fact){ZERO_FACT_TEXT, 0.0, s->key, strlen(s->key), NULL};
    }
    return missing;
}

bool zero_scope_next(const json_t *list, zero_scope *s)
{
    json_t *of = (json_t *)list;
    s->index = s->node ? s->index + 1 : 0;
    if (s->index >= json_array_size(list) + json_object_size(list)) return false;
    if (json_is_array(list)) {
        s->node = json_array_get(list, s->index);
        return true;
    }
    void *member = s->key ? json_object_iter_next(of, json_object_key_to_iter(s->key))
                          : json_object_iter(of);
    s->key = json_object_iter_key(member);
    s->node = json_object_iter_value(member);
    return true;
}

/* ---- words ---- */

/* Also a backslash that continues a line of a form. */
static void skip_blanks(reader *r)
{
    while (r->at < r->end && (isspace((unsigned char)*r->at) || *r->at == '\\')) r->at++;
}

static bool take(reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->at) < n || strncmp(r->at, word, n) != 0) return false;
    r->at += n;
    return true;
}

static void expect(reader *r, const char *word)
{
    char what[40];
    if (take(r, word)) return;
    zero_print(what, "expected %s", word);
    complain(r, what);
}

static double known_number(reader *r, const zero_fact *fact)
{
    if (fact->kind == ZERO_FACT_MISSING) complain(r, "a fact is missing before this place");
    if (fact->kind == ZERO_FACT_TEXT || fact->kind == ZERO_FACT_TREE)
        complain(r, "there is no number before this place");
    return fact->number;
}

bool zero_fact_is_true(const zero_fact *fact)
{
    if (fact->kind == ZERO_FACT_TEXT) return fact->length > 0;
    if (fact->kind == ZERO_FACT_TREE)
        return json_array_size(fact->node) + json_object_size(fact->node) > 0;
    return fact->kind == ZERO_FACT_NUMBER && fact->number != 0.0 && !isnan(fact->number);
}

/* ---- functions ---- */

static zero_fact read_choice(reader *r);

/* Of numbers; those without a function are of facts. */
static const struct {
    const char *name;
    int n; /* arguments */
    double (*of_one)(double x), (*of_two)(double x, double y);
} functions[] = {
    {"abs", 1, fabs, NULL},    {"ceil", 1, ceil, NULL}, {"floor", 1, floor, NULL},
    {"round", 1, round, NULL}, {"log2", 1, log2, NULL}, {"sqrt", 1, sqrt, NULL},
    {"min", 2, NULL, fmin},    {"max", 2, NULL, fmax},  {"count", 1, NULL, NULL},
    {"or", 2, NULL, NULL},     {"at", 2, NULL, NULL},   {"whole", 1, NULL, NULL},
    {"amount", 1, NULL, NULL}};

/* How the values of items become one. */
typedef double fold(double so_far, double x);
static double add(double so_far, double x)
{
    return so_far + x;
}
static double any(double so_far, double x)
{
    return so_far != 0.0 || (x != 0.0 && !isnan(x));
}
static double all(double so_far, double x)
{
    return so_far != 0.0 && x != 0.0 && !isnan(x);
}
static const struct {
    const char *name;
    fold *join;
    double none; /* without items */
} folds[] = {{"sum", add, 0.0},      {"least", fmin, NAN},
             {"largest", fmax, NAN}, {"any", any, 0.0},
             {"all", all, 1.0},      {"first", NULL, 0.0}}; /* the item itself */

/* After "sum(": the expression is read once per item, and once more to find its end if
 * there is none. */
static zero_fact read_fold(reader *r, fold *join, double value)
{
    zero_fact list = read_choice(r);
    expect(r, ",");
    const char *x = r->at;
    const json_t *found = NULL;
    zero_scope scope = {.outer = r->scope};
    while (r->status == ZERO_OK && zero_scope_next(list.node, &scope)) {
        reader item = {x, x, r->end, &scope, ZERO_OK};
        zero_fact fact = read_choice(&item);
        bool is_condition = join == any || join == all || !join;
        double number =
            is_condition ? (double)zero_fact_is_true(&fact) : known_number(&item, &fact);
        if (join)
            value = join(value, number);
        else if (!found && number != 0.0)
            found = scope.node;
        r->status = item.status;
        r->at = item.at;
    }
    if (r->at == x) { /* the end of an expression whose facts are missing */
        for (int depth = 0; r->at < r->end && (depth > 0 || *r->at != ')'); r->at++)
            depth += (*r->at == '(') - (*r->at == ')');
    }
    expect(r, ")");
    return join ? number_fact(value) : node_fact(found);
}

/* After "NAME(". */
static zero_fact read_call(reader *r, const char *name, size_t n)
{
    zero_fact a, b = missing;
    char key[KEY_BYTES];
    int i = 0;
    for (int k = 0; k < ZERO_COUNT(folds); k++)
        if (is_name(name, n, folds[k].name))
            return read_fold(r, folds[k].join, folds[k].none);
    while (i < ZERO_COUNT(functions) && !is_name(name, n, functions[i].name)) i++;
    if (i == ZERO_COUNT(functions)) {
        complain(r, "there is no such function");
        return missing;
    }
    a = read_choice(r);
    if (functions[i].n == 2) {
        expect(r, ",");
        b = read_choice(r);
    }
    if (functions[i].of_one)
        a = number_fact(functions[i].of_one(known_number(r, &a)));
    else if (functions[i].of_two)
        a = number_fact(functions[i].of_two(known_number(r, &a), known_number(r, &b)));
    else if (is_name(name, n, "count"))
        a = number_fact((double)(json_array_size(a.node) + json_object_size(a.node)));
    else if (is_name(name, n, "whole"))
        a = number_fact(json_is_integer(a.node) ? a.number : NAN);
    else if (is_name(name, n, "amount"))
        a = number_fact(json_is_null(a.node)     ? 0.0
                        : json_is_number(a.node) ? a.number
                                                 : NAN);
    else if (is_name(name, n, "at")) {
        zero_print(key, "%.*s", (int)b.length, b.text ? b.text : "");
        a = node_fact(json_object_get(a.node, key));
    } else if (a.kind == ZERO_FACT_MISSING)
        a = b;
    expect(r, ")");
    return a;
}

/* ---- operators ---- */

static bool is_of_path(char c)
{
    return isalnum((unsigned char)c) || strchr("_/~.-@", c);
}

static zero_fact read_atom(reader *r)
{
    skip_blanks(r);
    const char *begin = r->at;
    if (take(r, "(")) {
        zero_fact inner = read_choice(r);
        expect(r, ")");
        return inner;
    }
    if (take(r, "!")) {
        zero_fact x = read_atom(r);
        return number_fact(!zero_fact_is_true(&x));
    }
    if (take(r, "\"")) {
        const char *quote = memchr(r->at, '"', (size_t)(r->end - r->at));
        if (!quote) complain(r, "a text has no end");
        if (!quote) return missing;
        zero_fact text = {ZERO_FACT_TEXT, 0.0, r->at, (size_t)(quote - r->at), NULL};
        r->at = quote + 1;
        return text;
    }
    if (r->at < r->end && (isdigit((unsigned char)*r->at) || *r->at == '-')) {
        char digits[KEY_BYTES], *end;
        zero_print(digits, "%.*s", (int)(r->end - r->at), r->at);
        double number = strtod(digits, &end);
        r->at += end - digits;
        if (end > digits) return number_fact(number);
        r->at++; /* a minus before something else */
        zero_fact x = read_atom(r);
        return number_fact(-known_number(r, &x));
    }
    while (r->at < r->end && *r->at && is_of_path(*r->at)) r->at++;
    size_t n = (size_t)(r->at - begin);
    if (n == 0) complain(r, "expected a fact, a number or a text");
    if (n == 0) return missing;
    if (r->at < r->end && *r->at == '(') {
        r->at++;
        zero_fact found = read_call(r, begin, n);
        const char *path = r->at;
        if (r->at == r->end || *r->at != '/') return found;
        while (r->at < r->end && is_of_path(*r->at)) r->at++;
        return node_fact(descend(found.node, path + 1, r->at, r->scope));
    }
    if (is_name(begin, n, "true")) return number_fact(1.0);
    if (is_name(begin, n, "false")) return number_fact(0.0);
    return look_up(r->scope, begin, r->at);
}

static bool are_equal(const zero_fact *a, const zero_fact *b)
{
    if (a->kind != b->kind || a->kind == ZERO_FACT_MISSING) return false;
    if (a->kind == ZERO_FACT_TREE) return json_equal((json_t *)a->node, (json_t *)b->node);
    if (a->kind == ZERO_FACT_NUMBER) return a->number == b->number;
    return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static zero_fact apply(reader *r, const char *operator, const zero_fact * a,
                       const zero_fact *b)
{
    const bool has_equal = operator[1] == '=';
    const char kind = *operator;
    if (kind == '|') return number_fact(zero_fact_is_true(a) || zero_fact_is_true(b));
    if (kind == '&') return number_fact(zero_fact_is_true(a) && zero_fact_is_true(b));
    if (kind == '=' || kind == '!') return number_fact(are_equal(a, b) == (kind == '='));
    if ((kind == '<' || kind == '>') &&
        (a->kind == ZERO_FACT_MISSING || b->kind == ZERO_FACT_MISSING))
        return number_fact(0.0);
    double x = known_number(r, a), y = known_number(r, b);
    switch (kind) {
    case '<': return number_fact(has_equal ? x <= y : x < y);
    case '>': return number_fact(has_equal ? x >= y : x > y);
    case '+': return number_fact(x + y);
    case '-': return number_fact(x - y);
    case '*': return number_fact(x * y);
    default: return number_fact(x / y);
    }
}

/* Levels from the weakest to the strongest; a comparison stands alone. */
enum { COMPARISONS = 2, LEVELS = 5 };
static const struct {
    const char *word;
    int level;
} operators[] = {{"||", 0}, {"&&", 1}, {"==", 2}, {"!=", 2}, {"<=", 2}, {">=", 2},
                 {"<", 2},  {">", 2},  {"+", 3},  {"-", 3},  {"*", 4},  {"/", 4}};

static zero_fact read_level(reader *r, int level)
{
    const int n = ZERO_COUNT(operators);
    if (level == LEVELS) return read_atom(r);
    zero_fact left = read_level(r, level + 1);
    for (;;) {
        int i = 0;
        while (i < n && (operators[i].level != level || !take(r, operators[i].word))) i++;
        if (i == n) return left;
        zero_fact right = read_level(r, level + 1);
        left = apply(r, operators[i].word, &left, &right);
        if (level == COMPARISONS) return left;
    }
}

static zero_fact read_choice(reader *r)
{
    zero_fact a = read_level(r, 0);
    if (!take(r, "?")) return a;
    zero_fact yes = read_choice(r);
    expect(r, ":");
    zero_fact no = read_choice(r);
    return zero_fact_is_true(&a) ? yes : no;
}

zero_status zero_fact_of(const char *expression, size_t n, const zero_scope *scope,
                         zero_fact *fact)
{
    reader r = {expression, expression, expression + n, scope, ZERO_OK};
    *fact = read_choice(&r);
    skip_blanks(&r);
    if (r.status == ZERO_OK && r.at < r.end) complain(&r, "expected the end");
    return r.status;
}

json_t *zero_fact_value(const zero_fact *fact)
{
    if (fact->node) return json_incref((json_t *)fact->node);
    if (fact->kind == ZERO_FACT_TEXT) return json_stringn(fact->text, fact->length);
    bool is_known = fact->kind == ZERO_FACT_NUMBER && isfinite(fact->number);
    return is_known ? json_real(fact->number) : json_null();
}

double zero_fact_number(const json_t *tree, const char *expression)
{
    zero_fact fact;
    zero_status st =
        zero_fact_of(expression, strlen(expression), &(zero_scope){.node = tree}, &fact);
    return st == ZERO_OK && fact.kind == ZERO_FACT_NUMBER ? fact.number : NAN;
}
