/* SPDX-License-Identifier: Apache-2.0 */
/* What S3 servers say, read: documents of Ceph RGW 16.2 as it sent them, and AWS's shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "store/s3/xml/parse.h"
#include "store/s3/xml/xml.h"

/* A text as an answer. */
#define TEXT(xml, n) (&(struct rp_buf){ .data = (char *)(uintptr_t)(xml), .len = (n) })

#define XML   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define AMZ   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
#define AT_MS INT64_C(1794744422000) /* 2026-11-15T12:07:02Z */

#define CEPH_ROW(key)                                                                                                  \
    "<Contents><Key>" key "</Key><LastModified>2026-11-15T12:07:02.427Z</LastModified>"                                \
    "<ETag>&quot;900150983cd24fb0d6963f7d28e17f72&quot;</ETag><Size>3</Size><StorageClass>STANDARD</StorageClass>"     \
    "<Type>Normal</Type></Contents>"
#define CEPH_LIST(truncated, rows, end)                                                                                \
    XML "<ListBucketResult" AMZ "><EncodingType>url</EncodingType><Name>bucket1</Name><Prefix></Prefix>"               \
        "<MaxKeys>2</MaxKeys><IsTruncated>" truncated "</IsTruncated>" rows end "</ListBucketResult>"
#define CEPH_OWNER "<Owner><ID>test</ID><DisplayName>test</DisplayName></Owner><Type>Normal</Type>"
#define CEPH_VERSION(key, id, latest)                                                                                  \
    "<Version><Key>" key "</Key><VersionId>" id "</VersionId><IsLatest>" latest "</IsLatest>"                          \
    "<LastModified>2026-11-15T12:07:02.602Z</LastModified><ETag>&quot;e2fc714c4727ee9395f324cd2e7f331f&quot;"          \
    "</ETag><Size>4</Size><StorageClass>STANDARD</StorageClass>" CEPH_OWNER "</Version>"

struct seen {
    char text[16384]; /* a line a row */
    size_t n, stop_after;
};

static void note(struct seen *seen, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct seen *seen, const char *fmt, ...)
{
    const size_t len = strlen(seen->text);
    va_list args;
    va_start(args, fmt);
    assert_true((size_t)vsnprintf(seen->text + len, sizeof seen->text - len, fmt, args) < sizeof seen->text - len);
    va_end(args);
    seen->n++;
}

static int see_listed(void *ctx, const struct s3_listed *l, struct rp_error *err)
{
    struct seen *seen = ctx;
    const struct rp_identity *id = &l->entry.identity;
    (void)err;
    assert_int_equal(id->modified_ms, AT_MS);
    note(seen, "[%s] %s '%s' %d%s%s\n", l->entry.key, id->etag, id->version, (int)id->size_bytes,
         l->is_latest ? " latest" : "", l->is_marker ? " marker" : "");
    return seen->stop_after != 0 && seen->n == seen->stop_after;
}

static int see_partial(void *ctx, const struct rp_partial *p, struct rp_error *err)
{
    (void)err;
    note(ctx, "[%s] %s %+d\n", p->key, p->upload, (int)(p->begun_ms - AT_MS));
    return 0;
}

static int see_deleted(void *ctx, const struct s3_deleted *d, struct rp_error *err)
{
    (void)err;
    note(ctx, "[%s] '%s' %s:%s %.8s\n", d->key, d->version, d->code, d->message, d->marker);
    return 0;
}

static struct s3_page list(const char *xml, const char *expected)
{
    struct seen seen = { .n = 0 };
    struct s3_page page;
    struct rp_error err = { 0 };
    if (rp_s3_read_list(TEXT(xml, strlen(xml)), see_listed, &seen, &page, &err) != 0) fail_msg("%s", err.text);
    assert_string_equal(seen.text, expected);
    assert_int_equal(seen.n, page.n);
    return page;
}

