/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads: init, confirm, the processor's result, expiry, listing. On both engines, with objects in
 * memory and in a directory. Deleting and restoring is in test_file_deletes.c. Needs PostgreSQL:
 * run under tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/uploads.h"

#define HOUR RP_HOUR_MS
#define DAY  RP_DAY_MS

static struct rp_error err;

static int run_init(struct world *w, struct rp_init *c)
{
    return rp_command_run(w->catalog, &c->command);
}

static void expect_sweep(struct world *w, int64_t purged, int64_t already_gone)
{
    const struct rp_sweep_result *r = world_swept(w, purged);
    assert_int_equal(r->run.figures.already_gone, already_gone);
}

static int64_t events(struct world *w, const char *event)
{
    char sql[120];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM audit WHERE event = '%s'", event);
    return world_number(w, sql);
}

/* ---- init ---- */

static void test_U1_an_upload_is_born_marked_and_reserved(void **state)
{
    struct world *w = *state;
    struct rp_init c = uploads_init(w, "a/b.txt", 7);
    c.metadata = "{\"k\":\"v\"}";
    assert_int_equal(run_init(w, &c), 0);
    struct rp_file f = uploads_file(w, c.file_id);
    assert_int_equal(f.status, RP_FILE_PENDING);
    assert_string_equal(f.name, "a/b.txt");
    assert_string_equal(f.key, c.key);
    assert_string_equal(f.metadata, "{\"k\":\"v\"}");
    assert_int_equal(f.size_bytes, 7);
    assert_false(f.live_name);
    assert_null(f.checksum);
    assert_int_equal(strncmp(c.key, "acme/fil_", 9), 0);
    assert_int_equal(c.due_at_ms - c.created_at_ms, HOUR);
    assert_int_equal(c.url_ends_at_ms, c.due_at_ms);
    struct rp_mark m = uploads_mark(w, c.file_id);
    assert_int_equal(m.id, c.mark_id);
    assert_int_equal(m.state, RP_MARKED);
    assert_int_equal(m.due_at_ms, c.due_at_ms);
    assert_int_equal(m.file_id, c.file_id);
    assert_string_equal(m.reason, "abandoned");
    assert_string_equal(m.key, c.key);
    uploads_expect_quota(w, 0, 7, 1);
    assert_int_equal(events(w, "file.pending"), 1);
    for (int i = 0; i < WORLD_CALLS; i++)
        assert_int_equal(w->calls[i], 0); /* nothing is asked of the store */
}

static void test_U1_the_quota_is_exact_at_the_limit(void **state)
{
    struct world *w = *state;
    uploads_limit(w, "acme", 10);
    struct rp_init six = uploads_init(w, "six", 6), four = uploads_init(w, "four", 4), one = uploads_init(w, "one", 1);
    struct rp_init nothing = uploads_init(w, "nothing", 0);
    assert_int_equal(run_init(w, &six), 0);
    struct rp_init five = uploads_init(w, "five", 5);
    assert_int_equal(run_init(w, &five), RP_EQUOTA);
    assert_int_equal(five.tenant.limit_bytes, 10);
    assert_int_equal(five.tenant.used_bytes, 0);
    assert_int_equal(five.tenant.reserved_bytes, 6);
    assert_int_equal(run_init(w, &four), 0);
    assert_int_equal(run_init(w, &one), RP_EQUOTA);
    assert_int_equal(run_init(w, &nothing), 0); /* an empty file takes no room */
    uploads_expect_quota(w, 0, 10, 3);
    assert_int_equal(world_number(w, "SELECT count(*) FROM file"), 3);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark"), 3);
    assert_int_equal(events(w, "file.pending"), 3); /* a refusal leaves no trace */
}

static void test_U5_used_bytes_count_as_reserved_ones_do(void **state)
{
    struct world *w = *state;
    uploads_limit(w, "acme", 10);
    (void)uploads_live(w, "a", "12345678");
    uploads_expect_quota(w, 8, 0, 0);
    struct rp_init c = uploads_init(w, "b", 3);
    assert_int_equal(run_init(w, &c), RP_EQUOTA);
    assert_int_equal(c.tenant.used_bytes, 8);
    assert_int_equal(c.tenant.reserved_bytes, 0);
    uploads_limit(w, "acme", 0); /* below what is used: nothing is taken away, nothing is added */
    c = uploads_init(w, "b", 1);
    assert_int_equal(run_init(w, &c), RP_EQUOTA);
    uploads_limit(w, "acme", 11);
    c = uploads_init(w, "b", 3);
    assert_int_equal(run_init(w, &c), 0);
}

