# SPDX-License-Identifier: Apache-2.0
"""What somebody outside of the program knows: what was asked, what was answered, and what may be true after it.

Before a request its outcome is possible, after the answer it is certain. Nothing here is read from the program under test; the
log is written by those who ask, line by line, and tells what led to a failure.
"""
import json
import re
import threading
import time

SUBJECTS = re.compile(r"\b(?:fil|txn|mrk|hld)_\w+|\b(?:plain|shelf):[^\s,;]+")
GOING = {"deleted", "purged"}


class Lost(Exception):
    """The program was killed before it answered."""


class Broken(Exception):
    """An invariant does not hold."""


def require(truth, words):
    if not truth:
        raise Broken(words)


def content(subject):
    return (subject + "\n").encode() * (1 + len(subject) % 7)


class Log:
    """Everything that was asked and answered, in one file."""

    def __init__(self, path):
        self.path, self.lock, self.start = path, threading.Lock(), time.monotonic()
        self.answers = 0
        self.file = path.open("w", buffering=1)

    def note(self, who, what, *about):
        line = json.dumps([round(time.monotonic() - self.start, 4), who, what, *about])
        with self.lock:
            self.answers += what == "answered"
            self.file.write(line + "\n")

    def about(self, words, most=30):
        """The last lines that name what the words name."""
        self.file.flush()
        wanted = set(SUBJECTS.findall(words))
        lines = [line for line in self.path.read_text().splitlines() if any(w in line for w in wanted)]
        return [line[:300] for line in lines[-most:]]

    def close(self):
        self.file.close()


class Objects:
    """The objects of two stores: each in exactly one of these sets. Any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.free, self.marked, self.restored, self.unsure = set(), set(), set(), set()
        self.due_ms = {}  # of those that were marked, as far as it was answered
        self.held = {}  # the hold, as long as nobody asked to lift it

    def put(self, kind, subjects):
        with self.lock:
            for one in (self.free, self.marked, self.restored, self.unsure):
                one.difference_update(subjects)
            getattr(self, kind).update(subjects)

    def choose(self, kind, prefix, most):
        with self.lock:
            return sorted(s for s in getattr(self, kind) if s.startswith(prefix))[-most:]


class File:
    """An upload: the states that it may be in."""

    def __init__(self, answer, name, data):
        self.id, self.key, self.url = answer["id"], answer["key"], answer["upload"]["url"]
        self.name, self.data, self.is_put, self.was_tried = name, data, False, False
        self.may_be = {"pending"}
        self.transaction = None

    def path(self):
        return "/v1/files/" + self.id

    def url_now(self, daemon):
        """Where it goes: the port is another one after every start, the rest is good for all of them."""
        return f"http://{daemon.host}:{daemon.port}/" + self.url.split("/", 3)[3]

    def is_going(self):
        """It has no grace left: whether it is purged yet is a matter of moments."""
        return self.may_be >= GOING
