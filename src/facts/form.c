#include "facts/form.h"

#include <ctype.h>

#include "base/number.h"

#define FIELD_BYTES 1024
#define WIDTH       79 /* columns of a line in {wrap N} without another width */

/* A section being printed. */
typedef struct {
    const char *forms, *section;
    const char *begin, *at, *end; /* of the section's text */
    const zero_scope *scope;
    zero_put_text *put;
    FILE *out;
} printer;

/* What {...} says. */
typedef struct {
    const char *text; /* inside the braces */
    size_t length;
} hole;

static zero_status fail(const printer *p, const char *at, const char *what)
{
    int line = 1;
    for (const char *c = p->begin; c < at && c < p->end; c++) line += *c == '\n';
    return zero_fail(ZERO_ERR_FORMAT, "form \"%s\", line %d: %s", p->section, line, what);
}

/* An expression's message, with the place of its hole. */
static zero_status evaluate(const printer *p, hole h, zero_fact *fact)
{
    zero_status st = zero_fact_of(h.text, h.length, p->scope, fact);
    char what[FIELD_BYTES];
    if (st == ZERO_OK) return st;
    zero_failure kept = zero_failure_keep(st);
    zero_print(what, "%s", kept.text);
    return fail(p, h.text, what);
}

/* True if the hole begins with the word; *rest is what follows it. */
static bool is_word(hole h, const char *word, hole *rest)
{
    size_t n = strlen(word);
    if (h.length < n || strncmp(h.text, word, n) != 0) return false;
    if (h.length > n && h.text[n] != ' ') return false;
    size_t skipped = h.length > n ? n + 1 : n;
    *rest = (hole){h.text + skipped, h.length - skipped};
    return true;
}

static bool is_control(hole h)
{
    static const char *const words[] = {"if",   "elif", "else", "end",  "each", "with",
                                        "show", "wrap", "pad",  "trim", "let"};
    hole rest;
    for (int i = 0; i < ZERO_COUNT(words); i++)
        if (is_word(h, words[i], &rest)) return true;
    return false;
}

/* ---- values ---- */

/* Of ">20" 20, of "<20" -20, as printf() has it; 0 of nothing. */
static zero_status find_width(const printer *p, hole h, int *width)
{
    zero_fact fact = {0};
    if (h.length > 0) ZERO_TRY(evaluate(p, (hole){h.text + 1, h.length - 1}, &fact));
    *width = (int)fact.number * (h.length > 0 && *h.text == '<' ? -1 : 1);
    return ZERO_OK;
}

static zero_status print_value(const printer *p, hole h)
{
    /* The last ':' outside of quotes and parentheses that belongs to no '?' divides
     * expression and unit. */
    size_t n = h.length;
    int depth = 0, choices = 0;
    bool quoted = false;
    for (size_t i = 0; i < h.length; i++) {
        char c = h.text[i];
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        depth += (c == '(') - (c == ')');
        if (depth > 0) continue;
        if (c == '?') choices++;
        if (c == ':' && choices-- == 0) n = i;
    }
    char unit[80] = "", text[FIELD_BYTES];
    zero_fact fact, named;
    ZERO_TRY(evaluate(p, (hole){h.text, n}, &fact));
    if (fact.kind == ZERO_FACT_MISSING) {
        zero_print(text, "there is no fact \"%.*s\"", (int)n, h.text);
        return fail(p, h.text, text);
    }
    if (n < h.length) zero_print(unit, "%.*s", (int)(h.length - n - 1), h.text + n + 1);
    size_t side = strcspn(unit, "<>");
    int width;
    ZERO_TRY(find_width(p, (hole){unit + side, strlen(unit + side)}, &width));
    unit[side] = '\0';
    if (unit[0] == '=') {
        ZERO_TRY(evaluate(p, (hole){unit + 1, strlen(unit + 1)}, &named));
        zero_print(unit, "%.*s", (int)named.length, named.text ? named.text : "");
    }
    bool is_known = zero_unit_write(&fact, unit, text, sizeof text);
    if (!is_known) return fail(p, h.text, "there is no such unit");
    const bool is_text = fact.kind == ZERO_FACT_TEXT;
    const int length = (int)(is_text ? fact.length : strlen(text));
    const int pad = abs(width) > length ? abs(width) - length : 0;
    char *whole = is_text && p->put ? strndup(fact.text, fact.length) : NULL;
    ZERO_FAIL_IF(is_text && p->put && !whole, ZERO_ERR_NOMEM,
                 "no memory for %d bytes of text", length);
    fprintf(p->out, "%*s", width > 0 ? pad : 0, "");
    if (whole)
        p->put(whole, p->out);
    else
        fwrite(is_text ? fact.text : text, 1, (size_t)length, p->out);
    fprintf(p->out, "%*s", width < 0 ? pad : 0, "");
    free(whole);
    return ZERO_OK;
}

