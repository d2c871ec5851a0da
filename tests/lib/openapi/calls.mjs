// SPDX-License-Identifier: Apache-2.0
// calls.mjs URL ADMIN-TOKEN BINARY PORT: asks a daemon everything that its description names, holds each answer against it, asks
// the command line the same things, and reads the log. The directory is that of the scenario openapi_is_what_is_answered.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Client } from "./client.mjs";
import { Description } from "./description.mjs";

const [url, admin, binary, judge] = process.argv.slice(2);
const document = await (await fetch(`${url}/openapi.json`)).json();
const description = new Description(document);
const c = new Client(url, description, admin);
const call = (what, options) => c.call(what, options);
process.on("exit", () => c.wrong.forEach((text) => console.error(text)));
const step = (text) => console.log(`- ${text}`);

function cli(...args) {
    const text = execFileSync(binary, [...args, "--json"], { encoding: "utf8" });
    return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line));
}
const sql = (text) => execFileSync("sqlite3", ["catalog.db", text], { encoding: "utf8" }).trim();
const object = (key, text) => {
    mkdirSync(`files/${key.split("/").slice(0, -1).join("/")}`, { recursive: true });
    writeFileSync(`files/${key}`, text);
};

async function until(what, ask) {
    for (let i = 0; i < 600; i++) {
        const found = await ask();
        if (found) return found;
        await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`never: ${what}`);
}
const quietly = async (path, token = admin) => (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).json();
const isPurged = (file, token) => until(`${file} is purged`, async () => (await quietly(`/v1/files/${file}`, token)).status === "purged");

step("the document itself");
assert.deepEqual(await description.lint(), []);

step("who may not: nobody, others, those without the scope; what is no call at all");
const tokenOf = async (name, more) => (await call("POST /v1/tokens 201", { body: { name, ...more } })).json;
const every = document.paths["/v1/tokens"].post.requestBody ? ["files.read", "files.write", "marks.read", "marks.write", "runs.read", "runs.write", "live", "metrics", "audit", "admin"] : [];
const acme = (await tokenOf("acme", { tenant: "acme", scopes: every })).secret;
const other = (await tokenOf("other", { tenant: "other", scopes: every })).secret;
const powerless = (await tokenOf("powerless", { admin: true, scopes: ["live"] })).secret;
const fill = (path) => path.replace("{tenant}", "nobody").replace(/\{id\}/, (_, at) => `${{ files: "fil", marks: "mrk", transactions: "txn", runs: "run", "dead-letters": "ded", holds: "hld", tokens: "tok", uploads: "fil", content: "fil" }[path.slice(4, at - 1)]}_0000000000001`);
for (const { method, path, operation } of description.calls) {
    const options = { path: fill(path) };
    if (operation.requestBody && path !== "/v1/uploads/{id}") options.body = {};
    if (operation.security.length > 0) await call(`${method} ${path} 401`, { ...options, token: null });
    if (operation.description?.startsWith("For admin")) await call(`${method} ${path} 403`, { ...options, token: acme });
    else if (operation.security[0]?.token?.length > 0 && operation.security[0].token[0] !== "live") await call(`${method} ${path} 403`, { ...options, token: powerless });
    if (path !== "/v1/uploads/{id}") await call(`${method} ${path} 400`, { path: `${fill(path)}?no_such_member=1`, body: options.body });
    await call(`PATCH ${path} 405`, { path: fill(path) });
    if (operation.requestBody && path !== "/v1/uploads/{id}") {
        await call(`${method} ${path} 415`, { path: fill(path), raw: "x", headers: { "content-type": "text/plain" } });
        await call(`${method} ${path} 400`, { path: fill(path), body: { no_such_member: 1 } });
    }
    if (path.includes("{id}") && operation.security.length > 0 && !operation.requestBody) await call(`${method} ${path} 404`, options);
}
await call("GET /nothing 404");
await call("GET /v1/files/fil_1 404");
await call("POST /v1/holds 413", { body: { scope: "main:x", reason: "x".repeat(70000) } });
await call("POST /v1/files 401", { token: "rpt_wrong", body: { name: "x", size: 1 } });

