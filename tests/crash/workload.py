# SPDX-License-Identifier: Apache-2.0
"""Those who use the program while it is killed. Each keeps what it asked and what it was answered (answers.py).

  Client     uploads over HTTP: begins, puts, confirms, deletes, restores, commits and aborts transactions
  Curator    marks objects over HTTP, restores them, holds them and lifts the holds
  Operator   the same with the command line, and sweeps beside the daemon; its commands are killed as well
"""
import http.client
import random
import time

from answers import GOING, Broken, File, Lost, require
from judge import COMMITTED

UNANSWERED = (OSError, http.client.HTTPException)


class Caller:
    """Asks the daemon on a connection of its own; live() is run by a thread until the daemon is killed."""

    def __init__(self, service, name, token):
        self.service, self.name, self.token = service, name, token
        self.random, self.connection, self.doing = None, None, None

    def ask(self, method, path, body=None, status=200, headers=None):
        """The answer, which must have that status. Lost: there was none, because the daemon was killed."""
        daemon = self.service
        daemon.log.note(self.name, "asks", method, path, body if not isinstance(body, bytes) else len(body), headers)
        try:
            reply = daemon.call(method, path, body, self.token if path.startswith("/v1/") else None, headers,
                                timeout=20, connection=self.connection)
        except UNANSWERED as error:
            self.connection.close()
            if self.service.killing.is_set():
                raise Lost from None
            raise Broken(f"{method} {path}: {error!r}, and the daemon was not killed yet") from None
        daemon.log.note(self.name, "answered", reply.status, path, reply.body.decode(errors="replace")[:400])
        wanted = status if isinstance(status, tuple) else (status,)
        require(reply.status in wanted, f"{method} {path}: {reply.status} {reply.body}")
        return reply

    def begin_life(self, seed):
        self.random = random.Random(f"{seed} {self.name}")
        self.connection = http.client.HTTPConnection(self.service.host, self.service.port, timeout=20)

    def live(self, seed):
        self.begin_life(seed)
        try:
            while not self.service.killing.is_set():
                self.step()
                self.doing = None
        except Lost:
            pass
        finally:
            self.connection.close()

    def act(self, choices):
        """One of (what, on which of these or None, weight)."""
        choices = [c for c in choices if c[1] is None or c[1]]
        what, on, _ = self.random.choices(choices, [c[2] for c in choices])[0]
        self.doing = what.__name__
        what() if on is None else what(self.random.choice(on))


