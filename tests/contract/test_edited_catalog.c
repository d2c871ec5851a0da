/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody else has edited. A catalog whose rows cannot be, an owner record that is none, a
 * run that was closed elsewhere: each is found when it is read, said in words, and nothing is
 * purged or changed on the strength of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "catalog/token.h"
#include "catalog/writer/idempotency.h"
#include "core/hold.h"
#include "core/owner/owner.h"
#include "core/quota.h"
#include "lib/ask.h"
#include "lib/bytes.h"
#include "lib/uploads.h"

static struct rp_error err;

/* ---- rows that cannot be ---- */

struct scene {
    int64_t file_id, mark_id, txn_id, token_id;
};

static int make_token(struct rp_tx *tx, void *ctx, struct rp_error *e)
{
    struct rp_token token = { .kind = RP_TOKEN_BEARER, .name = "first", .scopes = 1 };
    char secret[RP_TOKEN_SECRET];
    int r = rp_token_secret(RP_TOKEN_BEARER, secret, e);
    if (r == 0) r = rp_token_create(tx, &token, secret, "tester", e);
    *(int64_t *)ctx = token.id;
    return r;
}

static int read_mark(struct world *w, const struct scene *s)
{
    struct rp_mark mark;
    return rp_mark_get(w->catalog->db, s->mark_id, &w->arena, &mark, &err);
}

static int read_file(struct world *w, const struct scene *s)
{
    struct rp_file file;
    return rp_file_get(w->catalog->db, s->file_id, &w->arena, &file, &err);
}

static int read_txn(struct world *w, const struct scene *s)
{
    struct rp_txn txn;
    return rp_txn_get(w->catalog->db, s->txn_id, &txn, &err);
}

static int read_token(struct world *w, const struct scene *s)
{
    struct rp_token token;
    return rp_token_get(w->catalog->db, s->token_id, &token, &err);
}

static int read_epoch(struct world *w, const struct scene *s)
{
    int64_t epoch;
    (void)s;
    return rp_meta_get(w->catalog->db, "epoch", &epoch, NULL, 0, &err);
}

static int raise_epoch(struct world *w, const struct scene *s)
{
    int64_t epoch;
    (void)s;
    return rp_meta_raise(w->catalog->db, "epoch", 0, &epoch, &err);
}

static int make_mark(struct world *w, const struct scene *s)
{
    struct rp_mark_request request = { .key = "other", .grace_ms = -1, .at_ms = -1, .reason = "" };
    struct rp_mark_answer answer;
    (void)s;
    return rp_mark_many(w->catalog, &w->store, &request, 1, "tester", false, &answer, &err);
}

static int restore_it(struct world *w, const struct scene *s)
{
    struct rp_mark mark = world_newest(w, "object");
    struct rp_reprieve_answer answer;
    world_script(w, "DELETE FROM mark WHERE id = %" PRId64, s->mark_id);
    return rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err);
}

static int delete_file(struct world *w, const struct scene *s)
{
    struct rp_file_command c;
    int r = uploads_delete(w, s->file_id, RP_DAY_MS, &c);
    err = c.command.error;
    return r;
}

static int begin_upload(struct world *w, const struct scene *s)
{
    struct rp_init c = uploads_init(w, "another", 5);
    (void)s;
    world_script(w, "UPDATE ledger SET tenant_id = 1; DELETE FROM tenant");
    int r = rp_command_run(w->catalog, &c.command);
    err = c.command.error;
    return r;
}

static int prove(struct world *w, const struct scene *s)
{
    struct rp_quota_check check;
    (void)s;
    return ask_proof(w->catalog, true, NULL, NULL, &check, &err);
}

static int verify(struct world *w, const struct scene *s)
{
    struct rp_audit_verdict verdict;
    (void)s;
    int r = rp_audit_verify(w->catalog, &verdict, &err);
    if (r == 0 && verdict.broken) r = rp_error_set(&err, RP_ECORRUPT, "%s", verdict.why);
    return r;
}