step("files: begun, put, confirmed, listed, given out whole, in parts and not at all, deleted, restored, purged");
const tenant = { token: acme };
async function put(begun, bytes, status = 200, more = {}) {
    const promised = Object.entries(begun.upload.headers).map(([name, value]) => [name.toLowerCase(), value]);
    const headers = Object.fromEntries(promised.filter(([name]) => name !== "content-length")); // fetch counts by itself
    return call(`PUT /v1/uploads/{id} ${status}`, { url: begun.upload.url, token: null, raw: bytes, headers: { ...headers, ...more } });
}
async function begin(name, bytes, more = {}) {
    return (await call("POST /v1/files 201", { ...tenant, body: { name, size: bytes.length, ...more } })).json;
}
async function live(name, bytes, more) {
    const begun = await begin(name, bytes, more);
    await put(begun, bytes);
    return (await call("POST /v1/files/{id}/confirm 200", { ...tenant, path: `/v1/files/${begun.id}/confirm`, body: {} })).json;
}
const file = await live("a/cat", "hello world", { content_type: "text/plain", metadata: { of: "me" }, checksum_sha256: "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9" });
const second = await live("a/dog", "other");
await call("POST /v1/files 201", { ...tenant, headers: { "idempotency-key": "one" }, body: { name: "kept", size: 1 } });
await call("POST /v1/files 201", { ...tenant, headers: { "idempotency-key": "one" }, body: { name: "kept", size: 1 } });
await call("POST /v1/files 422", { ...tenant, headers: { "idempotency-key": "one" }, body: { name: "kept", size: 2 } });
await call("POST /v1/files 413", { ...tenant, body: { name: "big", size: "6GiB" } });
await call("POST /v1/files 404", { ...tenant, body: { name: "child", size: 1, parent: "fil_0000000000001" } });
await call("POST /v1/files 400", { ...tenant, body: { name: "bad", size: -1 } });
await call("GET /v1/files 200", tenant);
await call("GET /v1/files 200", { ...tenant, path: "/v1/files?prefix=a/" });
await call("GET /v1/files 200", { path: "/v1/files?tenant=acme&include=deleted" });
const page = (await call("GET /v1/files 200", { ...tenant, path: "/v1/files?limit=1" })).json;
await call("GET /v1/files 200", { ...tenant, path: `/v1/files?limit=1&cursor=${page.next_cursor}` });
await call("GET /v1/files 400", { ...tenant, path: "/v1/files?cursor=nonsense" });
await call("GET /v1/files/{id} 200", { ...tenant, path: `/v1/files/${file.id}` });
await call("HEAD /v1/files/{id} 200", { ...tenant, path: `/v1/files/${file.id}` });
await call("GET /v1/files/{id} 404", { token: other, path: `/v1/files/${file.id}` });
const content = { ...tenant, path: `/v1/files/${file.id}/content` };
const whole = await call("GET /v1/files/{id}/content 200", content);
await call("GET /v1/files/{id}/content 206", { ...content, headers: { range: "bytes=0-4" } });
await call("GET /v1/files/{id}/content 304", { ...content, headers: { "if-none-match": whole.headers.get("etag") } });
await call("GET /v1/files/{id}/content 200", { ...content, headers: { range: "bytes=0-4", "if-range": '"another"' } });
await call("GET /v1/files/{id}/content 416", { ...content, headers: { range: "bytes=90-99" } });
await call("HEAD /v1/files/{id}/content 200", content);

// No call gives a signed URL of a download out, so the test signs one: src/http/content/signed_url.c.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz";
function signed(f, expires = Date.now() + 60000) {
    const number = (n) => { const b = Buffer.alloc(8); b.writeBigInt64BE(BigInt(n)); return b; };
    const id = [...f.id.slice(4)].reduce((n, letter) => n * 32n + BigInt(crockford.indexOf(letter)), 0n);
    const parts = ["reprieve url 1", "GET", number(id), f.store, f.key, number(f.size), f.content_type ?? "", f.checksum_sha256 ? Buffer.from(f.checksum_sha256, "hex") : "-", number(expires)];
    const message = Buffer.concat(parts.flatMap((part) => { const b = Buffer.from(part), n = Buffer.alloc(2); n.writeUInt16BE(b.length); return [n, b]; }));
    const key = Buffer.from(sql("SELECT word FROM meta WHERE name = 'url_key'"), "hex");
    return { token: null, path: `/v1/content/${f.id}?expires=${expires}&signature=${createHmac("sha256", key).update(message).digest("hex")}` };
}
const signedUrl = signed(file);
const part = await call("GET /v1/content/{id} 206", { ...signedUrl, headers: { range: "bytes=-3" } });
await call("GET /v1/content/{id} 200", signedUrl);
await call("GET /v1/content/{id} 304", { ...signedUrl, headers: { "if-none-match": part.headers.get("etag") } });
await call("GET /v1/content/{id} 416", { ...signedUrl, headers: { range: "bytes=90-" } });
await call("GET /v1/content/{id} 403", { ...signedUrl, path: signedUrl.path.replace(/.$/, (x) => (x === "0" ? "1" : "0")) });
await call("GET /v1/content/{id} 410", signed(file, Date.now() - 1000));
await call("GET /v1/content/{id} 400", { token: null, path: `/v1/content/${file.id}` });

