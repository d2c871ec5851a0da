/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are lost on the way: a server (s3_peer.h) carries out a put, an upload in parts or a
 * copy, or does not, and says 500, nothing, or nonsense. What stands there in the end decides what
 * the store says; and nothing goes to another host. */
#include "store_steps.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/text/hex.h"
#include "base/time.h"
#include "contract/s3_peer.h"
#include "lib/stores.h"
#include "store/s3/s3.h"

#define THINGS_MAX 16
#define LARGE      (S3_PART_BYTES + 10)

struct thing {
    char key[16], etag[RP_ETAG_MAX], version[16];
    size_t size;
    time_t at;
};

/* A bucket. What happens to the nth request that makes an object is its nth letter, the last one
 * again and again:
 *   h  done and told            a  done, answered 500       n  not done, answered 500       x  done, the connection closed
 *   e  done, answered 200 with an error in it               q  done, answered 200 without a word
 *   o  not done, another's upload comes first, answered 500
 *   O  done, told, and another's upload comes right after */
static struct bucket {
    struct peer peer;
    struct rp_backend *backend;
    const char *fate;
    bool versions, ended, deleting;
    int look; /* how a HEAD of a version is answered; 0: as the bucket is */
    unsigned makes, copies, serial;
    size_t body; /* of a making PUT */
    char etag[RP_ETAG_MAX];
    struct thing things[THINGS_MAX]; /* oldest first */
    size_t n;
} world;
static struct rp_error error;

/* ---- the server ---- */

static struct thing *newest(const char *key)
{
    for (size_t i = world.n; i-- > 0;)
        if (strcmp(world.things[i].key, key) == 0) return &world.things[i];
    return NULL;
}

static void drop(const char *key, const char *version)
{
    size_t kept = 0;
    for (size_t i = 0; i < world.n; i++) {
        bool goes =
            strcmp(world.things[i].key, key) == 0 && (!version || strcmp(world.things[i].version, version) == 0);
        if (!goes) world.things[kept++] = world.things[i];
    }
    world.n = kept;
}

static void make_at(const char *key, const char *etag, size_t size, time_t at)
{
    if (!world.versions) drop(key, NULL);
    assert_true(world.n < THINGS_MAX);
    struct thing *t = &world.things[world.n++];
    *t = (struct thing){ .size = size, .at = at };
    snprintf(t->key, sizeof t->key, "%s", key);
    snprintf(t->etag, sizeof t->etag, "%s", etag);
    if (world.versions) snprintf(t->version, sizeof t->version, "v%u", ++world.serial);
}

static void make(const char *key, const char *etag, size_t size)
{
    make_at(key, etag, size, time(NULL));
}

static const char *date_text(time_t at, char out[64])
{
    struct tm tm;
    strftime(out, 64, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &tm));
    return out;
}

static void reply(int fd, int status, const char *headers, const char *body)
{
    char all[512], date[64];
    snprintf(all, sizeof all, "Date: %s\r\n%s", date_text(time(NULL), date), headers);
    peer_reply(fd, status, all, body);
}

static bool show(int fd, const struct thing *t)
{
    char raw[512], date[64], now[64];
    if (!t) {
        reply(fd, 404, "", "");
        return true;
    }
    snprintf(raw, sizeof raw,
             "HTTP/1.1 200 X\r\nDate: %s\r\nContent-Length: %zu\r\nETag: \"%s\"\r\nLast-Modified: %s\r\n%s%s%s\r\n",
             date_text(time(NULL), now), t->size, t->etag, date_text(t->at, date),
             t->version[0] ? "x-amz-version-id: " : "", t->version, t->version[0] ? "\r\n" : "");
    peer_send(fd, raw);
    return true;
}

