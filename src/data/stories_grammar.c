#include "data/stories_grammar.h"

#include <ctype.h>

#include "base/embedded.h"

extern const zero_embedded zero_story_files[]; /* stories.txt */

static bool same(zero_story_text a, zero_story_text b)
{
    return a.len == b.len && memcmp(a.at, b.at, (size_t)a.len) == 0;
}

static zero_story_text between(const char *at, const char *end)
{
    return (zero_story_text){at, (int)(end - at)};
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
        parts[n] = between(at, bar);
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
        zero_story_text have = g->nodes[i].name;
        if (have.len == name.len && have.at[0] == tolower((unsigned char)name.at[0]) &&
            memcmp(have.at + 1, name.at + 1, (size_t)name.len - 1) == 0)
            return i;
    }
    assert(false && "a template or a parent names a variable that does not exist");
    return -1;
}

/* "[weight*][value>]form|form|..." */
static void read_option(const zero_grammar *g, zero_story_node *node, zero_story_text text)
{
    assert(node->n_options < ZERO_STORY_OPTIONS);
    zero_story_option *option = &node->options[node->n_options++];
    *option = (zero_story_option){.weight = 1, .when = -1};
    if (isdigit((unsigned char)text.at[0])) {
        char *end;
        option->weight = (int)strtol(text.at, &end, 10);
        assert(*end == '*' && option->weight > 0);
        text = between(end + 1, text.at + text.len);
    }
    const char *mark = memchr(text.at, '>', (size_t)text.len);
    if (mark) {
        assert(node->parent >= 0);
        option->when = find_option(&g->nodes[node->parent], between(text.at, mark));
        text = between(mark + 1, text.at + text.len);
    }
    int n_forms = split(text, option->forms);
    assert(n_forms == node->n_forms);
    (void)n_forms;
}

zero_status zero_grammar_create(zero_grammar **grammar)
{
    const size_t size = strlen(zero_story_files[0].text) + 1;
    zero_grammar *g = calloc(1, sizeof *g + size);
    ZERO_FAIL_IF(!g, ZERO_ERR_NOMEM, "no memory for the grammar of the stories");
    memcpy(g->text, zero_story_files[0].text, size);
    for (char *line = g->text, *next; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = '\0';
        const char *at = line + strspn(line, " "), *end;
        if (zero_same_text(at, "[lines]")) g->n_cast = g->n;
        if (strchr("#[", *at)) continue; /* an empty line, too */
        if (at == line) {
            /* "name[ < parent]: form|form|...[ = other]" */
            const char *less = strstr(at, " < "), *colon = strstr(at, ": "),
                       *other = strstr(at, " = "), *stop = at + strlen(at);
            assert(g->n < ZERO_STORY_VARIABLES && colon);
            zero_story_node *node = &g->nodes[g->n];
            node->n_options = 0;
            node->name = between(at, less ? less : colon);
            node->n_forms =
                split(between(colon + 2, other ? other : stop), node->form_names);
            node->parent = less ? find_variable(g, between(less + 3, colon)) : -1;
            if (other) {
                const zero_story_node *from =
                    &g->nodes[find_variable(g, between(other + 3, stop))];
                node->n_options = from->n_options;
                memcpy(node->options, from->options, sizeof node->options);
            }
            g->n++;
            continue;
        }
        for (; (end = strstr(at, "; ")); at = end + 2)
            read_option(g, &g->nodes[g->n - 1], between(at, end));
        read_option(g, &g->nodes[g->n - 1], between(at, at + strlen(at)));
    }
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
    for (int i = 0; i < node->n_forms; i++)
        if (same(node->form_names[i], name)) return i;
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
    slot->variable = find_variable(g, between(name, dot ? dot : end));
    slot->form = dot ? find_form(&g->nodes[slot->variable], between(dot + 1, end)) : 0;
    return end + 1;
}

static int append(char *out, ZERO_UNUSED int room, int used, zero_story_text text)
{
    assert(used + text.len <= room);
    memcpy(out + used, text.at, (size_t)text.len);
    return used + text.len;
}

int zero_grammar_expand(const zero_grammar *g, zero_story_text text, const int *options,
                        char *out, int room, uint64_t *named)
{
    int used = 0;
    for (const char *at = text.at, *end = text.at + text.len; at < end;) {
        const int begin = used;
        zero_slot slot = {.variable = -1};
        zero_story_text word = {at, 1};
        at = *at == '{' ? zero_grammar_slot(g, at, &slot) : at + 1;
        if (named && slot.variable >= 0) *named |= UINT64_C(1) << slot.variable;
        if (!options) continue;
        if (slot.variable >= 0)
            word = g->nodes[slot.variable].options[options[slot.variable]].forms[slot.form];
        if (slot.article)
            used = append(out, room, used,
                          strchr("aeiou", *word.at) ? (zero_story_text){"an ", 3}
                                                    : (zero_story_text){"a ", 2});
        used = append(out, room, used, word);
        if (slot.capital) out[begin] = (char)toupper((unsigned char)out[begin]);
    }
    return used;
}
