# SPDX-License-Identifier: Apache-2.0
"""The real daemon for tests in Python: started in a directory of its own, asked over HTTP, looked at through /proc.

A test makes a Daemon on one of rig.ENGINES, starts it, and uses call() for a whole request on a connection of its own, or
connect() for a socket to misbehave on. Waiting is always for a condition (until), never for a time alone.
"""
import http.client
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "crash"))
from rig import ENGINES, Broken, require  # noqa: E402

BINARY = os.environ["REPRIEVE_BIN"]
START_S = 60
CONFIG = """\
listen: 127.0.0.1:{port}
catalog: {{ url: "{catalog}" }}
log: {{ file: reprieve.log }}
stores: {{ main: {{ path: objects, mode: purge, allow_any_grace: true }} }}
{more}"""


def is_sanitized():
    """Sanitizers multiply memory and time; what is measured then says nothing about the program."""
    return b"__asan_init" in pathlib.Path(BINARY).read_bytes() or b"__tsan_init" in pathlib.Path(BINARY).read_bytes()


def until(words, true, seconds=20):
    """Waits for a condition and returns what it gave."""
    end = time.monotonic() + seconds
    while True:
        found = true()
        if found:
            return found
        require(time.monotonic() < end, f"not within {seconds} s: {words}")
        select.select([], [], [], 0.02)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The slug of a refusal; None for anything else."""
        kind = self.headers.get("Content-Type", "")
        return self.json["code"] if kind.startswith("application/problem+json") else None


class Daemon:
    def __init__(self, directory, engine, more="", serial=0, port=0):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        (self.directory / "objects").mkdir()
        self.engine = engine(self.directory, serial)
        (self.directory / "reprieve.yaml").write_text(CONFIG.format(port=port, catalog=self.engine.url, more=more))
        self.process, self.host, self.port = None, None, None
        self.said = (self.directory / "serve.err").open("ab")

    # ---- the command line ----

    def cli(self, *args):
        """Runs a command that must succeed; the lines of its JSON."""
        argv = [BINARY, "--config", "reprieve.yaml", "--json", *args]
        done = subprocess.run(argv, cwd=self.directory, capture_output=True, text=True, timeout=120)
        require(done.returncode == 0, f"`{' '.join(args)}` ended with {done.returncode}: {done.stdout}{done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def token(self, tenant=None):
        return self.cli("token", "create", "test", *(["--tenant", tenant] if tenant else []))[0]["secret"]

    # ---- its life ----

    def start(self):
        argv = ["setpriv", "--pdeathsig", "KILL", "--"]  # it does not outlive a test that was stopped
        argv += [BINARY, "--config", "reprieve.yaml", "--json", "--quiet", "serve"]
        self.process = subprocess.Popen(argv, cwd=self.directory, stdout=subprocess.PIPE, stderr=self.said)
        ready = select.select([self.process.stdout], [], [], START_S)[0] and self.process.stdout.readline()
        require(ready, f"the daemon did not start: {self.complaints()}")
        where = urllib.parse.urlsplit(json.loads(ready)["url"])
        self.host, self.port = where.hostname, where.port

    def complaints(self):
        return (self.directory / "serve.err").read_text(errors="replace")[-2000:]

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        require(self.process.wait(timeout=60) == -signal.SIGKILL, f"it ended before it was killed: {self.complaints()}")
        self.process.stdout.close()

    def stop(self):
        """Ends it the polite way; it must end well."""
        require(self.is_running(), f"the daemon is gone: {self.complaints()}")
        self.process.terminate()
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        require(status == 0, f"the daemon ended with {status}: {self.complaints()}")

    def drop(self):
        """Whatever happened before: nothing of it is left."""
        if self.is_running():
            self.process.kill()
            self.process.wait(timeout=60)
        self.said.close()
        self.engine.drop()

    # ---- what it uses ----

    def rss_mib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise Broken("the daemon is gone")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    # ---- requests ----

    def connect(self, timeout=10):
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def call(self, method, path, body=None, token=None, headers=None, timeout=10, connection=None):
        """One request; a body that is no bytes is sent as JSON."""
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = "Bearer " + token
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        to = connection or http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            to.request(method, path, body=body, headers=sent)
            answer = to.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            if connection is None:
                to.close()

    def put(self, url, data, connection=None):
        """The bytes of an upload."""
        where = urllib.parse.urlsplit(url)
        return self.call("PUT", f"{where.path}?{where.query}", body=data, connection=connection)


def run(scenario, more="", port=0):
    """Runs a scenario(daemon) on the catalog that CATALOG names, and says what was wrong. port: the same after every start."""
    engine = {e.name: e for e in ENGINES}[os.environ.get("CATALOG", "sqlite")]
    with tempfile.TemporaryDirectory(prefix="reprieve-scenario.") as directory:
        daemon = Daemon(directory, engine, more, port=port)
        try:
            daemon.start()
            scenario(daemon)
            daemon.stop()
        except Broken as broken:
            print(f"FAILED: {broken}", flush=True)
            return 1
        finally:
            daemon.drop()
    return 0
