/* SPDX-License-Identifier: Apache-2.0 */
/* The S3 store: opening, closing, its clock, the table of its slots. */
#include "store/s3/s3.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/wire/vendor.h"

#define ARENA_BYTES       ((size_t)256 << 10)
#define TIMEOUT_MS_STOCK  (30 * RP_SECOND_MS)
#define PATIENCE_MS_STOCK (60 * RP_SECOND_MS)
#define CLOCK_MS          (30 * RP_SECOND_MS) /* so long the server's clock is reckoned on from its last answer */

struct s3_powers rp_s3_powers(struct rp_s3 *s3)
{
    pthread_mutex_lock(&s3->lock);
    struct s3_powers powers = s3->powers;
    pthread_mutex_unlock(&s3->lock);
    return powers;
}

static void s3_close(struct rp_backend *backend)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    if (s3->wire) rp_s3_wire_close(s3->wire);
    if (s3->credentials) rp_s3_credentials_free(s3->credentials);
    pthread_mutex_destroy(&s3->lock);
    rp_arena_done(&s3->arena);
    free(s3);
}

static void s3_interrupt(struct rp_backend *backend)
{
    rp_s3_wire_interrupt(rp_s3_of(backend)->wire);
}

int rp_s3_reach(struct rp_s3 *s3, struct rp_error *err)
{
    RP_CLEANUP(rp_s3_call_done) struct s3_call call = rp_s3_call("HEAD", NULL);
    call.patience_ms = rp_s3_patience(s3, S3_REACH_MS);
    int r = rp_s3_wire_run(s3->wire, &call, 1, err);
    if (r < 0) return r;
    return call.code < 0 ? rp_s3_error(s3, &call, err) : call.status;
}

static int s3_now_ms(struct rp_backend *backend, int64_t *out, struct rp_error *err)
{
    struct rp_s3 *s3 = rp_s3_of(backend);
    int64_t boot_ms = rp_time_boot_ms();
    pthread_mutex_lock(&s3->lock);
    bool fresh = s3->clock_boot_ms > 0 && boot_ms - s3->clock_boot_ms < CLOCK_MS;
    pthread_mutex_unlock(&s3->lock);
    if (fresh && rp_s3_wire_clock(s3->wire, out)) return 0;
    int r = rp_s3_reach(s3, err);
    if (r < 0) return r;
    /* Also who says no says what time it is. */
    if (!rp_s3_wire_clock(s3->wire, out))
        return rp_error_set(err, RP_EUNAVAILABLE, "bucket '%.80s': the server does not say what time it is",
                            s3->target.bucket);
    pthread_mutex_lock(&s3->lock);
    s3->clock_boot_ms = boot_ms;
    pthread_mutex_unlock(&s3->lock);
    return 0;
}

static void s3_keys_source(struct rp_backend *backend, char out[RP_KEYS_SOURCE])
{
    rp_s3_credentials_source(rp_s3_of(backend)->credentials, out);
}

static const struct rp_backend_ops s3_ops = {
    .type = "s3",
    .close = s3_close,
    .probe = rp_s3_probe,
    .put = rp_s3_put,
    .get = rp_s3_get,
    .stat = rp_s3_stat,
    .list = rp_s3_list,
    .remove = rp_s3_remove,
    .copy = rp_s3_copy,
    .copies_at_once = 8,
    .annotate = rp_s3_annotate,
    .presign = rp_s3_presign_slot,
    .list_partial = rp_s3_list_partial,
    .abort_partial = rp_s3_abort_partial,
    .now_ms = s3_now_ms,
    .hides = rp_s3_hides,
    .hide = rp_s3_hide,
    .show = rp_s3_show,
    .interrupt = s3_interrupt,
    .keys_source = s3_keys_source,
};

static int keep_options(struct rp_s3 *s3, const struct rp_s3_options *options, struct rp_error *err)
{
    struct rp_s3_options *o = &s3->options;
    const char **const texts[] = { &o->endpoint,   &o->region,        &o->bucket,  &o->style,  &o->access_key,
                                   &o->secret_key, &o->session_token, &o->profile, &o->ca_file };
    *o = *options;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!(*texts[i] = rp_arena_strdup(&s3->arena, *texts[i] ? *texts[i] : "")))
            return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    if (!o->style[0]) o->style = "auto";
    if (o->timeout_ms == 0) o->timeout_ms = TIMEOUT_MS_STOCK;
    if (o->patience_ms == 0) o->patience_ms = PATIENCE_MS_STOCK;
    return 0;
}

static int connect_parts(struct rp_s3 *s3, struct rp_error *err)
{
    int r = rp_s3_target_of(&s3->options, &s3->arena, &s3->target, err);
    if (r < 0) return r;
    if ((r = rp_s3_credentials_new(&s3->options, &rp_clock_host, &s3->credentials, err)) < 0) return r;
    const struct s3_wire_options wire = { .target = s3->target,
                                          .credentials = s3->credentials,
                                          .ca_file = s3->options.ca_file,
                                          .timeout_ms = s3->options.timeout_ms,
                                          .patience_ms = s3->options.patience_ms,
                                          .requests_per_second = s3->options.requests_per_second,
                                          .clock = &rp_clock_host,
                                          .on_silence = s3->options.on_silence };
    return rp_s3_wire_open(&wire, &s3->wire, err);
}

int rp_s3_open(const struct rp_s3_options *options, struct rp_backend **out, struct rp_error *err)
{
    struct rp_s3 *s3 = calloc(1, sizeof *s3);
    if (!s3) return rp_error_set(err, RP_ENOMEM, "no memory for a store");
    *s3 = (struct rp_s3){
        .base.ops = &s3_ops, .arena = RP_ARENA(ARENA_BYTES), .copy_max = S3_COPY_MAX, .copy_part = S3_COPY_PART
    };
    int r = pthread_mutex_init(&s3->lock, NULL);
    RP_ASSERT(r == 0);
    RP_CLEANUP(rp_backend_closep) struct rp_backend *backend = &s3->base;
    if ((r = keep_options(s3, options, err)) < 0) return r;
    if ((r = connect_parts(s3, err)) < 0) return r;
    *out = backend;
    backend = NULL;
    return 0;
}
