# SPDX-License-Identifier: Apache-2.0
"""What the crash tests share: a world to crash in, and what an outsider knows of it.

A world is a configuration with two stores (`plain` erases, `shelf` sets aside), a catalog of its own and a database
with references. Everything that the program answered is kept here, outside of it; check() holds the answers against
the bytes on disk and the catalog's rows:

  acknowledged mark      purged, nothing under its key; on the shelf the copy is whole
  acknowledged restore   the object is there with its bytes, no mark waits for it
  asked, not answered    one or the other, whole: never a gone object without a purged mark
  never asked            untouched
"""
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

SETTLE_S = 60
MARKED, CHECKING, PURGING, PURGED, REPRIEVED = 1, 2, 3, 4, 5
STORES = ("plain", "shelf")
CONFIG = """\
environment: crash-test
catalog: {{ url: "{catalog}" }}
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
databases: {{ app: {{ url: "sqlite:app.db" }} }}
sweep: {{ batch: {batch}, lease: 1s, retry_first: 1s }}
"""


class Broken(Exception):
    """An invariant does not hold."""


def require(truth, words):
    if not truth:
        raise Broken(words)


def content(subject):
    return (subject + "\n").encode() * (1 + len(subject) % 7)


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
        db = sqlite3.connect(self.file, timeout=30)
        try:
            return [tuple(row) for row in db.execute(sql)]
        finally:
            db.close()

    def drop(self):
        pass


class Postgres:
    name = "postgres"

    def __init__(self, _, serial):
        base = os.environ.get("RP_TEST_POSTGRES")
        require(base, "RP_TEST_POSTGRES is not set; run this beneath tests/lib/with-postgres")
        self.base = base
        self.schema = f"crash_{os.getpid()}_{serial}"
        self.url = base + ("&" if "?" in base else "?") + urllib.parse.urlencode({"schema": self.schema})
        self.psql("CREATE SCHEMA " + self.schema)

    def psql(self, sql):
        argv = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.base]
        argv += ["-c", "SET client_min_messages = warning", "-c", f"SET search_path = {self.schema}", "-c", sql]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def rows(self, sql):
        text = self.psql(f"SELECT coalesce(json_agg(json_build_array({sql_columns(sql)})), '[]') FROM ({sql}) AS q")
        return [tuple(row) for row in json.loads(text)]

    def drop(self):
        self.psql(f"DROP SCHEMA {self.schema} CASCADE")


def sql_columns(sql):
    """The names that a SELECT gives its columns with AS, or as they stand."""
    names = sql.split(" FROM ")[0].removeprefix("SELECT ").split(", ")
    return ", ".join("q." + name.split(" AS ")[-1].split(".")[-1] for name in names)


ENGINES = (Sqlite, Postgres)