static void show_versions(int fd, const char *head)
{
    char text[4096];
    size_t n = (size_t)snprintf(text, sizeof text, "<ListVersionsResult><IsTruncated>false</IsTruncated>");
    const char *marker = strstr(head, "version-id-marker=");
    bool past = false;
    for (size_t i = world.n; i-- > 0;) {
        const struct thing *t = &world.things[i];
        size_t length = strlen(t->version);
        if (past && strcmp(t->key, "k") == 0)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "<Version><Key>k</Key><VersionId>%s</VersionId><IsLatest>false</"
                                  "IsLatest><ETag>\"%s\"</ETag><Size>%zu</Size>"
                                  "<LastModified>%s</LastModified></Version>",
                                  t->version, t->etag, t->size,
                                  t->at > 1000 ? "2099-01-01T00:00:00.000Z" : "1970-01-01T00:00:01.000Z");
        if (marker && strncmp(marker + 18, t->version, length) == 0 && !strchr("0123456789", marker[18 + length]))
            past = true;
    }
    snprintf(text + n, sizeof text - n, "</ListVersionsResult>");
    reply(fd, 200, "", text);
}

static bool make_told(int fd, const char *key, char fate, bool copies, bool ends)
{
    char headers[256] = "", body[512];
    const struct thing *t = newest(key);
    const char *root = copies ? "CopyObjectResult" : "CompleteMultipartUploadResult";
    if (!copies && !ends && fate != 'q') snprintf(headers, sizeof headers, "ETag: \"%s\"\r\n", t->etag);
    if (t->version[0]) snprintf(headers + strlen(headers), 100, "x-amz-version-id: %s\r\n", t->version);
    snprintf(body, sizeof body, "<%s><ETag>\"%s\"</ETag></%s>", root, t->etag, root);
    if (fate == 'e') snprintf(body, sizeof body, "<Error><Code>InternalError</Code><Message>?</Message></Error>");
    if (fate == 'O') make(key, "another", 7);
    reply(fd, 200, headers, fate == 'q' || (!copies && !ends && fate != 'e') ? "" : body);
    return true;
}

static bool answer_make(int fd, const struct request *r, const char *key, bool copies, bool ends)
{
    char value[512];
    size_t length = strlen(world.fate), i = world.makes++;
    char fate = world.fate[i < length ? i : length - 1];
    bool only_new = request_header(r, "if-none-match", value)[0] != '\0';
    if (fate == 'o') make(key, "another", 7);
    if (only_new && newest(key)) {
        reply(fd, 412, "", "<Error><Code>PreconditionFailed</Code></Error>");
        return true;
    }
    if (ends && world.ended) {
        reply(fd, 404, "", "<Error><Code>NoSuchUpload</Code></Error>");
        return true;
    }
    if (fate != 'n' && fate != 'o') {
        make(key, world.etag, world.body);
        world.ended = ends;
    }
    if (fate == 'x') return false;
    if (strchr("ano", fate)) {
        reply(fd, 500, "", "<Error><Code>InternalError</Code></Error>");
        return true;
    }
    return make_told(fd, key, fate, copies, ends);
}

static bool answer_part(int fd, const char *head)
{
    char headers[128], body[128];
    const char *etag =
        strstr(head, "partNumber=1&") ? "11111111111111111111111111111111" : "22222222222222222222222222222222";
    snprintf(headers, sizeof headers, "ETag: \"%s\"\r\n", etag);
    snprintf(body, sizeof body, "<CopyPartResult><ETag>\"%s\"</ETag></CopyPartResult>", etag);
    reply(fd, 200, headers, strstr(head, "x-amz-copy-source") ? body : "");
    return true;
}

