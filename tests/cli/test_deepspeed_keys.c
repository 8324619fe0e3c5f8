/* The keys of DeepSpeed's configurations: what their rows say is so. */

#include "support/table.h"

#include "cli/deepspeed.h"
#include "cli/run_options.h"
#include "support/mentions.h"

static const zero_deepspeed_key *find(const char *path)
{
    const zero_deepspeed_key *key = zero_deepspeed_keys;
    while (key->path && strcmp(key->path, path) != 0) key++;
    return key;
}

static bool is_section(const char *rule)
{
    return strcmp(rule, "section") == 0 || strcmp(rule, "switch") == 0;
}

/* A rule is one that the program knows, and what is not taken has a reason. */
TEST(each_key_has_a_rule)
{
    for (const zero_deepspeed_key *key = zero_deepspeed_keys; key->path; key++) {
        bool says_why =
            strcmp(key->rule, "any") == 0 || strncmp(key->rule, "only ", 5) == 0;
        static const char *const kinds[] = {"number", "flag", "text", "name", "pair"};
        bool is_taken = strncmp(key->rule, "whole ", 6) == 0;
        for (size_t k = 0; k < COUNT(kinds); k++)
            is_taken = is_taken || strcmp(key->rule, kinds[k]) == 0;
        if (!says_why && !is_section(key->rule) && !is_taken)
            fail_msg("%s: no rule is called '%s'", key->path, key->rule);
        assert_int_equal(says_why, *key->reason != '\0');
    }
}

/* Members of a section are found through it, so the section must have its row. */
TEST(each_path_has_its_section)
{
    for (const zero_deepspeed_key *key = zero_deepspeed_keys; key->path; key++) {
        const char *dot = strrchr(key->path, '.');
        char section[128];
        assert_true(find(key->path) == key);
        if (!dot) continue;
        assert_true((size_t)(dot - key->path) < sizeof section);
        memcpy(section, key->path, (size_t)(dot - key->path));
        section[dot - key->path] = '\0';
        assert_non_null(find(section)->path);
        assert_true(is_section(find(section)->rule));
    }
}

/* ---- no reason says that an option is missing which exists ---- */

/* True if each part of the option's name is a part of the key's last member, as "offload" is of
 * "offload_optimizer". */
static bool has_the_words(const char *path, const char *option)
{
    const char *dot = strrchr(path, '.'), *key = dot ? dot + 1 : path;
    for (const char *word = option, *end; word; word = *end ? end + 1 : NULL) {
        end = word + strcspn(word, "-");
        size_t length = (size_t)(end - word);
        const char *at = key;
        while (*at && !(strcspn(at, "_") == length && memcmp(at, word, length) == 0)) {
            at += strcspn(at, "_");
            at += *at == '_';
        }
        if (!*at) return false;
    }
    return true;
}

/* The option is about something else. */
static bool is_by_chance(const char *path, const char *option)
{
    bool found = false;
    for (test_table t = table_open("cli/deepspeed_by_chance.txt"); table_next(&t);)
        if (strcmp(t.field[0], path) == 0 && strcmp(t.field[1], option) == 0) found = true;
    return found;
}

/* A key that shares its words with an option is taken, or its reason names the option. */
TEST(a_key_with_the_words_of_an_option_is_taken_or_names_it)
{
    for (const zero_deepspeed_key *key = zero_deepspeed_keys; key->path; key++) {
        if (!*key->reason) continue; /* taken */
        mentions_exist(key->path, key->reason);
        assert_null(strstr(key->reason, "this version"));
        for (const zero_option *o = zero_run_options; o->name; o++) {
            char mention[64];
            snprintf(mention, sizeof mention, "--%s", o->name);
            if (has_the_words(key->path, o->name) && !strstr(key->reason, mention) &&
                !is_by_chance(key->path, o->name))
                fail_msg("%s: --%s exists, and the reason is '%s'", key->path, o->name,
                         key->reason);
        }
    }
}