class World:
    def __init__(self, directory, engine, serial=0, batch=20):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir()
        self.engine = engine(self.directory, serial)
        for store in STORES:
            (self.directory / store).mkdir()
        (self.directory / "reprieve.yaml").write_text(CONFIG.format(catalog=self.engine.url, batch=batch))
        app = sqlite3.connect(self.directory / "app.db")
        app.executescript("CREATE TABLE post (image TEXT)")
        app.close()
        self.free, self.marked, self.restored, self.unsure = set(), set(), set(), set()
        self.sweeps = {}  # the run of each sweep that answered
        self.begun = 0  # sweeps that were started, answered or not
        self.kills = 0
        self.lock = threading.Lock()

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
        self.free.add(subject)
        return subject

    # ---- commands ----

    def run(self, args, stdin="", binary=None, crash_at=None, kill_after_s=None):
        """Runs a command and waits for it. What it said counts as far as it got out. Any thread."""
        env = dict(os.environ)
        env.pop("REPRIEVE_CRASH_AT", None)
        if crash_at:
            env["REPRIEVE_CRASH_AT"] = crash_at
        argv = [binary or os.environ["REPRIEVE_BIN"], "--config", "reprieve.yaml", "--json", *args]
        with temporary() as asked, temporary() as said, temporary() as told:
            asked.write(stdin)
            asked.seek(0)
            process = subprocess.Popen(argv, stdin=asked, stdout=said, stderr=told, env=env, cwd=self.directory)
            if kill_after_s is not None:
                kill_after(process, kill_after_s)
            status = process.wait(timeout=120)
            said.seek(0)
            told.seek(0)
            answers = [json.loads(line) for line in said if line.endswith("\n")]
            words = told.read()
        with self.lock:
            self.kills += status == -signal.SIGKILL
        return Answer(status, answers, f"`{' '.join(args)[:80]}` ended with {status}: {words}")

    def mark(self, subjects, *options, must=True, **how):
        """Asks for marks that are due at once and notes what was answered."""
        self.free.difference_update(subjects)
        self.unsure.update(subjects)
        listed = "".join(subject + "\n" for subject in subjects)
        answer = self.run(["mark", "--stdin", "--grace", "0s", *options], stdin=listed, **how)
        require(answer.status == 0 or (not must and answer.killed), answer.words)
        acknowledged = {line["subject"] for line in answer.lines if "mark" in line}
        self.unsure -= acknowledged
        self.marked |= acknowledged
        return answer

    def restore(self, subjects, **how):
        """Asks for restores and notes what was answered: restored, or too late."""
        self.unsure.update(subjects)
        self.marked.difference_update(subjects)
        answer = self.run(["restore", *subjects], **how)
        require(answer.status in (0, 5, 8) or answer.killed, answer.words)
        for line in answer.lines:
            if "subject" not in line:
                continue  # the closing line of a list with refusals
            late = line.get("error", {}).get("code")
            require(late in (None, "too_late"), f"restore {line['subject']}: {late}")
            (self.marked if late else self.restored).add(line["subject"])
            self.unsure.discard(line["subject"])
        return answer

    def sweep(self, must=True, **how):
        self.begun += 1
        answer = self.run(["sweep"], **how)
        require(answer.status == 0 or (not must and answer.killed), answer.words)
        for run in answer.lines:
            require(run["id"] not in self.sweeps, f"{run['id']} was given out twice")
            self.sweeps[run["id"]] = run
        return answer

    def settle(self):
        """Sweeps until nothing is due: what a dead sweep had claimed is free again when its lease is over."""
        until = time.monotonic() + SETTLE_S
        while True:
            self.sweep()
            now_ms = int(time.time() * 1000)
            waiting = self.engine.rows(f"SELECT COUNT(*) AS n FROM mark WHERE active = 1 AND due_at <= {now_ms}")
            if waiting == [(0,)]:
                return
            require(time.monotonic() < until, f"{waiting[0][0]} marks are still waiting after {SETTLE_S} s of sweeps")
            select.select([], [], [], 0.1)

    # ---- what must hold ----

    def history(self):
        """The states of every subject's marks, oldest first."""
        rows = self.engine.rows("SELECT p.name, m.key, m.state, m.id FROM mark m JOIN place p ON p.id = m.place_id")
        history = {}
        for store, key, state, mark in sorted(rows, key=lambda row: row[3]):
            history.setdefault(f"{store}:{key}", []).append((state, mark))
        return history

    def is_whole(self, subject):
        path = self.path(subject)
        if not path.exists():
            return False
        require(path.read_bytes() == content(subject), f"{subject} has other bytes than were stored")
        return True

    def copies(self):
        """What stands in quarantine: its bytes by the copy's own name."""
        return {f.name: f.read_bytes() for f in (self.directory / "shelf/.reprieve/quarantine").glob("*")}

    def check(self):
        history = self.history()
        copies = self.copies()
        for subject in self.free:
            require(self.is_whole(subject) and subject not in history, f"{subject} was never marked; it was touched")
        for subject in self.restored:
            require(self.is_whole(subject), f"{subject} was restored and is gone")
            last = history.get(subject, [(None, 0)])[-1][0]
            require(last in (PURGED, REPRIEVED), f"{subject} was restored and has a mark in state {last}")
        for subject in self.marked:
            self.check_purged(subject, history, copies)
        for subject in self.unsure:
            if not self.is_whole(subject):
                self.check_purged(subject, history, copies)
        self.check_copies(history, copies)
        self.check_leftovers()
        self.check_catalog()

    def check_purged(self, subject, history, copies):
        state = history[subject][-1][0] if subject in history else None
        require(state == PURGED, f"{subject} should be purged, its marks: {history.get(subject)}")
        require(not self.path(subject).exists(), f"{subject} is purged and still there")
        if subject.startswith("shelf:"):
            require(content(subject) in copies.values(), f"{subject} has no whole copy in quarantine")

    def check_copies(self, history, copies):
        """A copy in quarantine has a mark that waits for it, and the other way round."""
        prefix = "shelf:.reprieve/quarantine/"
        waiting = {s.removeprefix(prefix) for s, h in history.items() if s.startswith(prefix) and h[-1][0] == MARKED}
        require(waiting == set(copies), f"copies without a mark, or marks without a copy: {waiting ^ set(copies)}")

    def check_leftovers(self):
        """Nothing stands aside. What a killed writer left in tmp is no object, and less than one file a kill."""
        for store in STORES:
            aside = [str(p) for p in (self.directory / store).rglob(".reprieve~*")]
            require(not aside, f"left aside: {aside}")
            temporary = [p for p in (self.directory / store / ".reprieve/tmp").glob("*") if p.name != "lock"]
            require(len(temporary) <= self.kills, f"{len(temporary)} temporary files after {self.kills} kills")

    def check_catalog(self):
        verdict = self.run(["audit", "verify"])
        require(verdict.status == 0, verdict.words)
        tally = self.engine.rows("SELECT place_id, state, CAST(SUM(marks) AS BIGINT) AS marks, "
                                 "CAST(SUM(bytes) AS BIGINT) AS bytes FROM tally GROUP BY place_id, state")
        counted = self.engine.rows("SELECT place_id, state, COUNT(*) AS marks, "
                                   "CAST(SUM(size_bytes) AS BIGINT) AS bytes FROM mark GROUP BY place_id, state")
        kept = {row for row in tally if row[2:] != (0, 0)}
        require(kept == set(counted), f"the tally says {sorted(kept)}, the marks are {sorted(counted)}")
        self.check_runs()

    def check_runs(self):
        """One record a run that began, and of every answered sweep the one that was answered."""
        opened = self.engine.rows("SELECT COUNT(*) AS n FROM run WHERE open = 1")
        runs = self.engine.rows("SELECT COUNT(*) AS n FROM run")[0][0]
        records = [json.loads(body) for (body,) in self.engine.rows("SELECT body FROM run_record")]
        require(opened == [(0,)] and runs == len(records), f"{runs} runs, {opened[0][0]} open, {len(records)} records")
        answered = len(self.sweeps)
        require(answered <= runs <= self.begun, f"{self.begun} sweeps began, {answered} answered, {runs} runs")
        by_id = {record["id"]: record for record in records}
        require(len(by_id) == len(records), "two records have the same run")
        for run, answer in self.sweeps.items():
            same = run in by_id and by_id[run]["counts"] == answer["counts"]
            require(same, f"{run}: its record is not what it answered")
