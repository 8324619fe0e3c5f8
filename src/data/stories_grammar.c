#include "data/stories_grammar.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/stories_words.h"

static bool same(zero_story_text a, zero_story_text b)
{
    return a.len == b.len && memcmp(a.at, b.at, (size_t)a.len) == 0;
}

static zero_story_text span(const char *text)
{
    return (zero_story_text){text, (int)strlen(text)};
}

/* Cuts "a|b|c" at the bars; returns the number of parts. */
static int split(zero_story_text text, zero_story_text parts[ZERO_STORY_FORMS])
{
    int n = 0;
    const char *end = text.at + text.len;
    for (const char *at = text.at; at <= end; n++) {
        assert(n < ZERO_STORY_FORMS);
        const char *bar = memchr(at, '|', (size_t)(end - at));
        if (!bar) bar = end;
        parts[n] = (zero_story_text){at, (int)(bar - at)};
        at = bar + 1;
    }
    return n;
}

static int find_option(const zero_story_node *node, zero_story_text value)
{
    for (int i = 0; i < node->n_options; i++)
        if (same(node->options[i].forms[0], value)) return i;
    assert(false && "a condition names a value that the parent does not have");
    return -1;
}

static int find_variable(const zero_grammar *g, zero_story_text name)
{
    for (int i = 0; i < g->n; i++) {
        zero_story_text have = span(g->nodes[i].name);
        if (have.len == name.len && have.at[0] == tolower((unsigned char)name.at[0]) &&
            memcmp(have.at + 1, name.at + 1, (size_t)name.len - 1) == 0)
            return i;
    }
    assert(false && "a template or a parent names a variable that does not exist");
    return -1;
}

/* "[weight*][value>]form|form|..." */
static void read_option(const zero_grammar *g, const zero_story_node *node,
                        const char *text, zero_story_option *option)
{
    *option = (zero_story_option){.weight = 1, .when = -1};
    if (isdigit((unsigned char)text[0])) {
        char *end;
        option->weight = (int)strtol(text, &end, 10);
        assert(*end == '*' && option->weight > 0);
        text = end + 1;
    }
    const char *mark = strchr(text, '>');
    if (mark) {
        assert(node->parent >= 0);
        option->when = find_option(&g->nodes[node->parent],
                                   (zero_story_text){text, (int)(mark - text)});
        text = mark + 1;
    }
    int n_forms = split(span(text), option->forms);
    assert(n_forms == node->n_forms);
    (void)n_forms;
}

static void read_table(zero_grammar *g, const zero_story_variable *table)
{
    for (; table->name; table++) {
        assert(g->n < ZERO_STORY_VARIABLES);
        zero_story_node *node = &g->nodes[g->n];
        zero_story_text names[ZERO_STORY_FORMS];
        *node = (zero_story_node){.name = table->name, .form_names = table->forms};
        node->n_forms = split(span(table->forms), names);
        node->parent = table->parent ? find_variable(g, span(table->parent)) : -1;
        for (const char *const *text = table->options; *text; text++) {
            assert(node->n_options < ZERO_STORY_OPTIONS);
            read_option(g, node, *text, &node->options[node->n_options++]);
        }
        g->n++;
    }
}

zero_status zero_grammar_create(zero_grammar **grammar)
{
    zero_grammar *g = malloc(sizeof *g);
    if (!g)
        return zero_fail(ZERO_ERR_NOMEM,
                         "no memory for the grammar of the stories (%zu bytes)", sizeof *g);
    g->n = 0;
    read_table(g, zero_story_cast);
    g->n_cast = g->n;
    read_table(g, zero_story_lines);
    *grammar = g;
    return ZERO_OK;
}

static bool fits(const zero_story_option *option, int parent)
{
    return option->when < 0 || option->when == parent;
}

double zero_grammar_probability(const zero_grammar *g, int variable, int option, int parent)
{
    const zero_story_node *node = &g->nodes[variable];
    int total = 0;
    for (int i = 0; i < node->n_options; i++)
        if (fits(&node->options[i], parent)) total += node->options[i].weight;
    assert(total > 0);
    if (!fits(&node->options[option], parent)) return 0.0;
    return (double)node->options[option].weight / total;
}

static int find_form(const zero_story_node *node, zero_story_text name)
{
    zero_story_text names[ZERO_STORY_FORMS];
    int n = split(span(node->form_names), names);
    for (int i = 0; i < n; i++)
        if (same(names[i], name)) return i;
    assert(false && "a template names a form that the variable does not have");
    return -1;
}

const char *zero_grammar_slot(const zero_grammar *g, const char *at, zero_slot *slot)
{
    const char *name = at + 1, *end = strchr(name, '}');
    assert(*at == '{' && end);
    slot->capital = isupper((unsigned char)*name) != 0;
    slot->article = name[1] == ' ';
    if (slot->article) name += 2;
    const char *dot = memchr(name, '.', (size_t)(end - name));
    slot->variable =
        find_variable(g, (zero_story_text){name, (int)((dot ? dot : end) - name)});
    slot->form = 0;
    if (dot)
        slot->form = find_form(&g->nodes[slot->variable],
                               (zero_story_text){dot + 1, (int)(end - dot - 1)});
    return end + 1;
}

uint64_t zero_grammar_variables(const zero_grammar *g, zero_story_text text)
{
    uint64_t set = 0;
    for (const char *at = text.at, *end = text.at + text.len; at < end;) {
        zero_slot slot;
        if (*at != '{') {
            at++;
            continue;
        }
        at = zero_grammar_slot(g, at, &slot);
        set |= UINT64_C(1) << slot.variable;
    }
    return set;
}

static int append(char *out, int room, int used, zero_story_text text)
{
    assert(used + text.len <= room);
    (void)room;
    memcpy(out + used, text.at, (size_t)text.len);
    return used + text.len;
}

static int fill_slot(const zero_grammar *g, zero_slot slot, const int *options, char *out,
                     int room)
{
    int used = 0;
    zero_story_text word =
        g->nodes[slot.variable].options[options[slot.variable]].forms[slot.form];
    if (slot.article)
        used = append(out, room, 0, span(strchr("aeiou", *word.at) ? "an " : "a "));
    used = append(out, room, used, word);
    if (slot.capital) out[0] = (char)toupper((unsigned char)out[0]);
    return used;
}

int zero_grammar_expand(const zero_grammar *g, zero_story_text text, const int *options,
                        char *out, int room)
{
    int used = 0;
    for (const char *at = text.at, *end = text.at + text.len; at < end;) {
        zero_slot slot;
        if (*at != '{') {
            used = append(out, room, used, (zero_story_text){at++, 1});
            continue;
        }
        at = zero_grammar_slot(g, at, &slot);
        used += fill_slot(g, slot, options, out + used, room - used);
    }
    return used;
}
