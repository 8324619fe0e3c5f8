/* The fake device refuses what a device would, names the call, and keeps its first failure. */
#include "support/device_test.h"

#include "math/backends.h"
#include "math/device.h"

static const size_t space = 65536;

/* The first failure has these words, all later calls tell it, and nothing is executed. */
static void check_failed(device *d, const char *words)
{
    zero_ticket ticket = 0;
    bool ended;
    void *memory;
    char first[1024];
    assert_int_not_equal(fake->sync(&d->math), ZERO_OK);
    snprintf(first, sizeof first, "%s", zero_last_error());
    if (!strstr(first, words)) fail_msg("'%s' is not in '%s'", words, first);
    fake->clear(&d->math, 1, (float *)d->host); /* another mistake */
    const zero_status later[] = {
        fake->memory->take(&d->math, 4096, &memory),
        fake->memory->pin(&d->math, d->host, 4096),
        fake->memory->fetch(&d->math, d->host, d->memory, 16, &ticket),
        fake->memory->store(&d->math, d->memory, d->host, 16, &ticket),
        fake->memory->ended(&d->math, 0, &ended),
        fake->memory->after(&d->math, 0),
        fake->sync(&d->math),
    };
    for (size_t i = 0; i < COUNT(later); i++) assert_int_not_equal(later[i], ZERO_OK);
    assert_string_equal(zero_last_error(), first);
    assert_int_equal(ticket, 0);
    device_close(d);
}

TEST(a_bad_pointer_names_its_call)
{
    for (int order = 0; order < 3; order++) {
        device d = device_open(order, space);
        float host[4];
        fake->clear(&d.math, 4, host);
        check_failed(&d, "clear");
        d = device_open(order, space);
        fake->bias_gelu(&d.math, &(zero_bias){.rows = 1,
                                              .cols = 4,
                                              .type = ZERO_FP32,
                                              .bias = d.host,
                                              .x = device_floats(&d, 0),
                                              .y = device_floats(&d, 4)});
        check_failed(&d, "bias_gelu of the fake device was given");
        d = device_open(order, space);
        fake->round(&d.math, ZERO_FP32, 4, device_floats(&d, 0), NULL);
        check_failed(&d, "NULL");
        d = device_open(order, space);
        fake->clear(&d.math, 2, (float *)(d.memory + space) - 1);
        check_failed(&d, "ends earlier");
        d = device_open(order, space);
        d.math.scratch = host;
        fake->clear(&d.math, 1, device_floats(&d, 0));
        check_failed(&d, "clear");
    }
}

/* The last element of each operand is inside; one more row of it is not. */
TEST(an_operand_of_a_product_may_not_end_outside)
{
    for (int which = -1; which < 3; which++) {
        device d = device_open(1, space);
        float *end = (float *)(d.memory + space), *begin = device_floats(&d, 0);
        zero_gemm g = {.m = 3, .n = 4, .k = 5, .lda = 8, .ldb = 9, .ldc = 10};
        g.a = which == 0 ? end - (2 * 8 + 5) + 1 : end - (2 * 8 + 5);
        g.b = begin, g.c = begin + 100;
        fake->gemm(&d.math, &g);
        g.a = begin;
        g.b = which == 1 ? end - (4 * 9 + 4) + 1 : end - (4 * 9 + 4);
        fake->gemm(&d.math, &g);
        g.b = begin + 50;
        g.c = which == 2 ? end - (2 * 10 + 4) + 1 : end - (2 * 10 + 4);
        fake->gemm(&d.math, &g);
        if (which >= 0)
            check_failed(&d, "gemm");
        else {
            assert_ok(fake->sync(&d.math));
            device_close(&d);
        }
    }
}

