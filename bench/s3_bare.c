/* SPDX-License-Identifier: Apache-2.0 */
#include "s3_bare.h"

#include <curl/curl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text/buf.h"

#define BATCH         1000
#define PUT_AT_ONCE   8
#define AT_ONCE_MAX   16
#define ANSWER_MAX    ((size_t)8 << 20)
#define OWN           ".reprieve/"
#define REQUEST_MAX_S 120L

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL || *value == '\0') bench_fail("%s is not set; `make bench` starts a server and sets it", name);
    return value;
}

/* ---- one request ---- */

struct request {
    const char *method, *path; /* path: behind the bucket, with the query */
    const char *body;          /* NULL: none */
    size_t body_n;
    const char *header; /* one more, or NULL */
};

static size_t take_answer(char *bytes, size_t size, size_t n, void *ctx)
{
    return rp_buf_add(ctx, bytes, size * n) < 0 ? 0 : size * n;
}

static void set_body(CURL *curl, const struct request *q)
{
    if (q->body == NULL) return;
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_n);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body);
}

static long ask(CURL *curl, const struct bench_bucket *b, const struct request *q, struct rp_buf *answer)
{
    char url[BENCH_PATH * 8], user[512], problem[CURL_ERROR_SIZE] = "";
    long status = 0;
    struct curl_slist *headers = curl_slist_append(NULL, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
    headers = curl_slist_append(headers, "Content-Type: application/octet-stream");
    if (q->header != NULL) headers = curl_slist_append(headers, q->header);
    snprintf(url, sizeof url, "%s/%s%s", b->endpoint, b->name, q->path);
    snprintf(user, sizeof user, "%s:%s", b->access, b->secret);
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_USERPWD, user);
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, "aws:amz:" BENCH_REGION ":s3");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    set_body(curl, q);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, q->method);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, problem);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, REQUEST_MAX_S);
    rp_buf_clear(answer);
    if (curl_easy_perform(curl) != CURLE_OK) bench_fail("%s %s: %s", q->method, url, problem);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    return status;
}

static void expect_done(CURL *curl, const struct bench_bucket *b, const struct request *q, struct rp_buf *answer)
{
    const long status = ask(curl, b, q, answer);
    if (status / 100 != 2) bench_fail("%s %s%s: %ld %.200s", q->method, b->name, q->path, status, rp_buf_text(answer));
}

static CURL *new_handle(void)
{
    CURL *curl = curl_easy_init();
    if (curl == NULL) bench_fail("no memory for a connection");
    return curl;
}

/* ---- many at once ---- */

struct work {
    const struct bench_bucket *bucket;
    void (*step)(struct work *work, CURL *curl, struct rp_buf *answer, size_t i);
    size_t n, objects_n;
    atomic_size_t next;
};

static void *work_on(void *ctx)
{
    struct work *work = ctx;
    RP_CLEANUP(rp_buf_done) struct rp_buf answer = RP_BUF(ANSWER_MAX);
    CURL *curl = new_handle();
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < work->n;)
        work->step(work, curl, &answer, i);
    curl_easy_cleanup(curl);
    return NULL;
}

static void work_off(struct work *work, int connections)
{
    pthread_t threads[AT_ONCE_MAX];
    if (connections > AT_ONCE_MAX) bench_fail("%d connections are too many", connections);
    for (int i = 0; i < connections; i++)
        if (pthread_create(&threads[i], NULL, work_on, work) != 0) bench_fail("no thread");
    for (int i = 0; i < connections; i++)
        pthread_join(threads[i], NULL);
}

/* ---- what is done ---- */

void bench_bucket_make(struct bench_bucket *b, const char *name)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf answer = RP_BUF(ANSWER_MAX);
    b->endpoint = setting("RP_TEST_S3");
    b->access = setting("RP_TEST_S3_ACCESS");
    b->secret = setting("RP_TEST_S3_SECRET");
    snprintf(b->name, sizeof b->name, "bench-%ld-%s", (long)getpid(), name);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    CURL *curl = new_handle();
    expect_done(curl, b, &(struct request){ .method = "PUT", .path = "" }, &answer);
    curl_easy_cleanup(curl);
}

static void put_one(struct work *work, CURL *curl, struct rp_buf *answer, size_t i)
{
    char bytes[BENCH_OBJECT], name[64], path[80];
    memset(bytes, 'x', sizeof bytes);
    snprintf(path, sizeof path, "/%s", bench_object(i, name));
    const struct request put = { .method = "PUT", .path = path, .body = bytes, .body_n = sizeof bytes };
    expect_done(curl, work->bucket, &put, answer);
}

void bench_bucket_fill(const struct bench_bucket *b, size_t n)
{
    struct work work = { .bucket = b, .step = put_one, .n = n };
    work_off(&work, PUT_AT_ONCE);
}

