/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about copies and tags: what annotations are made by. */
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "store/s3/erase.h"
#include "store/s3/probe/probe.h"

/* The source stands there already. */
static void probe_copy_new(struct s3_probe *probe, const char *source)
{
    const char *key = rp_s3_canary(probe, "taken-copy"), *fresh = rp_s3_canary(probe, "fresh-copy");
    probe->powers.copy_new = rp_s3_keeps_taken(probe, source, key, fresh, "copy only if new",
                                               "is ignored: an object that is returned may overwrite an upload");
}

void rp_s3_probe_copy(struct s3_probe *probe)
{
    struct rp_identity put;
    char meta[16] = "";
    const char *key = rp_s3_canary(probe, "copy");
    RP_CLEANUP(rp_buf_done) struct rp_buf source = RP_BUF(4096);
    rp_s3_encode(&source, probe->s3->target.bucket, false);
    rp_buf_char(&source, '/');
    rp_s3_encode(&source, key, true);
    const struct rp_pair headers[] = { { "x-amz-copy-source", rp_buf_text(&source) },
                                       { "x-amz-metadata-directive", "REPLACE" },
                                       { "x-amz-meta-canary", "sings" } };
    bool ready = rp_s3_try_put(probe, key, "copied", NULL, NULL, &put, NULL) / 100 == 2;
    RP_CLEANUP(rp_s3_call_done) struct s3_call copy = rp_s3_call("PUT", key), head = rp_s3_call("HEAD", key);
    rp_s3_send(&copy, headers, 3, NULL);
    int status = ready ? rp_s3_try(probe, &copy, NULL) : 0;
    if (status == 200 && rp_s3_try(probe, &head, NULL) == 200)
        rp_s3_header(&head, "x-amz-meta-canary", meta, sizeof meta);
    probe->powers.self_copy = strcmp(meta, "sings") == 0 && rp_s3_canary_is(probe, key, put.etag);
    rp_s3_finding(probe, "copy onto itself", probe->powers.self_copy, "%s",
                  probe->powers.self_copy ? "replaces the metadata and keeps the bytes"
                                          : "does not replace the metadata");
    if (ready) probe_copy_new(probe, rp_buf_text(&source));
}

static bool tags_come_back(struct s3_probe *probe, const char *key)
{
    struct rp_pair *pairs = NULL;
    size_t n = 0;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("GET", key);
    rp_s3_query(&call, "tagging", "");
    return rp_s3_try(probe, &call, NULL) == 200 && rp_s3_read_tags(&call.answer, &arena, &pairs, &n, NULL) == 0 &&
           n == 1 && strcmp(pairs[0].name, "canary") == 0 && strcmp(pairs[0].value, "sings") == 0;
}

void rp_s3_probe_tags(struct s3_probe *probe)
{
    struct s3_sum sum;
    const struct rp_pair tag = { "canary", "sings" };
    const char *key = rp_s3_canary(probe, "copy");
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF(4096);
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("PUT", key);
    int r = rp_s3_write_tags(&body, &tag, 1, NULL);
    rp_s3_query(&call, "tagging", "");
    rp_s3_send_xml(&call, &body, &sum);
    int status = r < 0 ? r : rp_s3_try(probe, &call, NULL);
    probe->powers.tags = status / 100 == 2 && tags_come_back(probe, key);
    rp_s3_finding(probe, "tags", probe->powers.tags, probe->powers.tags ? "written and read back" : "not kept (%d)",
                  status);
}
