# SPDX-License-Identifier: Apache-2.0
"""Holds what was answered (answers.py) against the bytes on disk and the catalog's rows.

  never asked            untouched
  acknowledged mark      purged when it is due, nothing under its key, on the shelf with a whole copy; until then, and held: whole
  acknowledged restore   the object is there with its bytes, no mark waits for it (RESTORE-WINS)
  acknowledged upload    the file is in the state that was answered; it has its bytes as long as it can be had (NO-LOSS)
  transactions           all members live or none, and as it was answered (TXN-ATOMIC)
  asked, not answered    one or the other, whole: never a gone object without a mark that is past its claim
  quota                  counter = ledger, in the end what the answers say (QUOTA-EXACT)
  audit log, records     the chain is whole and has a row for every move (AUDITED); tallies and records are those of marks and runs

The rows are read from the database, not asked of the program: as the dead left them, before anybody repairs anything.
"""
import json
import time

from answers import GOING, content, require
from states import CHECKING, MARKED, PURGED, PURGING, REPRIEVED
from states import FILE_DELETED, FILE_EXPIRED, FILE_LIVE, FILE_PENDING, FILE_PURGED, FILE_SCANNING

STATUSES = {FILE_PENDING: "pending", FILE_SCANNING: "scanning", FILE_LIVE: "live",
            FILE_DELETED: "deleted", FILE_PURGED: "purged", FILE_EXPIRED: "expired"}
COMMITTED = 2
RESERVED, REFUNDED = 1, 3
BEGINNINGS = {"mark.created", "file.pending", "file.deleted"}
ENDS = {PURGED: {"mark.purged"}, REPRIEVED: {"mark.reprieved", "file.uploaded", "file.restored"}}
DIGITS = {c: i for i, c in enumerate("0123456789abcdefghjkmnpqrstvwxyz")}


def number_of(text):
    """An id as the catalog has it (src/base/id.h)."""
    number = 0
    for c in text.split("_")[1]:
        number = number * 32 + DIGITS[c]
    return number


# ---- objects ----


def history_of(world):
    """The states of every subject's marks, oldest first."""
    rows = world.engine.rows("SELECT p.name, m.key, m.state, m.id FROM mark m JOIN store p ON p.id = m.store_id")
    history = {}
    for store, key, state, mark in sorted(rows, key=lambda row: row[3]):
        history.setdefault(f"{store}:{key}", []).append((state, mark))
    return history


def is_whole(world, subject):
    path = world.path(subject)
    if not path.exists():
        return False
    require(path.read_bytes() == content(subject), f"{subject} has other bytes than were stored")
    return True


def copies_of(world):
    """What stands in quarantine: its bytes by the copy's own name."""
    return {f.name: f.read_bytes() for f in (world.directory / "shelf/.reprieve/quarantine").glob("*")}


def told_about(world, subject):
    """What the audit log has of its marks, for a person who has to find out."""
    store, key = subject.split(":", 1)
    return world.engine.rows(
        "SELECT a.lane, a.seq, a.at, a.event, a.actor FROM audit a JOIN mark m ON m.id = a.mark_id JOIN store p ON p.id = m.store_id "
        f"WHERE p.name = '{store}' AND m.key = '{key}' ORDER BY a.at"
    )


def check_kept(world, history):
    """What nobody doomed, or a restore has saved."""
    for subject in world.objects.free:
        require(is_whole(world, subject) and subject not in history, f"{subject} was never marked; it was touched")
    for subject in world.objects.restored:
        require(is_whole(world, subject), f"{subject} was restored and is gone, marks {history.get(subject)}: {told_about(world, subject)}")
        last = history.get(subject, [(None, 0)])[-1][0]
        require(last in (PURGED, REPRIEVED), f"{subject} was restored and has a mark in state {last}")


def check_interrupted(world):
    """As the dead left it: nothing is gone that may not be, and no promise is forgotten."""
    history, copies, now_ms = history_of(world), copies_of(world), int(time.time() * 1000)
    check_kept(world, history)
    for subject in world.objects.marked:
        require(subject in history, f"{subject} was marked, and no mark is there")
        last = history[subject][-1][0]
        require(last in (MARKED, CHECKING, PURGING, PURGED), f"{subject} was marked, its mark is in state {last}")
        waits = subject in world.objects.held or world.objects.due_ms.get(subject, 0) > now_ms
        require(not waits or (last == MARKED and is_whole(world, subject)), f"{subject} is held or not due, in state {last}")
        require(last != PURGED or not world.path(subject).exists(), f"{subject} is purged and still there")
    for subject in world.objects.marked | world.objects.unsure:
        if not is_whole(world, subject):
            check_gone(world, subject, history, copies)


