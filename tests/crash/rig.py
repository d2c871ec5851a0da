# SPDX-License-Identifier: Apache-2.0
"""Where the crash tests take place, and the only place where a program is started and killed.

A world is a directory with a configuration, a catalog of its own, two stores (`plain` erases, `shelf` quarantines) and a
database with references. What it answers is kept outside of it (answers.py) and held against it afterwards (judge.py).
"""
import collections
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
import urllib.parse

from answers import Broken, Lost, Objects, content, require
import judge

__all__ = ["ENGINES", "Broken", "Lost", "Postgres", "Sqlite", "World", "require"]
SETTLE_S = 60
STORES = ("plain", "shelf")
ALREADY_RUNNING = 5
CONFIG = """\
environment: crash-test
listen: 127.0.0.1:0
catalog: {{ url: "{catalog}" }}
log: {{ file: reprieve.log }}
stores:
  plain:
    path: plain
    mode: purge
    allow_any_grace: true
    referenced_by: [ {{ database: app, table: post, column: image }} ]
  shelf:
    path: shelf
    mode: quarantine
    quarantine: 1h
    allow_any_grace: true
  objects: {{ path: objects, mode: purge, allow_any_grace: true }}
uploads: {{ store: objects }}
databases: {{ app: {{ url: "sqlite:app.db" }} }}
sweep: {{ batch: {batch}, lease: 1s, retry_first: 1s }}
"""


class Answer:
    """What became of a command: its exit status (negative: killed), its complete lines, and words for an error."""

    def __init__(self, status, lines, words):
        self.status, self.lines, self.words = status, lines, words
        self.killed = status == -signal.SIGKILL


def kill_after(process, seconds):
    """Kills at that moment, unless the process has ended before."""
    watched = os.pidfd_open(process.pid)
    if not select.select([watched], [], [], seconds)[0]:
        process.kill()
    os.close(watched)


def temporary():
    return tempfile.TemporaryFile("w+")


class Sqlite:
    name = "sqlite"

    def __init__(self, directory, _):
        self.file = directory / "catalog.db"
        self.url = "sqlite:catalog.db"

    def rows(self, sql):
        with self.opened() as db:
            return [tuple(row) for row in db.execute(sql)]

    def write(self, sql):
        with self.opened() as db:
            db.executescript("BEGIN IMMEDIATE;" + sql + "COMMIT;")

    @contextlib.contextmanager
    def opened(self):
        db = sqlite3.connect(self.file, timeout=30)
        try:
            yield db
        except sqlite3.Error as error:
            raise Broken(f"the catalog cannot be used: {error}") from None
        finally:
            db.close()

    def settle(self):
        pass

    def drop(self):
        pass