static void refuse_list(const char *xml, size_t n, const char *why)
{
    struct seen seen = { .n = 0 };
    struct s3_page page = { .n = 77 };
    struct rp_error err = { 0 };
    const int r = rp_s3_read_list(TEXT(xml, n), see_listed, &seen, &page, &err);
    if (r != RP_ECORRUPT || !strstr(err.text, why))
        fail_msg("%d %s, not '%s', for %.*s", r, err.text, why, (int)n, xml);
    assert_int_equal(seen.n, 0);
    assert_int_equal(page.n, 77);
}

static void reads_a_page_of_ceph(void **state)
{
    (void)state;
    struct s3_page page = list(
        CEPH_LIST("true", CEPH_ROW("%01x") CEPH_ROW("a%2520b"),
                  "<NextContinuationToken>a%20b</NextContinuationToken><KeyCount>2</KeyCount>"),
        "[\x01x] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n[a%20b] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n");
    assert_true(page.truncated);
    assert_string_equal(page.next, "a%20b");
    page = list(CEPH_LIST("true", "", "<NextContinuationToken>b%20+c</NextContinuationToken>"), "");
    assert_string_equal(page.next, "b%20+c"); /* a token is nobody's to decode */
    page =
        list(CEPH_LIST("false", CEPH_ROW("c%26%3Cd") CEPH_ROW("line%0Abreak") CEPH_ROW("p%2Bq%20r") CEPH_ROW("u%C3%BC"),
                       "<KeyCount>4</KeyCount>"),
             "[c&<d] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n"
             "[line\nbreak] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n"
             "[p+q r] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n[u\xC3\xBC] 900150983cd24fb0d6963f7d28e17f72 '' 3 "
             "latest\n");
    assert_false(page.truncated);
    assert_string_equal(page.next, "");
}

static void reads_what_aws_sends(void **state)
{
    (void)state;
    /* As documented, with a prefix, CDATA, entities, spaces, attributes, comments and the order
     * changed. */
    const char *xml =
        "\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<!-- a page -->\n"
        "<s3:ListBucketResult xmlns:s3=\"http://s3.amazonaws.com/doc/2006-03-01/\" other='1'>\n"
        "  <s3:Contents>\n    <s3:Size> 434234\n</s3:Size><s3:ChecksumAlgorithm>SHA256</s3:ChecksumAlgorithm>\n"
        "    <s3:ETag><![CDATA[\"fba9dede5f27731c9771645a39863328-12\"]]></s3:ETag>\n"
        "    <s3:Owner><s3:ID>x</s3:ID><s3:Key>not this</s3:Key></s3:Owner>\n"
        "    <s3:Key>my<![CDATA[+]]>im<!-- in between -->age&#46;jpg</s3:Key>\n"
        "    <s3:LastModified>\n2026-11-15T12:07:02Z</s3:LastModified>\n  </s3:Contents>\n"
        "  <s3:CommonPrefixes><s3:Prefix>q/</s3:Prefix></s3:CommonPrefixes>\n"
        "  <s3:NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</s3:NextContinuationToken>\n"
        "  <s3:IsTruncated>true</s3:IsTruncated><s3:EncodingType>url</s3:EncodingType>\n"
        "</s3:ListBucketResult>\n";
    struct s3_page page = list(xml, "[my image.jpg] fba9dede5f27731c9771645a39863328-12 '' 434234 latest\n");
    assert_string_equal(page.next, "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=");
}

static void keys_are_decoded_only_where_they_are_escaped(void **state)
{
    (void)state;
    const char *silent =
        XML "<ListBucketResult" AMZ "><IsTruncated>false</IsTruncated>" CEPH_ROW("a%2520+b") "</ListBucketResult>";
    list(silent, "[a%2520+b] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n");
}

