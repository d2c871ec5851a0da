// SPDX-License-Identifier: Apache-2.0
// client.mjs - calls of a daemon, each held against its description and counted.
export class Client {
    constructor(url, description, token) {
        this.url = url;
        this.description = description;
        this.token = token;
        this.met = new Map(); // "GET /v1/files 200": how often
        this.asked = new Set(); // calls that differ
        this.wrong = [];
        this.serial = 0;
    }

    // call("POST /v1/files 201", {...}): the status must be that one. Options: token (null: none), body, raw, headers, path.
    async call(what, options = {}) {
        const [method, template, status] = what.split(" ");
        const target = options.url ?? this.url + (options.path ?? template);
        const url = new URL(target), id = options.headers?.["request-id"] ?? `call-${++this.serial}`;
        const headers = { "request-id": id, ...options.headers };
        const token = options.token === undefined ? this.token : options.token;
        if (token !== null) headers.authorization = `Bearer ${token}`;
        let body = options.raw;
        if (options.body !== undefined) {
            headers["content-type"] ??= "application/json";
            body = JSON.stringify(options.body);
        }
        const answer = await fetch(url, { method, headers, body, redirect: "manual", duplex: "half" });
        const got = { status: answer.status, headers: answer.headers, text: options.stream ? "" : await answer.text() };
        const asked = { method, path: url.pathname, query: Object.fromEntries(url.searchParams), headers, body: options.body ?? (options.raw === undefined ? undefined : "bytes") };
        this.note(what, asked, got, Number(status));
        if (options.stream) return answer;
        const type = got.headers.get("content-type") ?? "";
        return { ...got, id, json: /json/.test(type) && got.text !== "" ? JSON.parse(got.text) : undefined };
    }

    note(what, asked, got, status) {
        const call = this.description.find(asked.method, asked.path);
        const name = `${call?.id ?? `${asked.method} (no call)`} ${got.status}`;
        this.met.set(name, (this.met.get(name) ?? 0) + 1);
        this.asked.add(JSON.stringify([asked.method, asked.path, asked.query, asked.body ?? null, got.status, got.text.slice(0, 80)]));
        const say = (why) => this.wrong.push(`${asked.method} ${asked.path} ${JSON.stringify(asked.query)}: ${why}`);
        if (got.status !== status) say(`${got.status} instead of ${status}: ${got.text.slice(0, 300)}`);
        for (const finding of this.description.check(asked, got)) say(finding);
        if (got.headers.get("request-id") !== asked.headers["request-id"] && !asked.headers["request-id"].includes("!")) say("another Request-Id came back");
    }
}
