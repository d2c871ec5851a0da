/* SPDX-License-Identifier: Apache-2.0 */
/* A store's keys, clock, owner, references and due marks; and stores that are configured no more. */
#include "cli/doctor/doctor.h"

#include "base/cleanup.h"
#include "base/time.h"
#include "core/check/references.h"
#include "core/guarantee.h"
#include "core/owner/owner.h"
#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OVERDUE_MS (2 * RP_DAY_MS)

static void check_owner(struct rp_doctor *d, struct rp_store *store)
{
    struct rp_error why = { 0 };
    struct rp_owner owner;
    char remedy[300];
    if (rp_owner_look(d->cli->session.catalog, store, &owner, &why) < 0) {
        rp_judge_error(d, &why, "");
        return;
    }
    snprintf(remedy, sizeof remedy, "purging is stopped there; look, then `reprieve recover %s`%s", store->config->name,
             rp_ownership_is_moved(owner.ownership) ? ", or with --moved if nothing was lost" : "");
    if (owner.ownership == RP_OWNER_RENAMED)
        snprintf(remedy, sizeof remedy,
                 "purging is stopped there; name it '%s' again in the configuration, or `reprieve stores rename %s %s`",
                 owner.other_name, owner.other_name, store->config->name);
    bool fine = owner.ownership == RP_OWNER_OURS || owner.ownership == RP_OWNER_NONE;
    rp_judge(d, fine ? RP_FINE : RP_WRONG, remedy, "owner record: %s", rp_ownership_text(owner.ownership));
}

/* A promise about keys that was seen broken. */
static void check_keys(struct rp_doctor *d, const struct rp_store *store)
{
    char when[RP_WHEN_TEXT];
    int64_t at_ms = rp_guarantee_changed_at_ms(store);
    if (store->config->keys != RP_KEYS_WRITE_ONCE || at_ms == 0) return;
    rp_judge(d, RP_DOUBTFUL, "take keys: write_once out of the configuration",
             "keys: write_once is declared, but an object was seen changed under its key, %s",
             rp_show_when(at_ms, rp_session_now_ms(&d->cli->session), when));
}

/* Where its keys come from, never what they are. Asked after the probe, which has looked for
 * them. */
static void check_credentials(struct rp_doctor *d, const struct rp_store *store)
{
    const struct rp_store_config *config = store->config;
    char source[RP_KEYS_SOURCE] = "";
    if (!rp_backend_has_keys(store->backend)) return;
    rp_backend_keys_source(store->backend, source);
    rp_judge(d, RP_FINE, "", "bucket %s at %s; its keys come from %s", config->bucket,
             config->endpoint[0] != 0 ? config->endpoint : "AWS",
             source[0] != 0 ? source : "where AWS tools look, and were not needed yet");
}

static void check_store_clock(struct rp_doctor *d, struct rp_store *store)
{
    struct rp_error why = { 0 };
    char apart[RP_TIME_TEXT];
    int r = rp_guarantee_ask_clock(store, d->cli->session.catalog->clock, &why);
    int64_t ahead_ms = rp_guarantee_clock_ahead_ms(store);
    if (r < 0) {
        rp_judge_error(d, &why, "");
        return;
    }
    if (ahead_ms == RP_CLOCK_UNKNOWN) return;
    int64_t ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    rp_judge(d, ms > RP_CLOCKS_APART_MS ? RP_WRONG : RP_FINE,
             "set the clocks: nothing is purged there while they are over 5m apart", "its clock is %s %s the host's",
             rp_duration_format(ms, apart), ahead_ms < 0 ? "behind" : "ahead of");
}

static void check_overdue(struct rp_doctor *d, const struct rp_store *store)
{
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    struct rp_overdue due = { 0 };
    char oldest[RP_WHEN_TEXT] = "";
    int64_t now_ms = rp_session_now_ms(s);
    if (rp_marks_overdue(s->catalog->db, store->id, now_ms, &due, &why) < 0) {
        rp_judge_error(d, &why, "");
        return;
    }
    bool late = due.marks > 0 && now_ms - due.oldest_due_ms > OVERDUE_MS;
    if (due.marks > 0) rp_show_when(due.oldest_due_ms, now_ms, oldest);
    rp_judge(d, late ? RP_DOUBTFUL : RP_FINE, "run `reprieve sweep`, and see that something does so regularly",
             "due marks: %" PRId64 "%s%s", due.marks, due.marks > 0 ? ", the oldest since " : "", oldest);
}

