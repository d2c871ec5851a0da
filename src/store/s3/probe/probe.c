/* SPDX-License-Identifier: Apache-2.0 */
/* probe(): what the store guarantees, found out by trying (S1, S3 of s3.h). */
#include "store/s3/probe/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/cleanup.h"

void rp_s3_finding(struct s3_probe *probe, const char *name, bool holds, const char *fmt, ...)
{
    RP_ASSERT(probe->out->n_findings < RP_FINDINGS_MAX);
    struct rp_finding *finding = &probe->out->findings[probe->out->n_findings++];
    va_list args;
    finding->name = name;
    finding->holds = holds;
    va_start(args, fmt);
    vsnprintf(finding->says, sizeof finding->says, fmt, args);
    va_end(args);
}

/* Without what is declared. */
static enum rp_level seen_of(const struct s3_powers *powers)
{
    if (powers->versions) return powers->versions_go ? RP_LEVEL_VERSION : RP_LEVEL_WINDOW;
    return powers->single_if_match && powers->one_step_deletes ? RP_LEVEL_ETAG : RP_LEVEL_WINDOW;
}

static enum rp_level level_of(const struct rp_s3 *s3, const struct s3_powers *powers)
{
    if (s3->options.write_once && !powers->seen_changed) return RP_LEVEL_EXACT;
    return seen_of(powers);
}

static int name_canaries(struct s3_probe *probe, struct rp_error *err)
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return rp_error_errno(err, errno, "choose a name for the canaries");
    snprintf(probe->base, sizeof probe->base, "%s%016" PRIx64 "%016" PRIx64 "/", S3_CANARY, random[0], random[1]);
    return 0;
}

static int try_all(struct s3_probe *probe, struct rp_error *err)
{
    int r = rp_s3_probe_versions(probe, err);
    if (r == 0) r = rp_s3_probe_list(probe, err);
    if (r < 0) return r;
    rp_s3_probe_lifecycle(probe);
    rp_s3_probe_if_match(probe);
    rp_s3_probe_multi(probe);
    rp_s3_probe_markers(probe);
    rp_s3_probe_puts(probe);
    rp_s3_probe_copy(probe);
    rp_s3_probe_tags(probe);
    rp_s3_probe_presign(probe);
    rp_s3_probe_clock(probe);
    return 0;
}

static int try_writing(struct s3_probe *probe, struct rp_error *err)
{
    int r = name_canaries(probe, err);
    if (r < 0) return r;
    r = try_all(probe, err);
    if (r == 0 && rp_s3_is_given_up(probe))
        r = rp_error_set(err, RP_EUNAVAILABLE, "bucket '%s': the server does not answer any more",
                         probe->s3->target.bucket);
    bool cleared = rp_s3_canary_clear(probe);
    if (r < 0) return r;
    probe->powers.probed = true;
    if (!cleared)
        rp_s3_finding(probe, "canary removed", false, "some of %s stays: may the key delete there?", probe->base);
    return 0;
}

static int try_reading(struct s3_probe *probe, struct rp_error *err)
{
    int r = rp_s3_probe_versions(probe, err);
    if (r == 0) r = rp_s3_probe_list(probe, err);
    if (r < 0) return r;
    rp_s3_probe_lifecycle(probe);
    rp_s3_probe_clock(probe);
    return 0;
}

/* A reader's probe does not make forgotten what a writer's has shown; only the bucket's versioning
 * is news. */
static enum rp_level keep(struct s3_probe *probe)
{
    struct rp_s3 *s3 = probe->s3;
    pthread_mutex_lock(&s3->lock);
    bool known = s3->powers.probed && !probe->powers.probed, told = probe->versioning[0] != '?';
    if (known && told) s3->powers.versions = probe->powers.versions;
    if (!known) {
        probe->powers.seen_changed = s3->powers.seen_changed;
        s3->powers = probe->powers;
    }
    enum rp_level level = level_of(s3, &s3->powers);
    probe->out->undeclared = seen_of(&s3->powers);
    pthread_mutex_unlock(&s3->lock);
    return level;
}

int rp_s3_probe(struct rp_backend *backend, bool may_write, struct rp_probed *out, struct rp_error *err)
{
    struct rp_probed found = { 0 };
    struct s3_probe probe = { .s3 = rp_s3_of(backend), .out = &found };
    int r = rp_s3_reach(probe.s3, err);
    if (r >= 0) r = may_write ? try_writing(&probe, err) : try_reading(&probe, err);
    if (r == RP_EUNKNOWN) r = RP_EUNAVAILABLE; /* of a canary only: nothing that anybody must ask about */
    if (r < 0) return rp_error_wrap(err, r, "probe the store");
    found.level = keep(&probe);
    *out = found;
    return 0;
}