static void md5_header(const struct rp_buf *body, char out[64])
{
    unsigned char digest[EVP_MAX_MD_SIZE], text[32];
    unsigned n = 0;
    if (EVP_Digest(body->data, body->len, digest, &n, EVP_md5(), NULL) != 1) bench_fail("no MD5");
    EVP_EncodeBlock(text, digest, (int)n);
    snprintf(out, 64, "Content-MD5: %s", (const char *)text);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

static void delete_keys(CURL *curl, const struct bench_bucket *b, struct rp_buf *body, size_t n, struct rp_buf *answer)
{
    char header[64];
    rp_buf_str(body, "</Delete>");
    if (body->failed != 0) bench_fail("a request that is too long");
    md5_header(body, header);
    const struct request q = {
        .method = "POST", .path = "?delete=", .body = body->data, .body_n = body->len, .header = header
    };
    expect_done(curl, b, &q, answer);
    if (count(rp_buf_text(answer), "<Deleted>") != n) bench_fail("not all were deleted: %.300s", rp_buf_text(answer));
}

static void delete_batch(struct work *work, CURL *curl, struct rp_buf *answer, size_t i)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)1 << 20);
    char name[64];
    size_t end = (i + 1) * BATCH < work->objects_n ? (i + 1) * BATCH : work->objects_n;
    rp_buf_str(&body, "<Delete>");
    for (size_t k = i * BATCH; k < end; k++)
        rp_buf_fmt(&body, "<Object><Key>%s</Key></Object>", bench_object(k, name));
    delete_keys(curl, work->bucket, &body, end - i * BATCH, answer);
}

struct bench_spent bench_bucket_delete(const struct bench_bucket *b, size_t n, int connections)
{
    struct work work = { .bucket = b, .step = delete_batch, .n = (n + BATCH - 1) / BATCH, .objects_n = n };
    const double start = bench_now_s();
    const clock_t cpu = clock();
    work_off(&work, connections);
    return (struct bench_spent){ .seconds = bench_now_s() - start,
                                 .cpu_s = (double)(clock() - cpu) / (double)CLOCKS_PER_SEC };
}

/* The path of the page after this one; false at the end. */
static bool next_page(CURL *curl, const char *page, char *path, size_t size)
{
    static const char begin_tag[] = "<NextContinuationToken>";
    const char *begin = strstr(page, begin_tag), *end = strstr(page, "</NextContinuationToken>");
    if (strstr(page, "<IsTruncated>true</IsTruncated>") == NULL) return false;
    if (begin == NULL || end == NULL) bench_fail("a page that names no next: %.300s", page);
    begin += sizeof begin_tag - 1;
    char *token = curl_easy_escape(curl, begin, (int)(end - begin));
    if (token == NULL) bench_fail("no memory");
    snprintf(path, size, "?continuation-token=%s&list-type=2&max-keys=1000", token);
    curl_free(token);
    return true;
}

size_t bench_bucket_list(const struct bench_bucket *b)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf page = RP_BUF(ANSWER_MAX);
    char path[BENCH_PATH * 4] = "?list-type=2&max-keys=1000";
    size_t n = 0;
    CURL *curl = new_handle();
    do {
        expect_done(curl, b, &(struct request){ .method = "GET", .path = path }, &page);
        n += count(rp_buf_text(&page), "<Key>") - count(rp_buf_text(&page), "<Key>" OWN);
    } while (next_page(curl, rp_buf_text(&page), path, sizeof path));
    curl_easy_cleanup(curl);
    return n;
}

void bench_bucket_remove(const struct bench_bucket *b)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf page = RP_BUF(ANSWER_MAX), answer = RP_BUF(ANSWER_MAX);
    const struct request list = { .method = "GET", .path = "?list-type=2&max-keys=1000" };
    CURL *curl = new_handle();
    for (size_t n; expect_done(curl, b, &list, &page), (n = count(rp_buf_text(&page), "<Key>")) > 0;) {
        RP_CLEANUP(rp_buf_done) struct rp_buf body = RP_BUF((size_t)4 << 20);
        rp_buf_str(&body, "<Delete>");
        for (const char *at = page.data; (at = strstr(at, "<Key>")) != NULL; at++)
            rp_buf_fmt(&body, "<Object>%.*s</Key></Object>", (int)(strstr(at, "</Key>") - at), at);
        delete_keys(curl, b, &body, n, &answer);
    }
    expect_done(curl, b, &(struct request){ .method = "DELETE", .path = "" }, &answer);
    curl_easy_cleanup(curl);
}

static double cpu_s(long pid)
{
    char path[64], text[1024] = "";
    char *next = NULL;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *in = fopen(path, "re");
    if (in == NULL) bench_fail("BENCH_SERVER: no process %ld", pid);
    const size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    const char *at = strrchr(text, ')'); /* the name may have anything in it */
    for (int field = 2; at != NULL && field < 14; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL) bench_fail("%s cannot be read", path);
    const long user = strtol(at, &next, 10), system = strtol(next, NULL, 10);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

double bench_server_cpu_s(void)
{
    const char *pids = getenv("BENCH_SERVER");
    double sum_s = 0;
    char *end;
    for (long pid; pids != NULL && (pid = strtol(pids, &end, 10)) > 0; pids = end)
        sum_s += cpu_s(pid);
    return sum_s;
}
