# SPDX-License-Identifier: Apache-2.0
"""The calendar of examples/calendar, for tests: it notes each call, and what was gone before its yes was written down.

A test makes a class of Calendar that says otherwise (decide), and serves it. It lives in the test, so that no kill of a daemon harms it.
"""
import collections
import http.server
import importlib.util
import os
import pathlib
import threading
import time

_path = pathlib.Path(os.environ["REPRIEVE_TREE"], "examples/calendar/service.py")
_spec = importlib.util.spec_from_file_location("calendar_example", _path)
example = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(example)


class Meetings(example.Meetings):
    """objects: the directory of what they are about. They live as long as the test."""

    def __init__(self, objects):
        super().__init__(":memory:")
        self.objects, self.too_early = objects, []

    def delete(self, key, asked):
        if self.find(key)[0] != "deleted" and not (self.objects / key).exists():
            self.too_early.append(key)
        super().delete(key, asked)

    def agree(self, key, asked):
        with self.lock:
            if self.find(key)[0] != "deleted":
                self.delete(key, asked)

    def agreed(self):
        with self.lock:
            return {key for (key,) in self.db.execute("SELECT key FROM meeting WHERE state = 'deleted'")}

    def wrongly_erased(self, keys):
        """What is gone and may not be."""
        gone = {key for key in keys if not (self.objects / key).exists()}
        return sorted(gone - self.agreed()) + self.too_early


class Calendar(example.Calendar):
    lock = threading.Lock()
    calls = collections.defaultdict(list)  # of a key: its idempotency key, the header, when

    def log_message(self, *args):
        pass

    def answer(self, *said):
        try:
            super().answer(*said)
        except OSError:
            pass  # whoever asked is dead

    def note(self, call):
        """How often it was asked about by now."""
        with self.lock:
            calls = self.calls[call["key"]]
            calls.append((call["idempotency_key"], self.headers["webhook-id"], time.monotonic()))
            return len(calls)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64


def serve(calendar):
    """The port."""
    server = Server(("127.0.0.1", 0), calendar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
