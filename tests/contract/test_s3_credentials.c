/* SPDX-License-Identifier: Apache-2.0 */
/* Where keys come from: files and variables of a home of its own, and a small server that plays the
 * container's and the instance's service. All secrets here have the word "hush" in them, and every
 * error is searched for it. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/time.h"
#include "store/s3/credentials/credentials.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define START_MS     INT64_C(1794700800000) /* 2026-11-15T00:00:00Z */

/* ---- the world of one test ---- */

static char home_dir[64];
static _Atomic int64_t clock_ms;

static int64_t tell_time(void *ctx)
{
    (void)ctx;
    return clock_ms;
}
static const struct rp_clock test_clock = { .now_ms = tell_time };

static const char *const variables[] = {
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_PROFILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_CONFIG_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
    "AWS_EC2_METADATA_DISABLED",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
};

static void run(const char *command)
{
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): the test's own words */
}

static int set_up(void **state)
{
    char aws[80];
    (void)state;
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    snprintf(home_dir, sizeof home_dir, "/tmp/rp-credentials.XXXXXX");
    assert_non_null(mkdtemp(home_dir));
    snprintf(aws, sizeof aws, "%s/.aws", home_dir);
    assert_int_equal(mkdir(aws, 0700), 0);
    setenv("HOME", home_dir, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* must not be asked */
    clock_ms = START_MS;
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", home_dir);
    run(command);
    return 0;
}

static const char *write_file(const char *name, const char *text)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", home_dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) >= 0, 1);
    assert_int_equal(fclose(f), 0);
    return path;
}

static void assert_clean(const struct rp_error *err)
{
    assert_null(strcasestr(err->text, "hush"));
    assert_null(strcasestr(err->hint, "hush"));
}

static void credentials_freep(struct s3_credentials **c)
{
    rp_s3_credentials_free(*c);
}

static struct s3_credentials *make(const struct rp_s3_options *options)
{
    struct s3_credentials *c = NULL;
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_credentials_new(options, &test_clock, &c, &err), 0);
    return c;
}

