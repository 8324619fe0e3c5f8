/* Axes, thinning, curves, and the one way of texts into the page. */
#include <float.h>

#include "support/test.h"

#include "pages/escape.h"
#include "pages/page_kind.h"
#include "pages/page_parts.h"
#include "pages/svg_axis.h"
#include "support/within.h"

#define ROOM 65536

/* ---- the escaper ---- */

static void assert_escaped(const char *text, const char *expected)
{
    char shown[512] = "";
    FILE *out = fmemopen(shown, sizeof shown, "w");
    assert_non_null(out);
    zero_escape(text, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(shown, expected);
}

TEST(texts_from_outside_are_shown_as_they_are)
{
    assert_escaped("plain, ä, 漢", "plain, ä, 漢");
    assert_escaped("<b>\"&'.jsonl", "&lt;b&gt;&quot;&amp;&#39;.jsonl");
    assert_escaped("&amp;", "&amp;amp;");
    assert_escaped("]]><script>", "]]&gt;&lt;script&gt;");
    assert_escaped("", "");
}

TEST(what_cannot_be_shown_is_shown_by_number)
{
    assert_escaped("a\x01\x1b[2J\n", "a\\u{1}\\u{1B}[2J\\u{A}");
    assert_escaped("\xff\xc3", "\\x{FF}\\x{C3}");
    assert_escaped("\xed\xa0\x80", "\\x{ED}\\x{A0}\\x{80}"); /* half of a surrogate pair */
    assert_escaped("\u202egnp", "\\u{202E}gnp");
    assert_escaped("\xef\xbf\xbe", "\\u{FFFE}");
    assert_escaped("\xf0\x9f\xbf\xbf", "\\u{1FFFF}");
}

TEST(no_text_names_a_network)
{
    assert_escaped("http://x", "&#104;ttp://x");
    assert_escaped("HTTPS://x", "&#72;TTPS://x");
    assert_escaped("htt", "htt");
}

/* ---- axes ---- */

static bool is_round(double step)
{
    double digit = step / pow(10.0, floor(log10(step) + 1e-9));
    return fabs(digit - 1.0) < 1e-6 || fabs(digit - 2.0) < 1e-6 || fabs(digit - 5.0) < 1e-6;
}

static void assert_axis(zero_axis_kind kind, double least, double most)
{
    double tick[ZERO_AXIS_TICKS];
    zero_axis axis = zero_axis_make(kind, least, most, 6, 100.0, 10.0);
    int n = zero_axis_ticks(&axis, tick);
    assert_true(isfinite(axis.least) && isfinite(axis.most) && axis.least < axis.most);
    assert_within(n, 1, ZERO_AXIS_TICKS);
    if (axis.kind != ZERO_AXIS_LOG) assert_true(is_round(axis.step));
    for (int k = 0; k < n; k++) {
        char text[ZERO_AXIS_LABEL];
        double at = zero_axis_at(&axis, tick[k]);
        assert_true(at >= 10.0 - 1e-9 && at <= 100.0 + 1e-9);
        assert_true(k == 0 || tick[k] > tick[k - 1]);
        zero_axis_label(&axis, tick[k], text);
        assert_within(strlen(text), 1, 12);
    }
}

TEST(axes_have_round_ticks_for_any_data)
{
    static const double values[] = {0.0,     1.0,       -1.0,   5.8,     6.3,     1e-9,
                                    -1e-9,   1e15,      -3e200, 1e-300,  DBL_MAX, -DBL_MAX,
                                    DBL_MIN, 12345.678, NAN,    INFINITY};
    int n = COUNT(values);
    for (int kind = ZERO_AXIS_AROUND; kind <= ZERO_AXIS_LOG; kind++)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++)
                assert_axis((zero_axis_kind)kind, values[i], values[k]);
}