static bool serve_all(struct peer *peer, int fd, const struct request *r)
{
    char key[16] = "", value[512], version[16] = "";
    bool on = true;
    const char *head = r->head, *path = strchr(head, ' '), *id = strstr(head, "versionId=");
    (void)sscanf(path, " /bucket/%15[a-z]", key);
    if (id) (void)sscanf(id, "versionId=%15[v0-9]", version);
    bool copies = request_header(r, "x-amz-copy-source", value)[0] != '\0';
    pthread_mutex_lock(&peer->lock);
    if (strncmp(head, "HEAD", 4) == 0 && !key[0])
        reply(fd, 200, "", "");
    else if (strncmp(head, "HEAD", 4) == 0)
        on = show(fd, newest(key));
    else if (strncmp(head, "GET", 3) == 0 && strstr(head, "tagging="))
        reply(fd, 200, "", "<Tagging><TagSet></TagSet></Tagging>");
    else if (strncmp(head, "GET", 3) == 0)
        show_versions(fd, head);
    else if (strncmp(head, "DELETE", 6) == 0) {
        drop(id ? key : "", version);
        reply(fd, 204, "", "");
    } else if (strstr(head, "?uploads="))
        reply(fd, 200, "", "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>");
    else if (strstr(head, "partNumber="))
        on = answer_part(fd, head);
    else
        on = answer_make(fd, r, key, copies, strncmp(head, "POST", 4) == 0);
    pthread_mutex_unlock(&peer->lock);
    return on;
}

/* ---- a trial ---- */

/* Where the server never gives in patience is short; where it does a slow machine has time. */
static int64_t patience_of(const char *fate, int64_t short_ms)
{
    return fate[0] && strchr("anox", fate[strlen(fate) - 1]) ? short_ms : 20000;
}

static void open_store(int64_t patience_ms)
{
    char endpoint[64];
    snprintf(endpoint, sizeof endpoint, "http://%s", world.peer.host);
    const struct rp_s3_options options = { .endpoint = endpoint,
                                           .bucket = "bucket",
                                           .style = "path",
                                           .access_key = "AKTEST",
                                           .secret_key = "not-so-secret",
                                           .timeout_ms = 10000,
                                           .patience_ms = patience_ms };
    ok(rp_s3_open(&options, &world.backend, &error));
}

static void begin(const char *fate, bool put_new, bool versions, int64_t short_ms)
{
    int64_t now;
    memset(&world, 0, sizeof world);
    world.peer.answer = serve_all;
    world.fate = fate;
    world.versions = versions;
    peer_start(&world.peer);
    open_store(patience_of(fate, short_ms));
    struct rp_s3 *s3 = rp_s3_of(world.backend);
    s3->powers.put_new = put_new;
    s3->powers.versions = versions;
    ok(rp_backend_now_ms(world.backend, &now, &error));
}

static void end(void)
{
    rp_backend_close(world.backend);
    peer_stop(&world.peer);
}

