/* The style's colours: contrasts as WCAG 2 counts them, in light and in dark. */

#include "support/test.h"

#include "pages/page_style.h"

/* Contrast of text to its ground, and of a mark to its ground or to a neighbour: level AA. */
#define TEXT 4.5
#define MARK 3.0

/* The value of --name in the set of colours `scheme`: light is the first, dark the second. The dark
 * set leaves out what is as in the light one. */
static const char *find(const char *name, int scheme)
{
    char wanted[32];
    const char *value = NULL;
    int set = -1;
    size_t n = (size_t)snprintf(wanted, sizeof wanted, "--%s: #", name);
    for (int k = 0; zero_page_style[k]; k++) {
        if (strstr(zero_page_style[k], ":root {")) set++;
        const char *at = strstr(zero_page_style[k], wanted);
        if (at && set <= scheme && set <= 1) value = at + n;
    }
    if (!value) fail_msg("the style has no --%s", name);
    return value;
}

/* Relative luminance of "1f5fa8" or "fff". */
static double luminance(const char *hex)
{
    static const double weight[] = {0.2126, 0.7152, 0.0722};
    size_t digits = strspn(hex, "0123456789abcdef");
    double sum = 0.0;
    assert_true(digits == 3 || digits == 6);
    for (size_t k = 0; k < 3; k++) {
        char pair[3] = {hex[digits == 6 ? 2 * k : k], hex[digits == 6 ? 2 * k + 1 : k]};
        double c = (double)strtol(pair, NULL, 16) / 255.0;
        sum += weight[k] * (c <= 0.03928 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}

static void assert_contrast(const char *a, const char *b, int scheme, double least)
{
    double x = luminance(find(a, scheme)), y = luminance(find(b, scheme));
    double contrast = (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
    if (contrast < least)
        fail_msg("--%s on --%s, %s: %.2f, expected %.1f", a, b, scheme ? "dark" : "light",
                 contrast, least);
}

TEST(texts_are_legible_in_both_schemes)
{
    static const char *const texts[] = {"fg", "muted", "bad", "good", "note"};
    static const char *const kinds[] = {"forward", "backward", "wait", "all", "rest"};
    for (int scheme = 0; scheme < 2; scheme++)
        for (int k = 0; k < 5; k++) {
            char on[32];
            snprintf(on, sizeof on, "on-%s", kinds[k]);
            assert_contrast(texts[k], "bg", scheme, TEXT);
            assert_contrast(on, kinds[k], scheme, TEXT);
        }
}

TEST(marks_stand_out_from_the_ground)
{
    static const char *const kinds[] = {"forward", "backward", "wait", "all", "rest"};
    for (int scheme = 0; scheme < 2; scheme++) {
        char name[16];
        for (int k = 0; k < 5; k++) assert_contrast(kinds[k], "bg", scheme, MARK);
        for (int k = 0; k < 6; k++) {
            snprintf(name, sizeof name, "r%d", k);
            assert_contrast(name, "bg", scheme, MARK);
        }
        for (int k = 0; k < 13; k++) {
            snprintf(name, sizeof name, "c%d", k);
            assert_contrast(name, "bg", scheme, MARK);
        }
    }
}

/* The two kinds of computing, and the two of waiting, without help from hue. */
TEST(kinds_that_are_alike_differ_in_lightness)
{
    for (int scheme = 0; scheme < 2; scheme++) {
        assert_contrast("forward", "backward", scheme, MARK);
        assert_contrast("wait", "all", scheme, MARK);
    }
}