class Client(Caller):
    def __init__(self, service, number, tenant, token):
        super().__init__(service, f"client {number}", token)
        self.tenant = tenant
        self.files, self.transactions = [], {}  # of a transaction: the states it may be in
        self.keyed = []  # [key, body, File or None]
        self.made = 0

    def step(self):
        mine = {status: [f for f in self.files[-200:] if f.may_be == {status}] for status in ("pending", "live", "deleted")}
        loose = [f for f in mine["pending"] if f.transaction is None]
        gone = mine["deleted"] + [f for f in self.files[-50:] if f.is_going()]
        choices = [(self.begin, None, 4), (self.put, [f for f in loose if not f.is_put], 2), (self.confirm, loose, 4)]
        choices += [(self.delete, mine["live"], 3), (self.restore, gone, 2), (self.transact, None, 2)]
        self.act(choices)

    def begin(self, transaction=None, replaces=None):
        self.made += 1
        data = f"{self.name}/{self.made}\n".encode() * self.random.randrange(1, 200)
        body = {"name": f"{self.name}/{self.made:06d}", "size": len(data)}
        if replaces:
            body["replaces"] = replaces.id
        path, headers = ("/v1/files", {}) if transaction is None else (f"/v1/transactions/{transaction}/files", {})
        if transaction is None and self.random.random() < 0.5:
            headers = {"Idempotency-Key": f"key {self.name}/{self.made}"}
            self.keyed.append([headers["Idempotency-Key"], body, None])
        file = File(self.ask("POST", path, body, 201, headers).json, body["name"], data)
        if headers:
            self.keyed[-1][2] = file
        file.transaction = transaction
        self.files.append(file)
        return file

    def put(self, file):
        again, file.was_tried = file.was_tried, True
        target = "/" + file.url_now(self.service).split("/", 3)[3]
        reply = self.ask("PUT", target, file.data, (200, 409))
        # the kill may have come between the bytes and the answer
        require(reply.status == 200 or (again and reply.code == "exists"), f"put {file.id}: {reply.body}")
        file.is_put = True

    def confirm(self, file):
        if not file.is_put:
            self.put(file)
        file.may_be = file.may_be | {"live"}
        self.ask("POST", file.path() + "/confirm", {})
        file.may_be = {"live"}

    def delete(self, file):
        grace = self.random.choice(["", "?grace=0s", "?grace=2d"])
        outcome = set(GOING) if grace == "?grace=0s" else {"deleted"}
        file.may_be = file.may_be | outcome
        self.ask("DELETE", file.path() + grace, status=202)
        file.may_be = outcome

    def restore(self, file):
        file.may_be = file.may_be | {"live"}
        reply = self.ask("POST", file.path() + "/restore", status=(200, 409))
        require(reply.status == 200 or reply.code == "too_late", f"restore {file.id}: {reply.body}")
        require(reply.status == 200 or "purged" in file.may_be, f"restore {file.id}, which has its grace: too late")
        file.may_be = {"live"} if reply.status == 200 else set(GOING)

    def transact(self):
        """Two or three files at once, one of them in the place of an older one; committed, aborted or left open."""
        transaction = self.ask("POST", "/v1/transactions", {}, 201).json["id"]
        self.transactions[transaction] = {1}
        living = [f for f in self.files[-200:] if f.may_be == {"live"}]
        replaced = self.random.choice(living) if living else None
        members = [self.begin(transaction, replaced if i == 0 else None) for i in range(self.random.randrange(2, 4))]
        for member in members:
            self.put(member)
        how = self.random.choices(["commit", "abort", "leave"], [6, 2, 1])[0]
        if how == "commit":
            self.commit(transaction, members, replaced)
        elif how == "abort":
            self.doing = "abort"
            self.transactions[transaction] = {1, 3}
            self.ask("POST", f"/v1/transactions/{transaction}/abort")
            self.transactions[transaction] = {3}

    def commit(self, transaction, members, replaced):
        self.doing = "commit"
        self.transactions[transaction] = {1, COMMITTED}
        for member in members:
            member.may_be = {"pending", "live"}
        if replaced:
            replaced.may_be = {"live", "deleted"}
        self.ask("POST", f"/v1/transactions/{transaction}/commit", {})
        self.transactions[transaction] = {COMMITTED}
        for member in members:
            member.may_be = {"live"}
        if replaced:
            replaced.may_be = {"deleted"}

    # ---- afterwards ----

    def repeat_keys(self):
        """Asks again what has a key. What was not answered may have been done or not; it is done now, once."""
        lost = [k for k in self.keyed if k[2] is None]
        answered = [k for k in self.keyed[-200:] if k[2]]
        for kept in lost + self.random.sample(answered, min(3, len(answered))):
            key, body, file = kept
            reply = self.ask("POST", "/v1/files", body, 201, {"Idempotency-Key": key})
            if file is None:
                kept[2] = File(reply.json, body["name"], b"?" * body["size"])
                self.files.append(kept[2])
                continue
            replayed = reply.headers.get("Idempotent-Replayed") == "true"
            require(reply.json["id"] == file.id and replayed, f"key {key!r} had {file.id}, now {reply.json['id']}")
            other = self.ask("POST", "/v1/files", dict(body, size=body["size"] + 1), 422, {"Idempotency-Key": key})
            require(other.code == "key_reused", f"key {key!r} with another body: {other.body}")

    def look_again(self):
        """The daemon says the same as its catalog."""
        for file in self.random.sample(self.files, min(5, len(self.files))):
            seen = self.ask("GET", file.path()).json["status"]
            require(seen in file.may_be, f"{file.id} is answered {seen}, not {file.may_be}")


