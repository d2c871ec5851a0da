/* SPDX-License-Identifier: Apache-2.0 */
/* restores.c - what a restore is told of services: why it is too late, and who has deleted already. */
#include "base/cleanup.h"
#include "base/text/buf.h"
#include "core/confirm/confirm.h"

static void add_name(struct rp_buf *names, const char *name)
{
    rp_buf_fmt(names, "%s%.63s", names->len > 0 ? ", " : "", name);
}

/* Nothing: nobody was asked. */
static void name_services(const struct rp_confirmations *all, struct rp_buf *out)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf agreed = RP_BUF(1024), asked = RP_BUF(1024);
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].state == RP_CONFIRM_YES)
            add_name(&agreed, all->at[i].name);
        else if (all->at[i].asked_at_ms != 0)
            add_name(&asked, all->at[i].name);
    }
    if (agreed.len > 0) rp_buf_fmt(out, "an outside service has deleted its half: %s", rp_buf_text(&agreed));
    if (asked.len > 0)
        rp_buf_fmt(out, "%s: %s", agreed.len > 0 ? "; asked" : "an outside service was asked to delete its half",
                   rp_buf_text(&asked));
    if (agreed.failed < 0 || asked.failed < 0) out->failed = RP_ENOMEM;
}

static const char *hint_of(const struct rp_mark *mark, bool asked)
{
    if (mark->state == RP_DEAD) return "`reprieve dead` lists it: retry or keep it there";
    if ((mark->checks & RP_CHECK_AGREED) != 0) return "that half is gone; a hold stops further calls and the purge";
    if (asked)
        return "if it refuses, restore it then; `reprieve explain` says when it is asked again; a hold stops further "
               "calls";
    return "no outside service was asked yet: try again in a moment";
}

int rp_confirm_refuse(struct rp_db *db, const struct rp_mark *mark, struct rp_arena *arena, const char *before,
                      struct rp_error *refusal, struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(4096);
    struct rp_confirmations all = { 0 };
    bool checking = mark->state == RP_CHECKING && (mark->checks & (RP_CHECK_CONFIRMATIONS | RP_CHECK_AGREED)) != 0;
    bool dead = mark->state == RP_DEAD && mark->was == RP_CHECKING && (mark->checks & RP_CHECK_AGREED) != 0;
    if (refusal->code != RP_ETOOLATE || (!checking && !dead)) return 0;
    int r = rp_confirmations_of(db, &mark->id, 1, arena, &all, err);
    if (r < 0) return r;
    name_services(&all, &names);
    if (names.failed < 0) return rp_error_set(err, RP_ENOMEM, "no memory for the names of services");
    bool asked = names.len > 0;
    rp_error_set(refusal, RP_ETOOLATE, "%s %.300s", before,
                 asked ? rp_buf_text(&names) : "whether it may go is being looked at");
    rp_error_hint(refusal, "%s", hint_of(mark, asked));
    return 0;
}

int rp_confirmations_agreed(struct rp_db *db, int64_t mark_id, struct rp_arena *arena, const char **out,
                            struct rp_error *err)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf names = RP_BUF(1024);
    struct rp_confirmations all;
    int r = rp_confirmations_of(db, &mark_id, 1, arena, &all, err);
    for (size_t i = 0; i < all.n && r == 0; i++)
        if (all.at[i].state == RP_CONFIRM_YES) add_name(&names, all.at[i].name);
    if (r < 0) return r;
    *out = rp_arena_strdup(arena, names.len > 0 ? rp_buf_text(&names) : "");
    return *out != NULL ? 0 : rp_error_set(err, RP_ENOMEM, "out of memory");
}