TEST(copies_stay_inside_one_piece_and_in_pinned_memory)
{
    zero_ticket ticket;
    char host[64];
    device d = device_open(1, space);
    device_wait(&d, device_store(&d, space - 64, 64));
    assert_int_not_equal(
        fake->memory->store(&d.math, d.memory + space - 32, d.host, 64, &ticket), ZERO_OK);
    check_failed(&d, "store");
    d = device_open(1, space);
    assert_int_not_equal(
        fake->memory->fetch(&d.math, d.host + space - 32, d.memory, 64, &ticket), ZERO_OK);
    check_failed(&d, "fetch() of the fake device was given 64 bytes at");
    d = device_open(1, space);
    assert_int_not_equal(fake->memory->fetch(&d.math, host, d.memory, 64, &ticket),
                         ZERO_OK);
    check_failed(&d, "not pinned");
    d = device_open(1, space);
    fake->memory->unpin(&d.math, d.host);
    assert_int_not_equal(fake->memory->store(&d.math, d.memory, d.host, 64, &ticket),
                         ZERO_OK);
    check_failed(&d, "not pinned");
}

/* These are refused before anything happens, so the device works after it. */
TEST(pin_takes_whole_pages_once)
{
    device d = device_open(1, space);
    char *other = device_host(space);
    assert_int_equal(fake->memory->pin(&d.math, other + 16, 4096), ZERO_ERR_INVALID);
    assert_int_equal(fake->memory->pin(&d.math, other, 100), ZERO_ERR_INVALID);
    assert_int_equal(fake->memory->pin(&d.math, d.host, 4096), ZERO_ERR_INVALID);
    assert_int_equal(fake->memory->pin(&d.math, d.memory, 4096), ZERO_ERR_INVALID);
    fake->memory->unpin(&d.math, d.host);
    assert_ok(fake->memory->pin(&d.math, d.host + 8192, 4096));
    assert_int_equal(fake->memory->pin(&d.math, d.host, space), ZERO_ERR_INVALID);
    assert_ok(fake->memory->pin(&d.math, other, space));
    fake->memory->unpin(&d.math, other);
    assert_ok(fake->memory->pin(&d.math, other, space));
    assert_ok(fake->sync(&d.math));
    device_close(&d);
    munmap(other, space);
}

TEST(a_ticket_belongs_to_a_copy)
{
    bool ended;
    device d = device_open(1, space);
    zero_ticket ticket = device_fetch(&d, 0, 64);
    assert_int_equal(fake->memory->ended(&d.math, ticket + 2, &ended), ZERO_ERR_INVALID);
    check_failed(&d, "belongs to no copy");
    d = device_open(1, space);
    assert_int_equal(fake->memory->after(&d.math, 3), ZERO_ERR_INVALID);
    check_failed(&d, "after()");
}

static void run_tokens(device *d, int32_t token)
{
    int32_t *tokens = (int32_t *)d->host, *seen = (int32_t *)d->memory;
    for (int i = 0; i < 4; i++) tokens[i] = i < 3 ? 0 : token;
    device_wait(d, device_store(d, 0, 16));
    float *table = (float *)(d->memory + space) - 32, *out = device_floats(d, 256);
    fake->embedding(&d->math, &(zero_embedding){1, 4, 4, 0, 0, seen, ZERO_FP32, ZERO_FP32,
                                                table, out, out + 64, NULL});
    fake->cross_entropy(&d->math, &(zero_cross_entropy){.rows = 4,
                                                        .V = 8,
                                                        .targets = seen,
                                                        .dscale = 1.0f,
                                                        .logits = out,
                                                        .loss = out + 64});
    fake->embedding_backward(
        &d->math,
        &(zero_embedding_grad){1, 4, 4, 0, 0, seen, ZERO_FP32, out, table, out + 64});
}

/* 8 words, which end where the memory does. */
TEST(tokens_outside_their_table_are_found_when_they_are_read)
{
    device d = device_open(1, space);
    run_tokens(&d, 7);
    assert_ok(fake->sync(&d.math));
    device_close(&d);
    d = device_open(1, space);
    run_tokens(&d, 8);
    check_failed(&d, "embedding of the fake device read token 8 at position 3");
    d = device_open(1, space);
    run_tokens(&d, -1);
    check_failed(&d, "token -1");
}