static void assert_keys_of(struct s3_credentials *c, const char *access, const char *secret, const char *token,
                           const char *source)
{
    struct s3_keys keys = { 0 };
    struct rp_error err = { 0 };
    char from[64];
    int r = rp_s3_credentials_get(c, &keys, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    assert_string_equal(keys.access, access);
    assert_string_equal(keys.secret, secret);
    assert_string_equal(keys.token, token);
    rp_s3_credentials_source(c, from);
    assert_string_equal(from, source);
}

static void assert_keys(const struct rp_s3_options *options, const char *access, const char *secret, const char *token,
                        const char *source)
{
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(options);
    assert_keys_of(c, access, secret, token, source);
}

static void assert_refused_of(struct s3_credentials *c, int code, const char *says)
{
    struct s3_keys keys = { .access = "untouched" };
    struct rp_error err = { 0 };
    int r = rp_s3_credentials_get(c, &keys, &err);
    if (r != code || strstr(err.text, says) == NULL) fail_msg("%d \"%s\" (%s)", r, err.text, err.hint);
    assert_int_equal(err.code, code);
    assert_string_equal(keys.access, "untouched");
    assert_clean(&err);
}

static void assert_refused(const struct rp_s3_options *options, int code, const char *says)
{
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(options);
    char from[64];
    assert_refused_of(c, code, says);
    rp_s3_credentials_source(c, from);
    assert_string_equal(from, "");
}

static const struct rp_s3_options nothing = { .endpoint = "" };

/* ---- the server ---- */

/* What it says and what it saw. */
static struct {
    struct MHD_Daemon *daemon;
    int port;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned keys_served, key_requests, asking;
    bool held;       /* keys are kept back */
    unsigned status; /* of the keys; 0: 200 */
    char keys[2048]; /* the answer with the keys; "": made of `serial` and `ends_ms` */
    unsigned serial; /* hush-SERIAL */
    int64_t ends_ms;
    unsigned token_status, role_status;
} server = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result r = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result answer_keys(struct MHD_Connection *connection)
{
    char text[2048], ends[RP_TIME_TEXT];
    pthread_mutex_lock(&server.lock);
    server.key_requests++;
    pthread_cond_broadcast(&server.changed);
    while (server.held)
        pthread_cond_wait(&server.changed, &server.lock);
    unsigned status = server.status != 0 ? server.status : 200;
    if (status == 200) server.keys_served++;
    snprintf(
        text, sizeof text,
        "{\"Code\":\"Success\",\"AccessKeyId\":\"ASIA%u\",\"SecretAccessKey\":\"hush-%u\",\"Token\":\"hush+token/%u\","
        "\"Expiration\":\"%s\"}",
        server.serial, server.serial, server.serial, rp_time_format(server.ends_ms, ends));
    if (server.keys[0] != 0) snprintf(text, sizeof text, "%s", server.keys);
    pthread_mutex_unlock(&server.lock);
    return answer(connection, status, text);
}

static bool has_header(struct MHD_Connection *connection, const char *name, const char *value)
{
    const char *got = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return got != NULL && (value == NULL || strcmp(got, value) == 0);
}

#define ROLES "/latest/meta-data/iam/security-credentials/"

static enum MHD_Result serve(void *ctx, struct MHD_Connection *connection, const char *url, const char *method,
                             const char *version, const char *upload, size_t *n, void **request)
{
    (void)ctx, (void)version, (void)upload, (void)n;
    static int begun;
    if (*request == NULL) { /* MHD calls twice, and answers only the second time may come after the body */
        *request = &begun;
        return MHD_YES;
    }
    if (strcmp(method, "PUT") == 0 && strcmp(url, "/latest/api/token") == 0 &&
        has_header(connection, "X-aws-ec2-metadata-token-ttl-seconds", NULL))
        return answer(connection, server.token_status != 0 ? server.token_status : 200, "hush-imds-token");
    if (strcmp(method, "GET") != 0) return answer(connection, 405, "");
    if (strcmp(url, "/container") == 0 && has_header(connection, "Authorization", "hush-authorization"))
        return answer_keys(connection);
    if (strcmp(url, "/redirect") == 0) return answer(connection, 302, "");
    if (!has_header(connection, "X-aws-ec2-metadata-token", "hush-imds-token")) return answer(connection, 401, "hush");
    if (strcmp(url, ROLES) == 0)
        return answer(connection, server.role_status != 0 ? server.role_status : 200, "media-role\n");
    if (strcmp(url, ROLES "media-role") == 0) return answer_keys(connection);
    return answer(connection, 404, "hush");
}

static void server_start(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    server.daemon = MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL,
                                     serve, NULL, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&at, MHD_OPTION_END);
    assert_non_null(server.daemon);
    server.port = MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    server.keys_served = server.key_requests = server.asking = 0;
    server.held = false;
    server.status = server.token_status = server.role_status = 0;
    server.keys[0] = '\0';
    server.serial = 1;
    server.ends_ms = START_MS + RP_HOUR_MS;
}

static void server_set(unsigned status, unsigned serial, int64_t ends_ms)
{
    pthread_mutex_lock(&server.lock);
    server.status = status;
    server.serial = serial;
    server.ends_ms = ends_ms;
    pthread_mutex_unlock(&server.lock);
}

static void server_hold(bool held)
{
    pthread_mutex_lock(&server.lock);
    server.held = held;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.lock);
}

static void server_stop(void)
{
    server_hold(false);
    MHD_stop_daemon(server.daemon);
}

static void use_instance(void)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", url, 1);
}

static void use_container(const char *path)
{
    char url[128];
    snprintf(url, sizeof url, "http://localhost:%d%s", server.port, path);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", url, 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "hush-authorization", 1);
}

/* ---- configuration and environment ---- */

static void the_configuration_comes_first(void **state)
{
    (void)state;
    setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush-env", 1);
    setenv("AWS_SESSION_TOKEN", "hush-env-token", 1);
    const struct rp_s3_options o = { .access_key = "AKCONF", .secret_key = "hush-conf" };
    assert_keys(&o, "AKCONF", "hush-conf", "", "configuration");
    const struct rp_s3_options t = { .access_key = "AKCONF", .secret_key = "hush-conf", .session_token = "hush-t" };
    assert_keys(&t, "AKCONF", "hush-conf", "hush-t", "configuration");
    assert_keys(&nothing, "AKENV", "hush-env", "hush-env-token", "environment");
}