static void test_the_configured_quota_holds_for_who_has_none_of_its_own(void **state)
{
    struct world *w = *state;
    w->uploads.quota_default_bytes = 5;
    struct rp_init c = uploads_init(w, "a", 6);
    assert_int_equal(run_init(w, &c), RP_EQUOTA);
    assert_int_equal(c.tenant.limit_bytes, 5);
    c = uploads_init(w, "a", 5);
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(run_init(w, &c), 0);
    c = uploads_init(w, "a", 5); /* another tenant's bytes are not counted */
    assert_int_equal(run_init(w, &c), 0);
}

static void test_what_init_refuses(void **state)
{
    struct world *w = *state;
    struct rp_init c = uploads_init(w, "a", 1001);
    assert_int_equal(run_init(w, &c), RP_ETOOBIG);
    c = uploads_init(w, "a", -1);
    assert_int_equal(run_init(w, &c), RP_ETOOBIG);
    c = uploads_init(w, "a", 1);
    c.command.tenant_id = 4711;
    assert_int_equal(run_init(w, &c), RP_ENOTFOUND);
    w->config.mode = RP_MODE_OBSERVE;
    c = uploads_init(w, "a", 1);
    assert_int_equal(run_init(w, &c), RP_EOBSERVE);
    w->config.mode = RP_MODE_PURGE;
    c = uploads_init(w, "a", 1);
    c.replaces_id = 1;
    assert_int_equal(run_init(w, &c), RP_EINVAL);
    w->uploads.max_open_per_tenant = 1;
    c = uploads_init(w, "a", 1);
    assert_int_equal(run_init(w, &c), 0);
    c = uploads_init(w, "b", 1);
    assert_int_equal(run_init(w, &c), RP_EOPEN);
    uploads_expect_quota(w, 0, 1, 1);
}

static void test_what_a_file_may_belong_to(void **state)
{
    struct world *w = *state;
    struct rp_file_command d;
    int64_t live = uploads_live(w, "live", "x"), gone = uploads_live(w, "gone", "x");
    struct rp_init other = uploads_init(w, "theirs", 1);
    other.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(run_init(w, &other), 0);
    assert_int_equal(uploads_delete(w, gone, DAY, &d), 0);
    const struct {
        int64_t parent, source;
        int code;
    } cases[] = { { live, 0, 0 },
                  { 0, live, 0 },
                  { live, live, 0 },
                  { 4711, 0, RP_ENOTFOUND },
                  { other.file_id, 0, RP_ENOTFOUND }, /* TENANT: as if it were not there */
                  { 0, other.file_id, RP_ENOTFOUND },
                  { gone, 0, RP_EOWNERGONE },
                  { live, gone, RP_EOWNERGONE } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_init c = uploads_init(w, "c", 1);
        c.parent_id = cases[i].parent;
        c.source_id = cases[i].source;
        assert_int_equal(run_init(w, &c), cases[i].code);
    }
}

/* ---- confirm ---- */

static void test_U2_a_confirmed_upload_lives_and_its_mark_has_ended(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello");
    assert_int_equal(uploads_confirm(w, id, NULL, &c), RP_ENOTUPLOADED);
    uploads_expect(w, id, RP_FILE_PENDING);
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0);
    assert_non_null(c.event);
    assert_int_equal(c.answer.file.status, RP_FILE_LIVE);
    assert_int_equal(c.answer.mark_id, 0);
    struct rp_file f = uploads_file(w, id);
    assert_int_equal(f.status, RP_FILE_LIVE);
    assert_true(f.live_name);
    assert_true(f.etag[0] != 0);
    assert_int_equal(uploads_mark(w, id).outcome, RP_END_CONFIRMED);
    uploads_expect_quota(w, 5, 0, 0);
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0); /* again: the same answer */
    assert_null(c.event);
    assert_int_equal(c.answer.file.status, RP_FILE_LIVE);
    uploads_expect_quota(w, 5, 0, 0);
    assert_int_equal(events(w, "file.uploaded"), 1);
    world_pass(w, 40 * DAY);
    expect_sweep(w, 0, 0);
    assert_string_equal(world_text(w, f.key), "hello");
}