TEST(an_axis_covers_its_data)
{
    static const double data[][2] = {
        {5.8, 6.3}, {0.03, 8.0}, {-7.0, 11.0}, {9999.0, 10001.0}};
    for (int k = 0; k < 4; k++) {
        zero_axis axis =
            zero_axis_make(ZERO_AXIS_AROUND, data[k][0], data[k][1], 6, 0, 100);
        assert_true(axis.least <= data[k][0] + 1e-9 && axis.most >= data[k][1] - 1e-9);
    }
    zero_axis zero = zero_axis_make(ZERO_AXIS_ZERO, 900.0, 1000.0, 6, 0.0, 100.0);
    assert_true(zero.least == 0.0 && zero.most == 1000.0);
    zero_axis exact = zero_axis_make(ZERO_AXIS_EXACT, 3.0, 17.0, 6, 0.0, 140.0);
    assert_true(zero_axis_at(&exact, 3.0) == 0.0 && zero_axis_at(&exact, 17.0) == 140.0);
    assert_true(zero_axis_at(&exact, 10.0) == 70.0);
}

TEST(powers_of_ten_are_chosen_by_the_data)
{
    assert_true(zero_axis_prefers_log(0.01, 10.0));
    assert_false(zero_axis_prefers_log(2.0, 10.0));
    assert_false(zero_axis_prefers_log(0.0, 10.0));
    assert_false(zero_axis_prefers_log(-1.0, 10.0));
    zero_axis axis = zero_axis_make(ZERO_AXIS_LOG, 0.02, 8.0, 6, 0.0, 300.0);
    assert_true(fabs(axis.least - 0.01) < 1e-12 && fabs(axis.most - 10.0) < 1e-9);
    assert_true(fabs(zero_axis_at(&axis, 0.1) - 100.0) < 1e-6);
}

TEST(labels_have_the_digits_that_ticks_need)
{
    static const struct {
        double least, most, value;
        const char *text;
    } rows[] = {{5.8, 6.3, 6.0, "6.0"},         {0.0, 5.0, 2.0, "2"},
                {0.0, 50000.0, 20000.0, "20k"}, {0.0, 12000.0, 2000.0, "2k"},
                {0.0, 8000.0, 2000.0, "2000"},  {0.0, 3e-9, 1e-9, "1e-09"}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        char text[ZERO_AXIS_LABEL];
        zero_axis axis =
            zero_axis_make(ZERO_AXIS_AROUND, rows[k].least, rows[k].most, 6, 0.0, 1.0);
        zero_axis_label(&axis, rows[k].value, text);
        assert_string_equal(text, rows[k].text);
    }
}

/* ---- thinning ---- */

enum { POINTS = 20000, WIDE = 300 };

TEST(thinning_keeps_extremes_ends_and_gaps)
{
    static double at[POINTS], value[POINTS];
    static int64_t kept[POINTS];
    static bool has[POINTS];
    for (int i = 0; i < POINTS; i++) {
        at[i] = i;
        value[i] = sin(0.01 * i) + 0.001 * (i * 7919 % 101);
    }
    value[777] = 50.0;
    value[12345] = -50.0;
    value[5000] = NAN;
    zero_axis x = zero_axis_make(ZERO_AXIS_EXACT, 0.0, POINTS - 1.0, 6, 0.0, WIDE);
    int64_t n = zero_axis_thin(&x, at, value, POINTS, kept);
    assert_within(n, WIDE, 5 * (WIDE + 1));
    for (int64_t k = 0; k < n; k++) {
        assert_true(k == 0 || kept[k] > kept[k - 1]);
        has[kept[k]] = true;
    }
    assert_true(has[0] && has[POINTS - 1] && has[777] && has[12345] && has[5000]);
    /* The least and the most of every unit of the picture are kept. */
    for (int i = 0, end; i < POINTS; i = end) {
        double place = floor(zero_axis_at(&x, at[i]));
        int least = i, most = i;
        for (end = i; end < POINTS && floor(zero_axis_at(&x, at[end])) == place; end++) {
            if (!isfinite(value[end])) continue;
            if (value[end] < value[least]) least = end;
            if (value[end] > value[most]) most = end;
        }
        assert_true(has[least] && has[most]);
    }
}

TEST(few_points_are_all_kept)
{
    static const double at[] = {1, 2, 3, 4}, value[] = {3, NAN, 3, 3};
    int64_t kept[4];
    zero_axis x = zero_axis_make(ZERO_AXIS_EXACT, 1.0, 4.0, 4, 0.0, 100.0);
    assert_int_equal(zero_axis_thin(&x, at, value, 4, kept), 4);
    assert_int_equal(zero_axis_thin(&x, at, value, 1, kept), 1);
    assert_int_equal(zero_axis_thin(&x, at, value, 0, kept), 0);
}

