/* SPDX-License-Identifier: Apache-2.0 */
/* Families of files, some or all of them moved to quarantine: a restore of the root brings all
 * back. On both engines, with objects in memory and in a directory. Needs PostgreSQL: run under
 * tests/lib/with-postgres. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/mark/dead.h"
#include "core/hold.h"
#include "core/reprieve/reprieve.h"
#include "core/subject/quarantine.h"
#include "core/subject/subject.h"
#include "lib/ask.h"
#include "lib/stores.h"
#include "lib/uploads.h"

#define DAY RP_DAY_MS

static struct rp_error err;

static int64_t hold(struct world *w, struct rp_hold_command q)
{
    q.reason = "audit";
    q.command.actor = "tester";
    ok(ask_hold(w->catalog, &q, &w->arena, &err));
    return q.id;
}

static struct rp_reprieve_answer restore_mark(struct world *w, int64_t mark_id)
{
    struct rp_mark mark;
    struct rp_reprieve_answer answer;
    ok(rp_mark_get(w->catalog->db, mark_id, &w->arena, &mark, &err));
    ok(rp_reprieve_many(w->catalog, &w->store, &mark, 1, "tester", &answer, &err));
    return answer;
}

/* The root, a child of it, a derivative of that, a child of the derivative. */
struct family {
    int64_t files[4], marks[4], holds[4];
    const char *keys[4];
};

static struct family family_of_four(struct world *w)
{
    struct family f = { .files = { uploads_live(w, "root", "hello") } };
    f.files[1] = uploads_child(w, "child", f.files[0], 0);
    f.files[2] = uploads_child(w, "thumb", 0, f.files[1]);
    f.files[3] = uploads_child(w, "below", f.files[2], 0);
    for (size_t i = 0; i < 4; i++)
        f.keys[i] = uploads_file(w, f.files[i]).key;
    w->config.mode = RP_MODE_QUARANTINE;
    return f;
}

/* Bit i: files[i] waits still, the others were moved to quarantine. */
static void delete_and_hold(struct world *w, struct family *f, unsigned held)
{
    struct rp_file_command c;
    for (size_t i = 0; i < 4; i++)
        if (held >> i & 1)
            f->holds[i] =
                hold(w, (struct rp_hold_command){ .scope = RP_SCOPE_SUBJECT, .store = &w->store, .key = f->keys[i] });
    assert_int_equal(uploads_delete(w, f->files[0], -1, &c), 0);
    for (size_t i = 0; i < 4; i++)
        f->marks[i] = uploads_mark(w, f->files[i]).id;
    world_pass(w, 6 * DAY);
    world_swept(w, 4 - __builtin_popcount(held));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(world_exists(w, f->keys[i]), held >> i & 1);
}

static void expect_all_live(struct world *w, const struct family *f)
{
    for (size_t i = 0; i < 4; i++) {
        uploads_expect(w, f->files[i], RP_FILE_LIVE);
        assert_true(world_exists(w, f->keys[i]));
    }
}

/* However much of it was moved to quarantine already. */
static void test_F4_a_family_comes_back_from_quarantine_with_its_root(void **state)
{
    struct world *w = *state;
    struct family f = family_of_four(w);
    for (unsigned held = 0; held < 16; held++) {
        delete_and_hold(w, &f, held);
        assert_int_equal(restore_mark(w, f.marks[1]).error.code, RP_EOWNERGONE);
        assert_int_equal(restore_mark(w, f.marks[0]).what, held & 1 ? RP_REPRIEVE_DONE : RP_REPRIEVE_RETURNED);
        expect_all_live(w, &f);
        assert_int_equal(restore_mark(w, f.marks[0]).what, RP_REPRIEVE_ALREADY);
        for (size_t i = 0; i < 4; i++)
            if (held >> i & 1) ok(ask_lift(w->catalog, f.holds[i], "tester", &err));
        world_pass(w, 30 * DAY);
        world_swept(w, 4 - __builtin_popcount(held)); /* the copies that have done their work */
        expect_all_live(w, &f);
    }
}

static int deny_copy_of_thumb(void *ctx, const char *call, const char *key, struct rp_error *e)
{
    if (strcmp(call, "copy") == 0 && strstr(key, ctx) != NULL) return rp_error_set(e, RP_EDENIED, "denied");
    return 0;
}

/* What cannot come back is named in the answer, and stays where it is with what belongs to it. The
 * same restore tries it again. */