static void md5_of(const void *bytes, size_t n, char out[RP_ETAG_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    assert_int_equal(EVP_Digest(bytes, n, digest, &length, EVP_md5(), NULL), 1);
    rp_hex_write(digest, length, out);
}

static int put_small(int flags, struct rp_identity *out)
{
    world.body = 5;
    md5_of("bytes", 5, world.etag);
    return put_bytes(world.backend, "k", "bytes", 5, NULL, flags, out, &error);
}

static int put_large(int flags, struct rp_identity *out)
{
    unsigned char digests[32];
    memset(digests, 0x11, 16);
    memset(digests + 16, 0x22, 16);
    md5_of(digests, sizeof digests, world.etag);
    strcat(world.etag, "-2");
    char *bytes = calloc(1, LARGE);
    world.body = LARGE;
    int r = put_bytes(world.backend, "k", bytes, LARGE, NULL, flags, out, &error);
    free(bytes);
    return r;
}

struct row {
    const char *fate;
    int flags;
    bool put_new, versions;
    int code;
    size_t things; /* left under the key */
};

static void expect_rows(const struct row *rows, size_t n, int (*put)(int flags, struct rp_identity *out))
{
    for (size_t i = 0; i < n; i++) {
        const struct row *row = &rows[i];
        struct rp_identity made = { 0 };
        begin(row->fate, row->put_new, row->versions, put == put_large ? 2000 : 400);
        int r = put(row->flags, &made);
        if (r != row->code || world.n != row->things)
            fail_msg("row %zu (%s): %s, not %s; %zu things; %s", i, row->fate, rp_error_slug(r),
                     rp_error_slug(row->code), world.n, error.text);
        if (r == 0) {
            assert_string_equal(made.etag, world.etag);
            assert_int_equal(made.size_bytes, world.body);
            assert_string_equal(made.version, newest("k")->version);
        } else if (world.n > 0) {
            assert_string_equal(newest("k")->etag, "another");
        }
        end();
    }
}

#define NEW RP_PUT_NEW
static void a_put_without_an_answer_is_what_stands_there(void **state)
{
    static const struct row rows[] = {
        { "h", 0, true, false, 0, 1 },
        { "ah", 0, true, false, 0, 1 },
        { "a", 0, true, false, 0, 1 },
        { "xh", 0, true, false, 0, 1 },
        { "x", 0, true, false, 0, 1 },
        { "n", 0, true, false, RP_EUNKNOWN, 0 },
        { "q", 0, true, false, 0, 1 },
        { "o", 0, true, false, RP_EUNKNOWN, 1 },
        { "h", NEW, true, false, 0, 1 },
        { "ah", NEW, true, false, 0, 1 },
        { "xh", NEW, true, false, 0, 1 },
        { "nh", NEW, true, false, 0, 1 },
        { "no", NEW, true, false, RP_EEXISTS, 1 },
        { "n", NEW, true, false, RP_EUNKNOWN, 0 },
        { "o", NEW, false, false, RP_EUNKNOWN, 1 },
        { "a", NEW, false, false, 0, 1 },
        /* sent without a condition it is not sent again: another's upload may have come
         * meanwhile */
        { "oh", NEW, false, false, RP_EUNKNOWN, 1 },
        { "ah", NEW, false, false, 0, 1 },
        /* with versions each attempt may leave one: all of them are ours */
        { "aah", NEW, false, true, 0, 3 },
        { "ah", 0, false, true, 0, 2 },
        /* another came first: ours go, all of them */
        { "oah", NEW, false, true, RP_EEXISTS, 1 },
    };
    (void)state;
    expect_rows(rows, sizeof rows / sizeof *rows, put_small);
}

static void an_upload_in_parts_without_an_answer_is_what_stands_there(void **state)
{
    static const struct row rows[] = {
        { "h", 0, true, false, 0, 1 },
        { "ah", 0, true, false, 0, 1 },
        { "xh", 0, true, false, 0, 1 },
        { "a", 0, true, false, 0, 1 },
        { "n", 0, true, false, RP_EUNKNOWN, 0 },
        { "e", 0, true, false, 0, 1 },
        { "q", 0, true, false, 0, 1 },
        { "ah", NEW, true, false, 0, 1 },
        { "ah", NEW, false, false, 0, 1 },
        { "ah", NEW, false, true, 0, 1 },
        /* the end of an upload in parts is sent once: not every server minds its condition */
        { "nh", NEW, true, false, RP_EUNKNOWN, 0 },
        { "oh", NEW, false, false, RP_EUNKNOWN, 1 },
        { "nh", NEW, false, true, 0, 1 },
    };
    (void)state;
    expect_rows(rows, sizeof rows / sizeof *rows, put_large);
}

/* The same bytes may have stood there before, with other headers. */
static void older_bytes_are_not_taken_for_ours(void **state)
{
    struct rp_identity made = { 0 };
    (void)state;
    begin("n", true, false, 400);
    md5_of("bytes", 5, world.etag);
    make_at("k", world.etag, 5, 1);
    assert_int_equal(put_small(0, &made), RP_EUNKNOWN);
    world.fate = "h";
    ok(put_small(0, &made));
    end();
    begin("nh", true, false, 400);
    md5_of("bytes", 5, world.etag);
    make_at("k", world.etag, 5, 1);
    assert_int_equal(put_small(NEW, &made), RP_EEXISTS);
    end();
}

/* ---- copies ---- */

static int copy_over(const char *fate, int64_t copy_max, const char *etag, struct rp_identity *out)
{
    begin(fate, true, false, 400);
    rp_s3_of(world.backend)->copy_max = copy_max;
    rp_s3_of(world.backend)->copy_part = 8;
    make_at("from", "aaaa", 10, 1000);
    struct rp_identity from = { .etag = "aaaa", .size_bytes = 10, .modified_ms = 1000 * RP_SECOND_MS };
    world.body = 10;
    snprintf(world.etag, sizeof world.etag, "%s", etag);
    return rp_backend_copy(world.backend, "from", &from, "to", out, &error);
}

static void a_copy_without_an_answer_is_what_stands_there(void **state)
{
    static const char *const seen[] = { "h", "a", "x", "e", "ah" };
    struct rp_identity made = { 0 };
    (void)state;
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        ok(copy_over(seen[i], 100, "aaaa", &made));
        assert_string_equal(made.etag, "aaaa");
        end();
    }
    assert_int_equal(copy_over("n", 100, "aaaa", &made), RP_EUNKNOWN);
    end();
    assert_int_equal(copy_over("o", 100, "aaaa", &made), RP_EUNKNOWN);
    assert_int_equal(world.n, 2);
    end();
}

