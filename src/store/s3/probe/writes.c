/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about writing under a condition. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/s3/probe/probe.h"

/* By If-None-Match: a PUT, or a copy of `source`. */
static int write_new(struct s3_probe *probe, const char *source, const char *key)
{
    const struct rp_pair headers[] = { { "if-none-match", "*" }, { "x-amz-copy-source", source } };
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    rp_s3_send(&call, headers, source ? 2 : 1, NULL);
    return rp_s3_try(probe, &call, NULL);
}

bool rp_s3_keeps_taken(struct s3_probe *probe, const char *source, const char *key, const char *fresh,
                       const char *finding, const char *ignored)
{
    struct rp_identity taken, made;
    bool ready = rp_s3_try_put(probe, key, "taken", NULL, NULL, &taken, NULL) / 100 == 2;
    int status = ready ? write_new(probe, source, key) : 0;
    bool there = ready && rp_s3_canary_is(probe, key, taken.etag);
    bool holds = status == 412 && there && write_new(probe, source, fresh) / 100 == 2 &&
                 rp_s3_try_head(probe, fresh, &made) == 200;
    rp_s3_finding(probe, finding, holds, "If-None-Match: * %s",
                  holds    ? "keeps a key that is taken"
                  : !there ? ignored
                           : "is not understood");
    return holds;
}

static void probe_put_new(struct s3_probe *probe)
{
    const char *key = rp_s3_canary(probe, "is-taken"), *fresh = rp_s3_canary(probe, "is-fresh");
    probe->powers.put_new =
        rp_s3_keeps_taken(probe, NULL, key, fresh, "put only if new", "is ignored: the object is overwritten");
}

static bool put_if(struct s3_probe *probe, const char *key, const struct rp_identity *now, bool bare)
{
    char wrong[RP_ETAG_MAX + 2], right[RP_ETAG_MAX + 2];
    const char *quote = bare ? "" : "\"";
    snprintf(right, sizeof right, "%s%s%s", quote, now->etag, quote);
    snprintf(wrong, sizeof wrong, "%s%c%.90s%s", quote, now->etag[0] == '0' ? '1' : '0', now->etag + 1, quote);
    return rp_s3_try_put(probe, key, "not me", "if-match", wrong, NULL, NULL) == 412 &&
           rp_s3_canary_is(probe, key, now->etag) &&
           rp_s3_try_put(probe, key, "changed", "if-match", right, NULL, NULL) / 100 == 2;
}

static void probe_put_if_match(struct s3_probe *probe)
{
    struct s3_powers *powers = &probe->powers;
    for (int bare = 0; bare < 2 && !powers->put_if_match; bare++) {
        struct rp_identity now;
        const char *key = rp_s3_canary(probe, bare ? "bare-match" : "match");
        if (rp_s3_try_put(probe, key, "as it was", NULL, NULL, &now, NULL) / 100 != 2) break;
        powers->put_if_match = put_if(probe, key, &now, bare);
        powers->put_if_match_bare = powers->put_if_match && bare;
    }
    rp_s3_finding(probe, "put by If-Match", powers->put_if_match, "%s",
                  powers->put_if_match_bare ? "holds, with the etag without quotes"
                  : powers->put_if_match    ? "another etag is refused, the right one is taken"
                                         : "does not hold: the owner record is looked at right before it is written");
}

void rp_s3_probe_puts(struct s3_probe *probe)
{
    probe_put_new(probe);
    probe_put_if_match(probe);
}