/* ---- curves and marks ---- */

/* "M0 90L10 80": the points of a list. */
static void draw_curve(const double *value, int64_t n, const char *list, char text[ROOM])
{
    double at[16];
    int64_t kept[16];
    size_t i;
    int used = 0;
    for (int k = 0; k < 16; k++) at[k] = k;
    zero_axis x = zero_axis_make(ZERO_AXIS_EXACT, 0.0, 10.0, 5, 0.0, 100.0);
    zero_axis y = zero_axis_make(ZERO_AXIS_EXACT, 0.0, 10.0, 5, 100.0, 0.0);
    json_t *curve = zero_axis_curve(&x, &y, at, value, n, kept), *point;
    text[0] = '\0';
    json_array_foreach(json_object_get(curve, list), i, point)
    {
        used += snprintf(text + used, ROOM - (size_t)used, "%c%.0f %.0f",
                         json_is_true(json_object_get(point, "joined")) ? 'L' : 'M',
                         json_number_value(json_object_get(point, "x")),
                         json_number_value(json_object_get(point, "y")));
    }
    json_decref(curve);
}

TEST(a_gap_ends_the_line_and_a_lonely_point_is_seen)
{
    char text[ROOM];
    const double gaps[] = {1, 2, NAN, 4, NAN, 6, 7};
    draw_curve(gaps, 7, "points", text);
    assert_string_equal(text, "M0 90L10 80M50 40L60 30");
    draw_curve(gaps, 7, "lonely", text);
    assert_string_equal(text, "M30 60");
    draw_curve((double[]){1}, 1, "lonely", text);
    assert_string_equal(text, "M0 90");
    draw_curve((double[]){NAN, NAN}, 2, "points", text);
    assert_string_equal(text, "");
}

TEST(titles_and_labels_are_escaped)
{
    char text[ROOM];
    zero_axis y = zero_axis_make(ZERO_AXIS_EXACT, 0.0, 10.0, 5, 100.0, 0.0);
    json_t *facts =
        json_pack("{s:f, s:f, s:f, s:s, s:s, s:b, s:i, s:i, s:f, s:o, s:{s:[]}, s:[]}",
                  "left", 0.0, "right", 1.0, "bottom", 1.0, "title", "a \"<b>\"", "unit",
                  "</h3>", "percent", 0, "least", 1, "most", 2, "full", 0.0, "y",
                  zero_axis_facts(&y), "x", "ticks", "stages");
    FILE *out = fmemopen(text, ROOM, "w");
    assert_non_null(out);
    assert_ok(zero_page_form("study", facts, out));
    assert_int_equal(fclose(out), 0);
    assert_non_null(
        strstr(text, "aria-label=\"a &quot;&lt;b&gt;&quot; over 1 to 2 ranks\""));
    assert_non_null(strstr(text, "<h3>a &quot;&lt;b&gt;&quot;</h3>"));
}

/* ---- kinds ---- */

TEST(instructions_have_colours_and_short_names)
{
    static const struct {
        const char *name, *text;
        zero_page_kind kind;
    } rows[] = {{"FORWARD block 3, microbatch 0", "F3", ZERO_KIND_FORWARD},
                {"BACKWARD block 11", "B11", ZERO_KIND_BACKWARD},
                {"RECOMPUTE block 2.1", "R2.1", ZERO_KIND_BACKWARD},
                {"FORWARD embedding, microbatch 0", "Fe", ZERO_KIND_FORWARD},
                {"GATHER_WAIT block 3", "", ZERO_KIND_WAIT},
                {"GATHER block 3", "", ZERO_KIND_REST},
                {"LOSS", "", ZERO_KIND_ALL},
                {"OVERFLOW", "", ZERO_KIND_ALL},
                {"LOSSY", "", ZERO_KIND_REST},
                {"FORWARD", "", ZERO_KIND_FORWARD},
                {"", "", ZERO_KIND_REST}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        char text[ZERO_KIND_SHORT];
        zero_kind_shorten(rows[k].name, text);
        assert_string_equal(text, rows[k].text);
        assert_int_equal(zero_kind_of(rows[k].name), rows[k].kind);
    }
}
