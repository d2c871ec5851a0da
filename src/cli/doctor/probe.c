/* SPDX-License-Identifier: Apache-2.0 */
/* What a store guarantees, as a probe finds it. */
#include "cli/doctor/doctor.h"

#include "base/text/json.h"
#include "core/guarantee.h"
#include "core/subject/subject.h"

#include <stdio.h>
#include <string.h>

static const char *sentence_of(enum rp_level level)
{
    static const char *const sentences[] = {
        [RP_LEVEL_WINDOW] = "an upload between the look and the delete could be lost; allow_window_deletes accepts it",
        [RP_LEVEL_ETAG] = "a delete is refused if another upload stands there; identical bytes cannot be told apart",
        [RP_LEVEL_VERSION] = "a delete names the version that was marked, and cannot hit a newer one",
        [RP_LEVEL_EXACT] = "a key is never used for two uploads, so that a delete can only hit what was marked"
    };
    return sentences[level];
}

/* What a program can read of a probe; people have a line each. */
static json_t *findings_json(const struct rp_store *store, const struct rp_probed *probed)
{
    json_t *o = rp_json_object("level", json_string(rp_level_name(rp_store_level(store))), NULL);
    if (probed->n_findings == 0) return o;
    json_t *findings = json_array();
    for (size_t i = 0; i < probed->n_findings; i++) {
        const struct rp_finding *f = &probed->findings[i];
        rp_json_append(findings, rp_json_object("name", json_string(f->name), "holds", json_boolean(f->holds), "says",
                                                rp_json_text(f->says), NULL));
    }
    rp_json_set(o, "findings", findings);
    return o;
}

static void say_findings(const struct rp_doctor *d, const struct rp_probed *probed)
{
    char shown[RP_SHOWN_MAX];
    if (d->cli->json || d->cli->quiet) return;
    for (size_t i = 0; i < probed->n_findings; i++) {
        const struct rp_finding *f = &probed->findings[i];
        printf("%-26s %-3s %-22s %s\n", "", f->holds ? "yes" : "no", f->name, rp_show(f->says, shown));
    }
}

/* What the probe says of a thing that does not hold; NULL: it holds, or was not asked. */
static const char *broken(const struct rp_probed *probed, const char *name)
{
    for (size_t i = 0; i < probed->n_findings; i++)
        if (!probed->findings[i].holds && strcmp(probed->findings[i].name, name) == 0) return probed->findings[i].says;
    return NULL;
}

/* Whoever was given a URL once could use it for ever. */
static void check_signed_urls(struct rp_doctor *d, const struct rp_probed *probed)
{
    const char *why = broken(probed, RP_FINDING_SIGNED_URLS);
    if (why != NULL)
        rp_judge(d, RP_DOUBTFUL,
                 "give URLs of uploads and of content to nobody who must not keep them, or use another server",
                 "signed URLs do not end as they should: %s", why);
}

/* What will come back from there, said before anything goes. */
static void check_quarantine(struct rp_doctor *d, const struct rp_store *store, const struct rp_probed *probed)
{
    bool in_place = rp_subject_can_hide(store);
    if (store->config->mode != RP_MODE_QUARANTINE || !rp_config_is_s3(store->config)) return;
    rp_judge(d, RP_FINE, "", "quarantine: %s",
             in_place
                 ? "a delete marker; what comes back has its versions, ACL and tags"
                 : "a copy inside the bucket; what comes back has its headers, metadata and tags, but neither ACL, "
                   "storage class nor older versions");
    const char *why = in_place ? broken(probed, RP_FINDING_LIFECYCLE) : NULL;
    if (why != NULL)
        rp_judge(d, RP_DOUBTFUL,
                 "let no rule erase older versions sooner than the store's `quarantine`, which counts on them",
                 "what is in quarantine is an older version to the bucket: %s", why);
}

bool rp_doctor_probe(struct rp_doctor *d, struct rp_store *store)
{
    const struct rp_store_config *config = store->config;
    struct rp_error why = { 0 };
    struct rp_probed probed = { 0 };
    bool observes = config->mode == RP_MODE_OBSERVE, bucket = rp_config_is_s3(config);
    if (rp_guarantee_probe(d->cli->session.catalog, store, &why) < 0) {
        rp_judge_error(d, &why,
                       bucket ? "see that the endpoint answers and its keys may read, list and, in this mode, write"
                              : "give this user the right to read and write there");
        return false;
    }
    (void)rp_guarantee_probed(store, &probed);
    enum rp_level level = rp_store_level(store);
    if (d->cli->json) d->more = findings_json(store, &probed);
    rp_judge(d, rp_store_is_weak(store) ? RP_DOUBTFUL : RP_FINE,
             "marks of plain objects are refused and wait; files that the daemon named go on. Versioning of the bucket "
             "ends it, allow_window_deletes: true accepts the risk",
             "%s, mode %s, guarantee %s: %s%s", config->type, rp_mode_name(config->mode), rp_level_name(level),
             sentence_of(level),
             !observes ? ""
             : bucket  ? " (nothing is written in mode observe: taken for the weakest that is not seen)"
                       : " (declared: nothing is written in mode observe)");
    say_findings(d, &probed);
    check_signed_urls(d, &probed);
    check_quarantine(d, store, &probed);
    return true;
}
