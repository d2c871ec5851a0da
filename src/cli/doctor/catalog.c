/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration, and the catalog that it names. */
#include "cli/doctor/doctor.h"

#include "base/time.h"
#include "catalog/clock.h"

#include <string.h>

static const char database_silent[] = "see to it that the database answers (catalog.url)";

/* Opens the session without its catalog. */
void rp_doctor_config(struct rp_doctor *d)
{
    struct rp_session_options options = rp_cli_options(d->cli);
    struct rp_session *s = &d->cli->session;
    struct rp_error why = { 0 };
    options.no_catalog = true;
    if (rp_session_open(s, &options, &why) < 0) {
        rp_judge_error(d, &why, "correct the file, then run `reprieve doctor` again");
        d->over = true;
        return;
    }
    rp_judge(d, RP_FINE, "", "%s, environment '%s'; stores: %zu, databases: %zu",
             s->config.file != NULL ? s->config.file : "no file: the embedded default", s->config.environment,
             s->config.n_stores, s->config.n_databases);
}

void rp_doctor_catalog(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    rp_session_close(&d->cli->session);
    if (rp_cli_open(d->cli, &why) < 0) {
        rp_judge_error(d, &why, database_silent);
        d->over = true;
        return;
    }
    const struct rp_catalog *catalog = d->cli->session.catalog;
    rp_judge(d, RP_FINE, "", "%s, schema %d, %s", rp_db_engine(catalog->db), rp_catalog_schema_known(), catalog->id);
}

/* Whether a catalog that was put back can be told by the place it is found in. */
void rp_doctor_vessel(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    char vessel[RP_VESSEL_TEXT] = "";
    if (rp_db_vessel(d->cli->session.catalog->db, "meta", vessel, &why) < 0)
        rp_judge_error(d, &why, "");
    else if (vessel[0] == 0)
        rp_judge(d, RP_DOUBTFUL, "keep it on a local file system (no FUSE, NFS, SMB, 9P or overlay), or in PostgreSQL",
                 "cannot be told: of a catalog put back from a backup the last minute may go unnoticed");
    else
        rp_judge(d, RP_FINE, "", "%s", vessel);
}

void rp_doctor_sessions(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    bool pooled = false;
    if (strcmp(rp_db_engine(d->cli->session.catalog->db), "postgres") != 0) return;
    if (rp_db_is_pooled(d->cli->session.config.catalog_url, &pooled, &why) < 0)
        rp_judge_error(d, &why, database_silent);
    else if (pooled)
        rp_judge(d, RP_WRONG, "connect catalog.url to the server itself, or to a pool in session mode",
                 "a transaction pooler stands before the catalog: time-outs and prepared statements do not last");
    else
        rp_judge(d, RP_FINE, "", "its own");
}

void rp_doctor_clock(struct rp_doctor *d)
{
    struct rp_error why = { 0 };
    struct rp_clock_state clock;
    char apart[RP_TIME_TEXT];
    if (rp_clock_look(d->cli->session.catalog, &clock, &why) < 0 || rp_clock_refuse(clock.ahead_ms, &why) < 0) {
        rp_judge_error(d, &why, "");
        return;
    }
    if (clock.ahead_ms < -RP_CLOCKS_APART_MS)
        rp_judge(d, RP_DOUBTFUL,
                 "if it is right now, run `reprieve clock accept`: new marks count by the later time until then",
                 "it was set back by %s since this host booted",
                 rp_duration_format(-clock.ahead_ms / 1000 * 1000, apart));
    int64_t ms = clock.db_ms - clock.wall_ms;
    if (ms < 0) ms = -ms;
    rp_judge(d, ms > RP_CLOCKS_APART_MS ? RP_WRONG : RP_FINE,
             "set the clocks: nothing is purged while they are over 5m apart", "host and database are %s apart",
             rp_duration_format(ms, apart));
}