static void reads_versions_and_markers(void **state)
{
    (void)state;
    const char *xml = XML
        "<ListVersionsResult" AMZ "><EncodingType>url</EncodingType><Name>bucket1</Name><Prefix></Prefix>"
        "<MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><KeyMarker></KeyMarker><VersionIdMarker></"
        "VersionIdMarker>" CEPH_VERSION("a%2520b", "Z8YBORciMVbu4dfrm.KubHHVqa3i-AW", "true") CEPH_VERSION(
            "a%2520b", "null", "false") "<DeleteMarker><Key>u%C3%BC</Key><VersionId>40aZ2f06hZEZFjXGw8Mu1yzRwyRGHMA</"
                                        "VersionId><IsLatest>true</IsLatest>"
                                        "<LastModified>2026-11-15T12:07:02.614Z</LastModified>" CEPH_OWNER
                                        "</DeleteMarker></ListVersionsResult>";
    list(xml, "[a%20b] e2fc714c4727ee9395f324cd2e7f331f 'Z8YBORciMVbu4dfrm.KubHHVqa3i-AW' 4 latest\n"
              "[a%20b] e2fc714c4727ee9395f324cd2e7f331f '' 4\n[u\xC3\xBC]  '40aZ2f06hZEZFjXGw8Mu1yzRwyRGHMA' 0 latest "
              "marker\n");
}

/* Ceph's key marker is the key, AWS's the escaped key: both must come out as the key. */
static void key_markers_are_read_as_they_are_meant(void **state)
{
    (void)state;
#define TRUNCATED_VERSIONS(marker)                                                                                     \
    XML "<ListVersionsResult" AMZ "><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"                   \
        "<NextKeyMarker>" marker "</NextKeyMarker><NextVersionIdMarker>null</NextVersionIdMarker>" CEPH_VERSION(       \
            "a%2520b", "null", "true") "</ListVersionsResult>"
    const char *expected = "[a%20b] e2fc714c4727ee9395f324cd2e7f331f '' 4 latest\n";
    struct s3_page page = list(TRUNCATED_VERSIONS("a%20b"), expected);
    assert_string_equal(page.next, "a%20b");
    assert_string_equal(page.next_id, "null");
    page = list(TRUNCATED_VERSIONS("a%2520b"), expected);
    assert_string_equal(page.next, "a%20b");
    page = list(TRUNCATED_VERSIONS("b+%25"), expected);
    assert_string_equal(page.next, "b %");
    page = list(TRUNCATED_VERSIONS("100%"), expected);
    assert_string_equal(page.next, "100%");
}

static void a_reader_can_stop(void **state)
{
    (void)state;
    const char *xml = CEPH_LIST("false", CEPH_ROW("a") CEPH_ROW("b") CEPH_ROW("c"), "");
    struct seen seen = { .stop_after = 2 };
    struct s3_page page;
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_read_list(TEXT(xml, strlen(xml)), see_listed, &seen, &page, &err), 1);
    assert_int_equal(seen.n, 2);
    assert_int_equal(page.n, 3);
}

static void half_a_document_is_none(void **state)
{
    (void)state;
    const char *xml = CEPH_LIST("false", CEPH_ROW("a") CEPH_ROW("b"), "");
    for (size_t n = 0; n < strlen(xml); n++)
        refuse_list(xml, n, "the server's listing: ");
    refuse_list(CEPH_LIST("false", CEPH_ROW("a"), "") "<x/>", strlen(CEPH_LIST("false", CEPH_ROW("a"), "")) + 4,
                "at byte");
}

