/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of the rules: states and their numbers, allowed moves, and every decision as a
 * table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "catalog/file/process.h"
#include "catalog/file/transaction.h"
#include "catalog/mark/confirmation.h"
#include "catalog/mark/hold.h"
#include "catalog/schema.h"
#include "catalog/statements/statements.h"
#include "catalog/token.h"
#include "core/file/file.h"
#include "core/file/transaction.h"
#include "core/mark/mark.h"
#include "core/reprieve/reprieve.h"
#include "core/state.h"

#define NOW      INT64_C(1790000000000)
#define DAY      RP_DAY_MS
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- numbers and moves ---- */

static void expect_in(const char *where, const char *text, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void expect_in(const char *where, const char *text, const char *fmt, ...)
{
    char wanted[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(wanted, sizeof wanted, fmt, args);
    va_end(args);
    if (strstr(text, wanted) == NULL) fail_msg("%s does not say: %s", where, wanted);
}

static void test_names_in_the_statements_are_those_of_the_enums(void **state)
{
    static const struct {
        const char *text;
        int64_t is;
    } names[] = {
        { M_MARKED, RP_MARKED },
        { M_CHECKING, RP_CHECKING },
        { M_PURGING, RP_PURGING },
        { M_PURGED, RP_PURGED },
        { M_REPRIEVED, RP_REPRIEVED },
        { M_DEAD, RP_DEAD },
        { M_LOST, RP_LOST },
        { END_SUPERSEDED, RP_END_SUPERSEDED },
        { END_KEPT, RP_END_KEPT },
        { CHECK_CONFIRMATIONS, RP_CHECK_CONFIRMATIONS },
        { H_SUBJECT, RP_SCOPE_SUBJECT },
        { H_PREFIX, RP_SCOPE_PREFIX },
        { H_TENANT, RP_SCOPE_TENANT },
        { H_EVERYTHING, RP_SCOPE_EVERYTHING },
        { F_PENDING, RP_FILE_PENDING },
        { F_SCANNING, RP_FILE_SCANNING },
        { F_LIVE, RP_FILE_LIVE },
        { F_DELETED, RP_FILE_DELETED },
        { F_PURGED, RP_FILE_PURGED },
        { F_EXPIRED, RP_FILE_EXPIRED },
        { L_RESERVE, RP_LEDGER_RESERVE },
        { L_USE, RP_LEDGER_USE },
        { L_REFUND, RP_LEDGER_REFUND },
        { K_BEARER, RP_TOKEN_BEARER },
        { K_LINK, RP_TOKEN_LINK },
        { T_COMMITTED, RP_TXN_COMMITTED },
        { T_ABORTED, RP_TXN_ABORTED },
        { C_PENDING, RP_CONFIRM_PENDING },
        { C_YES, RP_CONFIRM_YES },
        { J_PROCESS, RP_PROCESS },
        { J_CANCEL, RP_PROCESS_CANCEL },
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(strtoll(names[i].text, NULL, 10), names[i].is);
}

static void test_states_in_words_for_people_are_those_of_the_table(void **state)
{
    char text[200] = "";
    (void)state;
    for (size_t i = 0; rp_state_names[i] != NULL; i++) {
        bool last = rp_state_names[i + 1] == NULL;
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s", i == 0 ? "" : last ? " or " : ", ", rp_state_names[i]);
    }
    assert_string_equal(text, RP_STATE_NAMES_TEXT);
#define NAME(name, means) name,
    const char *const explained[] = { RP_STATE_WORDS(NAME) };
    for (size_t i = 0; rp_state_names[i] != NULL; i++)
        assert_string_equal(explained[i], rp_state_names[i]);
    assert_int_equal(COUNT(explained), RP_STATES - 1);
}

static void test_statuses_in_the_statements_are_those_of_the_enum(void **state)
{
    (void)state;
    static const enum rp_status listed[] = { RP_FILE_SCANNING, RP_FILE_LIVE, RP_FILE_DELETED, RP_FILE_PURGED };
    for (size_t i = 0; i < COUNT(listed); i++)
        expect_in("file_visible", RP_SQL(file_visible)->text, "AND status = %d AND ", listed[i]);
    expect_in("file_visible", RP_SQL(file_visible)->text, "AND status = %d AND $4 = 1 AND id > $2", RP_FILE_DELETED);
    expect_in("file_visible", RP_SQL(file_visible)->text, "AND status = %d AND $4 = 0 AND shown = 1 AND id > $2",
              RP_FILE_DELETED);
    expect_in("file_visible", RP_SQL(file_visible)->text, "AND status = %d AND shown = 1 AND id > $2", RP_FILE_PURGED);
    expect_in("old_files", RP_SQL(old_files)->text, "status IN (%d, %d) AND shown = 0", RP_FILE_PURGED,
              RP_FILE_EXPIRED);
    expect_in("old_files", RP_SQL(old_files)->text, "l.kind = %d", RP_LEDGER_REFUND);
    expect_in("old_txns", RP_SQL(old_txns)->text, "state IN (%d, %d)", RP_TXN_COMMITTED, RP_TXN_ABORTED);
    expect_in("old_marks", RP_SQL(old_marks)->text, "state = %d AND ended_at IS NOT NULL", RP_PURGED);
    expect_in("old_marks", RP_SQL(old_marks)->text, "state = %d AND ended_at IS NOT NULL", RP_REPRIEVED);
    expect_in("old_marks", RP_SQL(old_marks)->text, "state = %d AND ended_at IS NOT NULL", RP_LOST);
    /* what is over comes last: its key may be marked like any other */
    expect_in("file_of_keys", RP_SQL(file_of_keys)->text, "f.status < %d", RP_FILE_PURGED);
    assert_int_equal(RP_FILE_EXPIRED, RP_FILE_PURGED + 1);
    expect_in("file_along", RP_SQL(file_along)->text, "f.status = %d AND f.was <> %d ", RP_FILE_DELETED,
              RP_FILE_PENDING);
    expect_in("file_along", RP_SQL(file_along)->text, "(m.state <> %d OR ", RP_MARKED);
    expect_in("tenant_compare", RP_SQL(tenant_compare)->text, "MAX(CASE WHEN kind = %d THEN 1 ELSE 0 END) AS used",
              RP_LEDGER_USE);
    expect_in("tenant_compare", RP_SQL(tenant_compare)->text, "MAX(CASE WHEN kind = %d THEN 1 ELSE 0 END) AS refunds",
              RP_LEDGER_REFUND);
    expect_in("tenant_compare", RP_SQL(tenant_compare)->text, "CASE kind WHEN %d THEN bytes WHEN %d THEN -bytes",
              RP_LEDGER_RESERVE, RP_LEDGER_REFUND);
}

static void test_only_the_designed_moves_of_a_file_are_allowed(void **state)
{
    (void)state;
    static const char *const names[RP_STATUSES] = {
        [RP_FILE_PENDING] = "pending", [RP_FILE_SCANNING] = "scanning", [RP_FILE_LIVE] = "live",
        [RP_FILE_DELETED] = "deleted", [RP_FILE_PURGED] = "purged",     [RP_FILE_EXPIRED] = "expired"
    };
    static const char *const allowed[RP_STATUSES] = {
        /* clang-format off */
        /*                     pending scanning live deleted purged expired */
        [RP_FILE_PENDING]  = "    -      yes    yes    yes     -      yes",
        [RP_FILE_SCANNING] = "    -       -     yes    yes    yes      - ",
        [RP_FILE_LIVE]     = "    -       -      -     yes    yes      - ",
        [RP_FILE_DELETED]  = "    -      yes    yes     -     yes      - ",
        [RP_FILE_PURGED]   = "    -       -      -      -      -       - ",
        [RP_FILE_EXPIRED]  = "    -       -      -      -      -       - ",
        /* clang-format on */
    };
    for (int from = RP_FILE_PENDING; from < RP_STATUSES; from++) {
        char row[80], *rest = row;
        enum rp_status found = RP_FILE_PENDING;
        snprintf(row, sizeof row, "%s", allowed[from]);
        for (int to = RP_FILE_PENDING; to < RP_STATUSES; to++) {
            bool may = strcmp(strtok_r(rest, " ", &rest), "yes") == 0;
            if (rp_status_may_move((enum rp_status)from, (enum rp_status)to) != may)
                fail_msg("%s -> %s", names[from], names[to]);
        }
        assert_string_equal(rp_status_name((enum rp_status)from), names[from]);
        assert_true(rp_status_parse(names[from], &found));
        assert_int_equal(found, from);
        assert_false(rp_status_parse("Live", &found));
    }
}

static void test_scopes_in_the_statements_are_those_of_the_enum(void **state)
{
    (void)state;
    const enum rp_statement users[] = { RP_SQL_mark_due, RP_SQL_mark_due_peek };
    for (size_t i = 0; i < COUNT(users); i++) {
        const struct rp_sql *sql = &rp_statements[users[i]];
        expect_in(sql->name, sql->text, "h.scope = %d)", RP_SCOPE_EVERYTHING);
        expect_in(sql->name, sql->text, "h.scope = %d AND h.store_id = m.store_id AND h.key IN ", RP_SCOPE_SUBJECT);
        expect_in(sql->name, sql->text, "h.scope = %d AND h.store_id = m.store_id AND (substr(", RP_SCOPE_PREFIX);
        expect_in(sql->name, sql->text, "h.scope = %d AND h.tenant_id = ", RP_SCOPE_TENANT);
    }
}

static void test_the_statements_know_a_copy_in_quarantine_by_its_key(void **state)
{
    (void)state;
    const enum rp_statement users[] = { RP_SQL_mark_due, RP_SQL_mark_due_peek };
    for (size_t i = 0; i < COUNT(users); i++)
        expect_in(rp_statements[users[i]].name, rp_statements[users[i]].text,
                  "substr(m.key, 1, length('%s')) = '%s' AND m.run_id", RP_STORE_QUARANTINE, RP_STORE_QUARANTINE);
}

static void test_numbers_in_the_schema_are_those_of_the_enums(void **state)
{
    (void)state;
    expect_in("the schema", rp_schema_steps[0].sql, "-- %d subject, %d prefix, %d tenant, %d everything",
              RP_SCOPE_SUBJECT, RP_SCOPE_PREFIX, RP_SCOPE_TENANT, RP_SCOPE_EVERYTHING);
    expect_in("the schema", rp_schema_steps[0].sql, "%d: references", RP_CHECK_REFERENCES);
    expect_in("the schema", rp_schema_steps[0].sql, "-- %d store", RP_STORE_STORE);
    expect_in("the schema", rp_schema_steps[0].sql, "-- %d reserve, %d use, %d refund", RP_LEDGER_RESERVE,
              RP_LEDGER_USE, RP_LEDGER_REFUND);
    expect_in("the schema", rp_schema_steps[1].sql, "-- %d open, %d committed, %d aborted", RP_TXN_OPEN,
              RP_TXN_COMMITTED, RP_TXN_ABORTED);
}

/* They stand in catalogs that people have: this table may only grow. */
static void test_stored_numbers_never_change(void **state)
{
    (void)state;
    const struct {
        int is, must_be;
    } numbers[] = {
        { RP_MARKED, 1 },        { RP_CHECKING, 2 },      { RP_PURGING, 3 },        { RP_PURGED, 4 },
        { RP_REPRIEVED, 5 },     { RP_DEAD, 6 },          { RP_LOST, 7 },           { RP_STATES, 8 },
        { RP_END_ERASED, 1 },    { RP_END_GONE, 2 },      { RP_END_SUPERSEDED, 3 }, { RP_END_QUARANTINED, 4 },
        { RP_END_RESTORED, 5 },  { RP_END_RECOVERED, 6 }, { RP_END_KEPT, 7 },       { RP_END_CONFIRMED, 8 },
        { RP_FILE_PENDING, 1 },  { RP_FILE_SCANNING, 2 }, { RP_FILE_LIVE, 3 },      { RP_FILE_DELETED, 4 },
        { RP_FILE_PURGED, 5 },   { RP_FILE_EXPIRED, 6 },  { RP_LEDGER_RESERVE, 1 }, { RP_LEDGER_USE, 2 },
        { RP_LEDGER_REFUND, 3 }, { RP_TXN_OPEN, 1 },      { RP_TXN_COMMITTED, 2 },  { RP_TXN_ABORTED, 3 },
        { RP_SCOPE_SUBJECT, 1 }, { RP_SCOPE_PREFIX, 2 },  { RP_SCOPE_TENANT, 3 },   { RP_SCOPE_EVERYTHING, 4 }
    };
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_int_equal(numbers[i].is, numbers[i].must_be);
}

static void test_every_state_has_its_name_and_is_found_by_it(void **state)
{
    (void)state;
    static const char *const names[RP_STATES] = {
        [RP_MARKED] = "marked",       [RP_CHECKING] = "checking", [RP_PURGING] = "purging", [RP_PURGED] = "purged",
        [RP_REPRIEVED] = "reprieved", [RP_DEAD] = "dead",         [RP_LOST] = "lost"
    };
    enum rp_state found = RP_LOST;
    for (int s = RP_MARKED; s < RP_STATES; s++) {
        assert_string_equal(rp_state_name((enum rp_state)s), names[s]);
        assert_true(rp_state_parse(names[s], &found));
        assert_int_equal(found, s);
    }
    assert_false(rp_state_parse("", &found));
    assert_false(rp_state_parse("Marked", &found));
    assert_false(rp_state_parse("purge", &found));
    for (int e = RP_END_ERASED; e < RP_ENDS; e++)
        assert_true(rp_end_name((enum rp_end)e)[0] != 0);
}

static void test_only_the_designed_moves_are_allowed(void **state)
{
    (void)state;
    /* rows: from, columns: to */
    static const char *const allowed[RP_STATES] = {
        /* clang-format off */
        /*                 marked checking purging purged reprieved dead lost */
        [RP_MARKED]    = "   -      yes      yes     -       yes     -    - ",
        [RP_CHECKING]  = "  yes     yes      yes     -       yes    yes   - ",
        [RP_PURGING]   = "   -       -       yes    yes      yes    yes   - ", /* reprieved: superseded, and asserted */
        [RP_PURGED]    = "   -       -        -      -        -      -    - ",
        [RP_REPRIEVED] = "   -       -        -      -        -      -    - ",
        [RP_DEAD]      = "   -      yes      yes     -       yes     -   yes",
        [RP_LOST]      = "   -       -        -      -        -      -    - ",
        /* clang-format on */
    };
    for (int from = RP_MARKED; from < RP_STATES; from++) {
        char row[80], *rest = row;
        snprintf(row, sizeof row, "%s", allowed[from]);
        for (int to = RP_MARKED; to < RP_STATES; to++) {
            bool may = strcmp(strtok_r(rest, " ", &rest), "yes") == 0;
            if (rp_state_may_move((enum rp_state)from, (enum rp_state)to) != may)
                fail_msg("%s -> %s", rp_state_name((enum rp_state)from), rp_state_name((enum rp_state)to));
        }
        bool final = from == RP_PURGED || from == RP_REPRIEVED || from == RP_LOST;
        assert_int_equal(rp_state_final((enum rp_state)from), final);
    }
}

/* ---- mark ---- */

/* What every case begins with: an object that is there, a store with a grace of 5 days, no mark. */
static struct rp_mark_request asked;
static struct rp_mark_facts facts;
static struct rp_store_config config;
static struct rp_mark active;
static struct rp_error err;

static void begin(void)
{
    asked = (struct rp_mark_request){ .key = "k", .grace_ms = -1, .at_ms = -1, .reason = "" };
    facts = (struct rp_mark_facts){ .found = RP_OUT_FOUND,
                                    .identity = { .etag = "e1", .size_bytes = 7 },
                                    .references = -1 };
    config = (struct rp_store_config){ .name = "main", .grace_ms = 5 * DAY, .mode = RP_MODE_PURGE };
    active = (struct rp_mark){ .id = 9,
                               .key = "k",
                               .state = RP_MARKED,
                               .etag = "e1",
                               .version = "",
                               .size_bytes = 7,
                               .marked_at_ms = NOW - DAY,
                               .due_at_ms = NOW + 4 * DAY };
    rp_error_clear(&err);
}

static void expect(enum rp_marking what, int code, int64_t due_at_ms)
{
    struct rp_mark_decision d = rp_mark_decide(&asked, &facts, &config, NOW, &err);
    assert_int_equal(d.what, what);
    assert_int_equal(d.code, code);
    assert_int_equal(err.code, code);
    if (code == 0)
        assert_int_equal(d.due_at_ms, due_at_ms);
    else
        assert_int_equal(d.what, RP_MARK_REFUSED);
}

static void test_mark_of_an_object_is_due_after_the_stores_grace(void **state)
{
    (void)state;
    begin();
    expect(RP_MARK_CREATED, 0, NOW + 5 * DAY);
    config.grace_ms = 2 * DAY;
    expect(RP_MARK_CREATED, 0, NOW + 2 * DAY);
    asked.grace_ms = 7 * DAY;
    expect(RP_MARK_CREATED, 0, NOW + 7 * DAY);
    asked.grace_ms = -1;
    asked.at_ms = NOW + 9 * DAY + 1;
    expect(RP_MARK_CREATED, 0, NOW + 9 * DAY + 1);
}

static void test_mark_needs_an_object_that_could_be_seen(void **state)
{
    (void)state;
    const struct {
        enum rp_outcome found;
        int code;
    } cases[] = { { RP_OUT_GONE, RP_ENOTFOUND },
                  { RP_OUT_DENIED, RP_EDENIED },
                  { RP_OUT_RETRY, RP_EUNAVAILABLE },
                  { RP_OUT_UNKNOWN, RP_EUNAVAILABLE },
                  { RP_OUT_NONE, RP_EUNAVAILABLE } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        begin();
        facts.found = cases[i].found;
        snprintf(facts.note, sizeof facts.note, "why");
        expect(RP_MARK_REFUSED, cases[i].code, 0);
        assert_non_null(strstr(err.text, "main:k"));
        facts.active = &active; /* also when it is marked already */
        expect(RP_MARK_REFUSED, cases[i].code, 0);
    }
}

static void test_grace_is_one_to_thirty_days_both_included(void **state)
{
    (void)state;
    const struct {
        int64_t span_ms;
        bool fits;
    } cases[] = { { 0, false },           { DAY - 1, false }, { DAY, true },          { DAY + 1, true },
                  { 30 * DAY - 1, true }, { 30 * DAY, true }, { 30 * DAY + 1, false } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (int form = 0; form < 3; form++) {
            begin();
            if (form == 0) asked.grace_ms = cases[i].span_ms;
            if (form == 1) asked.at_ms = NOW + cases[i].span_ms;
            if (form == 2) config.grace_ms = cases[i].span_ms;
            expect(cases[i].fits ? RP_MARK_CREATED : RP_MARK_REFUSED, cases[i].fits ? 0 : RP_EGRACE,
                   NOW + cases[i].span_ms);
            if (!cases[i].fits) assert_non_null(strstr(err.text, "1d to 30d"));
            config.allow_any_grace = true;
            rp_error_clear(&err);
            expect(RP_MARK_CREATED, 0, NOW + cases[i].span_ms);
        }
    }
}

static void test_a_time_in_the_past_is_now_at_most_where_any_grace_is_allowed(void **state)
{
    (void)state;
    begin();
    asked.at_ms = NOW - DAY;
    expect(RP_MARK_REFUSED, RP_EGRACE, 0);
    begin();
    asked.at_ms = NOW - DAY;
    config.allow_any_grace = true;
    expect(RP_MARK_CREATED, 0, NOW);
    asked.at_ms = 0;
    expect(RP_MARK_CREATED, 0, NOW);
}

static void test_references_count_only_when_asked_and_only_when_answered(void **state)
{
    (void)state;
    begin();
    facts.references = 3; /* nobody asked for the condition */
    facts.references_in = "post.image_key in app";
    expect(RP_MARK_CREATED, 0, NOW + 5 * DAY);
    asked.if_unreferenced = true;
    expect(RP_MARK_REFUSED, RP_EREFERENCED, 0);
    assert_non_null(strstr(err.text, "3 rows (post.image_key in app)"));
    facts.references = 1;
    expect(RP_MARK_REFUSED, RP_EREFERENCED, 0);
    assert_non_null(strstr(err.text, "1 row"));
    rp_error_clear(&err);
    facts.references = 0;
    expect(RP_MARK_CREATED, 0, NOW + 5 * DAY);
    facts.references = -1; /* a look-up that never happened is no zero */
    expect(RP_MARK_REFUSED, RP_EUNAVAILABLE, 0);
    facts.references_code = RP_EUNAVAILABLE;
    expect(RP_MARK_REFUSED, RP_EUNAVAILABLE, 0);
    facts.references = 0; /* a failed look-up is no zero whatever stands there */
    expect(RP_MARK_REFUSED, RP_EUNAVAILABLE, 0);
}

static void test_marking_again_gives_the_same_mark_or_a_later_one(void **state)
{
    (void)state;
    begin();
    facts.active = &active;
    expect(RP_MARK_SAME, 0, active.due_at_ms); /* no time given: the promise stands */
    asked.at_ms = active.due_at_ms;
    expect(RP_MARK_SAME, 0, active.due_at_ms);
    asked.at_ms = active.due_at_ms + 1;
    expect(RP_MARK_EXTENDED, 0, active.due_at_ms + 1);
    asked.at_ms = active.due_at_ms - 1;
    expect(RP_MARK_REFUSED, RP_EMARKED, 0);
    rp_error_clear(&err);
    asked.at_ms = -1;
    asked.grace_ms = 5 * DAY;
    expect(RP_MARK_EXTENDED, 0, NOW + 5 * DAY);
    asked.grace_ms = 2 * DAY;
    expect(RP_MARK_REFUSED, RP_EMARKED, 0);
    asked.grace_ms = 31 * DAY; /* the range comes first */
    expect(RP_MARK_REFUSED, RP_EGRACE, 0);
}

static void test_marking_again_once_the_purge_has_begun_changes_nothing(void **state)
{
    (void)state;
    const enum rp_state begun[] = { RP_CHECKING, RP_PURGING, RP_DEAD };
    for (size_t i = 0; i < COUNT(begun); i++) {
        begin();
        active.state = begun[i];
        facts.active = &active;
        expect(RP_MARK_SAME, 0, active.due_at_ms);
        asked.at_ms = active.due_at_ms - DAY;
        expect(RP_MARK_SAME, 0, active.due_at_ms);
        asked.at_ms = active.due_at_ms + DAY; /* more time that it cannot get any more: not without a word */
        expect(RP_MARK_REFUSED, RP_EMARKED, 0);
        rp_error_clear(&err);
    }
}

static void change_upload(int what)
{
    if (what == 0) snprintf(facts.identity.etag, sizeof facts.identity.etag, "e2");
    if (what == 1) snprintf(facts.identity.version, sizeof facts.identity.version, "v2");
    if (what == 2) facts.identity.size_bytes = 8;
}

static void test_a_newer_upload_is_marked_anew_unless_the_older_one_is_being_purged(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        begin();
        facts.active = &active;
        change_upload(what);
        expect(RP_MARK_REPLACED, 0, NOW + 5 * DAY);
        asked.grace_ms = DAY; /* an earlier time than the old mark's: it is another upload's promise */
        expect(RP_MARK_REPLACED, 0, NOW + DAY);
        const enum rp_state begun[] = { RP_CHECKING, RP_PURGING, RP_DEAD };
        for (size_t i = 0; i < COUNT(begun); i++) {
            active.state = begun[i];
            expect(RP_MARK_REFUSED, RP_EMARKED, 0);
            rp_error_clear(&err);
        }
    }
}

/* ---- restore ---- */

static void test_restore_of_each_state(void **state)
{
    (void)state;
    const struct {
        enum rp_state is, was, aside; /* aside 0: no copy in quarantine */
        enum rp_reprieving what;
        int code;
    } cases[] = {
        { RP_MARKED, RP_MARKED, 0, RP_REPRIEVE_DONE, 0 },
        { RP_MARKED, RP_CHECKING, 0, RP_REPRIEVE_DONE, 0 }, /* still referenced: back to marked */
        { RP_CHECKING, RP_MARKED, 0, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_PURGING, RP_MARKED, 0, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_PURGED, RP_PURGING, 0, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_PURGED, RP_PURGING, RP_MARKED, RP_REPRIEVE_RETURNED, 0 },
        { RP_PURGED, RP_PURGING, RP_PURGING, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_PURGED, RP_PURGING, RP_DEAD, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_PURGED, RP_PURGING, RP_REPRIEVED, RP_REPRIEVE_ALREADY, 0 }, /* returned before */
        { RP_REPRIEVED, RP_MARKED, 0, RP_REPRIEVE_ALREADY, 0 },
        { RP_DEAD, RP_CHECKING, 0, RP_REPRIEVE_DONE, 0 },
        { RP_DEAD, RP_PURGING, 0, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
        { RP_LOST, RP_DEAD, 0, RP_REPRIEVE_REFUSED, RP_ETOOLATE },
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rp_error why = { 0 };
        struct rp_mark mark = { .key = "k", .state = cases[i].is, .was = cases[i].was };
        struct rp_mark aside = { .key = "a", .state = cases[i].aside };
        enum rp_reprieving what = rp_reprieve_decide(&mark, cases[i].aside != 0 ? &aside : NULL, "main", &why);
        if (what != cases[i].what || why.code != cases[i].code) fail_msg("case %zu", i);
        if (why.code < 0) assert_non_null(strstr(why.text, "main:k"));
    }
}

static void test_the_mark_of_a_copy_in_quarantine_is_not_restored_by_itself(void **state)
{
    (void)state;
    for (int s = RP_MARKED; s < RP_STATES; s++) {
        struct rp_error why = { 0 };
        struct rp_mark mark = { .key = ".reprieve/quarantine/mrk_1", .state = (enum rp_state)s, .was = RP_CHECKING };
        assert_int_equal(rp_reprieve_decide(&mark, NULL, "main", &why), RP_REPRIEVE_REFUSED);
        assert_int_equal(why.code, RP_EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_in_the_statements_are_those_of_the_enums),
        cmocka_unit_test(test_states_in_words_for_people_are_those_of_the_table),
        cmocka_unit_test(test_statuses_in_the_statements_are_those_of_the_enum),
        cmocka_unit_test(test_only_the_designed_moves_of_a_file_are_allowed),
        cmocka_unit_test(test_scopes_in_the_statements_are_those_of_the_enum),
        cmocka_unit_test(test_the_statements_know_a_copy_in_quarantine_by_its_key),
        cmocka_unit_test(test_numbers_in_the_schema_are_those_of_the_enums),
        cmocka_unit_test(test_stored_numbers_never_change),
        cmocka_unit_test(test_every_state_has_its_name_and_is_found_by_it),
        cmocka_unit_test(test_only_the_designed_moves_are_allowed),
        cmocka_unit_test(test_mark_of_an_object_is_due_after_the_stores_grace),
        cmocka_unit_test(test_mark_needs_an_object_that_could_be_seen),
        cmocka_unit_test(test_grace_is_one_to_thirty_days_both_included),
        cmocka_unit_test(test_a_time_in_the_past_is_now_at_most_where_any_grace_is_allowed),
        cmocka_unit_test(test_references_count_only_when_asked_and_only_when_answered),
        cmocka_unit_test(test_marking_again_gives_the_same_mark_or_a_later_one),
        cmocka_unit_test(test_marking_again_once_the_purge_has_begun_changes_nothing),
        cmocka_unit_test(test_a_newer_upload_is_marked_anew_unless_the_older_one_is_being_purged),
        cmocka_unit_test(test_restore_of_each_state),
        cmocka_unit_test(test_the_mark_of_a_copy_in_quarantine_is_not_restored_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
