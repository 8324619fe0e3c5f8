/* well_formed.h - whether a page is well-formed XML: what `xmllint --noout` says, without it. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define WELL_DEPTH 64
#define WELL_NAME  32

typedef struct {
    const char *at;
    char why[128]; /* empty: well-formed */
    char open[WELL_DEPTH][WELL_NAME];
    int depth;
} well_state;

static inline bool well_fails(well_state *s, const char *why)
{
    if (!s->why[0]) snprintf(s->why, sizeof s->why, "%s at '%.60s'", why, s->at);
    return false;
}

/* "&amp;" and its four siblings, and numbers. */
static inline bool well_reference(well_state *s)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (int k = 0; k < 5; k++)
        if (strncmp(s->at, known[k], strlen(known[k])) == 0) {
            s->at += strlen(known[k]);
            return true;
        }
    size_t digits = s->at[1] == '#' ? strspn(s->at + 2, "0123456789") : 0;
    if (digits == 0 || s->at[2 + digits] != ';') return well_fails(s, "a bad reference");
    s->at += digits + 3;
    return true;
}

/* Text up to `end`; it has no '<' and no control character. */
static inline bool well_text(well_state *s, char end)
{
    while (*s->at && *s->at != end) {
        if (*s->at == '&') {
            if (!well_reference(s)) return false;
            continue;
        }
        if (*s->at == '<') return well_fails(s, "'<' in a text");
        if ((unsigned char)*s->at < 0x20 && *s->at != '\n')
            return well_fails(s, "a control character");
        s->at++;
    }
    return true;
}

static inline bool well_name(well_state *s, char name[WELL_NAME])
{
    size_t n = 0;
    while (isalnum((unsigned char)s->at[n]) || s->at[n] == '-' || s->at[n] == ':') n++;
    if (n == 0 || n >= WELL_NAME) return well_fails(s, "a name is missing");
    memcpy(name, s->at, n);
    name[n] = '\0';
    s->at += n;
    return true;
}

static inline bool well_attributes(well_state *s)
{
    char seen[16][WELL_NAME];
    int n = 0;
    for (; s->at += strspn(s->at, " \n"), *s->at != '>' && *s->at != '/'; n++) {
        if (n == 16 || !well_name(s, seen[n])) return well_fails(s, "a bad attribute");
        for (int k = 0; k < n; k++)
            if (strcmp(seen[k], seen[n]) == 0) return well_fails(s, "an attribute twice");
        if (strncmp(s->at, "=\"", 2) != 0) return well_fails(s, "no =\"");
        s->at += 2;
        if (!well_text(s, '"')) return false;
        if (*s->at != '"') return well_fails(s, "an open attribute");
        s->at++;
    }
    return true;
}

static inline bool well_end_tag(well_state *s)
{
    char name[WELL_NAME];
    s->at += 2;
    if (!well_name(s, name)) return false;
    if (s->depth == 0 || strcmp(s->open[s->depth - 1], name) != 0)
        return well_fails(s, "an end without its beginning");
    if (*s->at != '>') return well_fails(s, "a bad end");
    s->depth--;
    s->at++;
    return true;
}

static inline bool well_tag(well_state *s)
{
    if (s->at[1] == '/') return well_end_tag(s);
    if (s->depth == WELL_DEPTH) return well_fails(s, "too deep");
    s->at++;
    if (!well_name(s, s->open[s->depth]) || !well_attributes(s)) return false;
    if (*s->at == '/') {
        s->at++;
        if (*s->at != '>') return well_fails(s, "a bad empty element");
    } else {
        s->depth++;
    }
    s->at++;
    return true;
}

/* Empty if the page is well-formed; else why it is not. */
static inline const char *well_formed(const char *page, well_state *s)
{
    static const char begin[] = "<!DOCTYPE html>\n";
    *s = (well_state){.at = page};
    if (strncmp(page, begin, sizeof begin - 1) != 0) {
        well_fails(s, "no document type");
        return s->why;
    }
    s->at += sizeof begin - 1;
    while (*s->at) {
        if (*s->at == '<' ? !well_tag(s) : !well_text(s, '<')) return s->why;
        if (s->depth == 0) break;
    }
    s->at += strspn(s->at, "\n");
    if (s->depth > 0)
        well_fails(s, "an element is open");
    else if (*s->at)
        well_fails(s, "text after the end");
    return s->why;
}