static void half_a_pair_is_an_error(void **state)
{
    (void)state;
    const struct rp_s3_options no_secret = { .access_key = "AKCONF" }, no_access = { .secret_key = "hush" },
                               only_token = { .session_token = "hush" };
    assert_refused(&no_secret, RP_ECONFIG, "configuration: there is no secret key");
    assert_refused(&no_access, RP_ECONFIG, "configuration: there is no access key");
    assert_refused(&only_token, RP_ECONFIG, "configuration: there is no access key");
    setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
    assert_refused(&nothing, RP_ECONFIG, "environment: there is no secret key");
    setenv("AWS_SECRET_ACCESS_KEY", "", 1);
    assert_refused(&nothing, RP_ECONFIG, "environment: there is no secret key");
}

static void keys_that_cannot_be_sent_are_refused(void **state)
{
    (void)state;
    static char long_secret[300];
    memset(long_secret, 'h', sizeof long_secret - 1);
    const struct rp_s3_options broken = { .access_key = "AK", .secret_key = "hush\n" },
                               split = { .access_key = "AK", .secret_key = "hush", .session_token = "hush\r\nx: y" },
                               blank = { .access_key = "A K", .secret_key = "hush" },
                               large = { .access_key = "AK", .secret_key = long_secret };
    assert_refused(&broken, RP_ECONFIG, "secret key has a blank");
    assert_refused(&split, RP_ECONFIG, "session token has a blank");
    assert_refused(&blank, RP_ECONFIG, "access key has a blank");
    assert_refused(&large, RP_ECONFIG, "secret key is too long");
}

static void nothing_anywhere_says_where_was_looked(void **state)
{
    (void)state;
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    struct s3_keys keys;
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_credentials_get(c, &keys, &err), RP_ECONFIG);
    assert_string_equal(err.text, "no keys for the store: no access_key in the configuration; no AWS_ACCESS_KEY_ID; "
                                  "no profile default; no container endpoint; instance metadata is switched off");
    assert_non_null(strstr(err.hint, "access_key and secret_key"));
    assert_int_equal(rp_s3_credentials_get(c, &keys, NULL), RP_ECONFIG);
}

static void web_identities_are_not_passed_over(void **state)
{
    (void)state;
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token", 1);
    assert_refused(&nothing, RP_ECONFIG, "web identities are not supported");
}

/* ---- profiles ---- */

static void profiles_of_both_files(void **state)
{
    (void)state;
    write_file(".aws/credentials", "\xef\xbb\xbf# keys\r\n"
                                   "[default]\r\n"
                                   "aws_access_key_id = AKDEF\r\n"
                                   "aws_secret_access_key=hush/def+ue==\r\n"
                                   "\r\n"
                                   "[ media ]\n"
                                   "; a comment = no setting\n"
                                   "AWS_Access_Key_Id\t=\tAKMEDIA # the media user\n"
                                   "aws_secret_access_key = hush-media\n"
                                   "aws_session_token = hush-media-token\n"
                                   "[empty]\n"
                                   "region = eu-west-1\n");
    write_file(".aws/config", "[default]\n"
                              "region = eu-central-1\n"
                              "s3 =\n"
                              "    max_concurrent_requests = 20\n"
                              "[media]\n"
                              "aws_access_key_id = not-a-profile-section\n"
                              "[profile in-config]\n"
                              "aws_access_key_id = AKCONFIG\n"
                              "aws_secret_access_key = hush-config\n"
                              "s3 =\n"
                              "    aws_access_key_id = nested\n"
                              "[profile \"with space\"]\n"
                              "  aws_access_key_id = AKSPACE\n"
                              "aws_secret_access_key = hush-space\n"
                              "[sso-session x]\n"
                              "sso_start_url = https://example.org\n");
    assert_keys(&nothing, "AKDEF", "hush/def+ue==", "", "profile default");
    const struct rp_s3_options media = { .profile = "media" }, config = { .profile = "in-config" },
                               space = { .profile = "with space" };
    assert_keys(&media, "AKMEDIA", "hush-media", "hush-media-token", "profile media");
    assert_keys(&config, "AKCONFIG", "hush-config", "", "profile in-config");
    assert_keys(&space, "AKSPACE", "hush-space", "", "profile with space");
    setenv("AWS_PROFILE", "media", 1);
    assert_keys(&nothing, "AKMEDIA", "hush-media", "hush-media-token", "profile media");
    const struct rp_s3_options empty = { .profile = "empty" }, absent = { .profile = "absent" };
    assert_refused(&empty, RP_ECONFIG, "profile empty has no keys");
    assert_refused(&absent, RP_ECONFIG, "no profile absent");
    setenv("AWS_PROFILE", "absent", 1);
    assert_refused(&nothing, RP_ECONFIG, "no profile absent");
}