static const struct edit {
    const char *sql;
    int (*read)(struct world *w, const struct scene *s);
    int code;
} edits[] = {
    { "UPDATE mark SET state = 99", read_mark, RP_ECORRUPT },
    { "UPDATE mark SET state = 0", read_mark, RP_ECORRUPT },
    { "UPDATE file SET status = 99", read_file, RP_ECORRUPT },
    { "UPDATE file SET status = 0", read_file, RP_ECORRUPT },
    { "UPDATE file SET checksum = x'0102'", read_file, RP_ECORRUPT },
    { "UPDATE txn SET state = 0", read_txn, RP_ECORRUPT },
    { "UPDATE txn SET state = 9", read_txn, RP_ECORRUPT },
    { "UPDATE token SET kind = 0", read_token, RP_ECORRUPT },
    { "UPDATE token SET kind = 9", read_token, RP_ECORRUPT },
    { "DELETE FROM meta WHERE name = 'epoch'", read_epoch, RP_ECORRUPT },
    { "DELETE FROM meta WHERE name = 'epoch'", raise_epoch, RP_ECORRUPT },
    { "UPDATE lane SET head = x'00'", make_mark, RP_ECORRUPT },
    { "DELETE FROM lane", make_mark, RP_ECORRUPT },
    { "SELECT 1", restore_it, RP_ECORRUPT },
    { "DELETE FROM mark WHERE file_id IS NOT NULL", delete_file, 0 },
    { "SELECT 1", begin_upload, RP_ENOTFOUND },
    { "DELETE FROM tenant", prove, RP_ECORRUPT },
    { "UPDATE audit SET hash = x'00' WHERE seq = 1", verify, RP_ECORRUPT },
    { "UPDATE audit SET digest = x'00' WHERE seq = 2", verify, RP_ECORRUPT },
    { "UPDATE audit SET hash = zeroblob(32) WHERE seq = 2", verify, RP_ECORRUPT },
    { "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)", verify, RP_ECORRUPT },
    { "UPDATE audit SET actor = 'somebody' WHERE seq = 1", verify, RP_ECORRUPT },
    { "UPDATE lane SET head = x'00'", verify, RP_ECORRUPT },
};

static void a_row_that_cannot_be_is_told_when_it_is_read(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct world w;
        struct scene s;
        world_make(&w, DBS_SQLITE_FILE, WORLD_MEMORY);
        world_put(&w, "object", "bytes");
        world_put(&w, "other", "bytes");
        s.mark_id = world_mark(&w, "object", RP_DAY_MS).mark_id;
        s.file_id = uploads_live(&w, "photo", "bytes");
        s.txn_id = uploads_txn_begin(&w);
        ok(rp_catalog_transact(w.catalog, make_token, &s.token_id, &err));
        world_unlock(&w);
        world_script(&w, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON; %s", edits[i].sql);
        err = (struct rp_error){ 0 };
        int r = edits[i].read(&w, &s);
        bool worded = r == 0 || err.text[0] != '\0';
        if (r != edits[i].code || !worded) {
            print_error("%s: %s (%s)\n", edits[i].sql, rp_error_slug(r), err.text);
            wrong++;
        }
        world_drop(&w);
    }
    assert_int_equal(wrong, 0);
}

/* ---- a sweep over what was edited ---- */

static void a_mark_whose_file_is_gone_is_told_and_never_ends_as_purged(void **state)
{
    struct world *w = *state;
    int64_t id = uploads_begin(w, "photo", "bytes");
    uploads_put(w, id, "bytes");
    world_pass(w, 2 * RP_HOUR_MS);
    world_script(w, "PRAGMA foreign_keys = OFF; DELETE FROM file");
    struct rp_sweep_result *result = world_sweep(w);
    assert_string_equal(result->outcome, "partial");
    assert_non_null(strstr(result->run.figures.errors[0], "gone from the catalog"));
    assert_int_equal(world_count(w, RP_PURGED), 0);
}

static void a_run_that_was_closed_elsewhere_leaves_the_record_that_is_there(void **state)
{
    struct world *w = *state;
    struct rp_run run;
    ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, &run, &err));
    world_script(w, "INSERT INTO run_record (run_id, kind, name, outcome, started_at, finished_at, body) SELECT id, "
                    "kind, 'main', 'failed', started_at, started_at, '{}' FROM run;"
                    "UPDATE run SET open = NULL");
    ok(rp_run_end(w->catalog, &run, "done", &err));
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record"), 1);
    assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE outcome = 'failed'"), 1);
}

static int open_row(void *ctx, const struct rp_run_row *row, struct rp_error *e)
{
    RP_CLEANUP(rp_json_decrefp) json_t *shown = rp_run_open_json(row, true, e);
    *(bool *)ctx = shown == NULL;
    return 0;
}

static void figures_that_are_none_do_not_stop_the_next_run_for_good(void **state)
{
    static const char *const texts[] = { "no json", "[]", "7", "{}", "{\"errors\":{}}" };
    struct world *w = *state;
    struct rp_run run;
    bool damaged = false;
    for (int i = 0; i < (int)(sizeof texts / sizeof texts[0]); i++) {
        ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, &run, &err));
        world_script(w, "UPDATE run SET figures = '%s'", texts[i]);
        ok(rp_run_each_open(w->catalog->db, NULL, open_row, &damaged, &err));
        if (i == 0) assert_true(damaged);
        world_pass(w, 2 * RP_HOUR_MS);
        ok(rp_run_begin(w->catalog, "sweep", "main", &w->worker, RP_HOUR_MS, &run, &err));
        ok(rp_run_end(w->catalog, &run, "done", &err));
        assert_int_equal(world_number(w, "SELECT count(*) FROM run_record WHERE body LIKE '%cannot be read%'"), i + 1);
    }
    world_check(w);
}

/* ---- owner records that are none ---- */