/* To a key that users write to, without a condition, in one piece and in parts. */
static void an_upload_between_two_attempts_of_a_copy_stays(void **state)
{
    struct rp_identity made = { 0 };
    (void)state;
    for (int64_t copy_max = 100; copy_max > 0; copy_max -= 95) {
        assert_int_equal(copy_over("oh", copy_max, "aaaa", &made), RP_EUNKNOWN);
        assert_string_equal(newest("to")->etag, "another");
        end();
    }
}

static void an_upload_right_after_a_copy_is_not_taken_back(void **state)
{
    struct rp_identity made = { 0 };
    (void)state;
    assert_int_equal(copy_over("O", 100, "aaaa", &made), RP_EEXISTS);
    assert_non_null(newest("to"));
    assert_string_equal(newest("to")->etag, "another");
    end();
}

/* ---- what was not seen to hold ---- */

static void a_url_that_may_never_end_is_not_signed(void **state)
{
    struct rp_arena arena = RP_ARENA((size_t)1 << 16);
    struct rp_presigned url;
    struct rp_presign what = { .method = "PUT", .key = "k", .now_ms = 1000000, .ends_at_ms = 2000000 };
    (void)state;
    begin("h", true, false, 400);
    struct s3_powers *powers = &rp_s3_of(world.backend)->powers;
    assert_int_equal(rp_backend_presign(world.backend, &what, &arena, &url, &error), RP_EWEAK);
    what.method = "GET"; /* nothing was tried yet */
    ok(rp_backend_presign(world.backend, &what, &arena, &url, &error));
    powers->probed = true;
    assert_int_equal(rp_backend_presign(world.backend, &what, &arena, &url, &error), RP_EWEAK);
    powers->presign_ends = true;
    ok(rp_backend_presign(world.backend, &what, &arena, &url, &error));
    rp_arena_done(&arena);
    end();
}

static void a_copy_onto_itself_that_changes_nothing_is_no_annotation(void **state)
{
    const struct rp_pair set = { "delete_after", "2030-01-01" };
    struct rp_identity id = { .etag = "aaaa", .version = "v1", .size_bytes = 10, .modified_ms = 1000 * RP_SECOND_MS };
    (void)state;
    begin("h", true, true, 400);
    make_at("k", "aaaa", 10, 1000);
    assert_int_equal(rp_backend_annotate(world.backend, "k", &id, &set, 1, &error), RP_EWEAK);
    assert_int_equal(world.makes, 0);
    end();
}

/* ---- other places ---- */

static bool send_away(struct peer *peer, int fd, const struct request *r)
{
    struct peer *other = peer->ctx;
    char headers[256], body[512];
    int status = strncmp(r->head, "PUT", 3) == 0 ? 307 : 301;
    snprintf(headers, sizeof headers, "Location: http://%s/bucket/k\r\nx-amz-bucket-region: eu-north-1\r\n",
             other->host);
    snprintf(body, sizeof body,
             "<Error><Code>PermanentRedirect</Code><Message>There</Message><Endpoint>%s</Endpoint></Error>",
             other->host);
    peer_reply(fd, status, headers, strncmp(r->head, "HEAD", 4) == 0 ? "" : body);
    return true;
}

