/* SPDX-License-Identifier: Apache-2.0 */
/* What the probe finds out about time: signed URLs that end, and the clock they end by. */
#include <curl/curl.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/probe/probe.h"

static size_t swallow(char *bytes, size_t size, size_t n, void *ctx)
{
    (void)bytes, (void)ctx;
    return size * n;
}

/* As somebody without keys would fetch it. 0: no answer. */
static long fetch(struct s3_probe *probe, const char *url)
{
    long status = 0;
    CURL *curl = curl_easy_init();
    if (curl == NULL) return 0;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
    if (probe->s3->options.ca_file && probe->s3->options.ca_file[0])
        curl_easy_setopt(curl, CURLOPT_CAINFO, probe->s3->options.ca_file);
    if (curl_easy_perform(curl) == CURLE_OK) curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(curl);
    return status;
}

static long fetch_signed(struct s3_probe *probe, const char *key, int64_t signed_at_ms, int64_t lives_s)
{
    const char *url = NULL;
    struct s3_keys keys;
    const struct s3_message message = { .method = "GET", .key = key };
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    if (rp_s3_credentials_get(probe->s3->credentials, &keys, NULL) < 0) return 0;
    int r = rp_s3_presign(&probe->s3->target, &keys, &message, signed_at_ms, lives_s, &arena, &url, NULL);
    explicit_bzero(&keys, sizeof keys);
    return r < 0 ? 0 : fetch(probe, url);
}

void rp_s3_probe_presign(struct s3_probe *probe)
{
    int64_t now_ms;
    const char *key = rp_s3_canary(probe, "copy");
    if (!rp_s3_wire_clock(probe->s3->wire, &now_ms)) now_ms = rp_clock_now_ms(NULL);
    long live = fetch_signed(probe, key, now_ms, 300);
    long ended = fetch_signed(probe, key, now_ms - 2 * RP_HOUR_MS, 300);
    probe->powers.presign_ends = live == 200 && ended >= 400 && ended < 500;
    rp_s3_finding(probe, RP_FINDING_SIGNED_URLS, probe->powers.presign_ends,
                  probe->powers.presign_ends ? "one in time is served (%ld), one that has ended is refused (%ld)"
                  : ended / 100 == 2         ? "one in time is answered %ld, and one that has ended is served (%ld)"
                                             : "one in time is answered %ld, one that has ended %ld",
                  live, ended);
}

void rp_s3_probe_clock(struct s3_probe *probe)
{
    char text[RP_TIME_TEXT];
    int64_t theirs_ms;
    if (!rp_s3_wire_clock(probe->s3->wire, &theirs_ms)) {
        rp_s3_finding(probe, "clock", false, "the server does not tell the time");
        return;
    }
    int64_t apart_ms = theirs_ms - rp_clock_now_ms(NULL), size_ms = apart_ms < 0 ? -apart_ms : apart_ms;
    if (size_ms < 2 * RP_SECOND_MS)
        rp_s3_finding(probe, "clock", true, "as this machine's");
    else
        rp_s3_finding(probe, "clock", size_ms <= 5 * RP_MINUTE_MS, "%s %s this machine's%s",
                      rp_duration_format(size_ms / RP_SECOND_MS * RP_SECOND_MS, text),
                      apart_ms < 0 ? "behind" : "ahead of",
                      size_ms <= 5 * RP_MINUTE_MS ? "" : "; set the clocks (NTP)");
}
