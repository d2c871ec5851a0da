#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""s3_liar.py - a small S3 in memory that lies, fails and is late as it is told to.

Any signature is taken; buckets are addressed by path and made by PUT /BUCKET (versioned: PUT /BUCKET?versioning). The port is
printed on standard output; the server ends when its standard input does, so that it never outlives the test that started it.

Control, as JSON: PUT /_liar sets lies (0 to 1 each, names in LIES; {} tells the truth again; "on" limits the lies about answers
to these kinds of requests, "seconds" is how long slow and late take, "ahead" how far its clock is, in seconds), GET /_liar[?bucket=B] has every upload and every deletion so far, how
often each lie was told, how many requests of each kind came since lies were set, and how many late deletes are still to come. A seed (first argument) makes its choices repeatable, as far as requests come in the same order.

PUT /_make?bucket=B&key=K&n=N uploads N times; PUT /_fill?bucket=B&n=N uploads N objects, o/000000 and on, each with bytes of its own. The log also says where an older version came to light.

"refuse_and_delete" and "refuse_silently" are about a DELETE whose If-Match does not fit: 412, and deleted; 204, and kept.
"two_steps": a DELETE with If-Match is checked first and carried out after, as OpenStack Swift does. "markers_last": a listing of versions has them after all versions.
"race" is no lie: right after an object was looked at, somebody uploads a newer one under its key.
"""
import base64, hashlib, http.server, json, os, random, re, socket, sys, threading, time
from email.utils import formatdate
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape
import xml.etree.ElementTree as ET

LIES = """ignore_if_match say_412_and_delete refuse_and_delete refuse_silently drop_keys drop_keys_undone false_deleted key_errors
    slowdown_before slowdown_after error_before error_after drop_before drop_after slow half garbage hang late
    empty_list cut_list cut_list_silently unordered_list markers_last stale_list stale_head absent_head race two_steps""".split()
rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
lock = threading.RLock()
buckets, log, told, asked = {}, [], {}, {}
lies = {"on": [], "seconds": 0.5}
serials = pending = 0


def chance(name):
    with lock:
        if lies.get(name, 0) <= 0 or rng.random() >= lies[name]:
            return False
        told[name] = told.get(name, 0) + 1
        return True


class Version:
    def __init__(self, body, meta, vid, marker=False):
        global serials
        serials += 1
        self.body, self.meta, self.id, self.marker, self.serial = body, meta, vid, marker, serials
        self.etag = "" if marker else hashlib.md5(body).hexdigest()
        self.mtime = time.time()
        self.tags = b"<Tagging><TagSet></TagSet></Tagging>"


class Bucket:
    def __init__(self):
        self.versioning, self.keys, self.past = "", {}, {}  # keys: versions, newest last; past: what a stale answer shows

    def current(self, key):
        stack = self.keys.get(key)
        return stack[-1] if stack and not stack[-1].marker else None

    def put(self, name, key, body, meta, why, marker=False):
        vid = "null" if self.versioning != "Enabled" else "v%06d" % (serials + 1)
        v = Version(body, meta, vid, marker)
        stack = self.keys.setdefault(key, [])
        if stack:
            self.past[key] = stack[-1]
        stack[:] = [x for x in stack if x.id != vid]
        stack.append(v)
        if not marker:
            log.append(dict(op="put", at=v.mtime, bucket=name, key=key, etag=v.etag, version=vid, serial=v.serial, why=why))
        return v

    def drop(self, name, key, vid, why):
        """Deletes the way S3 does; True if something was there."""
        stack = self.keys.get(key, [])
        if vid is None and self.versioning == "Enabled":
            self.put(name, key, b"", {}, why, marker=True)
            return True
        for v in stack:
            if v.id == (vid or "null"):
                covered = v is stack[-1] and len(stack) > 1 and not stack[-2].marker
                stack.remove(v)
                if covered:
                    log.append(dict(op="uncovered", at=time.time(), bucket=name, key=key, etag=stack[-1].etag,
                                    version=stack[-1].id, serial=stack[-1].serial, why=why))
                self.past[key] = v
                if not stack:
                    del self.keys[key]
                if not v.marker:
                    log.append(dict(op="delete", at=time.time(), bucket=name, key=key, etag=v.etag, version=v.id,
                                    serial=v.serial, why=why))
                return True
        return False


def xml_error(code, message=""):
    return ("<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>%s</Message></Error>" % (code, message)).encode()


def iso(t):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(t))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, *args):
        pass

    # ---- answers ----

    def answer(self, status, body=b"", headers=None, kind="", length=None):
        lying = not lies["on"] or kind in lies["on"]
        if kind and lying and body and status == 200 and chance("garbage"):
            body = b"<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>\xff\xfe<<<" + body[:40]
        lines = ["HTTP/1.1 %d X" % status, "Server: liar", "Date: " + formatdate(time.time() + lies.get("ahead", 0), usegmt=True)]
        lines += ["%s: %s" % h for h in (headers or {}).items()]
        if status != 204:
            lines.append("Content-Length: %d" % (len(body) if length is None else length))
        data = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if self.command != "HEAD":
            data += body
        if kind and lying and chance("half"):
            data = data[:len(data) - max(1, len(body) // 2)]
            self.close_connection = True
        try:
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        if self.close_connection:
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def fail(self, status, code):
        self.answer(status, b"" if self.command == "HEAD" else xml_error(code, "as told"))

    # ---- the way in ----

    def handle_any(self):
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n) if n else b""
        url = urlsplit(self.path)
        if url.path == "/_liar":
            return self.control(body)
        if url.path == "/_make":
            return self.make(dict(parse_qsl(url.query)))
        if url.path == "/_fill":
            return self.fill(dict(parse_qsl(url.query)))
        self.q = dict(parse_qsl(url.query, keep_blank_values=True))
        parts = url.path[1:].split("/", 1)
        self.bucket, self.key = unquote(parts[0]), unquote(parts[1]) if len(parts) > 1 else ""
        kind = self.kind()
        with lock:
            asked[kind] = asked.get(kind, 0) + 1
        if lies["on"] and kind not in lies["on"]:
            return self.carry_out(kind, body)
        if chance("slow"):
            time.sleep(lies["seconds"])
        if chance("slowdown_before"):
            return self.fail(503, "SlowDown")
        if chance("error_before"):
            return self.fail(500, "InternalError")
        if chance("drop_before"):
            return self.hang_up()
        if kind in ("delete", "multi") and chance("late"):
            self.count_late(1)
            etag = (self.headers.get("If-Match") or "").strip('"')
            rows = [(self.key, self.q.get("versionId"), etag)] if kind == "delete" else self.doomed(body)
            threading.Timer(lies["seconds"], self.apply_late, (self.bucket, rows)).start()
            return self.fail(500, "InternalError")
        for name, status, code in (("slowdown_after", 503, "SlowDown"), ("error_after", 500, "InternalError"),
                                   ("drop_after", 0, ""), ("hang", 0, "")):
            if chance(name):
                answer, self.answer = self.answer, lambda *a, **k: None
                self.carry_out(kind, body)
                self.answer = answer
                if status:
                    return self.fail(status, code)
                if name == "hang":
                    time.sleep(lies["seconds"])
                return self.hang_up()
        self.carry_out(kind, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def kind(self):
        if not self.key:
            return ("multi" if "delete" in self.q else "versions" if "versions" in self.q else
                    "versioning" if "versioning" in self.q else "list" if self.command == "GET" else "bucket")
        if "tagging" in self.q:
            return "tagging"
        if self.command == "PUT":
            return "copy" if self.headers.get("x-amz-copy-source") else "put"
        return {"HEAD": "head", "GET": "get", "DELETE": "delete"}.get(self.command, "other")

    def count_late(self, n):
        global pending
        with lock:
            pending += n

    def apply_late(self, bucket, rows):
        """What was asked for then: the handler serves its connection's next requests meanwhile."""
        with lock:
            self.count_late(-1)
            b = buckets.get(bucket)
            for key, vid, etag in rows:
                v = b.current(key) if b else None
                if b and (not etag or (v and v.etag == etag.strip('"'))):
                    b.drop(bucket, key, vid, "late")

    def carry_out(self, kind, body):
        with lock:
            b = buckets.get(self.bucket)
            if b is None and kind != "bucket":
                return self.fail(404, "NoSuchBucket")
            getattr(self, "do_" + kind, self.do_other)(b, body)

    def control(self, body):
        with lock:
            if self.command == "PUT":
                new = json.loads(body or b"{}")
                bad = [k for k in new if k not in LIES and k not in ("on", "seconds", "ahead")]
                if bad:
                    return self.answer(400, ("no such lie: %s" % bad).encode())
                lies.clear()
                lies.update({"on": [], "seconds": 0.5})
                lies.update(new)
                told.clear()
                asked.clear()
                return self.answer(200, b"{}")
            only = dict(parse_qsl(urlsplit(self.path).query)).get("bucket")
            there = [dict(bucket=n, key=k, etag=v.etag, version=v.id, serial=v.serial, marker=v.marker)
                     for n, b in buckets.items() if only in (None, n) for k, s in b.keys.items() for v in s]
            rows = [e for e in log if only in (None, e["bucket"])]
            return self.answer(200, json.dumps(dict(log=rows, told=told, asked=asked, there=there, pending=pending)).encode())

    def make(self, q):
        with lock:
            for i in range(int(q["n"])):
                buckets[q["bucket"]].put(q["bucket"], q["key"], b"made %d" % i, {}, "made")
        self.answer(200, b"{}")

    def fill(self, q):
        with lock:
            for i in range(int(q["n"])):
                buckets[q["bucket"]].put(q["bucket"], "o/%06d" % i, b"the bytes of %d" % i, {}, "filled")
        self.answer(200, b"{}")

    # ---- the bucket ----

    def do_other(self, b, body):
        self.fail(501, "NotImplemented")

    def do_bucket(self, b, body):
        buckets.setdefault(self.bucket, Bucket())
        self.answer(200)

    def do_versioning(self, b, body):
        if self.command == "PUT":
            m = re.search(rb"<Status>(\w+)</Status>", body)
            b.versioning = m.group(1).decode() if m else ""
            return self.answer(200)
        status = "<Status>%s</Status>" % b.versioning if b.versioning else ""
        self.answer(200, ("<VersioningConfiguration>%s</VersioningConfiguration>" % status).encode(), kind="versioning")

    def name(self, key):
        return quote(key, safe="/") if self.q.get("encoding-type") == "url" else escape(key)

    def encoding(self):
        return "<EncodingType>url</EncodingType>" if self.q.get("encoding-type") == "url" else ""

    def entry(self, b, key, v):
        if chance("stale_list") and key in b.past and not b.past[key].marker:
            v = b.past[key]
        return "<Key>%s</Key><LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag><Size>%d</Size>" % (
            self.name(key), iso(v.mtime), v.etag, len(v.body))

    def do_list(self, b, body):
        prefix, n = self.q.get("prefix", ""), int(self.q.get("max-keys", 1000))
        after = self.q.get("continuation-token") or self.q.get("start-after", "")
        raw = lambda s: s.encode()
        keys = sorted((k for k in b.keys if b.current(k) and k.startswith(prefix) and raw(k) > raw(after)), key=raw)
        page, more = keys[:n], len(keys) > n
        token = page[-1] if more else ""
        if chance("empty_list"):
            page, more, token = [], False, ""
        elif page and chance("cut_list"):
            page, more, token = page[:len(page) // 2], True, ""
        elif page and chance("cut_list_silently"):
            page, more, token = page[:len(page) // 2], False, ""
        elif chance("unordered_list"):
            page = page[::-1]
        text = self.encoding() + "".join("<Contents>%s</Contents>" % self.entry(b, k, b.current(k)) for k in page)
        text += "<IsTruncated>%s</IsTruncated><KeyCount>%d</KeyCount>" % (str(more).lower(), len(page))
        if token:
            text += "<NextContinuationToken>%s</NextContinuationToken>" % escape(token)
        self.answer(200, ("<?xml version=\"1.0\"?><ListBucketResult>%s</ListBucketResult>" % text).encode(), kind="list")
        self.race(b, page)

    def do_versions(self, b, body):
        prefix, n = self.q.get("prefix", ""), int(self.q.get("max-keys", 1000))
        marker, vmarker = self.q.get("key-marker", ""), self.q.get("version-id-marker", "")
        rows = []
        for k in sorted((k for k in b.keys if k.startswith(prefix)), key=lambda s: s.encode()):
            stack = b.keys[k][::-1]
            ids = [v.id for v in stack]
            if k.encode() < marker.encode() or (k == marker and vmarker not in ids):
                continue
            if k == marker:
                stack = stack[ids.index(vmarker) + 1:]
            rows += [(k, v, v is b.keys[k][-1]) for v in stack]
        page, more = rows[:n], len(rows) > n
        if chance("empty_list"):
            page, more = [], False
        elif page and chance("cut_list"):
            page, more = page[:len(page) // 2], True
        elif page and chance("cut_list_silently"):
            page, more = page[:len(page) // 2], False
        elif chance("unordered_list"):
            page = page[::-1]
        elif chance("markers_last"):
            page = sorted(page, key=lambda row: row[1].marker)
        text = self.encoding()
        for k, v, latest in page:
            tag = "DeleteMarker" if v.marker else "Version"
            inner = "<Key>%s</Key><LastModified>%s</LastModified>" % (self.name(k), iso(v.mtime)) if v.marker else self.entry(b, k, v)
            text += "<%s>%s<VersionId>%s</VersionId><IsLatest>%s</IsLatest></%s>" % (tag, inner, v.id, str(latest).lower(), tag)
        text += "<IsTruncated>%s</IsTruncated>" % str(more).lower()
        if more and page:
            text += "<NextKeyMarker>%s</NextKeyMarker><NextVersionIdMarker>%s</NextVersionIdMarker>" % (self.name(page[-1][0]), page[-1][1].id)
        self.answer(200, ("<?xml version=\"1.0\"?><ListVersionsResult>%s</ListVersionsResult>" % text).encode(), kind="versions")
        self.race(b, sorted({k for k, v, _ in page}))

    def race(self, b, keys):
        for k in keys:
            if not k.startswith(".reprieve/") and b.current(k) and chance("race"):
                b.put(self.bucket, k, b"newer %d" % serials, {}, "race")

    # ---- many deletes ----

    def doomed(self, body):
        rows = []
        for o in ET.fromstring(body):
            if o.tag.split("}")[-1] != "Object":
                continue
            d = {c.tag.split("}")[-1]: c.text or "" for c in o}
            rows.append((d["Key"], d.get("VersionId") or None, d.get("ETag")))
        return rows

    def do_multi(self, b, body):
        text = ""
        md5 = self.headers.get("content-md5")
        if md5 and md5 != base64.b64encode(hashlib.md5(body).digest()).decode():
            return self.fail(400, "BadDigest")
        for key, vid, etag in self.doomed(body):
            name = "<Key>%s</Key>" % escape(key) + ("<VersionId>%s</VersionId>" % vid if vid else "")
            v = b.current(key)
            if etag is not None and (v is None or v.etag != etag.strip('"')) and not chance("ignore_if_match"):
                if v is not None:
                    text += "<Error>%s<Code>PreconditionFailed</Code><Message>as told</Message></Error>" % name
                    continue
            if chance("drop_keys_undone"):
                continue
            if chance("key_errors"):
                if rng.random() < 0.5:
                    b.drop(self.bucket, key, vid, "multi with a key's error")
                text += "<Error>%s<Code>%s</Code><Message>as told</Message></Error>" % (name, rng.choice(["InternalError", "SlowDown"]))
                continue
            if not chance("false_deleted"):
                b.drop(self.bucket, key, vid, "multi" + (" by version" if vid else " by etag" if etag else ""))
            if not chance("drop_keys"):
                text += "<Deleted>%s</Deleted>" % name
        self.answer(200, ("<?xml version=\"1.0\"?><DeleteResult>%s</DeleteResult>" % text).encode(), kind="multi")

    # ---- one object ----

    def find(self, b):
        vid = self.q.get("versionId")
        if vid is None:
            v = b.current(self.key)
            return b.past[self.key] if self.key in b.past and not b.past[self.key].marker and chance("stale_head") else v
        return next((v for v in b.keys.get(self.key, []) if v.id == vid and not v.marker), None)

    def do_get(self, b, body):
        v = self.find(b)
        if v is None or (self.command == "HEAD" and chance("absent_head")):
            return self.fail(404, "NoSuchKey")
        headers = dict(v.meta, ETag='"%s"' % v.etag)
        headers["Last-Modified"] = formatdate(int(v.mtime), usegmt=True)
        if b.versioning:
            headers["x-amz-version-id"] = v.id
        self.answer(200, v.body if self.command == "GET" else b"", headers, kind=self.kind(), length=len(v.body))
        if self.command == "HEAD":
            self.race(b, [self.key])

    do_head = do_get

    def refused(self, b):
        v = b.current(self.key)
        match, none = self.headers.get("If-Match"), self.headers.get("If-None-Match")
        if match is not None and (v is None or (match != "*" and match.strip('"') != v.etag)):
            return not chance("ignore_if_match")
        return none == "*" and v is not None

    def do_put(self, b, body):
        if "partNumber" in self.q or "uploadId" in self.q:
            return self.fail(501, "NotImplemented")
        if self.refused(b):
            return self.fail(412, "PreconditionFailed")
        kept = ("content-type", "cache-control", "content-disposition", "content-encoding", "content-language", "expires")
        meta = {k.lower(): x for k, x in self.headers.items() if k.lower() in kept or k.lower().startswith("x-amz-meta-")}
        v = b.put(self.bucket, self.key, body, meta, "put")
        headers = {"ETag": '"%s"' % v.etag}
        if b.versioning == "Enabled":
            headers["x-amz-version-id"] = v.id
        self.answer(200, b"", headers, kind="put")

    def do_copy(self, b, body):
        path, _, query = self.headers["x-amz-copy-source"].partition("?")
        bucket, _, key = unquote(path).lstrip("/").partition("/")
        vid = dict(parse_qsl(query)).get("versionId")
        source = buckets.get(bucket) or Bucket()
        v = source.current(key) if vid is None else next((x for x in source.keys.get(key, []) if x.id == vid), None)
        if v is None:
            return self.fail(404, "NoSuchKey")
        want = self.headers.get("x-amz-copy-source-if-match")
        if self.refused(b) or (want and want.strip('"') != v.etag):
            return self.fail(412, "PreconditionFailed")
        meta = v.meta
        if self.headers.get("x-amz-metadata-directive", "").upper() == "REPLACE":
            meta = {k.lower(): x for k, x in self.headers.items() if k.lower().startswith("x-amz-meta-") or k.lower() == "content-type"}
        n = b.put(self.bucket, self.key, v.body, meta, "copy")
        headers = {"x-amz-version-id": n.id} if b.versioning == "Enabled" else {}
        text = "<CopyObjectResult><LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag></CopyObjectResult>" % (iso(n.mtime), n.etag)
        self.answer(200, text.encode(), headers, kind="copy")

    def do_tagging(self, b, body):
        v = self.find(b)
        if v is None:
            return self.fail(404, "NoSuchKey")
        if self.command == "PUT":
            v.tags = body
        elif self.command == "DELETE":
            v.tags = b"<Tagging><TagSet></TagSet></Tagging>"
            return self.answer(204)
        self.answer(200, v.tags if self.command == "GET" else b"", kind="tagging")

    def do_delete(self, b, body):
        if "uploadId" in self.q:
            return self.fail(404, "NoSuchUpload")
        vid, match = self.q.get("versionId"), self.headers.get("If-Match")
        if match is not None and b.current(self.key) is None:
            return self.answer(204, kind="delete") if lies.get("refuse_and_delete") else self.fail(404, "NoSuchKey")
        if self.refused(b):
            if chance("refuse_silently"):
                return self.answer(204, kind="delete")
            if chance("refuse_and_delete"):
                b.drop(self.bucket, self.key, vid, "refused")
            return self.fail(412, "PreconditionFailed")
        if chance("say_412_and_delete"):
            b.drop(self.bucket, self.key, vid, "single with 412")
            return self.fail(412, "PreconditionFailed")
        if match is not None and chance("two_steps"):
            lock.release()
            time.sleep(0.05)
            lock.acquire()
        if not chance("false_deleted"):
            b.drop(self.bucket, self.key, vid, "single" + (" by version" if vid else " by etag" if match else ""))
        self.answer(204, kind="delete")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 256

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, address)


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