def check_gone(world, subject, history, copies):
    last = history[subject][-1][0] if subject in history else None
    aside = world.path(subject).with_name(".reprieve~" + world.path(subject).name)
    there = aside.exists() and aside.read_bytes() == content(subject)
    require(last in (PURGING, PURGED) or there, f"{subject} is gone, marks {history.get(subject)}: {told_about(world, subject)}")
    if subject.startswith("shelf:"):
        require(content(subject) in copies.values() or there, f"{subject} is gone and has no whole copy in quarantine")


def check_settled(world):
    """When all that is due was swept, by commands alone."""
    check_settled_objects(world)
    check_leftovers(world)
    check_runs(world)


def check_settled_beside_daemon(world):
    check_settled_objects(world)
    check_leftovers(world)
    check_runs(world, alone=False)


def check_settled_objects(world):
    history, copies = history_of(world), copies_of(world)
    check_kept(world, history)
    for subject in world.objects.marked:
        check_purged(world, subject, history, copies)
    for subject in world.objects.unsure:
        if not is_whole(world, subject):
            check_purged(world, subject, history, copies)
    check_copies(history, copies)
    check_tallies(world)
    check_audit(world)


def check_purged(world, subject, history, copies):
    state = history[subject][-1][0] if subject in history else None
    require(state == PURGED, f"{subject} should be purged, its marks: {history.get(subject)}")
    require(not world.path(subject).exists(), f"{subject} is purged and still there")
    if subject.startswith("shelf:"):
        require(content(subject) in copies.values(), f"{subject} has no whole copy in quarantine")


def check_copies(history, copies):
    """A copy in quarantine has a mark that waits for it, and the other way round."""
    prefix = "shelf:.reprieve/quarantine/"
    waiting = {s.removeprefix(prefix) for s, h in history.items() if s.startswith(prefix) and h[-1][0] == MARKED}
    require(waiting == set(copies), f"copies without a mark, or marks without a copy: {waiting ^ set(copies)}")


def check_leftovers(world):
    """Nothing stands aside. What a killed writer left in tmp is no object, and at most a batch of files a kill."""
    for store in ("plain", "shelf", "objects"):
        aside = [str(p) for p in (world.directory / store).rglob(".reprieve~*")]
        require(not aside, f"left aside: {aside}")
        temporary = [p for p in (world.directory / store / ".reprieve/tmp").glob("*") if p.name != "lock"]
        kills = sum(world.kills.values())
        require(len(temporary) <= world.batch * kills, f"{len(temporary)} temporary files after {kills} kills")


# ---- the catalog ----


def check_audit(world):
    """The chain is whole, and every mark has one row for its beginning and one for its end."""
    verdict = world.run(["audit", "verify"])
    require(verdict.status == 0, verdict.words)
    events = {}
    for event, mark in world.engine.rows("SELECT event, mark_id FROM audit WHERE mark_id IS NOT NULL"):
        events.setdefault(mark, []).append(event)
    for mark, state, key, reason in world.engine.rows("SELECT id, state, key, reason FROM mark"):
        told = events.get(mark, [])
        own = key.startswith(".reprieve/") or reason == "late upload"  # made by another mark's end, and told there
        begun, ended = sum(e in BEGINNINGS for e in told), sum(e in ENDS.get(state, ()) for e in told)
        require((begun, ended) == (not own, state in ENDS), f"the mark of {key} in state {state} has these audit rows: {told}")


def check_tallies(world):
    tally = world.engine.rows("SELECT store_id, state, CAST(SUM(marks) AS BIGINT) AS marks, "
                              "CAST(SUM(bytes) AS BIGINT) AS bytes FROM tally GROUP BY store_id, state")
    counted = world.engine.rows("SELECT store_id, state, COUNT(*) AS marks, "
                                "CAST(SUM(size_bytes) AS BIGINT) AS bytes FROM mark GROUP BY store_id, state")
    kept = {row for row in tally if row[2:] != (0, 0)}
    require(kept == set(counted), f"the tally says {sorted(kept)}, the marks are {sorted(counted)}")


def check_runs(world, alone=True):
    """One record a run that began, and of every answered sweep the one that was answered. alone: no daemon sweeps."""
    opened = world.engine.rows("SELECT COUNT(*) AS n FROM run WHERE open = 1")
    runs = world.engine.rows("SELECT COUNT(*) AS n FROM run")[0][0]
    records = [json.loads(body) for (body,) in world.engine.rows("SELECT body FROM run_record")]
    require(opened == [(0,)] and runs == len(records), f"{runs} runs, {opened[0][0]} open, {len(records)} records")
    answered, sweeps = len(world.sweeps), sum(record["kind"] == "sweep" for record in records)
    fits = answered <= sweeps and (not alone or sweeps <= world.begun)
    require(fits, f"{world.begun} sweeps began, {answered} answered, {sweeps} runs of them")
    by_id = {record["id"]: record for record in records}
    require(len(by_id) == len(records), "two records have the same run")
    for run, answer in world.sweeps.items():
        same = run in by_id and by_id[run]["counts"] == answer["counts"]
        require(same, f"{run}: its record is not what it answered")