/* One call and two copies, of which number n fails. */
TEST(a_call_can_be_made_to_fail)
{
    const char *const names[] = {"1 (clear)", "2 (fetch)", "3 (store)"};
    for (int n = 0; n < 3; n++)
        for (int order = 0; order < 5; order++) {
            char text[16];
            bool ended = false;
            zero_ticket fetched = 0, stored = 0;
            zero_status status = ZERO_OK;
            snprintf(text, sizeof text, "%d", n + 1);
            setenv("ZERO_FAKE_FAIL", text, 1);
            device d = device_open(order, space);
            unsetenv("ZERO_FAKE_FAIL");
            fake->clear(&d.math, 16, device_floats(&d, 0));
            if (fake->memory->fetch(&d.math, d.host, d.memory, 64, &fetched) == ZERO_OK)
                (void)!fake->memory->store(&d.math, d.memory + 4096, d.host + 4096, 64,
                                           &stored);
            for (int i = 0; i < 200 && status == ZERO_OK; i++)
                status = fake->memory->ended(&d.math, i % 2 ? fetched : stored, &ended);
            assert_int_equal(status, ZERO_ERR_ENV);
            check_failed(&d, names[n]);
        }
}

/* The fetch waits for a call that fails, so the host's memory stays as the fetch has left it. */
TEST(nothing_runs_after_a_failure)
{
    for (int order = 1; order < 20; order++) {
        void *piece;
        zero_ticket ticket;
        setenv("ZERO_FAKE_FAIL", "1", 1);
        device d = device_open(order, space);
        unsetenv("ZERO_FAKE_FAIL");
        assert_ok(fake->memory->take(&d.math, 4096, &piece));
        fake->clear(&d.math, 16, device_floats(&d, 0));
        zero_status status = fake->memory->fetch(&d.math, d.host, d.memory, 64, &ticket);
        assert_int_equal(fake->sync(&d.math), ZERO_ERR_ENV);
        fake->memory->give_back(&d.math, piece);
        if (status == ZERO_OK)
            for (int i = 0; i < 64; i++) assert_int_equal((unsigned char)d.host[i], 0xff);
        device_close(&d);
    }
}

TEST(a_wrong_variable_is_refused)
{
    zero_math math = {0};
    setenv("ZERO_FAKE_ORDER", "often", 1);
    assert_fails(fake->open(&math), ZERO_ERR_INVALID, "ZERO_FAKE_ORDER='often'");
    fake->close(&math);
    setenv("ZERO_FAKE_ORDER", "1", 1);
}

/* A queued copy would fault if it was executed: its host memory is gone. */
TEST(closing_drops_what_is_queued)
{
    int waiting = 0;
    for (int order = 1; order < 20; order++) {
        device d = device_open(order, space);
        bool ended;
        zero_ticket stored = device_store(&d, 0, 4096);
        assert_ok(fake->memory->after(&d.math, stored));
        for (int i = 0; i < 10; i++) fake->clear(&d.math, 16, device_floats(&d, 0));
        (void)device_fetch(&d, 0, 4096);
        assert_ok(fake->memory->ended(&d.math, stored, &ended));
        waiting += !ended;
        munmap(d.host, d.bytes);
        fake->close(&d.math);
        fake->close(&d.math); /* once more */
    }
    assert_true(waiting > 0);
}

TEST(devices_are_found_by_name)
{
    const zero_backend *found = fake;
    const zero_plugin *plugin = NULL;
    assert_ok(zero_device_find("cpu", &found, &plugin));
    assert_null(found);
    assert_ok(zero_device_find("fake", &found, &plugin));
    assert_ptr_equal(found, fake);
    assert_null(plugin);
    assert_fails(zero_device_find("tpu", &found, &plugin), ZERO_ERR_INVALID,
                 "'tpu': expected one of cpu|cuda|fake");
    assert_string_equal(zero_device_name_at(0), "cpu");
    assert_string_equal(zero_device_name_at(1), "cuda");
    assert_string_equal(zero_device_name_at(2), "fake");
}