static void a_configured_profile_counts_before_the_environment(void **state)
{
    (void)state;
    write_file(".aws/credentials", "[media]\naws_access_key_id=AKMEDIA\naws_secret_access_key=hush\n");
    setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush-env", 1);
    const struct rp_s3_options media = { .profile = "media" };
    assert_keys(&media, "AKMEDIA", "hush", "", "profile media");
    setenv("AWS_PROFILE", "media", 1);
    assert_keys(&nothing, "AKENV", "hush-env", "", "environment");
}

static void files_may_be_elsewhere(void **state)
{
    (void)state;
    setenv("AWS_SHARED_CREDENTIALS_FILE",
           write_file("keys", "[default]\naws_access_key_id=AK1\naws_secret_access_key=hush1\n"), 1);
    assert_keys(&nothing, "AK1", "hush1", "", "profile default");
    setenv("AWS_SHARED_CREDENTIALS_FILE", "~/absent", 1);
    write_file("settings", "[profile default]\naws_access_key_id=AK2\naws_secret_access_key=hush2\n");
    setenv("AWS_CONFIG_FILE", "~/settings", 1);
    assert_keys(&nothing, "AK2", "hush2", "", "profile default");
}

static void what_a_profile_asks_for_and_we_cannot_do(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "[profile p]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = default\n", "has role_arn, which is not" },
        { "[profile p]\nsso_session = x\nsso_account_id = 1\n", "which is not supported" },
        { "[profile p]\nsso_start_url = https://x\n", "has sso_start_url, which is not" },
        { "[profile p]\ncredential_process = /bin/hush\n", "has credential_process, which is not" },
        { "[profile p]\nsource_profile = default\n", "has source_profile, which is not" },
        { "[profile p]\nweb_identity_token_file = /hush\n", "has web_identity_token_file, which is not" },
        /* AWS tools would assume the role: these keys are somebody else. */
        { "[profile p]\nrole_arn = x\naws_access_key_id = AK\naws_secret_access_key = hush\n", "has role_arn, which" },
    };
    const struct rp_s3_options p = { .profile = "p" };
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_file(".aws/config", cases[i].text);
        assert_refused(&p, RP_ECONFIG, cases[i].says);
    }
    write_file(".aws/config", "[profile p]\ncredential_process = /bin/x\n");
    write_file(".aws/credentials", "[p]\naws_access_key_id = AK\naws_secret_access_key = hush\n");
    assert_keys(&p, "AK", "hush", "", "profile p");
}

static void broken_files_name_the_line_and_not_its_text(void **state)
{
    (void)state;
    static char long_line[6000];
    static const struct {
        const char *text, *says;
    } cases[] = {
        { "[default]\naws_access_key_id = AK\nhush\n", "credentials: line 3: neither" },
        { "[default]\n = hush\n", "line 2: neither" },
        { "aws_access_key_id = AK\n", "line 1: a setting before" },
        { "[default\naws_secret_access_key = hush\n", "line 1: the section has no" },
        { "[default]\naws_access_key_id = AK\n", "there is no secret key" },
        { "[default]\naws_access_key_id = AK\naws_secret_access_key = hush hush\n", "secret key has a blank" },
        { long_line, "line 2: the value is too long" },
    };
    int n = snprintf(long_line, sizeof long_line, "[default]\naws_session_token = ");
    memset(long_line + n, 'h', sizeof long_line - 1 - (size_t)n);
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_file(".aws/credentials", cases[i].text);
        assert_refused(&nothing, RP_ECONFIG, cases[i].says);
    }
    setenv("AWS_SHARED_CREDENTIALS_FILE", home_dir, 1);
    assert_refused(&nothing, RP_ECONFIG, "not a regular file");
}

