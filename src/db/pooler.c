/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody between us and the server hands its sessions out anew with every transaction. */
#include "base/cleanup.h"
#include "base/error.h"
#include "db/driver.h"

#include <string.h>

#define ASK_MS 10000

static const struct rp_sql backend_pid = {
    .name = "backend_pid", .text = "SELECT pg_backend_pid()", .params = "", .columns = "i"
};

static int pid_row(void *ctx, const struct rp_value *row, struct rp_error *err)
{
    (void)err;
    *(int64_t *)ctx = row[0].i;
    return 0;
}

static int ask_pid(struct rp_db *db, int64_t *out, struct rp_error *err)
{
    return rp_db_query(db, &backend_pid, NULL, pid_row, out, err);
}

/* What was prepared before is not known to the session that we got now. */
static bool has_lost_statement(const struct rp_error *err)
{
    return strstr(err->text, "prepared statement") != NULL;
}

/* `b` begins a transaction, which keeps a server's session to itself. A pooler gives it the one
 * that `a` was on a moment ago, or gives `a` another one now. */
static int compare(struct rp_db *a, struct rp_db *b, bool *out, struct rp_error *err)
{
    int64_t before = 0, other = 0, after = 0;
    int r = ask_pid(a, &before, err);
    if (r == 0) r = rp_db_begin(b, true, err);
    if (r == 0) r = ask_pid(b, &other, err);
    if (r == 0) r = ask_pid(a, &after, err);
    rp_db_rollback(b);
    *out = r == 0 ? before == other || before != after : has_lost_statement(err);
    return *out ? 0 : r;
}

int rp_db_is_pooled(const char *url, bool *out, struct rp_error *err)
{
    RP_CLEANUP(rp_db_closep) struct rp_db *a = NULL;
    RP_CLEANUP(rp_db_closep) struct rp_db *b = NULL;
    const struct rp_db_options options = { .statement_ms = ASK_MS };
    *out = false;
    if (strncmp(url, "postgres", 8) != 0) return 0;
    int r = rp_db_open(url, &options, &a, err);
    if (r == 0) r = rp_db_open(url, &options, &b, err);
    return r < 0 ? r : compare(a, b, out, err);
}
