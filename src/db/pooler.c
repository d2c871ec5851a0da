/* SPDX-License-Identifier: Apache-2.0 */
/* Whether somebody between us and the server hands its sessions out anew with every transaction. */
#include "base/assert.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "db/driver.h"
#include "db/postgres.h"

#include <string.h>

#define ASK_MS   10000
#define PID_TEXT 16

/* Nothing is prepared for it: a pooler loses that. */
static int ask_pid(struct rp_db *db, char out[PID_TEXT], struct rp_error *err)
{
    return rp_pg_command(db->conn, "SELECT pg_backend_pid()", "backend pid", out, PID_TEXT, err);
}

/* `b` begins a transaction, which keeps a server's session to itself. A pooler gives it the one
 * that `a` was on a moment ago, or gives `a` another one now. */
static int compare(struct rp_db *a, struct rp_db *b, bool *pooled, struct rp_error *err)
{
    char before[PID_TEXT] = "", other[PID_TEXT] = "", after[PID_TEXT] = "";
    RP_ASSERT(a != NULL && b != NULL);
    int r = ask_pid(a, before, err);
    if (r == 0) r = rp_db_begin(b, true, err);
    if (r == 0) r = ask_pid(b, other, err);
    if (r == 0) r = ask_pid(a, after, err);
    rp_db_rollback(b);
    *pooled = r == 0 && (strcmp(before, other) == 0 || strcmp(before, after) != 0);
    return r;
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