static void a_pipe_and_a_huge_file_are_refused(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof path, "%s/pipe", home_dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    assert_refused(&nothing, RP_ECONFIG, "not a regular file");
    snprintf(path, sizeof path, "%s/huge", home_dir);
    write_file("huge", "");
    assert_int_equal(truncate(path, 2 << 20), 0);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    assert_refused(&nothing, RP_ECONFIG, "more than 1048576 bytes");
}

static void a_changed_file_is_read_when_the_store_refuses(void **state)
{
    (void)state;
    write_file(".aws/credentials", "[default]\naws_access_key_id=AK1\naws_secret_access_key=hush1\n");
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    assert_keys_of(c, "AK1", "hush1", "", "profile default");
    write_file(".aws/credentials", "[default]\naws_access_key_id=AK2\naws_secret_access_key=hush2\n");
    clock_ms += RP_HOUR_MS;
    assert_keys_of(c, "AK1", "hush1", "", "profile default");
    rp_s3_credentials_refused(c);
    assert_keys_of(c, "AK2", "hush2", "", "profile default");
    /* At most once a minute. */
    write_file(".aws/credentials", "[default]\naws_access_key_id=AK3\naws_secret_access_key=hush3\n");
    rp_s3_credentials_refused(c);
    clock_ms += RP_MINUTE_MS - 1;
    assert_keys_of(c, "AK2", "hush2", "", "profile default");
    clock_ms += 1;
    assert_keys_of(c, "AK3", "hush3", "", "profile default");
    /* A file that is gone leaves what there is, and does not send us elsewhere. */
    setenv("AWS_ACCESS_KEY_ID", "AKENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hush-env", 1);
    write_file(".aws/credentials", "");
    rp_s3_credentials_refused(c);
    clock_ms += RP_MINUTE_MS;
    assert_keys_of(c, "AK3", "hush3", "", "profile default");
}

/* ---- the endpoints ---- */

static void the_instance_gives_keys_of_its_role(void **state)
{
    (void)state;
    server_start();
    use_instance();
    assert_keys(&nothing, "ASIA1", "hush-1", "hush+token/1", "instance");
    server.role_status = 404;
    assert_refused(&nothing, RP_ECONFIG, "the instance has no role");
    server.role_status = 500;
    assert_refused(&nothing, RP_EUNAVAILABLE, "status 500");
    server.token_status = 403;
    assert_refused(&nothing, RP_EUNAVAILABLE, "status 403");
    server_stop();
    assert_refused(&nothing, RP_ECONFIG, "no instance metadata");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://192.0.2.1/", 1);
    assert_refused(&nothing, RP_ECONFIG, "plain http is for loopback");
}

static void the_container_gives_keys_for_its_token(void **state)
{
    (void)state;
    server_start();
    use_container("/container");
    assert_keys(&nothing, "ASIA1", "hush-1", "hush+token/1", "container");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "wrong", 1);
    assert_refused(&nothing, RP_EUNAVAILABLE, "status 401");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", write_file("token", "hush-authorization\n"), 1);
    assert_keys(&nothing, "ASIA1", "hush-1", "hush+token/1", "container");
    write_file("token", "hush\nX-Other: 1");
    assert_refused(&nothing, RP_ECONFIG, "TOKEN_FILE: not a token");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nonexistent/token", 1);
    assert_refused(&nothing, RP_ECONFIG, "/nonexistent/token");
    unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    use_container("/redirect");
    assert_refused(&nothing, RP_EUNAVAILABLE, "status 302");
    /* Set up and broken: the instance's role is not asked instead. */
    use_instance();
    assert_refused(&nothing, RP_EUNAVAILABLE, "status 302");
    server_stop();
    assert_refused(&nothing, RP_EUNAVAILABLE, "keys of the container's endpoint");
}