static void check_references(struct rp_doctor *d, struct rp_store *store)
{
    struct rp_error why = { 0 };
    if (store->references == NULL) return;
    if (rp_references_check(store->references, &why) < 0)
        rp_judge_error(d, &why, "guarded marks are not purged until every look-up answers");
    else
        rp_judge(d, RP_FINE, "", "references: %zu %s", store->config->n_referenced_by,
                 store->config->n_referenced_by == 1 ? "look-up answers" : "look-ups answer");
}

static void check_store(struct rp_doctor *d, const struct rp_store_config *config)
{
    struct rp_error why = { 0 };
    struct rp_store *store;
    snprintf(d->check, sizeof d->check, "store %s", config->name);
    if (rp_session_store(&d->cli->session, config->name, &store, &why) < 0) {
        rp_judge_error(d, &why,
                       rp_config_is_s3(config) ? "correct the store's settings"
                                               : "see that the directory exists and this user may read it");
        return;
    }
    rp_doctor_room(d, config);
    bool answers = rp_doctor_probe(d, store);
    check_credentials(d, store);
    check_keys(d, store);
    /* one that does not answer is not asked twice: each call has its patience */
    if (answers) check_store_clock(d, store);
    if (answers && config->mode != RP_MODE_OBSERVE) check_owner(d, store);
    check_references(d, store);
    check_overdue(d, store);
}

void rp_doctor_stores(struct rp_doctor *d)
{
    const struct rp_config *config = &d->cli->session.config;
    for (size_t i = 0; i < config->n_stores; i++)
        check_store(d, &config->stores[i]);
    if (config->n_stores == 0)
        rp_judge(d, RP_DOUBTFUL, "name one under `stores:`, or run `reprieve init --store NAME=DIR`",
                 "no store is configured: nothing can be uploaded, marked or purged");
}

struct open_marks {
    const struct rp_store_rows *stores;
    int64_t *marks; /* of each of them */
};

static int count_open(void *ctx, const struct rp_tally_row *row, struct rp_error *err)
{
    struct open_marks *open = ctx;
    (void)err;
    for (size_t i = 0; i < open->stores->n; i++)
        if (row->store_id == open->stores->at[i].id && !rp_state_final((enum rp_state)row->state))
            open->marks[i] += row->marks;
    return 0;
}

/* A store is known by its name: marks of one that was renamed in the configuration alone, or taken
 * out, are swept by nobody. */
void rp_doctor_left_stores(struct rp_doctor *d)
{
    struct rp_session *s = &d->cli->session;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA((size_t)1 << 20);
    struct rp_store_rows stores = { 0 };
    struct open_marks open = { .stores = &stores };
    struct rp_error why = { 0 };
    int r = rp_store_list(s->catalog->db, &arena, &stores, &why);
    if (r == 0) open.marks = rp_arena_array(&arena, stores.n + 1, sizeof *open.marks);
    if (r == 0 && open.marks == NULL) r = rp_error_set(&why, RP_ENOMEM, "out of memory");
    if (r == 0) r = rp_tally_each(s->catalog->db, count_open, &open, &why);
    if (r < 0) rp_judge_error(d, &why, "");
    for (size_t i = 0; i < stores.n && r == 0; i++) {
        int64_t marks = open.marks[i];
        if (marks == 0 || rp_config_store(&s->config, stores.at[i].name) != NULL) continue;
        snprintf(d->check, sizeof d->check, "store %s", stores.at[i].name);
        rp_judge(
            d, RP_DOUBTFUL,
            "configure the store again under this name and restore its marks there, or let them come due; `reprieve "
            "stores rename OLD NEW` if it has another name now, but only as long as nothing hangs on NEW",
            "%" PRId64 " %s in it, and it is not configured: nobody sweeps it", marks,
            marks == 1 ? "mark waits" : "marks wait");
    }
}
