/* The models that have a name: their shapes, sizes and flops, and messages about others. */
#include "support/gpt2_test.h"
#include "support/table.h"

TEST(every_preset_is_a_sound_model_of_the_size_that_is_counted)
{
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    for (int i = 0; i < n; i++) {
        zero_shape shape;
        assert_ok(zero_model_preset(rows[i].name, &shape));
        assert_true(shape.hidden == rows[i].shape.hidden);
        if (shape.vocab == 0) shape.vocab = 300; /* tiny takes the tokenizer's */
        assert_ok(zero_shape_check(&shape));
        zero_model model = built(&shape);
        assert_true(model.n_params == zero_shape_count(&shape));
        assert_true(model.vocab == shape.vocab && model.seq == shape.seq);
        zero_model_destroy(&model);
        for (int k = 0; k < i; k++) assert_string_not_equal(rows[i].name, rows[k].name);
    }
}

/* The published numbers of parameters, which are those of transformers, too. */
TEST(presets_have_the_published_parameter_counts)
{
    for (test_table t = table_open("nn/published.txt"); table_next(&t);) {
        zero_shape shape;
        assert_ok(zero_model_preset(t.field[0], &shape));
        if (zero_shape_count(&shape) != atoll(t.field[1]))
            fail_msg("%s has %lld", t.field[0], (long long)zero_shape_count(&shape));
    }
}

/* The billions in a name: "paper-nomp-2.5b" 2.5, "paper-1t" 1000; 0 without a number. */
static double billions(const char *name)
{
    while (*name && !(name[0] == '-' && name[1] >= '0' && name[1] <= '9')) name++;
    if (!*name) return 0.0;
    char *unit;
    double number = strtod(name + 1, &unit);
    return *unit == 't' ? 1000.0 * number : number;
}

/* The papers round: to tens from 20 billions on (GPT-3's to units), to units from 4, to
 * tenths or hundredths below; ZeRO-Infinity's table prints 1.01 for 1T. */
static double unit_of(const char *name)
{
    double size = billions(name);
    if (strcmp(name, "gpt3-175b") == 0) return 1.0;
    if (size >= 1000.0) return 20.0;
    if (size >= 20.0) return 10.0;
    if (size >= 4.0) return 1.0;
    return fabs(10.0 * size - round(10.0 * size)) < 1e-9 ? 0.1 : 0.01;
}

TEST(papers_models_have_the_size_that_their_name_says)
{
    static const struct {
        const char *name;
        double billions;                      /* counted instead */
    } others[] = {{"paper-1.5b", 1.56},       /* as GPT-2's largest: cut off, not rounded */
                  {"paper-nomp-1.5b", 1.60},  /* right without its embeddings only */
                  {"paper-ddp-1.38b", 1.21}}; /* Megatron-LM calls this shape 1.2B */
    int n, named = 0, of_papers = 0;
    const zero_preset *rows = zero_model_presets(&n);
    for (int i = 0; i < n; i++) {
        double said = billions(rows[i].name), unit = unit_of(rows[i].name);
        of_papers += rows[i].shape.kind == NULL;
        if (said == 0.0 || rows[i].shape.kind) continue;
        named++;
        for (size_t k = 0; k < COUNT(others); k++)
            if (strcmp(others[k].name, rows[i].name) == 0)
                said = others[k].billions, unit = 0.01;
        double counted = (double)zero_shape_count(&rows[i].shape) / 1e9;
        if (fabs(counted - said) > unit / 2.0)
            fail_msg("%s counts %g billions", rows[i].name, counted);
    }
    assert_int_equal(named, of_papers - 6); /* all but tiny, lesson and GPT-2's four */
}

/* Units also count masked attention, half of 12 L T C; the embedding does not multiply. */
TEST(a_steps_flops_are_three_times_its_forward_pass_without_what_is_masked)
{
    zero_shape shape;
    assert_ok(zero_model_preset("gpt2", &shape));
    zero_model m = built(&shape);
    double forward = 0.0, L = (double)shape.layers, C = (double)shape.hidden;
    for (int u = 1; u < m.n_units; u++)
        forward += m.units[u].sizes(&m.units[u], 1, shape.seq).flops;
    double masked = 6.0 * L * (double)shape.seq * C;
    double expected = 3.0 * forward / (double)shape.seq - masked;
    assert_true(fabs(zero_shape_flops(&shape) / expected - 1.0) < 1e-12);
    zero_model_destroy(&m);
}

/* "paper-80b" belongs to "paper", which the message must name. */
TEST(the_answer_to_an_unknown_preset_names_every_family)
{
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    zero_shape shape;
    assert_int_equal(zero_model_preset("paper", &shape), ZERO_ERR_INVALID);
    for (int i = 0; i < n; i++) {
        char family[32];
        snprintf(family, sizeof family, "%s", rows[i].name);
        if (billions(family) > 0.0) *strpbrk(family, "0123456789") = 0;
        assert_told(family);
    }
}

TEST(unknown_presets_are_answered_with_those_that_exist)
{
    zero_shape shape = {.layers = 77};
    assert_fails(zero_model_preset("gpt3", &shape), ZERO_ERR_INVALID, "gpt3");
    assert_told("gpt2-medium");
    assert_true(shape.layers == 77);
}
