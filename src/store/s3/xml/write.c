/* SPDX-License-Identifier: Apache-2.0 */
/* The bodies that we send. Nothing of them is sent if a text cannot be carried: XML 1.0 has no way
 * to write most control characters, and a key that was left out or bent would be another one. */
#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/text/utf8.h"
#include "store/s3/xml/xml.h"

#define NAMESPACE " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

/* U+FFFE and U+FFFF are valid UTF-8 and no characters of XML. */
static bool can_carry(const char *c, size_t n)
{
    if (n == 1) return (unsigned char)*c >= ' ' || *c == '\t' || *c == '\n' || *c == '\r';
    return !(n == 3 && memcmp(c, "\xEF\xBF", 2) == 0 && (unsigned char)c[2] >= 0xBE);
}

/* Line ends and tabs as references: a parser would turn a plain CR into LF. */
static const char *const references[256] = { ['&'] = "&amp;", ['<'] = "&lt;",   ['>'] = "&gt;",  ['"'] = "&quot;",
                                             ['\t'] = "&#9;", ['\n'] = "&#10;", ['\r'] = "&#13;" };

static int add_text(struct rp_buf *out, const char *text, const char *what, struct rp_error *err)
{
    const size_t n = strlen(text);
    size_t written = 0;
    for (size_t i = 0, step; i < n; i += step) {
        step = rp_utf8_length(text + i, n - i);
        if (step == 0 || !can_carry(text + i, step))
            return rp_error_advise(err, RP_EINVAL, "it must be sent in a request of its own",
                                   "the %s '%.100s' cannot be written in XML: byte %zu", what, text, i + 1);
        const char *escaped = references[(unsigned char)text[i]];
        if (!escaped) continue;
        rp_buf_add(out, text + written, i - written);
        rp_buf_str(out, escaped);
        written = i + step;
    }
    rp_buf_add(out, text + written, n - written);
    return 0;
}

static int add_element(struct rp_buf *out, const char *name, const char *text, const char *what, struct rp_error *err)
{
    rp_buf_char(out, '<');
    rp_buf_str(out, name);
    rp_buf_char(out, '>');
    const int r = add_text(out, text, what, err);
    rp_buf_str(out, "</");
    rp_buf_str(out, name);
    rp_buf_char(out, '>');
    return r;
}

static int add_etag(struct rp_buf *out, const char *etag, struct rp_error *err)
{
    rp_buf_str(out, "<ETag>&quot;");
    const int r = add_text(out, etag, "etag", err);
    rp_buf_str(out, "&quot;</ETag>");
    return r;
}

/* All of it or nothing: on failure `out` is as it was. */
static int ended(struct rp_buf *out, size_t len, int r, const char *what, struct rp_error *err)
{
    if (r == 0 && out->failed != 0) r = rp_error_set(err, out->failed, "no room for it");
    if (r == 0) return 0;
    out->len = len;
    if (out->data) out->data[len] = '\0';
    return rp_error_wrap(err, r, "write %s", what);
}

static int add_object(struct rp_buf *out, const struct rp_item *item, bool versions, bool etags, struct rp_error *err)
{
    rp_buf_str(out, "<Object>");
    int r = add_element(out, "Key", item->key, "key", err);
    if (r == 0 && versions) {
        const char *version = item->identity.version;
        r = add_element(out, "VersionId", *version != '\0' ? version : "null", "version", err);
    }
    if (r == 0 && etags && *item->identity.etag != '\0') r = add_etag(out, item->identity.etag, err);
    rp_buf_str(out, "</Object>");
    return r;
}

int rp_s3_write_delete(struct rp_buf *out, struct rp_item *const *items, size_t n, bool versions, bool etags,
                       struct rp_error *err)
{
    const size_t len = out->len;
    int r = 0;
    rp_buf_str(out, "<Delete" NAMESPACE ">");
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_object(out, items[i], versions, etags, err);
    rp_buf_str(out, "</Delete>");
    return ended(out, len, r, "the keys to delete", err);
}

int rp_s3_write_tags(struct rp_buf *out, const struct rp_pair *pairs, size_t n, struct rp_error *err)
{
    const size_t len = out->len;
    int r = 0;
    rp_buf_str(out, "<Tagging" NAMESPACE "><TagSet>");
    for (size_t i = 0; i < n && r == 0; i++) {
        rp_buf_str(out, "<Tag>");
        r = add_element(out, "Key", pairs[i].name, "tag", err);
        if (r == 0) r = add_element(out, "Value", pairs[i].value, "tag's value", err);
        rp_buf_str(out, "</Tag>");
    }
    rp_buf_str(out, "</TagSet></Tagging>");
    return ended(out, len, r, "tags", err);
}

int rp_s3_write_parts(struct rp_buf *out, const struct s3_part *parts, size_t n, struct rp_error *err)
{
    const size_t len = out->len;
    int r = 0;
    rp_buf_str(out, "<CompleteMultipartUpload" NAMESPACE ">");
    for (size_t i = 0; i < n && r == 0; i++) {
        RP_ASSERT(parts[i].number > 0 && (i == 0 || parts[i].number > parts[i - 1].number));
        rp_buf_fmt(out, "<Part><PartNumber>%d</PartNumber>", parts[i].number);
        r = add_etag(out, parts[i].etag, err);
        rp_buf_str(out, "</Part>");
    }
    rp_buf_str(out, "</CompleteMultipartUpload>");
    return ended(out, len, r, "the parts of an upload", err);
}