const waiting = await begin("b/early", "12345", { content_type: "text/plain" });
await call("POST /v1/files/{id}/confirm 409", { ...tenant, path: `/v1/files/${waiting.id}/confirm`, body: {} });
await call("GET /v1/files/{id}/content 409", { ...tenant, path: `/v1/files/${waiting.id}/content` });
await put(waiting, "123", 422);
await put(waiting, "12345", 415, { "content-type": "image/png" });
await put(waiting, new ReadableStream({ start(stream) { stream.enqueue(Buffer.from("12345")); stream.close(); } }), 411);
await put(waiting, "12345");
await call("POST /v1/files/{id}/confirm 422", { ...tenant, path: `/v1/files/${waiting.id}/confirm`, body: { checksum_sha256: "0".repeat(64) } });
await call("PUT /v1/uploads/{id} 403", { url: waiting.upload.url.replace(/.$/, (x) => (x === "0" ? "1" : "0")), token: null, raw: "12345" });
await put({ upload: (await call("POST /v1/files 201", { ...tenant, headers: { "idempotency-key": "one" }, body: { name: "kept", size: 1 } })).json.upload }, "k");
await call("POST /v1/files/{id}/result 200", { ...tenant, path: `/v1/files/${file.id}/result`, body: { idempotency_key: "late", verdict: "accept" } });
await call("POST /v1/files/{id}/result 404", { ...tenant, path: "/v1/files/fil_0000000000001/result", body: { idempotency_key: "late", verdict: "accept" } });

const gone = `/v1/files/${file.id}`;
await call("DELETE /v1/files/{id} 400", { ...tenant, path: `${gone}?grace=2d&at=2100-01-01T00:00:00Z` });
const deleted = (await call("DELETE /v1/files/{id} 202", { ...tenant, path: `${gone}?reason=spam&visibility=shown&grace=2d` })).json;
await call("DELETE /v1/files/{id} 409", { ...tenant, path: `${gone}?grace=1d` });
await call("GET /v1/files/{id} 200", { ...tenant, path: gone });
await call("GET /v1/files 200", { ...tenant, path: "/v1/files?status=deleted" });
await call("GET /v1/files/{id}/content 404", content);
await call("GET /v1/marks/{id} 200", { ...tenant, path: `/v1/marks/${deleted.mark.id}` });
await call("GET /v1/marks/{id} 404", { token: other, path: `/v1/marks/${deleted.mark.id}` });
await call("POST /v1/marks/{id}/restore 200", { ...tenant, path: `/v1/marks/${deleted.mark.id}/restore` });
const again = (await call("DELETE /v1/files/{id} 202", { ...tenant, path: `${gone}?grace=0s` })).json;
await isPurged(file.id, acme);
assert.deepEqual((await call("DELETE /v1/files/{id} 202", { ...tenant, path: gone })).json, { ...again, status: "purged" }, "a second DELETE of a purged file");
await call("GET /v1/files/{id}/content 410", content);
await call("POST /v1/files/{id}/restore 409", { ...tenant, path: `${gone}/restore` });
await call("POST /v1/files/{id}/confirm 409", { ...tenant, path: `${gone}/confirm`, body: {} });
await call("POST /v1/marks/{id}/restore 409", { ...tenant, path: `/v1/marks/${again.mark.id}/restore` });
await call("DELETE /v1/files/{id} 202", { ...tenant, path: `/v1/files/${second.id}` });
await call("POST /v1/files/{id}/restore 200", { ...tenant, path: `/v1/files/${second.id}/restore` });

