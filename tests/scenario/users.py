# SPDX-License-Identifier: Apache-2.0
"""users.py TOKEN DIR [--pause S] [--seconds N] [--tenants N] NODES...: users of several daemons, who remember what they were told.

NODES is HOST:PORT,...: three users begin at the first of them, and go on to the next when there is no answer. Each asks again, under the
same Idempotency-Key, until there is one. DIR/progress says for each node when the newest acknowledged change was sent. When DIR/load.stop
is there they end; then the daemons are asked about every file, and what is doomed must go. Each run adds a line to DIR/told: what must be so of each file.

With --seconds they never pause and write no progress: only how many changes a second were acknowledged is printed. DIR/failovers, if it is there, has a line
for each kill of a primary and one for the first write of its successor: then the time until each node followed is judged."""
import argparse
import http.client
import itertools
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import uuid

USERS = 3  # at each place
FOLLOW_S = 15
ASK_S = 10  # for an answer, before another node is asked


class Lost(Exception):
    """Nobody knows what became of the request, or it is to be sent again."""


class User:
    def __init__(self, nodes, token, log):
        self.nodes, self.token, self.log, self.http = itertools.cycle(nodes), token, log, None
        self.node = next(self.nodes)

    def send(self, method, path, body, headers):
        """Status and text; Lost if there is none, or one that says nothing."""
        try:
            if self.http is None:
                self.http = http.client.HTTPConnection(self.node, timeout=ASK_S)
            self.http.request(method, path, body, headers)
            answer = self.http.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as why:
            self.http = None
            raise Lost(why) from why
        if answer.status >= 500:
            raise Lost(text)
        return answer.status, text

    def ask(self, statuses, method, path, body=None):
        """Until there is an answer, which must have one of these statuses."""
        headers = {"Authorization": f"Bearer {self.token}", "Idempotency-Key": uuid.uuid4().hex}
        if body is not None:
            headers["Content-Type"] = "application/json"
        while True:
            began = time.time()
            try:
                got, text = self.send(method, path, None if body is None else json.dumps(body), headers)
            except Lost:
                self.node, self.http = next(self.nodes), None
                time.sleep(0.1)
                continue
            if got not in statuses:
                sys.exit(f"{method} {path} on {self.node}: {got} {text}")
            if method != "GET":
                self.log.append((self.node, began, time.time()))
            return json.loads(text)


def put(upload):
    """The bytes, to wherever they are wanted."""
    parts = urllib.parse.urlsplit(upload["url"])
    while True:
        try:
            connection = http.client.HTTPConnection(parts.netloc, timeout=ASK_S)
            connection.request("PUT", f"{parts.path}?{parts.query}", b"abc", upload["headers"])
            status = connection.getresponse().status
            connection.close()
            if status in (200, 409, 412):  # it is there, perhaps by a PUT whose answer was lost
                return
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(0.1)


def cycle(user, name, told, tenants):
    """One file, left at any of its steps. `told`: what its status must be."""
    tenant = f"t{random.randrange(tenants)}"
    made = user.ask([201], "POST", "/v1/files", {"name": name, "size": 3, "tenant": tenant})
    path, step, file = f"/v1/files/{made['id']}", random.randrange(5), told.setdefault(made["id"], {"key": made["key"]})
    file["status"] = "pending"
    if step == 0:
        return
    put(made["upload"])
    user.ask([200], "POST", path + "/confirm", {})
    file["status"] = "live"
    if step == 1:
        return
    # asked again it may have gone meanwhile
    user.ask([202, 404, 409, 410] if step == 2 else [202], "DELETE", path + ("?grace=1s" if step == 2 else "?grace=1h"))
    file["status"] = "purged" if step == 2 else "deleted"
    if step == 4:
        user.ask([200], "POST", path + "/restore")
        file["status"] = "live"


def work(user, told, may_go_on, pause_s, tenants):
    try:
        while may_go_on():
            cycle(user, uuid.uuid4().hex, told, tenants)
            time.sleep(pause_s)
    except BaseException as why:  # pylint: disable=broad-except
        print(repr(why), file=sys.stderr, flush=True)
        os._exit(1)


def show_progress(directory, log):
    newest = {}
    for node, began, _ in list(log):
        newest[node] = max(began, newest.get(node, 0))
    with open(directory + "/progress.new", "w", encoding="utf-8") as out:
        out.write(json.dumps(newest) + "\n")
    os.rename(directory + "/progress.new", directory + "/progress")


def check(places, token, told):
    end = time.monotonic() + 120
    users = itertools.cycle([User(nodes, token, []) for nodes in places])
    for name, file in told.items():
        user, status = next(users), file["status"]
        while (found := user.ask([200], "GET", f"/v1/files/{name}")["status"]) != status:
            if status != "purged" or found != "deleted" or time.monotonic() > end:
                sys.exit(f"{name} on {user.node} is {found}; the user was told {status}")
            time.sleep(0.1)


def judge_times(path, nodes, log):
    """How long after a new primary's first write each daemon first acknowledged a change that was asked for after the kill."""
    with open(path, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    for killed, first in zip(events[::2], events[1::2]):
        for node in nodes:
            answered = min(end for at, began, end in log if at == node and began > killed["killed"])
            took = max(0.0, answered - first["first"])
            print(f"first write {first['first'] - killed['killed']:.1f} s after the kill; {node} followed {took:.1f} s later")
            if took >= FOLLOW_S:
                sys.exit(f"more than {FOLLOW_S} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("token")
    parser.add_argument("dir")
    parser.add_argument("--pause", type=float, default=0.1)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--tenants", type=int, default=8)
    parser.add_argument("nodes", nargs="+")
    args = parser.parse_args()
    places, log, told = [n.split(",") for n in args.nodes], [], {}
    end = time.monotonic() + (args.seconds or 0)
    go_on = (lambda: time.monotonic() < end) if args.seconds else (lambda: not os.path.exists(args.dir + "/load.stop"))
    pause_s = 0 if args.seconds else args.pause
    threads = [threading.Thread(target=work, args=(User(nodes, args.token, log), told, go_on, pause_s, args.tenants))
               for nodes in places for _ in range(USERS)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        if not args.seconds:  # such a run may stand beside another one, whose progress is asked for
            show_progress(args.dir, log)
        time.sleep(0.1)
    with open(args.dir + "/told", "a", encoding="utf-8") as out:
        out.write(json.dumps(told) + "\n")
    if args.seconds:
        print(round(len(log) / args.seconds))
        return
    if os.path.exists(args.dir + "/failovers"):
        judge_times(args.dir + "/failovers", [nodes[0] for nodes in places], log)
    check(places, args.token, told)
    print(f"{len(told)} files, {len(log)} changes acknowledged, {sum(f['status'] == 'purged' for f in told.values())} purged")


main()