static void test_U2_size_and_checksum_are_those_that_were_promised(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    uint8_t right[RP_DIGEST_BYTES], wrong[RP_DIGEST_BYTES];
    uploads_digest(w, "hello", right);
    uploads_digest(w, "jello", wrong);
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hell");
    assert_int_equal(uploads_confirm(w, id, NULL, &c), RP_ESIZE);
    uploads_put(w, id, "hello");
    assert_int_equal(uploads_confirm(w, id, wrong, &c), RP_ECHECKSUM);
    uploads_expect(w, id, RP_FILE_PENDING);
    uploads_expect_quota(w, 0, 5, 1);
    assert_int_equal(uploads_confirm(w, id, right, &c), 0);
    assert_memory_equal(uploads_file(w, id).checksum, right, sizeof right);
}

static void test_U2_a_checksum_given_at_init_is_checked_whatever_the_confirm_says(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    uint8_t right[RP_DIGEST_BYTES], wrong[RP_DIGEST_BYTES];
    uploads_digest(w, "hello", right);
    uploads_digest(w, "jello", wrong);
    struct rp_init good = uploads_init(w, "a", 5), bad = uploads_init(w, "b", 5);
    good.checksum = right;
    bad.checksum = wrong;
    assert_int_equal(run_init(w, &good), 0);
    assert_int_equal(run_init(w, &bad), 0);
    uploads_put(w, good.file_id, "hello");
    uploads_put(w, bad.file_id, "hello");
    assert_int_equal(uploads_confirm(w, bad.file_id, NULL, &c), RP_ECHECKSUM);
    assert_int_equal(uploads_confirm(w, bad.file_id, right, &c), RP_ECHECKSUM); /* two promises: both must hold */
    assert_int_equal(uploads_confirm(w, good.file_id, wrong, &c), RP_ECHECKSUM);
    assert_int_equal(uploads_confirm(w, good.file_id, NULL, &c), 0);
    /* a look that did not read the bytes is no proof */
    c = uploads_command(w, &rp_verb_confirm, bad.file_id);
    c.seen = (struct rp_seen){ .file_id = bad.file_id, .outcome = RP_OUT_FOUND, .identity = { .size_bytes = 5 } };
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_EUNAVAILABLE);
    uploads_expect(w, bad.file_id, RP_FILE_PENDING);
}

static void test_U2_a_live_file_is_confirmed_again_only_with_what_is_known_of_it(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    uint8_t right[RP_DIGEST_BYTES], wrong[RP_DIGEST_BYTES];
    uploads_digest(w, "hello", right);
    uploads_digest(w, "jello", wrong);
    int64_t known = uploads_begin(w, "a", "hello"), unknown = uploads_live(w, "b", "hello");
    uploads_put(w, known, "hello");
    assert_int_equal(uploads_confirm(w, known, right, &c), 0);
    assert_int_equal(uploads_confirm(w, known, wrong, &c), RP_ECHECKSUM);
    assert_int_equal(uploads_confirm(w, known, right, &c), 0);
    assert_null(c.event);
    assert_int_equal(uploads_confirm(w, known, NULL, &c), 0);
    /* its bytes were never hashed, and are not read again */
    assert_int_equal(uploads_confirm(w, unknown, right, &c), RP_ENOTPENDING);
    assert_non_null(strstr(c.command.error.text, "not known"));
    assert_int_equal(uploads_confirm(w, unknown, NULL, &c), 0);
    assert_null(uploads_file(w, unknown).checksum);
    assert_int_equal(events(w, "file.uploaded"), 2);
}

static void test_what_confirm_refuses(void **state)
{
    struct world *w = *state;
    struct rp_file_command c, d;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    c = uploads_command(w, &rp_verb_confirm, 4711);
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    c = uploads_command(w, &rp_verb_confirm, id);
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    c = uploads_command(w, &rp_verb_confirm, id);
    c.seen = (struct rp_seen){ .file_id = id, .outcome = RP_OUT_RETRY, .note = "slow down" };
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_EUNAVAILABLE);
    c = uploads_command(w, &rp_verb_confirm, id);
    c.seen = (struct rp_seen){ .file_id = id, .outcome = RP_OUT_FOUND, .identity = { .size_bytes = 5 } };
    c.n_stores = 0; /* its store was taken out of the configuration */
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ECONFIG);
    assert_int_equal(uploads_delete(w, id, DAY, &d), 0);
    assert_int_equal(uploads_confirm(w, id, NULL, &c), RP_ENOTPENDING);
    uploads_expect(w, id, RP_FILE_DELETED);
}