/* ---- text and words ---- */

/* The hole at p->at, whose brace it stands on; p->at is then after it. A word that has a
 * line for itself takes the line away. */
static zero_status read_hole(printer *p, hole *h)
{
    const char *open = p->at, *close = open;
    bool quoted = false;
    while (++close < p->end && (quoted || *close != '}')) quoted ^= *close == '"';
    if (close >= p->end) return fail(p, open, "a brace has no end");
    *h = (hole){open + 1, (size_t)(close - open - 1)};
    p->at = close + 1;
    if (!is_control(*h)) return ZERO_OK;
    const char *before = open;
    while (before > p->begin && (before[-1] == ' ')) before--;
    bool is_alone =
        (before == p->begin || before[-1] == '\n') && (p->at == p->end || *p->at == '\n');
    if (is_alone && p->at < p->end) p->at++;
    return ZERO_OK;
}

/* Prints up to the next hole, or to the section's end. `is_shown`: else it is passed
 * over. */
static void print_plain(printer *p, bool is_shown)
{
    while (p->at < p->end) {
        const char *c = p->at;
        bool is_brace = *c == '{' && c + 1 < p->end && c[1] == '{';
        if (*c == '{' && !is_brace) return;
        p->at += is_brace ? 2 : 1;
        if (*c == '\\' && p->at < p->end && *p->at == '\n') {
            for (p->at++; p->at < p->end && *p->at == ' ';) p->at++;
            continue;
        }
        if (*c == ' ') { /* blanks before a word that has the line for itself */
            const char *next = c;
            while (next < p->end && *next == ' ') next++;
            printer ahead = *p;
            hole h;
            ahead.at = next;
            bool is_first = c == p->begin || c[-1] == '\n';
            if (is_first && next < p->end && *next == '{' && next[1] != '{' &&
                read_hole(&ahead, &h) == ZERO_OK && is_control(h) && ahead.at[-1] == '\n') {
                p->at = next;
                continue;
            }
        }
        if (is_shown) fputc(*c, p->out);
    }
}

static zero_status print_body(printer *p, bool is_shown, hole *last);

/* After {if x}: up to its {end}. */
static zero_status print_if(printer *p, bool is_shown, hole condition)
{
    bool is_done = !is_shown;
    for (;;) {
        zero_fact fact = {.kind = ZERO_FACT_NUMBER, .number = 1.0};
        hole last;
        if (!is_done && condition.text) ZERO_TRY(evaluate(p, condition, &fact));
        bool is_chosen = !is_done && zero_fact_is_true(&fact);
        is_done = is_done || is_chosen;
        ZERO_TRY(print_body(p, is_chosen, &last));
        if (is_word(last, "end", &condition)) return ZERO_OK;
        if (is_word(last, "else", &condition))
            condition.text = NULL;
        else if (!is_word(last, "elif", &condition))
            return fail(p, p->at, "{if} has no {end}");
    }
}