static void test_F4_one_of_a_family_that_cannot_come_back_keeps_nobody_else_away(void **state)
{
    struct world *w = *state;
    struct family f = family_of_four(w);
    delete_and_hold(w, &f, 1);
    char thumb[RP_QUARANTINE_KEY];
    struct rp_mark copy = uploads_mark(w, f.files[2]);
    snprintf(thumb, sizeof thumb, "%s", copy.key);
    w->before = deny_copy_of_thumb;
    w->ctx = thumb;
    struct rp_reprieve_item item = { .file_id = f.files[0] };
    struct rp_reprieve_command c = uploads_restore_as(w, &item, "acme");
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    w->before = NULL;
    assert_int_equal(c.n_family, 3);
    assert_int_equal(c.family[0].answer.what, RP_REPRIEVE_RETURNED);
    assert_int_equal(c.family[1].answer.error.code, RP_EDENIED);
    assert_int_equal(c.family[2].answer.error.code, RP_EOWNERGONE);
    uploads_expect(w, f.files[1], RP_FILE_LIVE);
    uploads_expect(w, f.files[2], RP_FILE_DELETED);
    uploads_expect(w, f.files[3], RP_FILE_DELETED);
    assert_false(world_exists(w, f.keys[3]));
    item = (struct rp_reprieve_item){ .file_id = f.files[0] };
    c = uploads_restore_as(w, &item, "acme");
    assert_int_equal(rp_command_run(w->catalog, &c.command), 0);
    assert_int_equal(c.n_family, 2);
    expect_all_live(w, &f);
}

static struct rp_mark tried_until_dead(struct world *w, int64_t file)
{
    for (int i = 0; i < 3; i++) {
        (void)world_sweep(w);
        world_pass(w, 2 * RP_HOUR_MS);
    }
    return uploads_mark(w, file);
}

struct letter {
    int64_t mark_id, id;
};

static int is_letter_of(void *ctx, const struct rp_dead *dead, struct rp_error *e)
{
    struct letter *letter = ctx;
    (void)e;
    if (dead->mark_id == letter->mark_id) letter->id = dead->id;
    return 0;
}

static void decide(struct world *w, const struct rp_mark *mark, bool retry)
{
    struct letter letter = { .mark_id = mark->id };
    enum rp_state as;
    ok(rp_dead_each(w->catalog->db, 0, 10, is_letter_of, &letter, &err));
    assert_int_not_equal(letter.id, 0);
    ok(retry ? ask_retry(w->catalog, letter.id, "tester", &err) : ask_keep(w->catalog, letter.id, "tester", &as, &err));
}

/* Shown, and not restored: by a person, or by a restore that died before its commit. It comes to a
 * person, and either decision has an end. */
static void test_S9_a_file_that_shows_itself_when_its_quarantine_is_over_becomes_a_dead_letter(void **state)
{
    struct world *w = *state;
    struct rp_backend *bare = w->store.backend, *hiding;
    struct rp_file_command c;
    const bool blind = false;
    ok(rp_backend_hiding_wrap(bare, &blind, &hiding, &err));
    w->store.backend = hiding;
    w->config.mode = RP_MODE_QUARANTINE;
    int64_t files[] = { uploads_live(w, "erased", "hello"), uploads_live(w, "kept", "hello") };
    for (int i = 0; i < 2; i++)
        assert_int_equal(uploads_delete(w, files[i], -1, &c), 0);
    world_pass(w, 6 * DAY);
    world_swept(w, 2);
    for (int i = 0; i < 2; i++) {
        struct rp_mark copy = uploads_mark(w, files[i]);
        struct rp_item item = { .key = uploads_file(w, files[i]).key };
        bool made = false;
        assert_true(copy.in_place);
        snprintf(item.identity.etag, sizeof item.identity.etag, "%s", copy.etag);
        snprintf(item.identity.version, sizeof item.identity.version, "%s", copy.version);
        ok(rp_backend_show(hiding, item.key, &item.identity, &made, &err));
    }
    world_pass(w, 8 * DAY);
    for (int i = 0; i < 2; i++) {
        struct rp_mark dead = tried_until_dead(w, files[i]);
        assert_int_equal(dead.state, RP_DEAD);
        assert_non_null(strstr(dead.note, "shows itself"));
        assert_true(world_exists(w, uploads_file(w, files[i]).key));
    }
    struct rp_mark erased = uploads_mark(w, files[0]), kept = uploads_mark(w, files[1]);
    struct rp_item hide = { .key = uploads_file(w, files[0]).key, .identity = rp_subject_identity(&erased) };
    ok(rp_backend_hide(hiding, &hide, &(int64_t){ INT64_MAX }, 1, NULL, &err));
    decide(w, &erased, true);
    world_swept(w, 1);
    uploads_expect(w, files[0], RP_FILE_PURGED);
    decide(w, &kept, false);
    assert_int_equal(uploads_delete(w, files[1], -1, &c), 0);
    assert_int_equal(uploads_restore(w, files[1], &c), 0);
    uploads_expect(w, files[1], RP_FILE_LIVE);
    assert_true(world_exists(w, uploads_file(w, files[1]).key));
    w->store.backend = bare;
    rp_backend_close(hiding);
}

/* clang-format off */
#define ON(which, words, fn) { #fn " on " words, fn, world_set_up, world_tear_down, (void *)(uintptr_t)(which) }
/* Each engine once, each store once. */
#define ALL(fn) ON(1, "postgres, memory", fn), ON(2, "sqlite, fs", fn)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALL(test_F4_a_family_comes_back_from_quarantine_with_its_root),
        ALL(test_S9_a_file_that_shows_itself_when_its_quarantine_is_over_becomes_a_dead_letter),
        ALL(test_F4_one_of_a_family_that_cannot_come_back_keeps_nobody_else_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
/* clang-format on */
