/* Specs: names for values of a tree, which become objects, or rows of CSV (csv.h). */

#include "facts/facts.h"

bool zero_spec_next(const char **spec, zero_spec_part *part)
{
    const char *at = *spec + strspn(*spec, " "), *end = at + strcspn(at, ";"), *x;
    const size_t n = strcspn(at, " ?=;");
    if (!*at) return false;
    *part = (zero_spec_part){.text = *spec, .is_flag = at[n] == '?'};
    zero_print(part->name, "%.*s", (int)n, at);
    x = memchr(at, '=', (size_t)(end - at));
    part->x = x ? x + 1 : at;
    part->length = (size_t)(end - part->x);
    *spec = end + (*end == ';');
    return true;
}

json_t *zero_spec_value(const zero_spec_part *part, const zero_scope *scope)
{
    zero_fact fact;
    if (zero_fact_of(part->x, part->length, scope, &fact) != ZERO_OK) return json_null();
    return part->is_flag ? json_boolean(zero_fact_is_true(&fact)) : zero_fact_value(&fact);
}

json_t *zero_facts_pick(const zero_scope *scope, const char *spec)
{
    zero_spec_part part;
    json_t *all = json_object();
    while (zero_spec_next(&spec, &part))
        json_object_set_new(all, part.name, zero_spec_value(&part, scope));
    return all;
}

json_t *zero_facts_each(const json_t *tree, const char *path, const char *spec)
{
    const zero_scope outer = {.node = tree};
    zero_scope scope = {.outer = &outer};
    json_t *all = json_array();
    while (zero_scope_next(zero_fact_at(tree, path), &scope))
        json_array_append_new(all, zero_facts_pick(&scope, spec));
    return all;
}