step("transactions");
const txn = (await call("POST /v1/transactions 201", { ...tenant, body: { timeout: "30m" } })).json;
await call("POST /v1/transactions 400", { ...tenant, body: { timeout: "0s" } });
const at = { ...tenant, path: `/v1/transactions/${txn.id}` };
const member = (await call("POST /v1/transactions/{id}/files 201", { ...at, path: `${at.path}/files`, body: { name: "t/1", size: 2, replaces: second.id } })).json;
await call("POST /v1/transactions/{id}/files 413", { ...at, path: `${at.path}/files`, body: { name: "t/2", size: "6GiB" } });
await call("POST /v1/transactions/{id}/commit 409", { ...at, path: `${at.path}/commit`, body: {} });
await put(member, "ab");
await call("POST /v1/files/{id}/confirm 409", { ...tenant, path: `/v1/files/${member.id}/confirm`, body: {} });
await call("GET /v1/transactions/{id} 200", at);
await call("GET /v1/transactions/{id} 404", { ...at, token: other });
await call("POST /v1/transactions/{id}/commit 200", { ...at, path: `${at.path}/commit`, body: { metadata: [{ file: member.id, values: { page: "1" } }] } });
await call("POST /v1/transactions/{id}/abort 409", { ...at, path: `${at.path}/abort` });
await call("POST /v1/transactions/{id}/files 409", { ...at, path: `${at.path}/files`, body: { name: "t/3", size: 1 } });
const other_txn = (await call("POST /v1/transactions 201", { ...tenant, body: {} })).json;
await call("POST /v1/transactions/{id}/abort 200", { ...tenant, path: `/v1/transactions/${other_txn.id}/abort` });