static void what_is_no_listing_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *xml, *why;
    } bad[] = {
        { "", "no element" },
        { "not xml", "at byte" },
        { "<html><body>It works!</body></html>", "<html> instead of <ListBucketResult>" },
        { XML "<Error><Code>AccessDenied</Code></Error>", "<Error> instead of" },
        { "<!DOCTYPE x [<!ENTITY k \"kkkk\">]><ListBucketResult/>", "DOCTYPE" },
        { "<ListBucketResult/>", "<IsTruncated> is neither true nor false" },
        { CEPH_LIST("maybe", "", ""), "<IsTruncated> is neither true nor false" },
        { CEPH_LIST("true", CEPH_ROW("a"), ""), "names no next" },
        { CEPH_LIST("true", CEPH_ROW("a"), "<NextContinuationToken/>"), "names no next" },
        { CEPH_LIST("false", CEPH_ROW("a%2"), ""), "broken escape" },
        { CEPH_LIST("false", CEPH_ROW("a%"), ""), "broken escape" },
        { CEPH_LIST("false", CEPH_ROW("a%g0"), ""), "broken escape" },
        { CEPH_LIST("false", CEPH_ROW("a%00b"), ""), "a key that is none" },
        { CEPH_LIST("false", CEPH_ROW("a%ff"), ""), "a key that is none" },
        { CEPH_LIST("false", CEPH_ROW(""), ""), "a key that is none" },
        { CEPH_LIST("false", CEPH_ROW("fine") CEPH_ROW("&#x01;x"), ""), "at byte" },
        { CEPH_LIST("false", CEPH_ROW("a</Key><Key>b"), ""), "<Key> stands there twice" },
        { CEPH_LIST("false", CEPH_ROW("a<x>b</x>c"), ""), "<Key> has elements in it" },
        { CEPH_LIST("false", CEPH_ROW("a"), "<IsTruncated>true</IsTruncated>"), "<IsTruncated> stands there twice" },
        { CEPH_LIST("false", "<Contents><Key>a</Key></Contents>", ""), "without <ETag>" },
        { CEPH_LIST("false", "<Contents><ETag>a</ETag></Contents>", ""), "without <Key>" },
        { CEPH_LIST("false", CEPH_ROW("a</Key><Size>-1</Size><Key>"), ""), "twice" },
        { CEPH_LIST("false", "<Contents><Key>a</Key><ETag>e</ETag><Size>1</Size></Contents>", ""),
          "<LastModified> is no time" },
        { CEPH_LIST("false",
                    "<Contents><Key>a</Key><ETag>e</ETag><LastModified>2026-11-15T12:07:02Z</LastModified><Size>-1</"
                    "Size></Contents>",
                    ""),
          "<Size> is no size" },
        { CEPH_LIST("false",
                    "<Contents><Key>a</Key><ETag>e</ETag><LastModified>2026-11-15T12:07:02Z</"
                    "LastModified><Size>9223372036854775808</Size></Contents>",
                    ""),
          "<Size> is no size" },
        { CEPH_LIST("false", "<Version><Key>a</Key><ETag>e</ETag></Version>", ""), "without <VersionId>" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refuse_list(bad[i].xml, strlen(bad[i].xml), bad[i].why);
}

static void refuse_row(const char *why, const char *key, int key_n, int etag_n)
{
    RP_CLEANUP(rp_buf_done) struct rp_buf xml = RP_BUF(32768);
    rp_buf_fmt(&xml,
               CEPH_LIST("false",
                         "<Contents><Key>%.*s</Key><ETag>%.*s</ETag><LastModified>2026-11-15T12:07:02Z</LastModified>"
                         "<Size>1</Size></Contents>",
                         ""),
               key_n, key, etag_n, key);
    assert_int_equal(xml.failed, 0);
    refuse_list(rp_buf_text(&xml), xml.len, why);
}

static void what_is_too_long_or_too_deep_is_refused(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf deep = RP_BUF(2048);
    char key[8192];
    memset(key, 'k', sizeof key);
    refuse_row("a key that is none", key, RP_KEY_MAX + 1, 1);
    refuse_row("<Key> is longer than", key, (int)sizeof key, 1);
    refuse_row("<ETag> has 96 bytes", key, 1, RP_ETAG_MAX);
    rp_buf_str(&deep, "<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < 16; i++)
        rp_buf_str(&deep, "<a>");
    for (int i = 0; i < 16; i++)
        rp_buf_str(&deep, "</a>");
    rp_buf_str(&deep, "</ListBucketResult>");
    refuse_list(rp_buf_text(&deep), deep.len, "nested deeper than 16");
}

static void the_longest_key_is_read_even_if_all_of_it_is_escaped(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf xml = RP_BUF(16384), escaped = RP_BUF(4096), plain = RP_BUF(4096);
    char expected[2048];
    for (size_t i = 0; i < RP_KEY_MAX; i += 2) {
        rp_buf_str(&escaped, "%C3%BC");
        rp_buf_str(&plain, "\xC3\xBC");
    }
    assert_int_equal(plain.len, RP_KEY_MAX);
    rp_buf_fmt(&xml, CEPH_LIST("true", CEPH_ROW("%s"), "<NextKeyMarker>%s</NextKeyMarker>"), rp_buf_text(&escaped),
               rp_buf_text(&escaped));
    snprintf(expected, sizeof expected, "[%s] 900150983cd24fb0d6963f7d28e17f72 '' 3 latest\n", rp_buf_text(&plain));
    struct s3_page page = list(rp_buf_text(&xml), expected);
    assert_string_equal(page.next, rp_buf_text(&plain));
}

static void reads_uploads_that_nobody_ended(void **state)
{
    (void)state;
#define UPLOAD(key, id)                                                                                                \
    "<Upload><Key>" key "</Key><UploadId>" id "</UploadId><Initiator><ID>test</ID><DisplayName>test</DisplayName>"     \
    "</Initiator><Owner><ID>test</ID><DisplayName>test</DisplayName></Owner><StorageClass>STANDARD</StorageClass>"     \
    "<Initiated>2026-11-15T12:07:02.834Z</Initiated></Upload>"
    const char *xml = XML
        "<ListMultipartUploadsResult" AMZ "><Bucket>bucket1</Bucket><NextKeyMarker>m%20n o</NextKeyMarker>"
        "<NextUploadIdMarker>2~Vepf3GSx</NextUploadIdMarker><MaxUploads>2</MaxUploads><IsTruncated>true</"
        "IsTruncated>" UPLOAD("z%26", "2~KGKxxd9M") UPLOAD("m%2520n%20o", "2~Vepf3GSx") "</ListMultipartUploadsResult>";
    struct seen seen = { .n = 0 };
    struct s3_page page;
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_read_partials(TEXT(xml, strlen(xml)), see_partial, &seen, &page, &err), 0);
    assert_string_equal(seen.text, "[z&] 2~KGKxxd9M +0\n[m%20n o] 2~Vepf3GSx +0\n");
    assert_true(page.truncated);
    assert_string_equal(page.next, "m%20n o");
    assert_string_equal(page.next_id, "2~Vepf3GSx");

    seen = (struct seen){ .n = 0 };
    const char *bad = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>" UPLOAD("a", "1")
        UPLOAD("b", "") "</ListMultipartUploadsResult>";
    assert_int_equal(rp_s3_read_partials(TEXT(bad, strlen(bad)), see_partial, &seen, &page, &err), RP_ECORRUPT);
    assert_non_null(strstr(err.text, "without <UploadId>"));
    assert_int_equal(seen.n, 0);
}

static void reads_what_became_of_each_key(void **state)
{
    (void)state;
    const char *xml =
        XML "<DeleteResult" AMZ "><Deleted><Key>c&amp;&lt;d</Key><DeleteMarker>true</DeleteMarker>"
            "<DeleteMarkerVersionId>cW92yiJ3r3o9nkiP3JMDKl0GAKm0azq</DeleteMarkerVersionId></Deleted>"
            "<Deleted><Key>a%20b</Key><VersionId>bogus</VersionId></Deleted><Deleted><Key>a%20b</Key><VersionId>null</"
            "VersionId></Deleted>"
            "<Error><Key>line\nbreak</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
            "<Error><Code>InternalError</Code><VersionId>v1</VersionId><Key>x</Key></Error></DeleteResult>";
    struct seen seen = { .n = 0 };
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_read_deleted(TEXT(xml, strlen(xml)), see_deleted, &seen, &err), 0);
    assert_string_equal(seen.text, "[c&<d] '' : cW92yiJ3\n[a%20b] 'bogus' : \n[a%20b] '' : \n"
                                   "[line\nbreak] '' AccessDenied:Access Denied \n[x] 'v1' InternalError: \n");
}