static bool send_away_unnamed(struct peer *peer, int fd, const struct request *r)
{
    struct peer *other = peer->ctx;
    char headers[256];
    (void)r;
    snprintf(headers, sizeof headers, "Location: http://who:Signature@%s/bucket/k?X-Amz-Signature=00\r\n", other->host);
    peer_reply(fd, 307, headers, "");
    return true;
}

static bool send_away_unreadably(struct peer *peer, int fd, const struct request *r)
{
    (void)peer, (void)r;
    peer_reply(fd, 307, "Location: http://a\x1b[2Jb/bucket/k\r\n", "");
    return true;
}

static bool send_away_nowhere(struct peer *peer, int fd, const struct request *r)
{
    (void)peer, (void)r;
    peer_reply(fd, 307, "Location: /bucket/k\r\n", "");
    return true;
}

static void a_redirect_is_an_error_that_names_the_place(void **state)
{
    static struct peer other;
    struct rp_item item = { .key = "k" };
    (void)state;
    memset(&other, 0, sizeof other);
    memset(&world, 0, sizeof world);
    other.answer = serve_all;
    peer_start(&other);
    world.peer.answer = send_away;
    world.peer.ctx = &other;
    peer_start(&world.peer);
    open_store(20000);
    assert_int_equal(put_bytes(world.backend, "k", "x", 1, NULL, 0, NULL, &error), RP_ECONFIG);
    assert_non_null(strstr(error.hint, "eu-north-1"));
    rp_error_clear(&error);
    assert_int_equal(rp_backend_stat(world.backend, &item, 1, &error), RP_ECONFIG);
    assert_int_not_equal(item.outcome, RP_OUT_GONE);
    assert_non_null(strstr(error.hint, "eu-north-1"));
    unsigned before = peer_requests(&world.peer);
    world.peer.answer = send_away_unnamed;
    rp_error_clear(&error);
    assert_int_equal(put_bytes(world.backend, "k", "x", 1, NULL, 0, NULL, &error), RP_ECONFIG);
    assert_non_null(strstr(error.hint, "stores.NAME.endpoint"));
    assert_non_null(strstr(error.hint, other.host));
    assert_non_null(strstr(error.text, "307"));
    assert_null(strstr(error.text, "Signature"));
    assert_null(strstr(error.hint, "Signature"));
    assert_int_equal(peer_requests(&world.peer), before + 1); /* not again */
    peer_answer_fn *const vague[] = { send_away_unreadably, send_away_nowhere };
    for (size_t i = 0; i < sizeof vague / sizeof *vague; i++) {
        world.peer.answer = vague[i];
        rp_error_clear(&error);
        assert_int_equal(put_bytes(world.backend, "k", "x", 1, NULL, 0, NULL, &error), RP_ECONFIG);
        assert_string_equal(error.hint, "check stores.NAME.region and stores.NAME.endpoint");
    }
    assert_int_equal(peer_connections(&other), 0); /* and nowhere else */
    end();
    peer_stop(&other);
}

/* ---- nobody answers any more ---- */

static bool only_once(struct peer *peer, int fd, const struct request *r)
{
    char byte;
    (void)peer;
    if (r->number == 0) {
        reply(fd, 200, "", "");
        return true;
    }
    while (recv(fd, &byte, 1, 0) > 0)
        continue;
    return false;
}

/* P4 of probe.h: the question whether it is there, two without an answer, and no more. */
static void a_probe_gives_up_a_server_that_fell_silent(void **state)
{
    struct rp_probed probed;
    (void)state;
    for (int may_write = 0; may_write < 2; may_write++) {
        memset(&world, 0, sizeof world);
        world.peer.answer = only_once;
        peer_start(&world.peer);
        open_store(300);
        assert_int_equal(rp_backend_probe(world.backend, may_write, &probed, &error), RP_EUNAVAILABLE);
        assert_int_equal(peer_requests(&world.peer), 3);
        end();
    }
}