step("marks: one, many, refused, listed, restored alone and in bulk");
for (const key of ["m/1", "m/2", "m/3", "m/named", "held/1"]) object(key, key);
const one = (await call("POST /v1/marks 201", { body: { store: "main", key: "m/1", grace: "5d", reason: "old" } })).json;
await call("POST /v1/marks 200", { body: { store: "main", grace: "3d", items: [{ key: "m/2" }, { key: "m/3" }, { key: "none" }] } });
await call("POST /v1/marks 404", { body: { store: "main", key: "none" } });
await call("POST /v1/marks 404", { body: { store: "nowhere", key: "m/1" } });
await call("POST /v1/marks 409", { body: { store: "main", key: "m/1", grace: "1d" } });
await call("POST /v1/marks 201", { body: { store: "seen", key: "x" } });
await call("POST /v1/marks 400", { body: { store: "plain", key: "x", grace: "90d" } });
const named = (await call("POST /v1/marks 409", { body: { store: "main", key: "m/named", if_unreferenced: true } })).json;
assert.equal(named.references, 1);
const unknown = (await call("POST /v1/marks 422", { body: { store: "plain", key: "x", if_unreferenced: true } })).json;
assert.equal(unknown.code, "references_unknown");
assert.match(unknown.hint, /referenced_by/);
const told = execFileSync("sh", ["-c", `"${binary}" mark plain:x --if-unreferenced --json; echo $?`], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
assert.equal(told.trim().split("\n").at(-1), "3");
await call("GET /v1/marks 200");
await call("GET /v1/marks 200", { path: "/v1/marks?state=purged&limit=5" });
await call("GET /v1/marks 200", { path: "/v1/marks?store=main&reason=old&due_before=2100-01-01T00:00:00Z" });
await call("GET /v1/marks 404", { path: "/v1/marks?store=nowhere" });
const marks = (await call("GET /v1/marks 200", { path: "/v1/marks?limit=1" })).json;
await call("GET /v1/marks 200", { path: `/v1/marks?limit=1&cursor=${marks.next_cursor}` });
await call("GET /v1/marks/{id} 200", { path: `/v1/marks/${one.mark}` });
await call("POST /v1/restore 200", { body: { reason: "old", dry_run: true } });
await call("POST /v1/restore 400", { body: {} });
await call("POST /v1/restore 400", { body: { prefix: `main:${"x".repeat(1060)}`, dry_run: true } });
await call("POST /v1/restore 404", { body: { prefix: "nowhere:x" } });
const run = (await call("POST /v1/restore 202", { body: { prefix: "main:m/2" } })).json;
await until("the restore is over", async () => (await quietly(`/v1/runs/${run.id}`)).state === "finished");
await call("POST /v1/marks/{id}/restore 200", { path: `/v1/marks/${one.mark}/restore` });

step("holds, dead letters, runs");
const hold = (await call("POST /v1/holds 201", { body: { scope: "main:held/*", reason: "case 12" } })).json;
await call("POST /v1/holds 201", { body: { scope: "tenant/other", reason: "audit" } });
await call("POST /v1/holds 404", { body: { scope: "nowhere:x", reason: "x" } });
await call("GET /v1/holds 200");
const holds = (await call("GET /v1/holds 200", { path: "/v1/holds?limit=1" })).json;
await call("GET /v1/holds 200", { path: `/v1/holds?limit=1&cursor=${holds.next_cursor}` });
await call("POST /v1/runs 200", { body: { kind: "sweep", dry_run: true } });
await call("POST /v1/runs 400", { body: { kind: "reconcile" } });
await call("POST /v1/runs 404", { body: { kind: "sweep", name: "nowhere" } });
const sweep = (await call("POST /v1/runs 202", { body: { kind: "sweep" } })).json;
await until("the sweep is over", async () => (await quietly(`/v1/runs/${sweep.id}`)).state === "finished");
await call("GET /v1/runs 200");
await call("GET /v1/runs 200", { path: "/v1/runs?limit=1" });
await call("GET /v1/runs/{id} 200", { path: `/v1/runs/${sweep.id}` });
await call("GET /v1/runs/summary 200", { path: "/v1/runs/summary?days=2" });
await call("GET /v1/dead-letters 200");
for (const key of ["stuck/1", "stuck/2"]) await call("POST /v1/marks 201", { body: { store: "main", key, grace: "0s" } });
const letters = await until("two are dead", async () => { const l = (await quietly("/v1/dead-letters")).items; return l.length === 2 && l; });
await call("GET /v1/dead-letters 200", { path: "/v1/dead-letters?limit=1" });
await call("GET /v1/dead-letters/{id} 200", { path: `/v1/dead-letters/${letters[0].id}` });

step("a service that answers later");
let answer_url;
const service = createServer(async (request, answer) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    answer_url = JSON.parse(text).answer_url;
    answer.writeHead(202).end();
}).listen(Number(judge), "127.0.0.1");
object("m/judged", "x");
await call("POST /v1/marks 201", { body: { store: "main", key: "m/judged", grace: "0s", confirmations: ["judge"] } });
const later = { url: await until("the service is asked", () => answer_url), token: null };
await call("POST /v1/confirmations/{id} 400", { ...later, body: { answer: "perhaps" } });
await call("POST /v1/confirmations/{id} 204", { ...later, body: { answer: "yes" } });
await call("POST /v1/confirmations/{id} 409", { ...later, body: { answer: "no" } });
service.close();
await until("what was agreed to is purged", async () => (await quietly("/v1/marks?state=purged&limit=1000")).items.some((m) => m.subject === "main:m/judged"));

