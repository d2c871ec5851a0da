# SPDX-License-Identifier: Apache-2.0
"""two_nodes.py url|load|held TOKEN [SECONDS] PORT...: what the scenario two_nodes asks of the daemons."""
import http.client
import json
import random
import sys
import threading
import time
import urllib.parse

TENANTS = 50


class Node:
    def __init__(self, port, token, timeout=30):
        self.http = http.client.HTTPConnection("127.0.0.1", int(port), timeout=timeout)
        self.token = token

    def ask(self, method, path, body=None, tenant=None):
        headers = {"Authorization": f"Bearer {self.token}"}
        if tenant is not None and body is None:
            path += ("&" if "?" in path else "?") + f"tenant={tenant}"
        if tenant is not None and body is not None:
            body = {**body, "tenant": tenant}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self.http.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.http.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text[:1] in b"{[" and text else text

    def must(self, status, *args, **more):
        got, answer = self.ask(*args, **more)
        if got != status:
            sys.exit(f"{args} {more}: {got} {answer}")
        return answer

    def put(self, url, data):
        parts = urllib.parse.urlsplit(url)
        self.http.request("PUT", f"{parts.path}?{parts.query}", data)
        answer = self.http.getresponse()
        answer.read()
        return answer.status


def init(node, tenant, name):
    return node.must(201, "POST", "/v1/files", {"name": name, "size": 3}, tenant=tenant)


def url(token, port_a, port_b):
    a, b = Node(port_a, token), Node(port_b, token)
    made = init(a, "t0", "first")
    if b.put(made["upload"]["url"], b"abc") != 200:
        sys.exit("refused")


def cycle(node, names, done):
    tenant = f"t{random.randrange(TENANTS)}"
    made = init(node, tenant, next(names))
    if random.random() < 0.2:
        return  # left to expire
    if node.put(made["upload"]["url"], b"abc") != 200:
        return  # too late: it has expired
    path = f"/v1/files/{made['id']}"
    if node.ask("POST", path + "/confirm", {})[0] != 200:
        return  # the same
    node.must(202, "DELETE", path)
    if random.random() < 0.5:
        node.ask("POST", path + "/restore")
    done.append(1)


def load(token, seconds, *ports):
    end, done, failed = time.monotonic() + float(seconds), [], []

    def work(port, me):
        node, names = Node(port, token), (f"{me}-{i}" for i in range(1 << 30))
        try:
            while time.monotonic() < end:
                cycle(node, names, done)
        except BaseException as why:  # pylint: disable=broad-except
            failed.append(repr(why))

    threads = [threading.Thread(target=work, args=(p, f"{p}-{time.time_ns()}-{k}")) for p in ports for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if failed:
        sys.exit(failed[0])
    print(round(len(done) / float(seconds)))


def within(seconds, what, *args, **more):
    began = time.monotonic()
    answer = what(*args, **more)
    if time.monotonic() - began > seconds:
        sys.exit(f"{args}: {time.monotonic() - began:.1f} s")
    return answer


def held(token, *ports):
    """t0 is locked by somebody who does nothing, for 8 seconds."""
    waiting = [threading.Thread(target=lambda p=p: init(Node(p, token), "t0", f"late-{p}")) for p in ports]
    for t in waiting:
        t.start()
    time.sleep(0.3)
    for port in ports:
        node = Node(port, token)
        for i in range(1, TENANTS, 7):
            within(2, init, node, f"t{i}", f"held-{port}-{i}")
        within(3, node.must, 200, "GET", "/readyz")
        within(3, node.must, 200, "GET", "/v1/files?limit=1", tenant="t0")
        within(3, node.must, 200, "GET", "/metrics")
    node = Node(ports[0], token)
    hold = within(3, node.must, 201, "POST", "/v1/holds", {"scope": "everything", "reason": "test"})
    within(3, node.must, 200, "DELETE", f"/v1/holds/{hold['id']}")
    made = init(node, "t1", "swept")
    end = time.monotonic() + 6
    while node.must(200, "GET", f"/v1/files/{made['id']}")["status"] != "expired":
        if time.monotonic() > end:
            sys.exit("sweeps have stopped")
        time.sleep(0.2)
    for t in waiting:
        t.join()


{"url": url, "load": load, "held": held}[sys.argv[1]](*sys.argv[2:])
