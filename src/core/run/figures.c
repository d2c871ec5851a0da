/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/figures.h"

#include "base/assert.h"
#include "base/text/json.h"
#include "base/time.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rp_figures_error(struct rp_figures *figures, const char *fmt, ...)
{
    va_list args;
    if (figures->n_errors < RP_RUN_ERRORS_MAX) {
        va_start(args, fmt);
        vsnprintf(figures->errors[figures->n_errors], sizeof figures->errors[0], fmt, args);
        va_end(args);
    }
    figures->n_errors++;
}

void rp_figures_see(struct rp_figures *figures, const char *store, const char *key, int64_t age_ms, int64_t size_bytes)
{
    int64_t age_s = age_ms > 0 ? age_ms / 1000 : 0;
    figures->scanned++;
    figures->aged++;
    figures->age_sum_s += age_s;
    if (figures->oldest[0] == 0 || age_s > figures->oldest_age_s) {
        figures->oldest_age_s = age_s;
        snprintf(figures->oldest, sizeof figures->oldest, "%s:%s", store, key);
    }
    if (figures->largest[0] == 0 || size_bytes > figures->largest_bytes) {
        figures->largest_bytes = size_bytes;
        snprintf(figures->largest, sizeof figures->largest, "%s:%s", store, key);
    }
}

void rp_figures_let_go(struct rp_figures *figures, const char *what, int64_t rows)
{
    size_t i = 0;
    while (i < figures->n_let_go && strcmp(figures->let_go[i].what, what) != 0)
        i++;
    RP_ASSERT(i < RP_LET_GO_MAX && strlen(what) < sizeof figures->let_go[i].what);
    struct rp_let_go *kind = &figures->let_go[i];
    if (i == figures->n_let_go) {
        *kind = (struct rp_let_go){ .rows = 0 };
        snprintf(kind->what, sizeof kind->what, "%s", what);
        figures->n_let_go++;
    }
    kind->rows += rows;
}

static json_t *counts_json(const struct rp_figures *f, bool restores)
{
    json_t *o =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "scanned", (json_int_t)f->scanned, "marked", (json_int_t)f->marked,
                  "purged", (json_int_t)f->purged, "already_gone", (json_int_t)f->already_gone, "skipped",
                  (json_int_t)f->skipped, "failed", (json_int_t)f->failed, "bytes_freed", (json_int_t)f->bytes_freed);
    rp_json_set(o, "superseded", json_integer(f->superseded));
    if (!restores) return o;
    rp_json_set(o, "restored", json_integer(f->restored));
    rp_json_set(o, "already_restored", json_integer(f->already_restored));
    rp_json_set(o, "returned", json_integer(f->returned));
    rp_json_set(o, "refused", json_integer(f->refused));
    return o;
}

json_t *rp_let_go_json(const struct rp_figures *f)
{
    json_t *o = json_object();
    for (size_t i = 0; i < f->n_let_go; i++)
        rp_json_set(o, f->let_go[i].what, json_integer(f->let_go[i].rows));
    return o;
}

static json_t *errors_json(const struct rp_figures *f)
{
    json_t *errors = json_array();
    for (int64_t i = 0; i < f->n_errors && i < RP_RUN_ERRORS_MAX; i++)
        rp_json_append(errors, rp_json_text(f->errors[i]));
    if (f->n_errors > RP_RUN_ERRORS_MAX)
        rp_json_append(errors, json_sprintf("and %lld more", (long long)(f->n_errors - RP_RUN_ERRORS_MAX)));
    return errors;
}

static json_t *waiting_json(const struct rp_figures *f)
{
    return json_pack("{s:I,s:I,s:I,s:I}", "count", (json_int_t)f->waiting, "bytes", (json_int_t)f->waiting_bytes,
                     "avg_age_s", (json_int_t)(f->waiting > 0 ? f->waiting_age_sum_s / f->waiting : 0), "oldest_age_s",
                     (json_int_t)f->waiting_oldest_s);
}

void rp_figures_to_json(const struct rp_figures *f, bool restores, json_t *o)
{
    rp_json_set(o, "counts", counts_json(f, restores));
    if (f->n_let_go > 0) rp_json_set(o, f->repairs ? "repaired" : "let_go", rp_let_go_json(f));
    if (f->repairs) rp_json_set(o, "behind", json_integer(f->behind));
    rp_json_set(o, "avg_age_s", json_integer(f->aged > 0 ? f->age_sum_s / f->aged : 0));
    if (f->oldest[0] != 0)
        rp_json_set(o, "oldest",
                    json_pack("{s:o,s:I}", "subject", rp_json_text(f->oldest), "age_s", (json_int_t)f->oldest_age_s));
    if (f->largest[0] != 0)
        rp_json_set(o, "largest",
                    json_pack("{s:o,s:I}", "subject", rp_json_text(f->largest), "bytes", (json_int_t)f->largest_bytes));
    if (f->has_waiting) rp_json_set(o, "waiting", waiting_json(f));
    rp_json_set(o, "errors", errors_json(f));
}

static void read_subject(const json_t *from, const char *number, char subject[RP_SUBJECT_TEXT], int64_t *out)
{
    if (from == NULL) return;
    snprintf(subject, RP_SUBJECT_TEXT, "%s", rp_json_get_text(from, "subject", ""));
    *out = rp_json_get_int(from, number, 0);
}

static void read_let_go(const json_t *o, struct rp_figures *f)
{
    const char *what;
    json_t *rows;
    json_object_foreach((json_t *)(uintptr_t)o, what,
                        rows) if (f->n_let_go < RP_LET_GO_MAX && strlen(what) < sizeof f->let_go[0].what)
        rp_figures_let_go(f, what, json_integer_value(rows));
}

void rp_figures_from_json(const json_t *o, struct rp_figures *f)
{
    const json_t *counts = json_object_get(o, "counts"), *errors = json_object_get(o, "errors");
    const struct {
        const char *name;
        int64_t *to;
    } numbers[] = { { "scanned", &f->scanned },         { "marked", &f->marked },
                    { "purged", &f->purged },           { "already_gone", &f->already_gone },
                    { "skipped", &f->skipped },         { "failed", &f->failed },
                    { "bytes_freed", &f->bytes_freed }, { "restored", &f->restored },
                    { "returned", &f->returned },       { "already_restored", &f->already_restored },
                    { "refused", &f->refused },         { "superseded", &f->superseded } };
    *f = (struct rp_figures){ 0 };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        *numbers[i].to = rp_json_get_int(counts, numbers[i].name, 0);
    f->aged = f->scanned;
    f->age_sum_s = f->aged * rp_json_get_int(o, "avg_age_s", 0);
    f->repairs = json_object_get(o, "repaired") != NULL;
    read_let_go(json_object_get(o, f->repairs ? "repaired" : "let_go"), f);
    f->behind = rp_json_get_int(o, "behind", 0);
    read_subject(json_object_get(o, "oldest"), "age_s", f->oldest, &f->oldest_age_s);
    read_subject(json_object_get(o, "largest"), "bytes", f->largest, &f->largest_bytes);
    for (size_t i = 0; i < json_array_size(errors); i++) {
        const char *text = json_string_value(json_array_get(errors, i));
        rp_figures_error(f, "%s", text != NULL ? text : "?");
    }
}