step("the command line says the same");
const byId = (list) => [...list].sort((a, b) => (a.id < b.id ? -1 : 1));
const items = async (path) => (await quietly(path)).items;
const shape = (o) => (Array.isArray(o) ? [...new Set(o.map(shape))].sort().join("|") : o === null ? "-" : typeof o === "object" ? `{${Object.keys(o).sort().map((k) => `${k}:${shape(o[k])}`)}}` : typeof o);
const agree = (what, said, answered) => assert.deepEqual(said, answered, `${what}: the command line and HTTP differ`);
agree("marks", byId(cli("marks")), byId(await items("/v1/marks?limit=1000")));
agree("ended marks", byId(cli("marks", "--state", "purged")), byId(await items("/v1/marks?state=purged&limit=1000")));
agree("runs", cli("runs").filter((r) => r.state === "finished"), (await items("/v1/runs")).filter((r) => r.state === "finished"));
agree("a run", cli("runs", "show", sweep.id)[0], await quietly(`/v1/runs/${sweep.id}`));
agree("dead letters", cli("dead"), await items("/v1/dead-letters"));
agree("a dead letter", cli("dead", "show", letters[0].id)[0], await quietly(`/v1/dead-letters/${letters[0].id}`));
agree("holds", cli("hold"), await items("/v1/holds"));
agree("quotas", byId(cli("quota").map((q) => ({ id: q.tenant, ...q }))), byId((await items("/v1/quotas")).map((q) => ({ id: q.tenant, ...q }))));
agree("tokens", byId(cli("token")), byId(await items("/v1/tokens?limit=1000")));
agree("stores", cli("stores"), await items("/v1/stores"));
const rows = (list) => new Map(list.map((r) => [`${r.lane}.${r.seq}`, r]));
const exported = rows(cli("audit", "export"));
for (const [seq, row] of rows(await items("/v1/audit?limit=1000"))) if (exported.has(seq)) agree(`audit row ${seq}`, exported.get(seq), row);
agree("the proof", cli("audit", "verify")[0].ok, (await quietly("/v1/audit/verify")).ok);
agree("a dry run of retention", cli("retention", "--dry-run")[0], (await call("POST /v1/runs 200", { body: { kind: "retention", dry_run: true } })).json);
agree("a dry run of the safety net", cli("safety-net", "--dry-run")[0], (await call("POST /v1/runs 200", { body: { kind: "safety_net", dry_run: true } })).json);
agree("a dry run", cli("sweep", "--dry-run")[0], (await call("POST /v1/runs 200", { body: { kind: "sweep", dry_run: true } })).json);
const mine = cli("explain", "main:m/1")[0], answered = await quietly(`/v1/marks/${one.mark}`);
agree("explain", mine.now.mark, answered);
for (const line of mine.story) {
    const row = (await items(`/v1/audit?mark=${line.mark}`)).find((r) => r.event === line.event);
    agree("a line of the story", { at: line.at, event: line.event, actor: line.actor, mark: line.mark }, { at: row.at, event: row.event, actor: row.actor, mark: row.mark });
}
agree("a mark made", shape(cli("mark", "main:m/1", "--grace", "2d", "--reason", "x")[0]), shape((await call("POST /v1/marks 201", { body: { store: "main", key: "m/2", grace: "2d", reason: "x" } })).json));
agree("a restore", shape(cli("restore", "main:m/1")[0]), shape((await call("POST /v1/marks/{id}/restore 200", { path: `/v1/marks/${(await items("/v1/marks?reason=x"))[0].id}/restore` })).json));
const held = cli("hold", "add", "main:held/2", "--reason", "x")[0];
agree("a hold placed", shape(held), shape((await call("POST /v1/holds 201", { body: { scope: "main:held/3", reason: "x" } })).json));
agree("a hold lifted", { ...cli("hold", "rm", held.id)[0], id: hold.id }, (await call("DELETE /v1/holds/{id} 200", { path: `/v1/holds/${hold.id}` })).json);
agree("a quota set", cli("quota", "set", "acme", "1GiB")[0], (await call("PUT /v1/quotas/{tenant} 200", { path: "/v1/quotas/acme", body: { limit: "1GiB" } })).json);
const made = cli("token", "create", "by-hand", "--tenant", "acme", "--scopes", "files.read")[0];
const over = await tokenOf("over-http", { tenant: "acme", scopes: ["files.read"] });
agree("a token made", shape(made), shape(over));
agree("a token revoked", shape(cli("token", "revoke", made.id)[0]), shape((await call("DELETE /v1/tokens/{id} 200", { path: `/v1/tokens/${over.id}` })).json));
agree("a letter kept", shape(cli("dead", "keep", letters[0].id)[0]), shape((await call("POST /v1/dead-letters/{id}/keep 200", { path: `/v1/dead-letters/${letters[1].id}/keep` })).json));
for (const key of ["stuck/1", "stuck/2"]) await call("POST /v1/marks 201", { body: { store: "main", key, grace: "0s" } });
const fresh = await until("two are dead again", async () => { const l = (await quietly("/v1/dead-letters")).items; return l.length === 2 && l; });
await call("POST /v1/dead-letters/{id}/retry 200", { path: `/v1/dead-letters/${fresh[0].id}/retry` });
await call("POST /v1/dead-letters/{id}/retry 404", { path: "/v1/dead-letters/ded_0000000000001/retry" });
await call("POST /v1/dead-letters/retry-all 200");
const running = async (not) => (await items("/v1/runs")).find((r) => r.kind === "sweep" && r.state === "running" && r.id !== not);
const bare = ({ oldest, largest, errors, progress, ...rest }) => shape(rest); // as much as any run has
const sweeping = await until("a sweep is under way", () => running());
const cancelled = (await call("POST /v1/runs/{id}/cancel 202", { path: `/v1/runs/${sweeping.id}/cancel` })).json;
let last = 0; // the cancelled one may still take what is due
const next = await until("another sweep is under way", async () => {
    object(`m/last${++last}`, "x");
    await call("POST /v1/marks 201", { body: { store: "main", key: `m/last${last}`, grace: "0s" } });
    return running(sweeping.id);
});
agree("a run cancelled", bare(cli("cancel", next.id)[0]), bare(cancelled));