static void write_record(struct world *w, const char *record)
{
    struct bytes text = { record, strlen(record) };
    struct rp_source source = { .read = bytes_read, .ctx = &text };
    struct rp_meta meta = { 0 };
    struct rp_identity identity;
    ok(rp_backend_put(w->inner, RP_STORE_OWNER, &source, &meta, RP_PUT_REPLACE, &identity, &err));
}

static void a_record_that_is_none_stops_every_purge(void **state)
{
    struct world *w = *state;
    char own[200], far[200], staging[200];
    char *endless = malloc(9000);
    assert_non_null(endless);
    memset(endless, ' ', 8999);
    endless[8999] = '\0';
    snprintf(own, sizeof own, "{\"catalog\":\"%s\"}", w->catalog->id);
    snprintf(far, sizeof far, "{\"catalog\":\"%s\",\"epoch\":99999}", w->catalog->id);
    snprintf(staging, sizeof staging, "{\"catalog\":\"%s\",\"epoch\":0,\"environment\":\"staging\"}", w->catalog->id);
    const struct {
        const char *record;
        enum rp_ownership found;
    } cases[] = {
        { "", RP_OWNER_DAMAGED },
        { "no json", RP_OWNER_DAMAGED },
        { "[1]", RP_OWNER_DAMAGED },
        { "{}", RP_OWNER_DAMAGED },
        { own, RP_OWNER_DAMAGED }, /* without an epoch */
        { "{\"catalog\":7,\"epoch\":1}", RP_OWNER_DAMAGED },
        { endless, RP_OWNER_DAMAGED },
        { "{\"catalog\":\"cat_other\",\"epoch\":0}", RP_OWNER_FOREIGN },
        { far, RP_OWNER_AHEAD },
        { staging, RP_OWNER_ELSEWHERE },
    };
    w->store.environment = "test";
    world_put(w, "object", "bytes");
    (void)world_mark(w, "object", RP_DAY_MS);
    world_pass(w, 2 * RP_DAY_MS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_owner owner;
        write_record(w, cases[i].record);
        ok(rp_owner_look(w->catalog, &w->store, &owner, &err));
        assert_int_equal(owner.ownership, cases[i].found);
        assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_ENOTOWNER);
        (void)world_sweep(w);
        assert_true(world_exists(w, "object"));
    }
    free(endless);
}

static int unavailable(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    (void)ctx, (void)key;
    return strcmp(call, "get") == 0 ? rp_error_set(e, RP_EUNAVAILABLE, "no answer") : 0;
}

static void a_record_that_cannot_be_read_is_no_verdict(void **state)
{
    struct world *w = *state;
    struct rp_owner owner;
    w->before = unavailable;
    assert_int_equal(rp_owner_look(w->catalog, &w->store, &owner, &err), RP_EUNAVAILABLE);
    assert_int_equal(rp_owner_check(w->catalog, &w->store, &err), RP_EUNAVAILABLE);
    assert_int_equal(rp_owner_write(w->catalog, &w->store, "test", false, &err), RP_EUNAVAILABLE);
}

/* ---- two keys with one hash ---- */

static void an_answer_kept_under_another_key_of_the_same_hash_is_not_given(void **state)
{
    struct world *w = *state;
    uint8_t digest[RP_DIGEST_BYTES] = { 1 };
    struct rp_init c = uploads_init(w, "photo", 5);
    struct rp_saved kept = { .tenant_id = c.command.tenant_id, .key = "key", .digest = digest };
    static const char *const edit[] = { "UPDATE idempotency SET key = 'another'",
                                        "UPDATE idempotency SET key = 'key', body_digest = x'00'" };
    world_script(w, "PRAGMA ignore_check_constraints = ON");
    kept.hash = rp_key_hash(kept.tenant_id, kept.key);
    world_script(w,
                 "INSERT INTO idempotency (id, tenant_id, key_hash, key, body_digest, status, answer)"
                 " VALUES (1, %" PRId64 ", %" PRId64 ", 'key', zeroblob(32), 201, 'answer')",
                 kept.tenant_id, kept.hash);
    for (size_t i = 0; i < 2; i++) {
        world_script(w, "%s", edit[i]);
        ok(rp_keys_find(w->catalog->db, &kept, 1, &w->arena, &err));
        assert_int_equal(kept.code, RP_EKEYREUSED);
    }
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_that_cannot_be_is_told_when_it_is_read),
        WITH_WORLD(a_mark_whose_file_is_gone_is_told_and_never_ends_as_purged),
        WITH_WORLD(a_run_that_was_closed_elsewhere_leaves_the_record_that_is_there),
        WITH_WORLD(figures_that_are_none_do_not_stop_the_next_run_for_good),
        WITH_WORLD(a_record_that_is_none_stops_every_purge),
        WITH_WORLD(a_record_that_cannot_be_read_is_no_verdict),
        WITH_WORLD(an_answer_kept_under_another_key_of_the_same_hash_is_not_given),
    };
    return cmocka_run_group_tests_name("an edited catalog", tests, NULL, NULL);
}