static void test_U2_of_two_with_one_name_the_first_is_replaced_in_the_same_transaction(void **state)
{
    struct world *w = *state;
    int64_t first = uploads_live(w, "a", "old"), other = uploads_live(w, "b", "b");
    int64_t second = uploads_live(w, "a", "newer");
    uploads_expect(w, first, RP_FILE_DELETED);
    uploads_expect(w, second, RP_FILE_LIVE);
    uploads_expect(w, other, RP_FILE_LIVE);
    struct rp_mark m = uploads_mark(w, first);
    assert_int_equal(m.state, RP_MARKED);
    assert_string_equal(m.reason, "replaced");
    assert_int_equal(m.due_at_ms - m.marked_at_ms, 5 * DAY);
    uploads_expect_quota(w, 9, 0, 0); /* both, until the first is purged */
    struct rp_init theirs = uploads_init(w, "a", 1);
    theirs.command.tenant_id = uploads_tenant(w, "other"); /* another tenant's name is another name */
    assert_int_equal(run_init(w, &theirs), 0);
    struct rp_file_command c = uploads_command(w, &rp_verb_confirm, theirs.file_id);
    c.command.tenant_id = theirs.command.tenant_id;
    c.seen = (struct rp_seen){ .outcome = RP_OUT_FOUND, .identity = { .etag = "e", .size_bytes = 1 } };
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    uploads_expect(w, second, RP_FILE_LIVE);
    world_pass(w, 6 * DAY);
    expect_sweep(w, 1, 0);
    uploads_expect(w, first, RP_FILE_PURGED);
    uploads_expect_quota(w, 6, 0, 0);
}

struct round {
    struct rp_command *commands[4];
    size_t n;
    const struct rp_verb *verb;
};

static int round_tx(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct round *round = ctx;
    return round->verb->run(tx, round->commands, round->n, e);
}

static void test_U2_two_with_one_name_in_one_round(void **state)
{
    struct world *w = *state;
    struct rp_file_command c[3];
    int64_t ids[3], old = uploads_live(w, "a", "old");
    struct round round = { .n = 3, .verb = &rp_verb_confirm };
    for (size_t i = 0; i < 3; i++) {
        ids[i] = uploads_begin(w, "a", "hello");
        uploads_put(w, ids[i], "hello");
        struct rp_file f = uploads_file(w, ids[i]);
        c[i] = uploads_command(w, &rp_verb_confirm, ids[i]);
        ok(rp_file_see(&f, &w->store, NULL, &c[i].seen, &err));
        round.commands[i] = &c[i].command;
    }
    ok(rp_catalog_transact(w->catalog, round_tx, &round, &err));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(c[i].command.error.code, 0);
    uploads_expect(w, old, RP_FILE_DELETED);
    uploads_expect(w, ids[0], RP_FILE_DELETED);
    uploads_expect(w, ids[1], RP_FILE_DELETED);
    uploads_expect(w, ids[2], RP_FILE_LIVE);
    uploads_expect_quota(w, 18, 0, 0);
    world_check(w);
    world_pass(w, 6 * DAY);
    expect_sweep(w, 3, 0);
    uploads_expect_quota(w, 5, 0, 0);
}

/* The same file confirmed twice in a round, and an unknown one beside them. */
static void test_a_round_with_doubles_and_refusals(void **state)
{
    struct world *w = *state;
    struct rp_file_command c[4];
    int64_t id = uploads_begin(w, "a", "hello"), late = uploads_begin(w, "b", "hello");
    uploads_put(w, id, "hello");
    const int64_t ids[4] = { id, 4711, id, late };
    struct round round = { .n = 4, .verb = &rp_verb_confirm };
    for (size_t i = 0; i < 4; i++) {
        c[i] = uploads_command(w, &rp_verb_confirm, ids[i]);
        c[i].seen = (struct rp_seen){ .outcome = ids[i] == id ? RP_OUT_FOUND : RP_OUT_GONE,
                                      .identity = { .etag = "e", .size_bytes = 5 } };
        round.commands[i] = &c[i].command;
    }
    ok(rp_catalog_transact(w->catalog, round_tx, &round, &err));
    assert_int_equal(c[0].command.error.code, 0);
    assert_non_null(c[0].event);
    assert_int_equal(c[1].command.error.code, RP_ENOTFOUND);
    assert_int_equal(c[2].command.error.code, 0);
    assert_null(c[2].event);
    assert_int_equal(c[3].command.error.code, RP_ENOTUPLOADED);
    uploads_expect_quota(w, 5, 5, 1);
}

static void test_a_file_cannot_take_the_name_of_what_it_belongs_to(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t root = uploads_live(w, "a", "root");
    int64_t child = uploads_child(w, "b", root, 0);
    struct rp_init grandchild = uploads_init(w, "a", 1);
    grandchild.source_id = child;
    assert_int_equal(run_init(w, &grandchild), 0);
    uploads_put(w, grandchild.file_id, "x");
    assert_int_equal(uploads_confirm(w, grandchild.file_id, NULL, &c), RP_ENAMETAKEN);
    uploads_expect(w, root, RP_FILE_LIVE);
    uploads_expect(w, child, RP_FILE_LIVE);
    uploads_expect(w, grandchild.file_id, RP_FILE_PENDING);
}

