// SPDX-License-Identifier: Apache-2.0
// description.mjs - an OpenAPI 3.1 document, and what does not fit it: `lint` of the document itself, `check` of one call.
// A status that the call does not name, a header or member that is not described, a request that was taken although it
// does not fit: each is a finding, a sentence.
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

const METHODS = ["get", "put", "post", "delete", "patch", "head", "options", "trace"];
const EMPTY = new Set([204, 302, 303, 304]);

function pattern(path) {
    const text = path.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{[^}]*\}/g, "[^/]+");
    return new RegExp(`^${text}$`);
}

export class Description {
    constructor(document) {
        this.document = document;
        this.ajv = new Ajv2020({ strict: false, allErrors: true, coerceTypes: false });
        this.fromText = new Ajv2020({ strict: false, allErrors: true, coerceTypes: "array" });
        this.compiled = new Map();
        addFormats(this.ajv);
        addFormats(this.fromText);
        this.calls = Object.entries(document.paths).flatMap(([path, item]) =>
            METHODS.filter((method) => item[method]).map((method) => ({
                id: `${method.toUpperCase()} ${path}`,
                method: method.toUpperCase(),
                path,
                pattern: pattern(path),
                operation: item[method],
            })),
        );
    }

    // ---- the document ----

    async lint() {
        const found = [];
        const verdict = await new Validator().validate(structuredClone(this.document));
        if (!verdict.valid) found.push(`it is no OpenAPI 3.1: ${JSON.stringify(verdict.errors).slice(0, 600)}`);
        const ids = new Set(), tags = new Set((this.document.tags ?? []).map((tag) => tag.name));
        if (!(this.document.servers ?? []).every((s) => /^https?:\/\//.test(s.url)) || !this.document.servers?.length)
            found.push("servers: where is it?");
        for (const call of this.calls) {
            const o = call.operation;
            if (!o.operationId || ids.has(o.operationId)) found.push(`${call.id}: operationId is missing or taken`);
            ids.add(o.operationId);
            if (!o.tags?.length || !o.tags.every((tag) => tags.has(tag))) found.push(`${call.id}: a tag is not listed`);
            const named = (o.parameters ?? []).map((p) => this.resolve(p)).filter((p) => p.in === "path");
            const inPath = [...call.path.matchAll(/\{([^}]*)\}/g)].map((m) => m[1]);
            if (named.map((p) => p.name).join() !== inPath.join()) found.push(`${call.id}: parameters of its path`);
            for (const [status, response] of Object.entries(o.responses))
                if (!response.content && !EMPTY.has(Number(status))) found.push(`${call.id} ${status}: with what body?`);
        }
        for (const [name, schema] of Object.entries(this.document.components.schemas)) {
            if (schema.additionalProperties !== false) found.push(`schema ${name} is open`);
            if (!/^[a-z][a-z0-9_]*$/.test(name)) found.push(`schema ${name} is written otherwise than the others`);
        }
        return found;
    }

    resolve(part) {
        if (!part?.$ref) return part;
        return part.$ref.slice(2).split("/").reduce((at, step) => at[step], this.document);
    }

    // ---- one call ----

    find(method, path) {
        const fits = this.calls.filter((c) => (c.method === method || (method === "HEAD" && c.method === "GET")) && c.pattern.test(path));
        fits.sort((a, b) => a.path.split("{").length - b.path.split("{").length);
        return fits[0];
    }

    compile(key, schema, ajv = this.ajv) {
        if (!this.compiled.has(key))
            this.compiled.set(key, ajv.compile({ ...schema, components: { schemas: this.document.components.schemas } }));
        return this.compiled.get(key);
    }

    misfits(key, schema, value, ajv) {
        const fits = this.compile(key, schema, ajv);
        return fits(value) ? [] : fits.errors.map((e) => `${e.instancePath || "/"} ${e.message} ${JSON.stringify(e.params)}`);
    }

    // asked: {method, path, query: {}, headers: {}, body} with the body as JSON, undefined or "bytes"; got: {status, headers, text}
    check(asked, got) {
        const call = this.find(asked.method, asked.path);
        if (!call) return got.status === 404 || got.status === 405 ? this.checkProblem("problem", got, asked) : [`no call ${asked.method} ${asked.path}, but ${got.status}`];
        const found = [];
        const response = call.operation.responses[got.status];
        if (got.status < 400) found.push(...this.checkRequest(call, asked));
        if (!response) return [...found, `status ${got.status} is not described`];
        for (const name of ["request-id", ...this.headersThatMustBe(got.status)])
            if (!got.headers.get(name)) found.push(`${got.status} without the header ${name}`);
        for (const name of ["content-range", "location", "retry-after", "www-authenticate", "idempotent-replayed", "etag"])
            if (got.headers.get(name) && !Object.keys(response.headers ?? {}).some((h) => h.toLowerCase() === name))
                found.push(`${got.status}: the header ${name} is not described`);
        if (asked.method !== "HEAD") found.push(...this.checkBody(call, response, got));
        return found;
    }

    headersThatMustBe(status) {
        return { 206: ["content-range", "etag"], 302: ["location"], 303: ["location"], 401: ["www-authenticate"], 416: ["content-range"], 429: ["retry-after"] }[status] ?? [];
    }

    checkBody(call, response, got) {
        const content = response.content ?? {};
        const type = (got.headers.get("content-type") ?? "").split(";")[0];
        if (Object.keys(content).length === 0) return got.text === "" ? [] : [`${got.status} has a body, ${got.text.slice(0, 60)}`];
        if (got.status >= 400 && content["application/problem+json"]) return this.checkProblem(call.id, got);
        const media = content[type] ?? content["*/*"];
        if (!media) return [`${got.status}: Content-Type '${type}' is not described`];
        if (type !== "application/json" || media.schema?.type === "string") return [];
        return this.misfits(`${call.id} ${got.status} ${type}`, media.schema, JSON.parse(got.text));
    }

    checkProblem(id, got, asked) {
        if (asked?.method === "HEAD") return [];
        if (!(got.headers.get("content-type") ?? "").startsWith("application/problem+json"))
            return [`${got.status}: a refusal that is no problem+json`];
        const problem = JSON.parse(got.text), found = this.misfits("problem", { $ref: "#/components/schemas/problem" }, problem);
        if (problem.status !== got.status) found.push(`the problem says ${problem.status}, the answer ${got.status}`);
        const named = this.calls.find((c) => c.id === id)?.operation.responses[got.status]?.description;
        if (named && !named.includes(`\`${problem.code}\``)) found.push(`${got.status}: the code ${problem.code} is not among ${named}`);
        return found;
    }

    // What was taken must be what the description asks for.
    checkRequest(call, asked) {
        const found = [], parameters = (call.operation.parameters ?? []).map((p) => this.resolve(p));
        for (const [name, text] of Object.entries(asked.query)) {
            const p = parameters.find((q) => q.in === "query" && q.name === name);
            if (!p) found.push(`the query member ${name} is not described`);
            else if (p.schema.type === "string" || p.schema.type?.includes?.("string"))
                found.push(...this.misfits(`${call.id} ?${name}`, p.schema, text));
            else {
                const box = { value: p.schema.type === "array" ? text.split(",") : text };
                const schema = { type: "object", properties: { value: p.schema } };
                found.push(...this.misfits(`${call.id} ?${name}`, schema, box, this.fromText));
            }
        }
        for (const name of ["range", "if-range", "if-none-match", "last-event-id", "idempotency-key"])
            if (asked.headers[name] && !parameters.some((p) => p.in === "header" && p.name.toLowerCase() === name))
                found.push(`the header ${name} is not described`);
        const body = call.operation.requestBody;
        if (asked.body === undefined) return body?.required ? [...found, "taken without its body"] : found;
        const schema = body?.content["application/json"]?.schema;
        if (!schema) return body?.content["*/*"] ? found : [...found, "a body is not described"];
        return [...found, ...this.misfits(`${call.id} body`, schema, asked.body)];
    }
}
