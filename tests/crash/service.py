# SPDX-License-Identifier: Apache-2.0
"""The daemon of a world (rig.py), asked over HTTP, killed in all ways: under load, while it starts, at a named point."""
import json
import os
import select
import signal
import subprocess
import sys
import threading
import urllib.parse

from answers import require
from rig import kill_after
from served import START_S, Daemon, until

__all__ = ["Service", "until"]


class Service(Daemon):
    """killing is set before it is killed, so that nobody wonders why there is no answer."""

    def __init__(self, world, log=None):  # the world has made what a daemon elsewhere makes for itself
        self.world, self.directory, self.engine, self.log = world, world.directory, world.engine, log
        self.process, self.host, self.port = None, None, None
        self.killing = threading.Event()
        self.said = (self.directory / "serve.err").open("ab")

    def cli(self, *args):
        answer = self.world.run(args)
        require(answer.status == 0, answer.words)
        return answer.lines

    def begin(self, crash_at=None):
        binary = os.environ["REPRIEVE_CRASH_BIN"] if crash_at else None
        streams = {"stdout": subprocess.PIPE, "stderr": self.said}
        self.process = self.world.spawn(["--quiet", "serve"], binary, crash_at, **streams)

    def start(self, crash_at=None):
        """Returns when it is ready. Only one that is to crash may be dead by then; whether it lives is returned."""
        self.begin(crash_at)
        ready = select.select([self.process.stdout], [], [], START_S)[0] and self.process.stdout.readline()
        if not ready and crash_at and self.process.wait(timeout=60) == -signal.SIGKILL:
            return False
        require(ready, f"the daemon did not start: {self.complaints()}")
        where = urllib.parse.urlsplit(json.loads(ready)["url"])
        self.host, self.port = where.hostname, where.port
        self.killing.clear()
        return True

    def start_and_die(self, after_s):
        """Killed at that moment, ready or not."""
        self.begin()
        kill_after(self.process, after_s)
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def drop(self):
        """Whatever happened before: nothing of it is left."""
        if self.is_running():
            self.process.kill()
            self.process.wait(timeout=60)
        self.said.close()
        self.world.drop()