static void container_urls_that_leave_the_machine_are_refused(void **state)
{
    (void)state;
    static const char *const far[] = {
        "http://192.0.2.1/hush",         "http://example.org/hush",    "http://127.0.0.1.example.org/hush",
        "http://user:hush@127.0.0.1/",   "ftp://127.0.0.1/hush",       "file:///etc/hush",
        "http://[2001:db8::1]/hush",     "http://169.253.0.1/hush",    "hush",
        "http://localhost.example/hush", "http://[fd00:dead::1]/hush",
    };
    for (size_t i = 0; i < COUNT(far); i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", far[i], 1);
        assert_refused(&nothing, RP_ECONFIG, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    }
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@192.0.2.1/hush", 1);
    assert_refused(&nothing, RP_ECONFIG, "must begin with");
}

static void garbled_answers_are_refused_without_their_words(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *says;
    } cases[] = {
        { "hush", "not a JSON object" },
        { "[\"hush\"]", "not a JSON object" },
        { "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"hush", "not a JSON object" },
        { "{\"Code\":\"hush\"}", "there are no keys" },
        { "{\"AccessKeyId\":\"AK\"}", "no SecretAccessKey" },
        { "{\"AccessKeyId\":1,\"SecretAccessKey\":\"hush\"}", "no AccessKeyId" },
        { "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"hush\",\"Expiration\":\"hush\"}", "is no time" },
        { "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"hush\",\"Token\":\"hush hush\"}",
          "session token has a blank" },
        { "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"hush\",\"Expiration\":\"2026-11-14T23:59:59Z\"}",
          "have ended" },
    };
    server_start();
    use_container("/container");
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(server.keys, sizeof server.keys, "%s", cases[i].answer);
        RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
        struct s3_keys keys;
        struct rp_error err = { 0 };
        assert_true(rp_s3_credentials_get(c, &keys, &err) < 0);
        if (strstr(err.text, cases[i].says) == NULL) fail_msg("%zu: %s", i, err.text);
        assert_clean(&err);
    }
    snprintf(server.keys, sizeof server.keys, "{\"AccessKeyId\":\"AK\",\"SecretAccessKey\":\"hush\"}");
    assert_keys(&nothing, "AK", "hush", "", "container");
    server_stop();
}

/* ---- when keys end ---- */

static void keys_are_fetched_anew_before_they_end(void **state)
{
    (void)state;
    server_start();
    use_container("/container");
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    server_set(200, 2, START_MS + 2 * RP_HOUR_MS);
    clock_ms = START_MS + RP_HOUR_MS - 5 * RP_MINUTE_MS - 1;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    assert_int_equal(server.keys_served, 1);
    clock_ms += 1;
    assert_keys_of(c, "ASIA2", "hush-2", "hush+token/2", "container");
    assert_keys_of(c, "ASIA2", "hush-2", "hush+token/2", "container");
    assert_int_equal(server.keys_served, 2);
    server_stop();
}

static void old_keys_serve_until_their_end(void **state)
{
    (void)state;
    server_start();
    use_instance();
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "instance");
    server_set(500, 2, START_MS + 2 * RP_HOUR_MS);
    clock_ms = START_MS + RP_HOUR_MS - 4 * RP_MINUTE_MS;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "instance");
    assert_int_equal(server.key_requests, 2);
    /* Not with every request. */
    clock_ms += 30 * RP_SECOND_MS - 1;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "instance");
    assert_int_equal(server.key_requests, 2);
    clock_ms += 1;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "instance");
    assert_int_equal(server.key_requests, 3);
    clock_ms = START_MS + RP_HOUR_MS - 1;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "instance");
    clock_ms += 1;
    assert_refused_of(c, RP_EUNAVAILABLE, "status 500");
    server_set(200, 2, START_MS + 2 * RP_HOUR_MS);
    assert_refused_of(c, RP_EUNAVAILABLE, "status 500");
    clock_ms += RP_SECOND_MS;
    assert_keys_of(c, "ASIA2", "hush-2", "hush+token/2", "instance");
    server_stop();
}

