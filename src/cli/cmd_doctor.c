/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor.c - `doctor`: the order of the checks, and the line that each finding gets. */
#include "cli/doctor/doctor.h"

#include "base/text/json.h"

#include <stdio.h>

/* In this order. The name is that of the line; a check of several things gives each its own. */
static const struct {
    const char *name;
    rp_doctor_fn *look;
} checks[] = {
    { "configuration", rp_doctor_config },
    { "files", rp_doctor_files },
    { "catalog", rp_doctor_catalog },
    { "catalog's place", rp_doctor_vessel },
    { "catalog's disk", rp_doctor_disk },
    { "audit segments", rp_doctor_segments },
    { "catalog sessions", rp_doctor_sessions },
    { "clock", rp_doctor_clock },
    { "stores", rp_doctor_stores },
    { "stores", rp_doctor_left_stores },
    { "endpoints", rp_doctor_endpoints },
    { "sinks", rp_doctor_sinks },
    { "processor", rp_doctor_processor },
    { "dead letters", rp_doctor_dead },
    { "pause", rp_doctor_pause },
    { "runs", rp_doctor_runs },
};

static void emit(struct rp_doctor *d, const char *status, const char *text, const char *remedy)
{
    json_t *o = rp_json_object("check", rp_json_text(d->check), "status", json_string(status), "message",
                               rp_json_text(text), NULL);
    if (remedy[0] != 0) rp_json_set(o, "remedy", rp_json_text(remedy));
    if (d->more != NULL) rp_json_merge(o, d->more);
    json_decref(d->more);
    d->more = NULL;
    rp_emit(d->cli, o);
}

void rp_judge(struct rp_doctor *d, enum rp_verdict verdict, const char *remedy, const char *fmt, ...)
{
    static const char *const names[] = { [RP_FINE] = "ok", [RP_DOUBTFUL] = "warn", [RP_WRONG] = "fail" };
    char text[600], shown[RP_SHOWN_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    d->warned += verdict == RP_DOUBTFUL;
    d->failed += verdict == RP_WRONG;
    if (verdict == RP_FINE) remedy = "";
    if (d->cli->json) {
        emit(d, names[verdict], text, remedy);
        return;
    }
    if (d->cli->quiet && verdict == RP_FINE) return;
    printf("%-5s %-20s %s\n", names[verdict], d->check, rp_show(text, shown));
    if (remedy[0] != 0) printf("%-26s -> %s\n", "", rp_show(remedy, shown));
}

void rp_judge_error(struct rp_doctor *d, const struct rp_error *why, const char *remedy)
{
    rp_judge(d, RP_WRONG, why->hint[0] != 0 ? why->hint : remedy, "%s", why->text);
}

int rp_cmd_doctor(struct rp_cli *cli, struct rp_error *err)
{
    struct rp_doctor d = { .cli = cli };
    (void)err;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0] && !d.over; i++) {
        snprintf(d.check, sizeof d.check, "%s", checks[i].name);
        checks[i].look(&d);
    }
    if (d.failed > 0 || d.warned > 0) rp_say(cli, "%d failed, %d to look at\n", d.failed, d.warned);
    return d.failed > 0 ? 1 : 0;
}