static void an_answer_that_cannot_be_right_deletes_nothing(void **state)
{
    (void)state;
    const char *const bad[] = {
        "<DeleteResult><Deleted><Key>a</Key></Deleted>",
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted></Deleted></DeleteResult>",
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Deleted><Key></Key></Deleted></DeleteResult>",
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key></Error></DeleteResult>",
        "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key><Code></Code></Error></DeleteResult>",
        "<DeletedResult><Deleted><Key>a</Key></Deleted></DeletedResult>",
        "<Error><Code>InternalError</Code></Error>",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct seen seen = { .n = 0 };
        struct rp_error err = { 0 };
        assert_int_equal(rp_s3_read_deleted(TEXT(bad[i], strlen(bad[i])), see_deleted, &seen, &err), RP_ECORRUPT);
        assert_int_equal(seen.n, 0);
        assert_non_null(strstr(err.text, "the server's answer to a multi-object delete: "));
    }
}

static struct s3_fault fault(const char *xml)
{
    struct s3_fault out;
    memset(&out, 'x', sizeof out);
    rp_s3_read_fault(TEXT(xml, strlen(xml)), &out);
    return out;
}

static void reads_error_documents(void **state)
{
    (void)state;
    struct s3_fault f = fault(XML "<Error><Code>NoSuchBucket</Code><Message></Message><BucketName>nobucket</BucketName>"
                                  "<RequestId>tx0-1</RequestId><HostId>100a</HostId></Error>");
    assert_string_equal(f.code, "NoSuchBucket");
    assert_string_equal(f.message, "");
    f = fault("<Error><Code>PermanentRedirect</Code><Message>The bucket "
              "is\nelsewhere.</Message><Endpoint>b.s3-eu-west-1.amazonaws.com"
              "</Endpoint><Bucket>b</Bucket></Error>");
    assert_string_equal(f.message, "The bucket is elsewhere.");
    assert_string_equal(f.endpoint, "b.s3-eu-west-1.amazonaws.com");
    f = fault("<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message><Region>eu-west-1</Region></Error>");
    assert_string_equal(f.region, "eu-west-1");
    const char *const none[] = {
        "",
        "x",
        "<html/>",
        "<Error><Code>AccessDenied</Code>",
        "<!DOCTYPE a><Error><Code>A</Code></Error>",
        "<Error><Message>m</Message></Error>",
        "<Error><Code>AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA</Code></Error>"
    };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_string_equal(fault(none[i]).code, "");
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf xml = RP_BUF(16384);
    rp_buf_str(&xml, "<Error><Code>C</Code><Message>xx");
    for (int i = 0; i < 4000; i++)
        rp_buf_str(&xml, "\xC3\xBC");
    rp_buf_str(&xml, "</Message></Error>");
    struct s3_fault f = fault(rp_buf_text(&xml));
    assert_string_equal(f.code, "C");
    assert_int_equal(strlen(f.message), 158);
}

