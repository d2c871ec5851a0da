#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""service.py PORT: a small calendar that must agree before an invitation is deleted (docs/confirmations.md).
service.py approve KEY: says yes, later, to a meeting that waits for a person.

Meetings stand in meetings.json: {"invite.ics": "planned"}. What it is asked to delete:
  planned   is deleted: 200, and so is every later call with the same key
  deleted   was deleted before by somebody else: 410
  begun     cannot be deleted any more: 409
  shared    is deleted once a person approves: 202
"""
import base64
import hashlib
import hmac
import http.server
import json
import os
import sys
import threading
import time
import urllib.request

MEETINGS, WAITING = "meetings.json", "waiting.json"
SECRET = os.environ.get("CALENDAR_SECRET", "hush").encode()
lock = threading.Lock()


def load(path):
    return json.load(open(path, encoding="utf-8")) if os.path.exists(path) else {}


def save(path, value):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(value, file)
    os.replace(path + ".new", path)


def is_signed(headers, body):
    """As standardwebhooks.com says: ours, and not older than five minutes."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(SECRET, signed, hashlib.sha256).digest()).decode()
    fresh = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return fresh and any(hmac.compare_digest(wanted, given) for given in headers["webhook-signature"].split())


def decide(call):
    """The status, and why. A repeated call gives the same answer."""
    if call.get("event") == "handshake":  # `reprieve doctor` looks whether we are there
        return 200, "the calendar listens"
    meetings, waiting = load(MEETINGS), load(WAITING)
    state = meetings.get(call["key"], "unknown")
    if state == "deleted by " + call["idempotency_key"]:
        return 200, "deleted"
    if state == "planned":
        meetings[call["key"]] = "deleted by " + call["idempotency_key"]
        save(MEETINGS, meetings)
        return 200, "deleted"
    if state == "shared":
        waiting[call["key"]] = {"url": call["answer_url"], "key": call["idempotency_key"]}
        save(WAITING, waiting)
        return 202, "somebody has to approve it"
    if state == "begun":
        return 409, "the meeting has begun"
    return (410, "it was deleted before") if state.startswith("deleted") else (404, "no such meeting")


class Calendar(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            status, words = decide(json.loads(body)) if is_signed(self.headers, body) else (401, "not signed")
        self.send_response(status)
        self.end_headers()
        self.wfile.write(words.encode())


def approve(key):
    meetings, asked = load(MEETINGS), load(WAITING)[key]
    meetings[key] = "deleted by " + asked["key"]
    save(MEETINGS, meetings)
    call = urllib.request.Request(asked["url"], b'{"answer":"yes"}', {"Content-Type": "application/json"}, method="POST")
    print(urllib.request.urlopen(call).status)


if __name__ == "__main__":
    if sys.argv[1] == "approve":
        approve(sys.argv[2])
    else:
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Calendar).serve_forever()
