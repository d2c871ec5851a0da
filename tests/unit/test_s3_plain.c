/* SPDX-License-Identifier: Apache-2.0 */
/* Documents taken apart the short way (plain.h) and by expat: where the short way is taken, both
 * say the same of the same bytes (N2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "base/text/buf.h"
#include "store/s3/xml/parse.h"
#include "store/s3/xml/plain.h"

#define HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define ROOT "<L xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"

static const struct s3_shape shape = {
    .roots = { "L" },
    .rows = { "Row" },
    .row_depth = 2,
    .fields = { "Key", "ETag" },
    .heads = { "More", "Token" },
    .cut = "ETag",
};

static int note_row(void *ctx, int row, const struct s3_texts *fields, struct rp_error *err)
{
    const char *key = rp_s3_text(fields, 0), *etag = rp_s3_text(fields, 1);
    (void)err;
    rp_buf_fmt(ctx, "row %d [%s] [%s]\n", row, key ? key : "-", etag ? etag : "-");
    return 0;
}

typedef int parse_fn(const struct rp_buf *xml, const struct s3_shape *shape, s3_row_fn *fn, void *ctx,
                     struct s3_texts *heads, struct rp_error *err);

/* Everything that was said, in words. */
static void note_all(parse_fn *parse, const char *xml, size_t n, struct rp_buf *out)
{
    RP_CLEANUP(rp_s3_texts_done) struct s3_texts heads = { 0 };
    struct rp_error err = { 0 };
    const struct rp_buf text = { .data = (char *)(uintptr_t)xml, .len = n };
    const int r = parse(&text, &shape, note_row, out, &heads, &err);
    const char *more = rp_s3_text(&heads, 0), *token = rp_s3_text(&heads, 1);
    rp_buf_fmt(out, "more [%s] token [%s] code %d %s\n", more ? more : "-", token ? token : "-", r, err.text);
}

static int ignore_begin(void *ctx, const char *name)
{
    (void)ctx, (void)name;
    return 0;
}

static int ignore_text(void *ctx, const char *text, size_t n)
{
    (void)ctx, (void)text, (void)n;
    return 0;
}

static int ignore_end(void *ctx)
{
    (void)ctx;
    return 0;
}

static bool is_plain(const char *xml, size_t n)
{
    static const struct s3_plain_fns fns = { ignore_begin, ignore_text, ignore_end };
    return rp_s3_plain_walk(xml, n, &fns, NULL) == 0;
}

static void expect_same(const char *xml, size_t n)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf ours = RP_BUF((size_t)1 << 20), theirs = RP_BUF((size_t)1 << 20);
    note_all(rp_s3_parse, xml, n, &ours);
    note_all(rp_s3_parse_expat, xml, n, &theirs);
    if (strcmp(rp_buf_text(&ours), rp_buf_text(&theirs)) != 0)
        fail_msg("of %.*s\none says\n%sthe other\n%s", (int)n, xml, rp_buf_text(&ours), rp_buf_text(&theirs));
}

static const char *const plain[] = {
    (HEAD ROOT "<More>false</More></L>"),
    "<L></L>",
    "<L>\n  <Row>\n\t<Key>a b</Key>\n  </Row>\n</L>\n \t\n",
    (HEAD "\n" ROOT "<Row><Key>a&amp;b&lt;&gt;&apos;</Key><ETag>&quot;12&quot;</ETag></Row><Token>t</Token></L>"),
    (ROOT "<Row><Key>k</Key><Owner><ID>x</ID></Owner></Row><Row><Key></Key></Row></L>"),
    (ROOT "<Row><Key>k</Key><Key>k</Key></Row></L>"),     /* twice: refused, by either */
    (ROOT "<Row><Key>k<Inner>x</Inner></Key></Row></L>"), /* elements in a text */
    "<Other><Row><Key>k</Key></Row></Other>",             /* another root */
    "<L><a><b><c><d><e><f><g><h><i><j><k><m><n><o><p></p></o></n></m></k></j></i></h></g></f></e></d></c></b></a></L>",
};