static void reads_one_text(void **state)
{
    (void)state;
    const char *copy = XML "<CopyObjectResult" AMZ "><LastModified>2026-11-15T12:07:02.918Z</LastModified>"
                           "<ETag>900150983cd24fb0d6963f7d28e17f72</ETag></CopyObjectResult>";
    const char *versions = XML "<VersioningConfiguration" AMZ "></VersioningConfiguration>";
    const char *failed = XML "\n\n<Error><Code>SlowDown</Code><Message>Please reduce</Message></Error>";
    char out[40] = "as it was", small[8] = "small";
    struct rp_error err = { 0 };
    assert_int_equal(rp_s3_read_text(TEXT(failed, strlen(failed)), "CopyObjectResult", "ETag", out, sizeof out, &err),
                     RP_EFAILED);
    assert_string_equal(err.text, "the server says SlowDown: Please reduce");
    assert_int_equal(rp_s3_read_text(TEXT(copy, strlen(copy)), "CopyPartResult", "ETag", out, sizeof out, &err),
                     RP_ECORRUPT);
    assert_int_equal(rp_s3_read_text(TEXT(copy, strlen(copy) - 1), "CopyObjectResult", "ETag", out, sizeof out, &err),
                     RP_ECORRUPT);
    assert_string_equal(out, "as it was");
    assert_int_equal(rp_s3_read_text(TEXT(copy, strlen(copy)), "CopyObjectResult", "ETag", small, sizeof small, &err),
                     RP_ECORRUPT);
    assert_string_equal(small, "small");
    assert_int_equal(rp_s3_read_text(TEXT(copy, strlen(copy)), "CopyObjectResult", "ETag", out, sizeof out, &err), 0);
    assert_string_equal(out, "900150983cd24fb0d6963f7d28e17f72");
    assert_int_equal(
        rp_s3_read_text(TEXT(versions, strlen(versions)), "VersioningConfiguration", "Status", out, sizeof out, &err),
        0);
    assert_string_equal(out, "");
    const char *deep = "<R><x><T>first</T></x><T>second</T></R>";
    assert_int_equal(rp_s3_read_text(TEXT(deep, strlen(deep)), "R", "T", out, sizeof out, &err), 0);
    assert_string_equal(out, "first");
}