/* After {each path} or {with path}: up to its {end}. */
static zero_status print_items(printer *p, bool is_shown, hole path, bool is_each)
{
    zero_fact list = {0};
    const zero_scope *outer = p->scope;
    const char *body = p->at;
    hole last, rest;
    if (is_shown) ZERO_TRY(evaluate(p, path, &list));
    zero_scope scope = {.outer = outer};
    if (!is_each) scope.node = list.node;
    for (bool is_first = true;; is_first = false) {
        bool has_item = is_each ? zero_scope_next(list.node, &scope)
                                : is_first && list.kind == ZERO_FACT_TREE;
        if (!has_item && !is_first) return ZERO_OK;
        p->at = body;
        p->scope = &scope;
        zero_status st = print_body(p, is_shown && has_item, &last);
        p->scope = outer;
        ZERO_TRY(st);
        if (!is_word(last, "end", &rest))
            return fail(p, body, "{each} or {with} has no {end}");
    }
}

/* Breaks lines between words before they have more than `width` columns; what follows of a
 * line begins after `indent` blanks. */
static void print_broken(const char *text, int indent, int width, FILE *out)
{
    for (int column = 0; *text;) {
        int gap = (int)strspn(text, " "), word = (int)strcspn(text + gap, " \n");
        if (column > indent && column + gap + word > width) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            text += gap;
            gap = 0;
        }
        column += fprintf(out, "%.*s", gap + word, text);
        text += gap + word;
        if (*text != '\n') continue;
        fputc(*text++, out);
        column = 0;
    }
}

/* Leaves out blanks at the ends of lines. */
static void print_trimmed(const char *text, FILE *out)
{
    while (*text) {
        int line = (int)strcspn(text, "\n"), n = line;
        while (n > 0 && text[n - 1] == ' ') n--;
        fprintf(out, "%.*s%s", n, text, text[line] ? "\n" : "");
        text += line + (text[line] == '\n');
    }
}

/* After {wrap N}, {wrap N W}, {pad <N}, {pad >N} or {trim}, whose first letter is `how`: up
 * to its {end}. */
static zero_status print_shaped(printer *p, bool is_shown, char how, hole size)
{
    char *text = NULL;
    size_t bytes;
    int width = 0;
    hole last, rest;
    FILE *out = p->out;
    if (is_shown && how == 'p') ZERO_TRY(find_width(p, size, &width));
    p->out = open_memstream(&text, &bytes);
    ZERO_FAIL_IF(!p->out, ZERO_ERR_NOMEM, "no memory for lines of text");
    zero_status st = print_body(p, is_shown, &last);
    if (st == ZERO_OK && !is_word(last, "end", &rest))
        st = fail(p, p->at, "{wrap}, {pad} or {trim} has no {end}");
    fclose(p->out);
    p->out = out;
    char *more = NULL;
    const long indent = how == 'w' ? strtol(size.text, &more, 10) : 0,
               columns = how == 'w' ? strtol(more, NULL, 10) : 0;
    if (st == ZERO_OK && how == 'w')
        print_broken(text, (int)indent, columns > 0 ? (int)columns : WIDTH, out);
    if (st == ZERO_OK && how == 't') print_trimmed(text, out);
    if (st == ZERO_OK && how == 'p') fprintf(out, "%*s", width, text);
    free(text);
    return st;
}

static zero_status print_section(const printer *from, const char *name, size_t n);

/* After {let NAME = x}. */
static zero_status bind(printer *p, hole h, zero_scope *names)
{
    zero_fact fact;
    char name[80];
    size_t n = strcspn(h.text, " "), skipped = n + strlen(" = ");
    if (skipped >= h.length || h.text[n + 1] != '=')
        return fail(p, h.text, "expected {let NAME = x}");
    ZERO_TRY(evaluate(p, (hole){h.text + skipped, h.length - skipped}, &fact));
    zero_print(name, "%.*s", (int)n, h.text);
    json_t *all = names->node ? (json_t *)names->node : json_object();
    names->node = all;
    p->scope = names;
    ZERO_FAIL_IF(json_object_set_new(all, name, zero_fact_value(&fact)) != 0,
                 ZERO_ERR_NOMEM, "no memory for the name of a value");
    return ZERO_OK;
}

