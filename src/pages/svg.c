#include "pages/svg.h"

#include <math.h>

#include "pages/escape.h"

void zero_svg_begin(const zero_svg_frame *f, FILE *out)
{
    /* A box that scrolls has to be reached by keyboard. */
    fputs(f->wide ? "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\""
                  : "<div class=\"chart\">",
          out);
    if (f->wide) {
        zero_escape(f->label, out);
        fputs("\">", out);
    }
    fprintf(out, "<svg viewBox=\"0 0 %.0f %.0f\"%s role=\"img\" aria-label=\"", f->width,
            f->height, f->wide ? " class=\"wide\"" : "");
    zero_escape(f->label, out);
    fputs("\">\n", out);
}

void zero_svg_end(const zero_svg_frame *f, FILE *out)
{
    (void)f;
    fputs("</svg></div>\n", out);
}

static void write_class(const char *class, FILE *out)
{
    if (class) fprintf(out, " class=\"%s\"", class);
}

/* The rest of an element that may have a title. */
static void close_mark(const char *element, const char *title, FILE *out)
{
    if (!title) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    zero_escape(title, out);
    fprintf(out, "</title></%s>\n", element);
}

void zero_svg_text(double x, double y, zero_svg_anchor anchor, const char *class,
                   const char *text, FILE *out)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"",
                                          " text-anchor=\"end\""};
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\"%s", x, y, anchors[anchor]);
    write_class(class, out);
    fputc('>', out);
    zero_escape(text, out);
    fputs("</text>\n", out);
}

void zero_svg_line(double x1, double y1, double x2, double y2, const char *class, FILE *out)
{
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", x1, y1, x2, y2);
    write_class(class, out);
    fputs("/>\n", out);
}

void zero_svg_box(double x, double y, double width, double height, const char *class,
                  const char *title, FILE *out)
{
    fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"", x, y, width,
            height);
    write_class(class, out);
    close_mark("rect", title, out);
}

void zero_svg_dot(double x, double y, double radius, const char *class, const char *title,
                  FILE *out)
{
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", x, y, radius);
    write_class(class, out);
    close_mark("circle", title, out);
}

void zero_svg_key(const char *class, int run, const char *name, FILE *out)
{
    if (run < 0)
        fprintf(out, "<li><span class=\"key %s\"></span>", class);
    else
        fprintf(
            out,
            "<li><svg viewBox=\"0 0 32 12\" aria-hidden=\"true\"><path class=\"%s r%d\" "
            "d=\"M1 6H31\"/></svg>",
            class, run);
    zero_escape(name, out);
    fputs("</li>", out);
}

/* ---- axes ---- */

void zero_svg_left_axis(const zero_axis *y, double left, double right, FILE *out)
{
    double tick[ZERO_AXIS_TICKS];
    int n = zero_axis_ticks(y, tick);
    for (int k = 0; k < n; k++) {
        char text[ZERO_AXIS_LABEL];
        double at = zero_axis_at(y, tick[k]);
        zero_svg_line(left, at, right, at, k == 0 ? "axis" : "grid", out);
        zero_axis_label(y, tick[k], text);
        zero_svg_text(left - 8.0, at + 4.0, ZERO_SVG_RIGHT, "tick", text, out);
    }
}

void zero_svg_bottom_axis(const zero_axis *x, double bottom, FILE *out)
{
    double tick[ZERO_AXIS_TICKS];
    int n = zero_axis_ticks(x, tick);
    zero_svg_line(x->from, bottom, x->to, bottom, "axis", out);
    for (int k = 0; k < n; k++) {
        char text[ZERO_AXIS_LABEL];
        double at = zero_axis_at(x, tick[k]);
        zero_svg_line(at, bottom, at, bottom + 4.0, "axis", out);
        zero_axis_label(x, tick[k], text);
        zero_svg_text(at, bottom + 18.0, ZERO_SVG_MIDDLE, "tick", text, out);
    }
}

/* ---- curves ---- */

static bool is_there(const zero_svg_points *p, int64_t n, int64_t k)
{
    return k >= 0 && k < n && isfinite(p->value[p->kept[k]]);
}

/* A line through the kept points; or, each for itself, those without a neighbour. */
static void draw_path(const zero_axis *x, const zero_axis *y, const zero_svg_points *p,
                      int64_t n, bool of_lonely, FILE *out)
{
    for (int64_t k = 0; k < n; k++) {
        bool follows = is_there(p, n, k - 1);
        bool is_lonely = !follows && !is_there(p, n, k + 1);
        if (!is_there(p, n, k) || is_lonely != of_lonely) continue;
        int64_t i = p->kept[k];
        fprintf(out, "%c%.1f %.1f%s", follows ? 'L' : 'M', zero_axis_at(x, p->at[i]),
                zero_axis_at(y, p->value[i]), of_lonely ? "h0" : "");
    }
}

void zero_svg_curve(const zero_axis *x, const zero_axis *y, const zero_svg_points *p,
                    const char *class, FILE *out)
{
    int64_t n = zero_axis_thin(x, p->at, p->value, p->n, p->kept);
    bool has_lonely = false;
    for (int64_t k = 0; k < n; k++)
        has_lonely |= is_there(p, n, k) && !is_there(p, n, k - 1) && !is_there(p, n, k + 1);
    fprintf(out, "<path class=\"curve %s\" d=\"", class);
    draw_path(x, y, p, n, false, out);
    fputs("\"/>\n", out);
    if (!has_lonely) return;
    fprintf(out, "<path class=\"curve lonely %s\" d=\"", class);
    draw_path(x, y, p, n, true, out);
    fputs("\"/>\n", out);
}
