# SPDX-License-Identifier: Apache-2.0
"""The loop of the crash tests: load, a kill, judgement; again in the same world; at the end it is healed and judged as a whole.

A cycle is one death of the daemon. Before it, some daemons are killed while they start, that is while they repair what the one
before has left. With a lossy disk (power.py) every death takes the unsynced writes with it, and the command line's too.
"""
import collections
import concurrent.futures
import os
import pathlib
import random
import time

import judge
from answers import Broken, Log
from rig import World
from service import Service, until
from workload import Client, Curator, Operator

CLIENTS, TENANTS = 6, ["acme", "blue", "coop"]
LIFE_S = (0.1, 0.8)  # of the daemon under load, at random between
EARLY_S = (0.0, 0.12)  # of one that dies while it starts
CYCLES_A_WORLD = 25
MONTH_MS = 31 * 86400000


class Life:
    """A world from its first to its last cycle."""

    def __init__(self, directory, engine, seed, serial=0, disk=None, swallow=None):
        self.seed, self.disk = f"{seed} {engine.name} {serial}", disk
        self.world = World(directory, engine, serial, disk=disk.environment(swallow) if disk else None)
        self.log = Log(pathlib.Path(directory).with_suffix(".answers"))
        self.dice = random.Random(self.seed)
        self.daemon = Service(self.world, self.log)
        tokens = {tenant: self.daemon.token(tenant) for tenant in TENANTS}
        own = [TENANTS[i % len(TENANTS)] for i in range(CLIENTS)]
        self.clients = [Client(self.daemon, i, tenant, tokens[tenant]) for i, tenant in enumerate(own)]
        self.curator = Curator(self.daemon, self.world, self.daemon.token())
        self.operator = Operator(self.daemon, self.world)
        self.under_way = collections.Counter()
        self.cycles = 0
        if swallow:
            disk.forget()  # a catalog that is not even there would be noticed too easily

    # ---- a cycle ----

    def cycle(self):
        self.cycles += 1
        self.die_early()
        self.daemon.start()
        if self.cycles > 1:
            self.ask_again()
        self.load()
        self.world.engine.settle()
        self.lose_power()
        self.judge()

    def die_early(self):
        for _ in range(self.dice.choices([0, 1, 2], [6, 3, 1])[0]):
            self.daemon.start_and_die(self.dice.uniform(*EARLY_S))
            self.world.kills["daemon, starting"] += 1
            self.world.engine.settle()
            self.lose_power()

    def ask_again(self):
        """The one that was started after the kill answers as the dead one would have."""
        for caller in (*self.clients, self.curator):
            caller.begin_life(f"{self.seed} again {self.cycles}")
            caller.repeat_keys()
            caller.look_again()
            caller.connection.close()

    def load(self):
        seed = f"{self.seed} {self.cycles}"
        callers = [*self.clients, self.curator]
        with concurrent.futures.ThreadPoolExecutor(len(callers) + 1) as pool:
            lives = [pool.submit(caller.live, seed) for caller in callers]
            lives.append(pool.submit(self.operator.live, seed, self.cycles))
            early = lambda: [life for life in lives if life.done() and life.exception()]
            end = time.monotonic() + self.dice.uniform(*LIFE_S)
            while time.monotonic() < end and not early():
                concurrent.futures.wait(lives, max(0, min(0.05, end - time.monotonic())), concurrent.futures.FIRST_EXCEPTION)
            self.kill([*callers, self.operator])
            for life in lives:
                life.result()
        self.world.is_dark = False

    def kill(self, users):
        self.daemon.killing.set()
        self.under_way.update(user.doing or "nothing" for user in users)
        if self.disk:
            self.world.darken()
        self.daemon.kill()
        self.world.kills["daemon, under load"] += 1
        self.log.note("rig", "killed", self.cycles)

    def lose_power(self):
        if self.disk:
            self.disk.lose(self.dice)

    def judge(self):
        judge.check_interrupted(self.world)
        judge.check_files(self.world, self.clients)
        judge.check_quota(self.world)
        judge.check_audit(self.world)

    # ---- the end ----

    def heal(self):
        """No more kills; all holds are lifted, and when all that is due is gone, a month passes."""
        self.daemon.start()
        self.curator.begin_life("the end")
        self.curator.lift_all()
        self.curator.connection.close()
        until("all that is due is purged", lambda: self.world.due() == 0, 60)
        for client in self.clients:
            for file in client.files:
                file.may_be = {"purged"} if file.is_going() else file.may_be
        self.daemon.stop()
        judge.check_files(self.world, self.clients)
        self.pass_a_month()
        self.daemon.start()
        until("what waited for a month is purged", lambda: self.world.due() == 0, 60)
        self.daemon.stop()
        self.world.settle()  # of a sweep that was killed, the next one under its name writes the record
        judge.check_settled_beside_daemon(self.world)
        judge.check_healed(self.world, self.clients, TENANTS)

    def pass_a_month(self):
        """Not for what lies in quarantine: its copies are looked at."""
        earlier = ", ".join(f"{column} = {column} - {MONTH_MS}" for column in ("due_at", "next_at", "marked_at"))
        self.world.engine.write(f"UPDATE mark SET {earlier} WHERE active = 1 AND key NOT LIKE '.reprieve/%';"
                                f"UPDATE file SET url_ends_at = url_ends_at - {MONTH_MS};")

    def run(self, cycles):
        try:
            for _ in range(cycles):
                self.cycle()
            self.heal()
        except Broken as broken:
            told = "\n  ".join(self.log.about(str(broken)))
            raise Broken(f"seed {self.seed}, cycle {self.cycles}: {broken}\n  {told}") from None
        finally:
            self.daemon.drop()
            self.log.close()