/* The clock is asked for, not only reckoned on. */
static void a_server_that_went_away_has_no_clock(void **state)
{
    int64_t now;
    (void)state;
    memset(&world, 0, sizeof world);
    world.peer.answer = only_once;
    peer_start(&world.peer);
    open_store(300);
    ok(rp_backend_now_ms(world.backend, &now, &error));
    ok(rp_backend_now_ms(world.backend, &now, &error));
    assert_int_equal(peer_requests(&world.peer), 1);
    rp_s3_of(world.backend)->clock_boot_ms -= RP_MINUTE_MS;
    assert_int_equal(rp_backend_now_ms(world.backend, &now, &error), RP_EUNAVAILABLE);
    end();
}

/* ---- interrupted ---- */

/* A delete is carried out (fate 'x') or not, and never answered. */
static bool hang_at_delete(struct peer *peer, int fd, const struct request *r)
{
    char byte;
    if (strncmp(r->head, "DELETE", 6) != 0) return serve_all(peer, fd, r);
    pthread_mutex_lock(&peer->lock);
    if (world.fate[0] == 'x') drop("k", NULL);
    world.deleting = true;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    while (recv(fd, &byte, 1, 0) > 0)
        continue;
    return false;
}

/* Refused, while somebody else deletes the object. */
static bool refuse_delete(struct peer *peer, int fd, const struct request *r)
{
    if (!strstr(r->head, "?delete=")) return serve_all(peer, fd, r);
    pthread_mutex_lock(&peer->lock);
    drop("k", NULL);
    reply(fd, 200, "",
          "<DeleteResult><Error><Key>k</Key><Code>SlowDown</Code></Error><Error><Key>m</Key><Code>SlowDown</Code>"
          "</Error></DeleteResult>");
    pthread_mutex_unlock(&peer->lock);
    return true;
}

/* R1 of remove.h: what the server refused to delete was not freed by us. */
static void what_vanished_after_a_refused_delete_is_gone(void **state)
{
    struct rp_item items[] = { { .key = "k" }, { .key = "m" } };
    (void)state;
    begin("h", false, false, 400);
    rp_s3_of(world.backend)->powers.multi_delete = true;
    make("k", "etag", 1);
    make("m", "etag", 1);
    ok(rp_backend_stat(world.backend, items, 2, &error));
    world.peer.answer = refuse_delete;
    ok(rp_backend_remove(world.backend, items, 2, NULL, &error));
    assert_int_equal(items[0].outcome, RP_OUT_GONE);
    assert_int_equal(items[1].outcome, RP_OUT_RETRY);
    end();
}

static bool answer_look(struct peer *peer, int fd, const struct request *r)
{
    if (strncmp(r->head, "HEAD", 4) != 0 || !strstr(r->head, "versionId=")) return serve_all(peer, fd, r);
    reply(fd, world.look, "", "");
    return true;
}

/* R2 of remove.h: no listing shows it, and only a server that knows of no such version says gone.
 * 400 is also what a HEAD with an expired session token is answered. */
static void only_an_answer_that_says_so_makes_a_version_gone(void **state)
{
    static const struct {
        int status;
        enum rp_outcome outcome;
    } rows[] = {
        { 404, RP_OUT_GONE },    { 405, RP_OUT_GONE },   { 400, RP_OUT_UNKNOWN },
        { 200, RP_OUT_UNKNOWN }, { 403, RP_OUT_DENIED }, { 416, RP_OUT_RETRY },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rp_item item = { .key = "k", .identity = { .etag = "etag", .version = "v7", .size_bytes = 1 } };
        begin("h", false, true, 400);
        world.look = rows[i].status;
        world.peer.answer = answer_look;
        ok(rp_backend_remove(world.backend, &item, 1, NULL, &error));
        if (item.outcome != rows[i].outcome)
            fail_msg("%d: %s: %s", rows[i].status, rp_outcome_name(item.outcome), item.note);
        end();
    }
}

struct deletion {
    struct rp_backend *backend;
    struct rp_item items[2];
    int code;
    struct rp_error error;
};