static void reads_and_writes_tags(void **state)
{
    (void)state;
    RP_CLEANUP(rp_arena_done) struct rp_arena arena = RP_ARENA(65536);
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096), again = RP_BUF(4096);
    struct rp_pair *pairs = NULL;
    size_t n = 0;
    struct rp_error err = { 0 };
    const struct rp_pair given[] = { { "a&b", " v\r\n\t1 " }, { "e", "" } };
    assert_int_equal(rp_s3_write_tags(&out, given, 2, &err), 0);
    assert_int_equal(rp_s3_read_tags(&out, &arena, &pairs, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(rp_s3_write_tags(&again, pairs, n, &err), 0);
    assert_string_equal(rp_buf_text(&again), rp_buf_text(&out));
    assert_non_null(strstr(rp_buf_text(&out), "<Tag><Key>a&amp;b</Key><Value> v&#13;&#10;&#9;1 </Value></Tag>"
                                              "<Tag><Key>e</Key><Value></Value></Tag></TagSet></Tagging>"));
    const char *bad = "<Tagging><TagSet><Tag><Value>v</Value></Tag></TagSet></Tagging>";
    assert_int_equal(rp_s3_read_tags(TEXT(bad, strlen(bad)), &arena, &pairs, &n, &err), RP_ECORRUPT);
    assert_int_equal(n, 2);
    rp_buf_clear(&out);
    const struct rp_pair bell[] = { { "a", "\a" } };
    assert_int_equal(rp_s3_write_tags(&out, bell, 1, &err), RP_EINVAL);
    rp_buf_clear(&out);
    rp_buf_str(&out, "<Tagging><TagSet>");
    for (int i = 0; i <= RP_META_MAX_PAIRS; i++)
        rp_buf_str(&out, "<Tag><Key>k</Key><Value/></Tag>");
    rp_buf_str(&out, "</TagSet></Tagging>");
    assert_int_equal(rp_s3_read_tags(&out, &arena, &pairs, &n, &err), RP_ECORRUPT);
}

static void writes_the_keys_to_delete(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096);
    struct rp_error err = { 0 };
    struct rp_item items[] = { { .key = "a<b>&\"c'\r\n\t\xC3\xBC]]>" }, { .key = "v" } };
    struct rp_item *const both[] = { &items[0], &items[1] };
    strcpy(items[1].identity.version, "v&1");
    strcpy(items[1].identity.etag, "e1-2");
    assert_int_equal(rp_s3_write_delete(&out, both, 2, false, false, &err), 0);
    assert_string_equal(rp_buf_text(&out),
                        "<Delete" AMZ "><Object><Key>a&lt;b&gt;&amp;&quot;c'&#13;&#10;&#9;\xC3\xBC]]&gt;</Key></Object>"
                        "<Object><Key>v</Key></Object></Delete>");
    rp_buf_clear(&out);
    assert_int_equal(rp_s3_write_delete(&out, both + 1, 1, true, true, &err), 0);
    assert_string_equal(rp_buf_text(&out), "<Delete" AMZ "><Object><Key>v</Key><VersionId>v&amp;1</VersionId>"
                                           "<ETag>&quot;e1-2&quot;</ETag></Object></Delete>");
    rp_buf_clear(&out);
    assert_int_equal(rp_s3_write_delete(&out, both, 1, true, true, &err), 0);
    assert_non_null(strstr(rp_buf_text(&out), "<VersionId>null</VersionId></Object>"));
}