step("tokens, quotas, stores, alerts, audit, health, sign-in");
await call("GET /v1/tokens 200");
const tokens = (await call("GET /v1/tokens 200", { path: "/v1/tokens?limit=1" })).json;
await call("GET /v1/tokens 200", { path: `/v1/tokens?limit=1&cursor=${tokens.next_cursor}` });
await call("POST /v1/tokens 400", { body: { name: "x", scopes: ["none"], admin: true } });
const link = await tokenOf("link", { kind: "link", admin: true, scopes: every });
await call("POST /v1/tokens 201", { headers: { "idempotency-key": "t" }, body: { name: "once", admin: true, scopes: ["live"] } });
await call("POST /v1/tokens 201", { headers: { "idempotency-key": "t" }, body: { name: "once", admin: true, scopes: ["live"] } });
const cookie = (await call("GET /signin 303", { token: null, path: link.sign_in })).headers.get("set-cookie").split(";")[0];
await call("GET /signin 401", { token: null, path: link.sign_in });
const session = (await call("GET /v1/session 200", { token: null, headers: { cookie } })).json;
await call("POST /v1/session/end 403", { token: null, headers: { cookie } });
await call("POST /v1/session/end 204", { token: null, headers: { cookie, "x-reprieve-csrf": session.csrf } });
await call("GET /v1/session 200");
await call("POST /v1/session/end 400");
await call("GET /v1/quotas 200");
await call("GET /v1/quotas/{tenant} 200", { ...tenant, path: "/v1/quotas/acme" });
await call("GET /v1/quotas/{tenant} 404", { ...tenant, path: "/v1/quotas/other" });
await call("PUT /v1/quotas/{tenant} 400", { path: "/v1/quotas/acme", body: { limit: 1, default: true } });
await call("PUT /v1/quotas/{tenant} 200", { path: "/v1/quotas/acme", body: { limit: 9 } });
await call("POST /v1/files 409", { ...tenant, body: { name: "too much", size: 10 } });
await call("PUT /v1/quotas/{tenant} 200", { path: "/v1/quotas/acme", body: { default: true } });
for (let i = 0; i < 5; i++) await call("POST /v1/files 201", { token: other, body: { name: `open ${i}`, size: 1 } });
await call("POST /v1/files 429", { token: other, body: { name: "one too many", size: 1 } });
await call("GET /v1/stores 200");
await call("GET /v1/alerts 200");
await call("GET /v1/alerts 200", { path: "/v1/alerts?state=never" });
const newest = (await call("GET /v1/audit 200", { path: "/v1/audit?limit=5" })).json;
await call("GET /v1/audit 200", { path: `/v1/audit?limit=1000&cursor=${newest.next_cursor}` });
await call("GET /v1/audit 200", { path: `/v1/audit?mark=${one.mark}` });
await call("GET /v1/audit/segments 200");
await call("GET /v1/audit/verify 200");
for (const path of ["/healthz", "/readyz", "/openapi.json", "/"]) await call(`GET ${path} 200`, { token: null });
await call("GET /metrics 200");
await call("HEAD /healthz 200", { token: null });

step("a Request-Id is the caller's own if it is sane, else made");
await call("GET /healthz 200", { headers: { "request-id": "mine_1.2-3" } });
for (const bad of ["no!", `${"x".repeat(65)}!`]) assert.match((await call("GET /healthz 200", { headers: { "request-id": bad } })).headers.get("request-id"), /^[0-9a-f]{8}-[0-9a-f]{8}$/);