/* ---- the processor's result ---- */

static int result(struct world *w, int64_t id, const char *key, bool accept, struct rp_file_command *c)
{
    *c = uploads_command(w, &rp_verb_result, id);
    c->process_key = key;
    c->accept = accept;
    return rp_command_run(w->catalog, &c->command);
}

static void test_E6_a_result_ends_the_scan(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->uploads.scan = true;
    int64_t good = uploads_live(w, "good", "x"), bad = uploads_live(w, "bad", "xx");
    uploads_expect(w, good, RP_FILE_SCANNING);
    uploads_expect_quota(w, 3, 0, 0);
    const char *key = uploads_file(w, good).process_key;
    assert_non_null(key);
    assert_int_equal(result(w, good, uploads_file(w, bad).process_key, true, &c), 0); /* another upload's key */
    assert_null(c.event);
    uploads_expect(w, good, RP_FILE_SCANNING);
    assert_int_equal(result(w, good, key, true, &c), 0);
    assert_non_null(c.event);
    uploads_expect(w, good, RP_FILE_LIVE);
    assert_int_equal(result(w, good, key, false, &c), 0); /* late: decided before */
    assert_null(c.event);
    uploads_expect(w, good, RP_FILE_LIVE);
    assert_int_equal(result(w, bad, uploads_file(w, bad).process_key, false, &c), 0);
    assert_non_null(c.event);
    uploads_expect(w, bad, RP_FILE_DELETED);
    assert_string_equal(uploads_mark(w, bad).reason, "rejected");
    c = uploads_command(w, &rp_verb_result, good);
    c.process_key = key;
    c.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_ENOTFOUND);
    assert_int_equal(uploads_restore(w, bad, &c), 0); /* a person overrules: it is scanned again */
    uploads_expect(w, bad, RP_FILE_SCANNING);
}

static void test_E6_a_result_for_what_was_deleted_or_replaced_changes_nothing(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    w->uploads.scan = true;
    int64_t deleted = uploads_live(w, "d", "x"), replaced = uploads_live(w, "r", "x");
    int64_t pending = uploads_begin(w, "p", "x");
    assert_int_equal(uploads_delete(w, deleted, DAY, &c), 0);
    (void)uploads_live(w, "r", "y");
    const int64_t ids[] = { deleted, replaced, pending };
    for (size_t i = 0; i < 3; i++) {
        enum rp_status before = uploads_file(w, ids[i]).status;
        assert_int_equal(result(w, ids[i], uploads_file(w, ids[i]).process_key, true, &c), 0);
        assert_null(c.event);
        uploads_expect(w, ids[i], before);
    }
}

/* ---- expiry ---- */