static void a_clock_set_back_does_not_stop_fetching(void **state)
{
    (void)state;
    server_start();
    use_container("/container");
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    server_set(500, 1, START_MS + RP_HOUR_MS);
    assert_refused_of(c, RP_EUNAVAILABLE, "status 500");
    server_set(200, 1, START_MS + RP_HOUR_MS);
    clock_ms -= RP_DAY_MS;
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    server_stop();
}

static void short_lived_keys_are_not_fetched_with_every_request(void **state)
{
    (void)state;
    server_start();
    use_container("/container");
    server_set(200, 1, START_MS + RP_MINUTE_MS);
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    for (int i = 0; i < 10; i++)
        assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    assert_int_equal(server.keys_served, 1);
    server_stop();
}

/* ---- threads ---- */

static const char *expected_access;

static void *ask(void *ctx)
{
    struct s3_keys keys = { 0 };
    pthread_mutex_lock(&server.lock);
    server.asking++;
    pthread_cond_broadcast(&server.changed);
    pthread_mutex_unlock(&server.lock);
    bool ok = rp_s3_credentials_get(ctx, &keys, NULL) == 0 && strcmp(keys.access, expected_access) == 0;
    return ok ? ctx : NULL;
}

static void await(const unsigned *what, unsigned n)
{
    pthread_mutex_lock(&server.lock);
    while (*what < n)
        pthread_cond_wait(&server.changed, &server.lock);
    pthread_mutex_unlock(&server.lock);
}

static void one_fetches_for_all(void **state)
{
    (void)state;
    pthread_t threads[16];
    server_start();
    expected_access = "ASIA1";
    server_hold(true);
    use_container("/container");
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask, c), 0);
    await(&server.asking, COUNT(threads));
    await(&server.key_requests, 1);
    server_hold(false);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *ok = NULL;
        assert_int_equal(pthread_join(threads[i], &ok), 0);
        assert_ptr_equal(ok, c);
    }
    assert_int_equal(server.key_requests, 1);
    server_stop();
}

static void who_has_keys_that_serve_waits_for_nobody(void **state)
{
    (void)state;
    pthread_t thread;
    void *ok = NULL;
    server_start();
    use_container("/container");
    RP_CLEANUP(credentials_freep) struct s3_credentials *c = make(&nothing);
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    clock_ms = START_MS + RP_HOUR_MS - RP_MINUTE_MS;
    server_hold(true);
    server_set(200, 2, START_MS + 2 * RP_HOUR_MS);
    expected_access = "ASIA2";
    assert_int_equal(pthread_create(&thread, NULL, ask, c), 0);
    await(&server.key_requests, 2);
    assert_keys_of(c, "ASIA1", "hush-1", "hush+token/1", "container");
    /* Had we waited, the fetch would have run out of time by now and brought nothing. */
    server_hold(false);
    assert_int_equal(pthread_join(thread, &ok), 0);
    assert_ptr_equal(ok, c);
    server_stop();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_configuration_comes_first),
        TEST(half_a_pair_is_an_error),
        TEST(keys_that_cannot_be_sent_are_refused),
        TEST(nothing_anywhere_says_where_was_looked),
        TEST(web_identities_are_not_passed_over),
        TEST(profiles_of_both_files),
        TEST(a_configured_profile_counts_before_the_environment),
        TEST(files_may_be_elsewhere),
        TEST(what_a_profile_asks_for_and_we_cannot_do),
        TEST(broken_files_name_the_line_and_not_its_text),
        TEST(a_pipe_and_a_huge_file_are_refused),
        TEST(a_changed_file_is_read_when_the_store_refuses),
        TEST(the_instance_gives_keys_of_its_role),
        TEST(the_container_gives_keys_for_its_token),
        TEST(container_urls_that_leave_the_machine_are_refused),
        TEST(garbled_answers_are_refused_without_their_words),
        TEST(keys_are_fetched_anew_before_they_end),
        TEST(old_keys_serve_until_their_end),
        TEST(a_clock_set_back_does_not_stop_fetching),
        TEST(short_lived_keys_are_not_fetched_with_every_request),
        TEST(one_fetches_for_all),
        TEST(who_has_keys_that_serve_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