class Figures:
    """Sums over the worlds of one engine."""

    def __init__(self):
        self.cycles, self.answers, self.seconds = 0, 0, 0.0
        self.kills, self.under_way, self.ends = collections.Counter(), collections.Counter(), collections.Counter()
        self.lost = collections.Counter()

    def add(self, life, seconds):
        self.cycles += life.cycles
        self.answers += life.log.answers
        self.seconds += seconds
        self.kills.update(life.world.kills)
        self.under_way.update(life.under_way)
        objects = life.world.objects
        for client in life.clients:
            self.ends.update({"files": len(client.files), "transactions": len(client.transactions)})
        self.ends.update({kind: len(getattr(objects, kind)) for kind in ("marked", "restored", "unsure", "free")})
        self.ends.update({"marks answered by their key alone": life.curator.unheard})
        if life.disk:
            self.lost.update(life.disk.lost)

    def print(self, name):
        def words(counter):
            return ", ".join(f"{n} {what}" for what, n in sorted(counter.items(), key=lambda i: -i[1]) if n)

        print(f"{name}: {self.cycles} cycles in {self.seconds:.0f} s, {self.answers} answers, {words(self.ends)}", flush=True)
        print(f"  killed: {words(self.kills)}", flush=True)
        print(f"  under way in the daemon: {words(self.under_way)}", flush=True)
        if self.lost:
            print(f"  lost: {words(self.lost)}", flush=True)


def run_engine(directory, engine, seed, cycles, disk_of=None, swallow=None, first=0):
    """In worlds of a few cycles each: what piles up in one would be judged again and again."""
    figures, left, serial = Figures(), cycles, first
    while left > 0:
        now = min(left, CYCLES_A_WORLD)
        start, root = time.monotonic(), pathlib.Path(directory) / f"{engine.name}-{serial}"
        life = Life(root, engine, seed, serial, disk_of(root) if disk_of else None, swallow)
        life.run(now)
        figures.add(life, time.monotonic() - start)
        left, serial = left - now, serial + 1
        if left > 0:
            print(f"{engine.name}: {figures.cycles} cycles, {figures.answers} answers so far", flush=True)
    return figures


def seed_of_run():
    seed = int(os.environ.get("CRASH_SEED", random.SystemRandom().randrange(2**32)))
    print(f"seed {seed}", flush=True)
    return seed