static void *run_deletion(void *arg)
{
    struct deletion *d = arg;
    d->code = rp_backend_remove(d->backend, d->items, 2, NULL, &d->error);
    return NULL;
}

static void wait_for_delete(void)
{
    pthread_mutex_lock(&world.peer.lock);
    while (!world.deleting)
        pthread_cond_wait(&world.peer.changed, &world.peer.lock);
    pthread_mutex_unlock(&world.peer.lock);
}

/* T10, through a wrapper: nothing is claimed, neither of what was sent nor of what waits behind it,
 * and later calls do not begin. */
static void an_interrupted_delete_is_unknown(const char *fate)
{
    const struct rp_backend_fault none = { 0 };
    struct rp_item item = { .key = "k" };
    struct rp_backend *wrapped;
    pthread_t thread;
    begin(fate, false, false, 600000);
    make("k", "etag", 1);
    ok(rp_backend_stat(world.backend, &item, 1, &error));
    world.peer.answer = hang_at_delete;
    ok(rp_backend_fault_wrap(world.backend, &none, &wrapped, &error));
    struct deletion deletion = { .backend = wrapped, .items = { item, { .key = "m", .identity = item.identity } } };
    assert_int_equal(pthread_create(&thread, NULL, run_deletion, &deletion), 0);
    wait_for_delete();
    int64_t began_ms = rp_time_boot_ms();
    rp_backend_interrupt(wrapped);
    rp_backend_interrupt(wrapped);
    pthread_join(thread, NULL);
    assert_true(rp_time_boot_ms() - began_ms < 10000); /* its patience is ten minutes */
    assert_int_equal(deletion.items[0].outcome, RP_OUT_UNKNOWN);
    assert_int_not_equal(deletion.items[1].outcome, RP_OUT_DELETED);
    unsigned before = peer_requests(&world.peer);
    assert_int_equal(put_bytes(wrapped, "n", "x", 1, NULL, 0, NULL, &error), RP_EUNAVAILABLE);
    assert_int_equal(rp_backend_stat(wrapped, &item, 1, &error), RP_EUNAVAILABLE);
    assert_int_not_equal(item.outcome, RP_OUT_GONE);
    assert_int_equal(peer_requests(&world.peer), before);
    rp_backend_close(wrapped);
    end();
}

static void an_interrupted_delete_that_was_carried_out_is_unknown(void **state)
{
    (void)state;
    an_interrupted_delete_is_unknown("x");
}

static void an_interrupted_delete_that_was_not_carried_out_is_unknown(void **state)
{
    (void)state;
    an_interrupted_delete_is_unknown("h");
}

static int alone(void **state)
{
    (void)state;
    return setenv("no_proxy", "*", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_without_an_answer_is_what_stands_there),
        cmocka_unit_test(an_upload_in_parts_without_an_answer_is_what_stands_there),
        cmocka_unit_test(older_bytes_are_not_taken_for_ours),
        cmocka_unit_test(a_copy_without_an_answer_is_what_stands_there),
        cmocka_unit_test(an_upload_between_two_attempts_of_a_copy_stays),
        cmocka_unit_test(an_upload_right_after_a_copy_is_not_taken_back),
        cmocka_unit_test(a_url_that_may_never_end_is_not_signed),
        cmocka_unit_test(a_copy_onto_itself_that_changes_nothing_is_no_annotation),
        cmocka_unit_test(a_redirect_is_an_error_that_names_the_place),
        cmocka_unit_test(a_probe_gives_up_a_server_that_fell_silent),
        cmocka_unit_test(a_server_that_went_away_has_no_clock),
        cmocka_unit_test(what_vanished_after_a_refused_delete_is_gone),
        cmocka_unit_test(only_an_answer_that_says_so_makes_a_version_gone),
        cmocka_unit_test(an_interrupted_delete_that_was_carried_out_is_unknown),
        cmocka_unit_test(an_interrupted_delete_that_was_not_carried_out_is_unknown),
    };
    return cmocka_run_group_tests(tests, alone, NULL);
}