static void test_U3_an_upload_that_nobody_confirms_expires_and_is_refunded_once(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello");
    struct rp_file f = uploads_file(w, id);
    uploads_put(w, id, "hello");
    world_pass(w, HOUR - RP_MINUTE_MS);
    expect_sweep(w, 0, 0);
    uploads_expect(w, id, RP_FILE_PENDING);
    world_pass(w, 2 * RP_MINUTE_MS);
    expect_sweep(w, 1, 0);
    uploads_expect(w, id, RP_FILE_EXPIRED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_false(world_exists(w, f.key));
    assert_int_equal(events(w, "file.cleaned"), 1);
    assert_int_equal(uploads_confirm(w, id, NULL, &c), RP_EEXPIRED);
    assert_int_equal(uploads_delete(w, id, -1, &c), RP_EEXPIRED);
    assert_int_equal(uploads_restore(w, id, &c), RP_EEXPIRED);
    /* the second mark: a PUT that began in time may end late */
    struct rp_mark late = world_newest(w, f.key);
    assert_string_equal(late.reason, "late upload");
    assert_int_equal(late.state, RP_MARKED);
    assert_int_equal(late.due_at_ms, uploads_file(w, id).url_ends_at_ms + RP_LATE_PUT_MS);
    world_put(w, f.key, "hello, too late");
    world_pass(w, 23 * HOUR);
    expect_sweep(w, 0, 0);
    assert_true(world_exists(w, f.key));
    world_pass(w, 2 * HOUR);
    expect_sweep(w, 1, 0);
    assert_false(world_exists(w, f.key));
    assert_int_equal(world_count(w, RP_MARKED), 0); /* and there is no third */
    uploads_expect_quota(w, 0, 0, 0);
    uploads_expect(w, id, RP_FILE_EXPIRED);
}

static void test_U3_an_absent_object_is_fine(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 250; i++) { /* more than two batches */
        char name[24];
        snprintf(name, sizeof name, "f%d", i);
        (void)uploads_begin(w, name, "hello");
    }
    uploads_expect_quota(w, 0, 1250, 250);
    world_pass(w, 2 * HOUR);
    expect_sweep(w, 0, 250);
    uploads_expect_quota(w, 0, 0, 0);
    world_pass(w, 26 * HOUR);
    expect_sweep(w, 0, 250);
    assert_int_equal(world_count(w, RP_PURGED), 500);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

static void test_U3_the_claim_expires_and_refunds_before_the_store_is_asked(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    struct rp_file f = uploads_file(w, id);
    c = uploads_command(w, &rp_verb_confirm, id);
    ok(rp_file_see(&f, &w->store, NULL, &c.seen, &err)); /* seen in time */
    world_pass(w, 2 * HOUR);
    world_steps_begin(w, w->catalog, "main", &s);
    world_steps_claim(w, w->catalog, &s);
    uploads_expect(w, id, RP_FILE_EXPIRED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_true(world_exists(w, f.key));
    assert_int_equal(rp_command_run(w->catalog, &c.command), RP_EEXPIRED); /* and confirmed too late */
    world_check(w);
    world_steps_erase(w, w->catalog, &s);
    ok(rp_purge_finish(w->catalog, &w->rules, &s.batch, &s.run, &err));
    ok(rp_run_end(w->catalog, &s.run, "done", &err));
    assert_false(world_exists(w, f.key));
    uploads_expect_quota(w, 0, 0, 0);
    world_steps_done(&s);
}

static void test_a_confirm_that_comes_late_but_before_the_claim_wins(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    world_pass(w, 2 * HOUR);
    assert_int_equal(uploads_confirm(w, id, NULL, &c), 0);
    expect_sweep(w, 0, 0);
    uploads_expect(w, id, RP_FILE_LIVE);
    uploads_expect_quota(w, 5, 0, 0);
}

static int refuse_all(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx;
    return strcmp(call, "remove") == 0 && key == NULL ? rp_error_set(e, RP_EUNAVAILABLE, "no") : 0;
}

static void test_U3_a_failing_delete_does_not_hold_up_the_refund_and_is_tried_again(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    world_pass(w, 2 * HOUR);
    w->before = refuse_all;
    struct rp_sweep_result *r = world_sweep(w);
    assert_string_not_equal(r->outcome, "done");
    uploads_expect(w, id, RP_FILE_EXPIRED);
    uploads_expect_quota(w, 0, 0, 0);
    assert_true(world_exists(w, uploads_file(w, id).key));
    w->before = NULL;
    world_pass(w, HOUR);
    expect_sweep(w, 1, 0);
    assert_false(world_exists(w, uploads_file(w, id).key));
    uploads_expect_quota(w, 0, 0, 0);
}

static void test_an_abandoned_upload_in_quarantine_mode_is_followed_by_its_second_mark(void **state)
{
    struct world *w = *state;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_begin(w, "a", "hello");
    const char *key = uploads_file(w, id).key;
    uploads_put(w, id, "hello");
    world_pass(w, 2 * HOUR);
    expect_sweep(w, 1, 0);
    uploads_expect(w, id, RP_FILE_EXPIRED);
    assert_false(world_exists(w, key));
    assert_int_equal(world_count(w, RP_MARKED), 2); /* the copy's, and the late upload's */
    world_put(w, key, "late!");
    world_pass(w, 26 * HOUR);
    expect_sweep(w, 1, 0);
    assert_false(world_exists(w, key));
    world_pass(w, 8 * DAY);
    expect_sweep(w, 2, 0);
    world_pass(w, 8 * DAY);
    expect_sweep(w, 0, 0);
    assert_int_equal(world_count(w, RP_MARKED), 0);
    uploads_expect_quota(w, 0, 0, 0);
}

/* K4: whatever happens to what it belongs to meanwhile. */
static void test_F4_a_file_does_not_live_before_what_it_belongs_to_nor_without_it(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    int64_t parent = uploads_begin(w, "parent", "hello");
    struct rp_init child = uploads_init(w, "child", 5);
    child.parent_id = parent;
    assert_int_equal(run_init(w, &child), 0);
    uploads_put(w, child.file_id, "child");
    assert_int_equal(uploads_confirm(w, child.file_id, NULL, &c), RP_ENOTLIVE);
    assert_non_null(strstr(c.command.error.hint, "confirm that file first"));
    uploads_put(w, parent, "hello");
    assert_int_equal(uploads_confirm(w, parent, NULL, &c), 0);
    assert_int_equal(uploads_confirm(w, child.file_id, NULL, &c), 0);

    int64_t abandoned = uploads_begin(w, "abandoned", "hello");
    world_pass(w, HOUR - 10 * RP_MINUTE_MS);
    struct rp_init late = uploads_init(w, "late", 5);
    late.source_id = abandoned;
    assert_int_equal(run_init(w, &late), 0);
    uploads_put(w, late.file_id, "child");
    world_pass(w, 20 * RP_MINUTE_MS);
    expect_sweep(w, 0, 1);
    uploads_expect(w, abandoned, RP_FILE_EXPIRED);
    assert_int_equal(uploads_confirm(w, late.file_id, NULL, &c), RP_EOWNERGONE);
    uploads_expect(w, late.file_id, RP_FILE_PENDING);
}

static void test_U3_a_file_purged_while_its_url_is_in_use_gets_a_second_mark(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    for (int aside = 0; aside < 2; aside++) {
        w->config.mode = aside ? RP_MODE_QUARANTINE : RP_MODE_PURGE;
        int64_t id = uploads_live(w, "a", "hello");
        const char *key = uploads_file(w, id).key;
        assert_int_equal(uploads_delete(w, id, 0, &c), 0);
        world_pass(w, RP_MINUTE_MS);
        expect_sweep(w, 1, 0);
        world_put(w, key, "again"); /* its client sends it once more */
        world_pass(w, 8 * DAY);     /* the copy's time is over as well */
        expect_sweep(w, 1, 0);
        uploads_expect(w, id, RP_FILE_PURGED);
        world_pass(w, DAY);
        (void)world_sweep(w);
        assert_false(world_exists(w, key));
        world_pass(w, 8 * DAY);
        (void)world_sweep(w);
        assert_int_equal(world_count(w, RP_MARKED), 0);
    }
    uploads_expect_quota(w, 0, 0, 0);
}

/* Moved aside, then interrupted before the catalog knew: the copy must not be forgotten. */
static void test_an_interrupted_move_of_an_abandoned_upload_is_found_again(void **state)
{
    struct world *w = *state;
    struct world_steps s;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t id = uploads_begin(w, "a", "hello");
    uploads_put(w, id, "hello");
    world_pass(w, 2 * HOUR);
    world_steps_begin(w, w->catalog, "lost", &s);
    world_steps_claim(w, w->catalog, &s);
    world_steps_erase(w, w->catalog, &s);
    assert_false(world_exists(w, uploads_file(w, id).key));
    ok(rp_run_end(w->catalog, &s.run, "failed", &err)); /* never finished: its lease runs out */
    world_steps_done(&s);
    world_pass(w, HOUR);
    expect_sweep(w, 1, 0);
    assert_int_equal(world_number(w, "SELECT count(*) FROM mark WHERE state = 1 AND reason = 'quarantine'"), 1);
    world_pass(w, 40 * DAY);
    (void)world_sweep(w);
    struct rp_mark birth = uploads_mark(w, id);
    assert_int_equal(birth.outcome, RP_END_QUARANTINED);
    assert_int_equal(world_count(w, RP_MARKED), 0);
}

/* ---- listing ---- */

static size_t list(struct world *w, struct rp_files_query q, const char *names[16])
{
    struct rp_files page;
    if (q.tenant_id == 0) q.tenant_id = uploads_tenant(w, "acme");
    size_t n = 0;
    ok(rp_files_init(&page, 2, &w->arena, &err)); /* small pages */
    for (;;) {
        ok(rp_files_page(w->catalog->db, &q, &page, &err));
        if (page.n == 0) return n;
        for (size_t i = 0; i < page.n; i++)
            names[n++] = page.at[i].name;
        q.after_id = page.at[page.n - 1].id;
        q.after_name = page.at[page.n - 1].name;
    }
}

static void expect_list(struct world *w, struct rp_files_query q, const char *wanted)
{
    const char *names[16];
    char text[160] = "";
    size_t n = list(w, q, names), at = 0;
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s ", names[i]);
    assert_string_equal(text, wanted);
}

#define LAST "\xF4\x8F\xBF\xBF" /* U+10FFFF: no character comes after it */

static void test_T5_a_prefix_finds_names_of_any_characters(void **state)
{
    struct world *w = *state;
    (void)uploads_live(w, "z" LAST, "x");
    (void)uploads_live(w, "z" LAST LAST LAST LAST LAST "z", "x");
    expect_list(w, (struct rp_files_query){ .prefix = "z" }, "z" LAST " z" LAST LAST LAST LAST LAST "z ");
    expect_list(w, (struct rp_files_query){ .prefix = "y" }, "");
}

static void test_T5_what_is_listed(void **state)
{
    struct world *w = *state;
    struct rp_file_command c;
    (void)uploads_live(w, "b/2", "x");
    (void)uploads_live(w, "b/1", "x");
    int64_t hidden = uploads_live(w, "hidden", "x"), shown = uploads_live(w, "shown", "x");
    (void)uploads_begin(w, "pending", "x");
    struct rp_init other = uploads_init(w, "theirs", 1);
    other.command.tenant_id = uploads_tenant(w, "other");
    assert_int_equal(run_init(w, &other), 0);
    (void)uploads_live(w, "a", "x");
    assert_int_equal(uploads_delete(w, hidden, DAY, &c), 0);
    c = uploads_command(w, &rp_verb_delete, shown);
    c.shown = true;
    c.grace_ms = DAY;
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    expect_list(w, (struct rp_files_query){ .deleted = false }, "b/2 b/1 shown a ");
    expect_list(w, (struct rp_files_query){ .deleted = true }, "b/2 b/1 hidden shown a ");
    expect_list(w, (struct rp_files_query){ .status = RP_FILE_PENDING }, "pending ");
    expect_list(w, (struct rp_files_query){ .status = RP_FILE_DELETED }, "hidden shown ");
    expect_list(w, (struct rp_files_query){ .prefix = "" }, "a b/1 b/2 ");
    expect_list(w, (struct rp_files_query){ .prefix = "b/" }, "b/1 b/2 ");
    expect_list(w, (struct rp_files_query){ .prefix = "c" }, "");
    expect_list(w, (struct rp_files_query){ .tenant_id = other.command.tenant_id, .status = RP_FILE_PENDING },
                "theirs ");
    world_pass(w, 2 * DAY);
    (void)world_sweep(w);
    expect_list(w, (struct rp_files_query){ .deleted = true }, "b/2 b/1 shown a "); /* also after the purge */
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_U1_an_upload_is_born_marked_and_reserved),
        ALL(test_U1_the_quota_is_exact_at_the_limit),
        ALL(test_U5_used_bytes_count_as_reserved_ones_do),
        ALL(test_the_configured_quota_holds_for_who_has_none_of_its_own),
        ALL(test_what_init_refuses),
        ALL(test_what_a_file_may_belong_to),
        ALL(test_U2_a_confirmed_upload_lives_and_its_mark_has_ended),
        ALL(test_U2_size_and_checksum_are_those_that_were_promised),
        ALL(test_U2_a_checksum_given_at_init_is_checked_whatever_the_confirm_says),
        ALL(test_U2_a_live_file_is_confirmed_again_only_with_what_is_known_of_it),
        ALL(test_what_confirm_refuses),
        ALL(test_U2_of_two_with_one_name_the_first_is_replaced_in_the_same_transaction),
        ALL(test_U2_two_with_one_name_in_one_round),
        ALL(test_a_round_with_doubles_and_refusals),
        ALL(test_a_file_cannot_take_the_name_of_what_it_belongs_to),
        ALL(test_E6_a_result_ends_the_scan),
        ALL(test_E6_a_result_for_what_was_deleted_or_replaced_changes_nothing),
        ALL(test_U3_an_upload_that_nobody_confirms_expires_and_is_refunded_once),
        ALL(test_U3_an_absent_object_is_fine),
        ALL(test_U3_the_claim_expires_and_refunds_before_the_store_is_asked),
        ALL(test_a_confirm_that_comes_late_but_before_the_claim_wins),
        ALL(test_U3_a_failing_delete_does_not_hold_up_the_refund_and_is_tried_again),
        ALL(test_an_abandoned_upload_in_quarantine_mode_is_followed_by_its_second_mark),
        ALL(test_an_interrupted_move_of_an_abandoned_upload_is_found_again),
        ALL(test_F4_a_file_does_not_live_before_what_it_belongs_to_nor_without_it),
        ALL(test_U3_a_file_purged_while_its_url_is_in_use_gets_a_second_mark),
        ALL(test_T5_what_is_listed),
        ALL(test_T5_a_prefix_finds_names_of_any_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