class Curator(Caller):
    """Has a prefix of its own: nobody else asks about these objects."""

    def __init__(self, service, world, token):
        super().__init__(service, "curator", token)
        self.world, self.objects, self.made = world, world.objects, 0
        self.marks = {}  # of a subject: its mark's id
        self.keyed = {}  # of a subject: [body, answer or None]
        self.unheard = 0  # marks that were made and not answered: their answer was under the key

    def step(self):
        waiting = self.objects.choose("marked", "plain:http/", 20) + self.objects.choose("marked", "shelf:http/", 5)
        held = [s for s in waiting if s in self.objects.held]
        later = [s for s in waiting if s not in held and self.objects.due_ms[s] > time.time() * 1000]
        self.act([(self.mark, None, 4), (self.restore, waiting, 2), (self.hold, later, 2), (self.lift, held, 1)])

    def mark(self):
        self.made += 1
        store = self.random.choice(["plain", "plain", "shelf"])
        subject = self.world.make(f"{store}:http/{self.made:06d}")
        grace = self.random.choice(["0s", "1s", "2d"])
        body = {"store": store, "key": subject.split(":")[1], "grace": grace}
        self.objects.put("unsure", [subject])
        self.keyed[subject] = [body, None]
        self.ask_mark(subject, asked_ms=int(time.time() * 1000))
        if grace == "1s" and self.random.random() < 0.6:
            self.doing = "hold"
            self.hold(subject)

    def ask_mark(self, subject, asked_ms):
        body, known = self.keyed[subject]
        reply = self.ask("POST", "/v1/marks", body, 201, {"Idempotency-Key": f"mark {subject}"})
        require(known in (None, reply.body), f"{subject}: the same key was answered {known}, and now {reply.body}")
        self.keyed[subject][1] = reply.body
        if known is None:
            require(reply.json["outcome"] == "created", f"{subject} was marked twice: {reply.body}")
            self.marks[subject] = reply.json["mark"]
            self.objects.due_ms[subject] = asked_ms + {"0s": 0, "1s": 1000, "2d": 2 * 86400000}[body["grace"]]
            self.objects.put("marked", [subject])
        return reply

    def repeat_keys(self):
        """What was not answered may have been done or not, and even be carried out by now. It is answered as the first time."""
        for subject in [s for s, (_, known) in self.keyed.items() if known is None]:
            reply = self.ask_mark(subject, asked_ms=0)
            self.unheard += "Idempotent-Replayed" in reply.headers
        for subject in self.random.sample(sorted(self.keyed), min(3, len(self.keyed))):
            self.ask_mark(subject, asked_ms=0)

    def look_again(self):
        for subject in self.objects.choose("restored", "plain:http/", 3):
            seen = self.ask("GET", f"/v1/marks/{self.marks[subject]}").json["state"]
            require(seen in ("reprieved", "purged"), f"{subject} was restored, and is answered {seen}")

    def restore(self, subject):
        self.objects.held.pop(subject, None)  # it may be marked again by nobody, so the hold is no matter
        has_time = self.objects.due_ms[subject] > time.time() * 1000 + 1000
        self.objects.put("unsure", [subject])
        reply = self.ask("POST", f"/v1/marks/{self.marks[subject]}/restore", status=(200, 409))
        require(reply.status == 200 or (reply.code == "too_late" and not has_time), f"restore {subject}: {reply.body}")
        self.objects.put("restored" if reply.status == 200 else "marked", [subject])

    def hold(self, subject):
        placed = self.ask("POST", "/v1/holds", {"scope": subject, "reason": "crash test"}, 201).json
        if not placed["claimed"]:
            self.objects.held[subject] = placed["id"]

    def lift(self, subject):
        hold = self.objects.held.pop(subject)
        self.ask("DELETE", f"/v1/holds/{hold}")

    def lift_all(self):
        """Also the holds that were placed without an answer."""
        self.objects.held.clear()
        for hold in self.ask("GET", "/v1/holds?limit=1000").json["items"]:
            self.ask("DELETE", f"/v1/holds/{hold['id']}")


class Operator:
    """A round of commands a cycle, beside the daemon; one is killed after a random part of the time that it usually takes."""

    OBJECTS = 24

    def __init__(self, service, world):
        self.service, self.world, self.log = service, world, service.log
        self.random, self.doing = None, None
        self.usual_s = {"mark": 0.05, "restore": 0.05, "sweep": 0.08}  # first guesses; what unharmed commands take replaces them

    def live(self, seed, cycle):
        self.random = random.Random(f"{seed} operator")
        victim = self.random.choices(["sweep", "mark", "restore", None], weights=[5, 2, 2, 1])[0]
        steps = [self.mark, self.restore, self.sweep]
        first = next((i for i, step in enumerate(steps) if step.__name__ == victim), 0)
        if self.random.random() < 0.4:
            first = self.random.randrange(len(steps))
        try:
            for step in steps[first:] + steps[:first]:  # begins anywhere, for the daemon's death ends it
                if not self.service.killing.is_set():
                    step(victim, cycle)
        except Lost:
            pass

    def mark(self, victim, cycle):
        stores = ["plain", "plain", "plain", "shelf"] * (self.OBJECTS // 4)
        subjects = [self.world.make(f"{store}:cli/{cycle:04d}/{i:03d}") for i, store in enumerate(stores)]
        self.random.shuffle(subjects)
        guarded = [s for s in subjects if s.startswith("plain:")][:4]
        plain = [s for s in subjects if s not in guarded][4:]  # some are never marked
        killed = self.aim(victim, "mark", lambda **how: self.world.mark(plain, must=False, **how)).killed
        if killed and self.random.random() < 0.5:
            self.aim(None, "mark", lambda **how: self.world.mark(plain, must=False, again=True, **how))
        self.aim(None, "mark", lambda **how: self.world.mark(guarded, "--if-unreferenced", must=False, **how))

    def restore(self, victim, _):
        known = self.world.objects.choose("marked", "plain:cli/", 24) + self.world.objects.choose("marked", "shelf:cli/", 8)
        chosen = self.random.sample(known, min(10, len(known)))
        if chosen:
            self.aim(victim, "restore", lambda **how: self.world.restore(chosen, **how))

    def sweep(self, victim, _):
        self.aim(victim, "sweep", lambda **how: self.world.sweep(must=False, beside=True, **how))

    def aim(self, victim, command, call):
        usual_s, start = self.usual_s[command], time.monotonic()
        self.doing = command
        after_s = self.random.uniform(0, usual_s) if command == victim else None
        self.log.note("operator", "runs", command, after_s)
        answer = call(kill_after_s=after_s)
        self.log.note("operator", "answered", command, answer.status, answer.lines)
        self.doing = None
        if after_s is None:
            self.usual_s[command] += 0.2 * (time.monotonic() - start - usual_s)
        return answer