/* `names`: what {let} binds. */
static zero_status print_parts(printer *p, bool is_shown, hole *last, zero_scope *names)
{
    hole h, rest;
    for (;;) {
        print_plain(p, is_shown);
        *last = (hole){"", 0};
        if (p->at >= p->end) return ZERO_OK;
        ZERO_TRY(read_hole(p, &h));
        if (is_word(h, "if", &rest))
            ZERO_TRY(print_if(p, is_shown, rest));
        else if (is_word(h, "each", &rest))
            ZERO_TRY(print_items(p, is_shown, rest, true));
        else if (is_word(h, "with", &rest))
            ZERO_TRY(print_items(p, is_shown, rest, false));
        else if (is_word(h, "wrap", &rest) || is_word(h, "pad", &rest) ||
                 is_word(h, "trim", &rest))
            ZERO_TRY(print_shaped(p, is_shown, *h.text, rest));
        else if (is_word(h, "end", &rest) || is_word(h, "else", &rest) ||
                 is_word(h, "elif", &rest)) {
            *last = h;
            return ZERO_OK;
        } else if (!is_shown)
            continue;
        else if (is_word(h, "show", &rest))
            ZERO_TRY(print_section(p, rest.text, rest.length));
        else if (is_word(h, "let", &rest))
            ZERO_TRY(bind(p, rest, names));
        else
            ZERO_TRY(print_value(p, h));
    }
}

/* Prints up to a word that ends a body, which is *last, or to the section's end: then
 * last->text is NULL. */
static zero_status print_body(printer *p, bool is_shown, hole *last)
{
    zero_scope names = {.outer = p->scope, .is_bound = true};
    zero_status st = print_parts(p, is_shown, last, &names);
    p->scope = names.outer;
    json_decref((json_t *)names.node);
    return st;
}

/* ---- sections ---- */

static zero_status print_whole(printer *p)
{
    hole last;
    ZERO_TRY(print_body(p, true, &last));
    return last.length > 0 ? fail(p, p->at, "a word ends what nothing began") : ZERO_OK;
}

static zero_status print_section(const printer *from, const char *name, size_t n)
{
    static const char mark[] = "=== ";
    for (const char *line = from->forms; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, mark, strlen(mark)) != 0) continue;
        const char *found = line + strlen(mark), *end = strchr(found, '\n');
        if (!end || (size_t)(end - found) != n || strncmp(found, name, n) != 0) continue;
        char section[80];
        zero_print(section, "%.*s", (int)n, name);
        printer p = *from;
        p.section = section;
        p.begin = p.at = end + 1;
        const char *next = strstr(end, "\n=== ");
        p.end = next ? next + 1 : p.begin + strlen(p.begin);
        return print_whole(&p);
    }
    return zero_fail(ZERO_ERR_FORMAT, "there is no form \"%.*s\"", (int)n, name);
}

zero_status zero_form_print(const char *forms, const char *section, const json_t *tree,
                            zero_put_text *put, FILE *out)
{
    zero_scope scope = {.node = tree};
    printer p = {
        .forms = forms, .section = section, .scope = &scope, .put = put, .out = out};
    return print_section(&p, section, strlen(section));
}

zero_status zero_form_text(const char *forms, const char *section, const json_t *tree,
                           zero_put_text *put, char **text)
{
    size_t n;
    *text = NULL;
    FILE *out = open_memstream(text, &n);
    ZERO_FAIL_IF(!out, ZERO_ERR_NOMEM, "no memory for a text");
    zero_status st = zero_form_print(forms, section, tree, put, out);
    fclose(out);
    return st;
}

zero_status zero_form_print_text(const char *name, const char *text,
                                 const zero_scope *scope, zero_put_text *put, FILE *out)
{
    printer p = {.section = name,
                 .begin = text,
                 .at = text,
                 .end = text + strlen(text),
                 .scope = scope,
                 .put = put,
                 .out = out};
    return print_whole(&p);
}