class Postgres:
    name = "postgres"

    def __init__(self, _, serial):
        base = os.environ.get("RP_TEST_POSTGRES")
        require(base, "RP_TEST_POSTGRES is not set; run this beneath tests/lib/with-postgres")
        self.base = base
        self.schema = f"crash_{os.getpid()}_{serial}"
        parts = {"schema": self.schema, "application_name": self.schema}
        self.url = base + ("&" if "?" in base else "?") + urllib.parse.urlencode(parts)
        self.lock = threading.Lock()
        self.connect()

    def connect(self):
        """One psql for all questions: on a busy machine its start is what takes time."""
        program = pathlib.Path(os.environ.get("PG_BIN", "/usr/lib/postgresql/15/bin")) / "psql"
        argv = [str(program) if program.exists() else "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.base]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.session = subprocess.Popen(argv, text=True, bufsize=1, **pipes)
        self.psql("SET client_min_messages = warning; CREATE SCHEMA " + self.schema)
        self.psql("SET search_path = " + self.schema)

    def psql(self, sql):
        with self.lock:
            self.session.stdin.write(sql + ";\n\\echo .\n")
            lines = []
            for line in self.session.stdout:
                if line == ".\n":
                    return "".join(lines)
                lines.append(line)
        self.session.wait(timeout=60)
        raise Broken(f"psql: {' '.join(lines)}")

    def rows(self, sql):
        text = self.psql(f"SELECT coalesce(json_agg(json_build_array({sql_columns(sql)})), '[]') FROM ({sql}) AS q")
        return [tuple(row) for row in json.loads(text)]

    def write(self, sql):
        self.psql(sql)

    def settle(self):
        """A server process may still end a commit of a program that is dead: it is waited for, by its name."""
        sql = f"SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = '{self.schema}'"
        end = time.monotonic() + SETTLE_S
        while int(self.psql(sql)) > 0:
            require(time.monotonic() < end, "server processes of dead programs do not end")
            select.select([], [], [], 0.02)

    def drop(self):
        """psql ends at the first mistake, which the caller is about to tell: then the schema stays."""
        if self.session.poll() is None:
            self.psql(f"DROP SCHEMA {self.schema} CASCADE")
            self.session.stdin.close()
        self.session.wait(timeout=60)
        self.session.stdout.close()


def sql_columns(sql):
    """The names that a SELECT gives its columns with AS, or as they stand."""
    names = sql.split(" FROM ")[0].removeprefix("SELECT ").split(", ")
    return ", ".join("q." + name.split(" AS ")[-1].split(".")[-1] for name in names)


ENGINES = (Sqlite, Postgres)


class World:
    def __init__(self, directory, engine, serial=0, batch=20, disk=None):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.engine = engine(self.directory, serial)
        self.batch = batch
        for store in (*STORES, "objects"):
            (self.directory / store).mkdir()
        (self.directory / "reprieve.yaml").write_text(CONFIG.format(catalog=self.engine.url, batch=batch))
        app = sqlite3.connect(self.directory / "app.db")
        app.executescript("CREATE TABLE post (image TEXT)")
        app.close()
        self.objects = Objects()
        self.sweeps = {}  # the run of each sweep that answered
        self.begun = 0  # sweeps that were started, answered or not
        self.kills = collections.Counter()
        self.lock = threading.Lock()
        self.running, self.is_dark = set(), False
        self.environment = disk or {}  # more of it for every program

    def drop(self):
        self.engine.drop()
        shutil.rmtree(self.directory)

    # ---- objects ----

    def path(self, subject):
        store, key = subject.split(":", 1)
        return self.directory / store / key

    def make(self, subject):
        path = self.path(subject)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(subject))
        self.objects.put("free", [subject])
        return subject

    # ---- programs ----

    def spawn(self, args, binary=None, crash_at=None, **streams):
        """Starts the program. Lost: the power is off."""
        env = {k: v for k, v in os.environ.items() if k != "REPRIEVE_CRASH_AT"} | self.environment
        if crash_at:
            env["REPRIEVE_CRASH_AT"] = crash_at
        argv = ["setpriv", "--pdeathsig", "KILL", "--"]  # it does not outlive a test that was stopped
        argv += [binary or os.environ["REPRIEVE_BIN"], "--config", "reprieve.yaml", "--json", *args]
        with self.lock:
            if self.is_dark:
                raise Lost
            process = subprocess.Popen(argv, env=env, cwd=self.directory, **streams)
            self.running = {p for p in self.running if p.poll() is None} | {process}
        return process

    def darken(self):
        """Everything that runs is killed at once, and nothing is started until is_dark is taken back."""
        with self.lock:
            self.is_dark = True
            for process in self.running:
                process.kill()
        for process in self.running:
            process.wait(timeout=60)

    def run(self, args, stdin="", kill_after_s=None, **how):
        """Runs a command and waits for it. What it said counts as far as it got out. Any thread."""
        with temporary() as asked, temporary() as said, temporary() as told:
            asked.write(stdin)
            asked.seek(0)
            process = self.spawn(args, stdin=asked, stdout=said, stderr=told, **how)
            if kill_after_s is not None:
                kill_after(process, kill_after_s)
            status = process.wait(timeout=120)
            said.seek(0)
            told.seek(0)
            answers = [json.loads(line) for line in said if line.endswith("\n")]
            words = told.read()
        with self.lock:
            self.kills["command: " + args[0]] += status == -signal.SIGKILL
        return Answer(status, answers, f"`{' '.join(args)[:80]}` ended with {status}: {words}")

    # ---- commands; before one its outcome is possible, after the answer it is certain ----

    def mark(self, subjects, *options, must=True, again=False, **how):
        """Asks for marks that are due at once and notes what was answered. again: what was asked before may be purged by now."""
        self.objects.put("unsure", subjects)
        listed = "".join(subject + "\n" for subject in subjects)
        answer = self.run(["mark", "--stdin", "--grace", "0s", *options], stdin=listed, **how)
        require(answer.status == 0 or (not must and answer.killed) or again, answer.words)
        for line in answer.lines:
            refused = line.get("error", {}).get("code") if "subject" in line else None
            gone = again and refused == "not_found" and not self.path(line["subject"]).exists()
            require(refused is None or gone, f"mark {line.get('subject')}: {refused}")
        self.objects.put("marked", [line["subject"] for line in answer.lines if "mark" in line])
        return answer

    def restore(self, subjects, by=None, **how):
        """Asks for restores, by name or by a filter, and notes what was answered: restored, or too late."""
        self.objects.put("unsure", subjects)
        answer = self.run(["restore", *(by or subjects)], **how)
        require(answer.status in (0, 5, 8) or answer.killed, answer.words)
        for line in answer.lines:
            if "subject" not in line:
                continue  # the closing line of a list with refusals
            late = line.get("error", {}).get("code")
            require(late in (None, "too_late"), f"restore {line['subject']}: {late}")
            self.objects.put("marked" if late else "restored", [line["subject"]])
        return answer

    def sweep(self, must=True, beside=False, **how):
        """beside: others sweep as well, and it may be refused for that."""
        self.begun += 1
        answer = self.run(["sweep"], **how)
        refused = beside and answer.status == ALREADY_RUNNING
        require(answer.status == 0 or refused or (not must and answer.killed), answer.words)
        for run in answer.lines:
            if refused:
                break
            require(run["id"] not in self.sweeps, f"{run['id']} was given out twice")
            self.sweeps[run["id"]] = run
        return answer

    def settle(self):
        """Sweeps until nothing is due: what a dead sweep had claimed is free again when its lease is over."""
        until = time.monotonic() + SETTLE_S
        self.sweep()
        while waiting := self.due():
            require(time.monotonic() < until, f"{waiting} marks are still waiting after {SETTLE_S} s of sweeps")
            if self.due("next_at") > 0:
                self.sweep()
            select.select([], [], [], 0.1)

    def due(self, column="due_at"):
        """next_at: what can be claimed, and is under no lease."""
        now_ms = int(time.time() * 1000)
        return self.engine.rows(f"SELECT COUNT(*) AS n FROM mark WHERE active = 1 AND {column} <= {now_ms}")[0][0]

    def check(self):
        judge.check_settled(self)