step("live events, audit rows and log lines have one vocabulary, and ids and tenants are texts");
const stream = await call("GET /v1/live 200", { stream: true, headers: { "last-event-id": "0" } });
let events = "";
const text = new TextDecoder();
for await (const chunk of stream.body) {
    events += text.decode(chunk, { stream: true });
    if (/event: quota\.set\ndata: .*\n\n/.test(events)) break;
}
const live_events = events.slice(0, events.lastIndexOf("\n\n")).split("\n\n").filter((e) => e.includes("\ndata: ")).map((e) => ({ name: /event: (.*)/.exec(e)[1], data: JSON.parse(/data: (.*)/.exec(e)[1]) }));
await until("the log has the last request", async () => readFileSync("reprieve.log", "utf8").includes("mine_1.2-3"));
const lines_of_log = () => readFileSync("reprieve.log", "utf8").split("\n").filter((l) => l !== "").map((l) => JSON.parse(l));
// The daemon goes on meanwhile: a line is written after its row, so the audit is read between two looks at the log.
const before = lines_of_log();
const audit = [];
for (let cursor = ""; cursor !== null; ) {
    const p = await quietly(`/v1/audit?limit=1000${cursor && `&cursor=${cursor}`}`);
    audit.push(...p.items);
    cursor = p.next_cursor;
}
const names = new Set(audit.map((row) => row.event));
for (const e of live_events) {
    assert.equal(e.name, e.data.event);
    assert.ok(names.has(e.name), `no audit row is called ${e.name}`);
}
assert.ok(live_events.length > 20 && live_events.some((e) => e.data.tenant === "acme"));
const strings = (o, where) => {
    for (const [name, value] of Object.entries(o ?? {})) {
        if (value !== null && typeof value === "object") strings(value, `${where}.${name}`);
        else assert.ok(!/^(id|tenant|tenant_id|mark|file|run|hold|token|transaction)$/.test(name) || typeof value !== "number", `${where}.${name} is the number ${value}`);
        assert.ok(typeof value !== "number" || Number.isSafeInteger(value), `${where}.${name} is changed by a program: ${value}`);
    }
};
for (const row of audit) strings({ ...row, lane: 0 }, `audit ${row.event}`);
for (const e of live_events) strings(e.data, `live ${e.name}`);
const log = lines_of_log();
for (const line of log) strings(line, `log ${line.event}`);
const changes = before.filter((l) => /^(mark|file|hold|quota|transaction|token|store|alert)\./.test(l.event));
const only_said = /\.(refused|same|skipped|failed|unconfirmed|left_out|probed|not_probed|not_told|raise_owed|closed)$/;
for (const line of changes) assert.ok(names.has(line.event) || only_said.test(line.event), `the log says ${line.event}, no audit row does`);
for (const row of audit.filter((r) => /^(file\.(pending|uploaded|deleted|restored)|hold|quota\.set|transaction|token)/.test(r.event) && !r.actor.startsWith("cli:")))
    assert.ok(log.some((l) => l.event === row.event), `${row.event} by ${row.actor} is not in the log`);
const requests = new Map(log.filter((l) => l.event === "http.request").map((l) => [l.request, l]));
assert.ok(requests.has("mine_1.2-3"));
const asked = log.filter((l) => l.request && l.event !== "http.request");
for (const event of ["file.pending", "file.deleted", "mark.created", "hold.placed", "hold.lifted", "quota.set", "transaction.committed", "mark.refused", "token.created"])
    assert.ok(asked.some((l) => l.event === event && requests.has(l.request)), `no line ${event} names its request`);

step("what was met");
const met = [...c.met.keys()];
for (const { id, operation } of description.calls)
    for (const status of Object.keys(operation.responses).filter((s) => s < "300"))
        if (!c.met.has(`${id} ${status}`)) c.wrong.push(`${id} ${status} is described, and was never answered`);
console.log(`${c.asked.size} different calls, ${met.length} different answers of a route`);
assert.equal(c.wrong.length, 0, `${c.wrong.length} answers are not what the description says`);
assert.ok(met.length >= 150, `only ${met.length} different answers`);
process.exit(0); // the stream of live events is still open