static void a_key_that_xml_cannot_carry_is_refused(void **state)
{
    (void)state;
    const char *const bad[] = { "\x01x", "x\x1F", "\xEF\xBF\xBE", "\xEF\xBF\xBF", "a\x08", "broken \xC3" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096);
        struct rp_error err = { 0 };
        struct rp_item items[] = { { .key = "fine" }, { .key = bad[i] } };
        struct rp_item *const both[] = { &items[0], &items[1] };
        rp_buf_str(&out, "before");
        assert_int_equal(rp_s3_write_delete(&out, both, 2, false, false, &err), RP_EINVAL);
        assert_string_equal(rp_buf_text(&out), "before");
        assert_int_equal(out.len, 6);
    }
    RP_CLEANUP(rp_buf_done) struct rp_buf small = RP_BUF(60);
    struct rp_error err = { 0 };
    assert_int_equal(
        rp_s3_write_delete(&small, (struct rp_item *const[]){ &(struct rp_item){ .key = "a" } }, 1, false, false, &err),
        RP_ETOOBIG);
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096);
    assert_int_equal(rp_s3_write_delete(&out,
                                        (struct rp_item *const[]){ &(struct rp_item){ .key = "\x7F\xEF\xBF\xBD" } }, 1,
                                        false, false, &err),
                     0);
}

static void writes_the_parts_of_an_upload(void **state)
{
    (void)state;
    RP_CLEANUP(rp_buf_done) struct rp_buf out = RP_BUF(4096);
    struct rp_error err = { 0 };
    const struct s3_part parts[] = { { 1, "aa" }, { 3, "bb" } };
    assert_int_equal(rp_s3_write_parts(&out, parts, 2, &err), 0);
    assert_string_equal(rp_buf_text(&out),
                        "<CompleteMultipartUpload" AMZ
                        "><Part><PartNumber>1</PartNumber><ETag>&quot;aa&quot;</ETag></Part>"
                        "<Part><PartNumber>3</PartNumber><ETag>&quot;bb&quot;</ETag></Part></CompleteMultipartUpload>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_page_of_ceph),
        cmocka_unit_test(reads_what_aws_sends),
        cmocka_unit_test(keys_are_decoded_only_where_they_are_escaped),
        cmocka_unit_test(reads_versions_and_markers),
        cmocka_unit_test(key_markers_are_read_as_they_are_meant),
        cmocka_unit_test(a_reader_can_stop),
        cmocka_unit_test(half_a_document_is_none),
        cmocka_unit_test(what_is_no_listing_is_refused),
        cmocka_unit_test(what_is_too_long_or_too_deep_is_refused),
        cmocka_unit_test(the_longest_key_is_read_even_if_all_of_it_is_escaped),
        cmocka_unit_test(reads_uploads_that_nobody_ended),
        cmocka_unit_test(reads_what_became_of_each_key),
        cmocka_unit_test(an_answer_that_cannot_be_right_deletes_nothing),
        cmocka_unit_test(reads_error_documents),
        cmocka_unit_test(a_long_message_is_cut_between_characters),
        cmocka_unit_test(reads_one_text),
        cmocka_unit_test(reads_and_writes_tags),
        cmocka_unit_test(writes_the_keys_to_delete),
        cmocka_unit_test(a_key_that_xml_cannot_carry_is_refused),
        cmocka_unit_test(writes_the_parts_of_an_upload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
