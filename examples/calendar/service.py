#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""service.py PORT: a small calendar that must agree before an invitation is deleted (docs/confirmations.md).
service.py add KEY STATE...: puts meetings into it.
service.py approve KEY: says yes, later, to a meeting that waits for a person.

Meetings stand in meetings.db. What it is asked to delete, by its state:
  planned   is deleted: 200, and so is every later call with the same idempotency key
  deleted   was deleted before by somebody else: 410
  begun     cannot be deleted any more: 409
  shared    is deleted once a person approves: 202
A yes is committed before it is said. Whatever is lost on the way, the next call gets the same answer.
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import re
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request

CALL_MAX = 1 << 20  # bytes
SECRET = os.environ.get("CALENDAR_SECRET", "hush").encode()
TABLE = "CREATE TABLE IF NOT EXISTS meeting (key TEXT PRIMARY KEY, state TEXT NOT NULL, asked TEXT, answer_url TEXT)"


def is_signed(headers, body):
    """As standardwebhooks.com says: ours, and not older than five minutes."""
    key, stamp, given = (headers.get("webhook-" + name, "") for name in ("id", "timestamp", "signature"))
    if number_of(stamp) is None or abs(time.time() - number_of(stamp)) >= 300:
        return False
    signed = f"{key}.{stamp}.".encode() + body
    wanted = b"v1," + base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest())
    return any(hmac.compare_digest(wanted, one.encode()) for one in given.split())


def number_of(text):
    """None: it is no number, or too big for anything that is asked here."""
    return int(text) if re.fullmatch("[0-9]{1,12}", text) else None


class Meetings:
    """Any thread. `find` and `delete` are parts of what others do: whoever calls them has the lock."""

    def __init__(self, path="meetings.db"):
        self.lock, self.db = threading.Lock(), sqlite3.connect(path, check_same_thread=False)
        self.db.execute(TABLE)

    def add(self, meetings):
        with self.lock, self.db:
            self.db.executemany("INSERT INTO meeting (key, state) VALUES (?, ?)", meetings)

    def delete(self, key, asked):
        """Committed when it returns; then it may be said."""
        with self.db:
            self.db.execute("UPDATE meeting SET state = 'deleted', asked = ? WHERE key = ?", (asked, key))

    def find(self, key):
        row = self.db.execute("SELECT state, asked, answer_url FROM meeting WHERE key = ?", (key,)).fetchone()
        return row or ("unknown", None, None)

    def decide(self, call):
        """The status, and why. A repeated call gives the same answer."""
        if call.get("event") == "handshake":  # `reprieve doctor` looks whether we are there
            return 200, "the calendar listens"
        key, asked = call["key"], call["idempotency_key"]
        with self.lock:
            state, by, _ = self.find(key)
            if state == "planned":
                self.delete(key, asked)
            if state == "planned" or (state == "deleted" and by == asked):
                return 200, "deleted"
            if state == "shared":
                with self.db:
                    self.db.execute("UPDATE meeting SET asked = ?, answer_url = ? WHERE key = ?", (asked, call["answer_url"], key))
        return {
            "shared": (202, "somebody has to approve it"),
            "begun": (409, "the meeting has begun"),
            "deleted": (410, "it was deleted before"),
        }.get(state, (404, "no such meeting"))

    def approve(self, key):
        """The URL that wants to hear of it; None: nobody waits. If it cannot be told now, the next call gets the yes."""
        with self.lock:
            state, asked, url = self.find(key)
            if state != "shared" or url is None:
                return None
            self.delete(key, asked)
        return url


def say(url, answer):
    """The status that it was answered with."""
    call = urllib.request.Request(url, json.dumps(answer).encode(), {"Content-Type": "application/json"}, method="POST")
    try:
        return urllib.request.urlopen(call, timeout=30).status
    except urllib.error.HTTPError as refused:
        return refused.code


class Calendar(http.server.BaseHTTPRequestHandler):
    meetings = None

    def do_POST(self):
        length = number_of(self.headers.get("Content-Length", ""))
        if length is None or length > CALL_MAX:
            self.answer(400, "no length, or too much of it")
            return
        body = self.rfile.read(length)
        self.answer(*(self.decide(json.loads(body)) if is_signed(self.headers, body) else (401, "not signed")))

    def decide(self, call):
        return self.meetings.decide(call)

    def answer(self, status, words):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(words.encode())


def add(meetings):
    try:
        Calendar.meetings.add(meetings)
    except sqlite3.IntegrityError:
        sys.exit("one of them is there already; none was added")


def approve(key):
    url = Calendar.meetings.approve(key)
    if url is None:
        sys.exit(f"nobody waits for {key}")
    print(say(url, {"answer": "yes"}))


def main(what, *args):
    Calendar.meetings = Meetings()
    if what == "add":
        add(zip(args[::2], args[1::2]))
    elif what == "approve":
        approve(args[0])
    else:
        http.server.ThreadingHTTPServer(("127.0.0.1", int(what)), Calendar).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