# ---- files ----


def count(world, what, sql):
    n = world.engine.rows(f"SELECT COUNT(*) AS n FROM {sql}")[0][0]
    require(n == 0, f"{n} {what}")


def check_files(world, clients):
    """Every file and transaction is in a state that was answered, or asked for last. What was open is known afterwards."""
    marked = "file f LEFT JOIN mark m ON m.id = f.mark_id WHERE f.status"
    count(world, "pending files without a waiting mark", f"{marked} = {FILE_PENDING} AND m.active IS NULL")
    count(world, "deleted files without a waiting mark", f"{marked} = {FILE_DELETED} AND m.active IS NULL")
    count(world, "living files with a mark", f"{marked} = {FILE_LIVE} AND m.active IS NOT NULL")
    begun = f"({FILE_PENDING}, {FILE_EXPIRED})"
    members = "file f JOIN txn t ON t.id = f.txn_id WHERE"
    count(world, "pending members of a committed transaction", f"{members} t.state = {COMMITTED} AND f.status IN {begun}")
    count(world, "visible members without a commit", f"{members} t.state <> {COMMITTED} AND f.status NOT IN {begun}")
    found = {number: STATUSES[status] for number, status in world.engine.rows("SELECT id, status FROM file")}
    states = dict(world.engine.rows("SELECT id, state FROM txn"))
    for client in clients:
        for file in client.files:
            check_file(world, file, found.get(number_of(file.id)))
        for name, may_be in client.transactions.items():
            state = states.get(number_of(name))
            require(state in may_be, f"{name} is in state {state}, and may be in {may_be}")
            client.transactions[name] = {state}


def check_file(world, file, status):
    require(status in file.may_be, f"{file.id} is {status}, and may be {' or '.join(sorted(file.may_be))}")
    was_going = file.is_going()
    file.may_be = set(GOING) if was_going and status in GOING else {status}
    path = world.directory / "objects" / file.key
    if file.is_put and status != "purged" and not (was_going and status == "deleted"):
        require(path.exists() and path.read_bytes() == file.data, f"{file.id} is {status} and has not its bytes")


def check_quota(world):
    proof = world.run(["quota", "rebuild", "--dry-run"])
    require(proof.status == 0, proof.words)
    require(proof.lines[-1]["wrong"] == 0, f"counters are not their ledger: {proof.lines[-1]}")


def check_healed(world, clients, tenants):
    """All time has passed and all was swept: what lives is what was answered, nothing else is left, the quota is that."""
    rows = world.engine.rows("SELECT f.id, f.status FROM file f")
    status_of = {number: STATUSES[status] for number, status in rows}
    refunds = sum(status != "live" for status in status_of.values())
    living, used = {}, dict.fromkeys(tenants, 0)
    for client in clients:
        for file in client.files:
            lives = "live" in file.may_be
            wanted = "live" if lives else "expired" if file.may_be == {"pending"} else "purged"
            status = status_of.pop(number_of(file.id), None)
            require(status == wanted, f"{file.id} should be {wanted} in the end, and is {status}")
            if lives:
                used[client.tenant] += len(file.data)
                living[file.key] = file.data
    require(set(status_of.values()) <= {"expired"}, f"uploads that nobody was told of: {status_of}")
    check_store(world, living)
    check_used(world, used)
    ledger = dict(world.engine.rows("SELECT kind, COUNT(*) AS n FROM ledger GROUP BY kind"))
    exact = (ledger.get(RESERVED, 0), ledger.get(REFUNDED, 0)) == (len(rows), refunds)
    require(exact, f"{len(rows)} files, {refunds} refunds due, the ledger has {ledger}")


def check_store(world, living):
    root = world.directory / "objects"
    found = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    stands = {key: path.read_bytes() for key, path in found.items() if not key.startswith(".reprieve/")}
    differ = sorted(key for key in stands.keys() | living.keys() if stands.get(key) != living.get(key))
    require(not differ, f"the store and what was answered differ: {differ[:10]}")


def check_used(world, used):
    quota = world.engine.rows("SELECT name, used_bytes, reserved_bytes, open_uploads FROM tenant")
    for tenant, *counters in quota:
        wanted = [used.get(tenant, 0), 0, 0]
        require(counters == wanted, f"{tenant}: the quota says {counters}, the answers {wanted}")