static const char *const others[] = {
    "",
    " ",
    "<L>",
    "<L></M>",
    "<L></L><L></L>",
    "<L></L>x",
    (" " HEAD "<L></L>"),
    "<L/>",
    "<L><Row/></L>",
    "<L ></L>",
    "<L a=\"1\" a=\"2\"></L>",
    "<L a='1'></L>",
    "<L a=\"<\"></L>",
    "<L><Row a=\"1\"></Row></L>",
    "<L><x:Row></x:Row></L>",
    "<L>\r\n</L>",
    "<L><Row><Key>\xc3\xa4</Key></Row></L>",
    "<L><Row><Key>\xff</Key></Row></L>",
    "<L><Row><Key>&#65;</Key></Row></L>",
    "<L><Row><Key>&what;</Key></Row></L>",
    "<L><Row><Key>&amp</Key></Row></L>",
    "<L><Row><Key>]]></Key></Row></L>",
    "<L><!-- c --></L>",
    "<L><![CDATA[x]]></L>",
    "<!DOCTYPE L><L></L>",
    "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><L></L>",
    "<L><1></1></L>",
    "<L></L",
    "<L><",
    "<L><Row></",
    "<L><Row><Key>a</Key></Row><More>x</More><Row><Key>\xc3\xa4</Key></Row><Token>t</Token></L>", /* half of it plain */
    "<L><Row><Key>a</Key></Row><More>x</More><Row><Key>b</Key></Row></M>",
};

static void what_servers_send_is_plain_and_read_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (!is_plain(plain[i], strlen(plain[i]))) fail_msg("not plain: %s", plain[i]);
        expect_same(plain[i], strlen(plain[i]));
    }
}

static void everything_else_is_left_to_expat(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (is_plain(others[i], strlen(others[i]))) fail_msg("plain: %s", others[i]);
        expect_same(others[i], strlen(others[i]));
    }
}

static void every_beginning_of_a_document_is_judged_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        for (size_t n = 0; n < strlen(plain[i]); n++) {
            char *copy = malloc(n + 1); /* exactly as long: a sanitizer sees a byte too far */
            assert_non_null(copy);
            memcpy(copy, plain[i], n);
            copy[n] = '\0';
            expect_same(copy, n);
            free(copy);
        }
}

/* Bytes that mean something, a few of them anywhere. */
static void damage(char *text, size_t *n, size_t size, uint64_t *random)
{
    static const char *const pieces[] = { "<",     ">",  "/",    "&",     "\"",   "]",   "]]>",   "x",    " ",
                                          "\n",    "\r", "\t",   "&amp;", "&lt;", "<x>", "</x>",  "<x/>", "</Row>",
                                          "<Key>", "=",  "<!--", "\x80",  "\x01", "0",   "<Row>", "&#9;", ":" };
    for (uint64_t times = 1 + rp_random_next(random) % 3; times > 0; times--) {
        const char *piece = pieces[rp_random_next(random) % (sizeof pieces / sizeof *pieces)];
        size_t at = (size_t)(rp_random_next(random) % (*n + 1)), cut = (size_t)(rp_random_next(random) % 3);
        if (cut > *n - at) cut = *n - at;
        if (*n - cut + strlen(piece) > size) continue;
        memmove(text + at + strlen(piece), text + at + cut, *n - at - cut);
        for (size_t i = 0; piece[i] != '\0'; i++)
            text[at + i] = piece[i];
        *n += strlen(piece) - cut;
    }
}

static void damaged_documents_are_judged_alike(void **state)
{
    const char *given = getenv("RP_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 1, random = seed;
    size_t taken = 0, tries = 60000;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (size_t i = 0; i < tries; i++) {
        char text[1024];
        const char *from = plain[rp_random_next(&random) % (sizeof plain / sizeof *plain)];
        size_t n = strlen(from);
        memcpy(text, from, n);
        damage(text, &n, sizeof text - 1, &random);
        text[n] = '\0';
        taken += is_plain(text, n);
        expect_same(text, n);
    }
    print_message("%zu of %zu still plain\n", taken, tries);
    assert_true(taken > tries / 100 && taken < tries / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_servers_send_is_plain_and_read_alike),
        cmocka_unit_test(everything_else_is_left_to_expat),
        cmocka_unit_test(every_beginning_of_a_document_is_judged_alike),
        cmocka_unit_test(damaged_documents_are_judged_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
