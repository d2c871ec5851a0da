#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shapes_fit.py OPENAPI ANSWER...: holds kept answers (method, path, status, body: a line each) against the description.

Only what our description uses is looked at: type, required, properties, additionalProperties, items, enum, pattern, $ref.
"""
import json
import re
import sys

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_type(value, name):
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


class Document:
    def __init__(self, text):
        self.doc = json.loads(text)
        self.calls = []
        for path, methods in self.doc["paths"].items():
            pattern = re.compile("^" + re.sub(r"\\{[^}]*\\}", "[^/]+", re.escape(path)) + "$")
            for method, call in methods.items():
                self.calls.append((method.upper(), pattern, path, call))

    def resolve(self, schema):
        while "$ref" in schema:
            at = self.doc
            for step in schema["$ref"].lstrip("#/").split("/"):
                at = at[step]
            schema = at
        return schema

    def call(self, method, path):
        path = path.split("?")[0]
        fits = [c for c in self.calls if c[0] == method and c[1].match(path)]
        fits.sort(key=lambda c: c[2].count("{"))
        return fits[0] if fits else None

    def check(self, schema, value, where):
        schema = self.resolve(schema)
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(is_type(value, k) for k in kinds):
            raise ValueError(f"{where}: {value!r:.60} is no {' or '.join(kinds)}")
        if value is None:
            return
        if "enum" in schema and value not in schema["enum"]:
            raise ValueError(f"{where}: {value!r} is none of {schema['enum']}")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            raise ValueError(f"{where}: {value!r} does not fit {schema['pattern']}")
        if isinstance(value, dict):
            self.check_object(schema, value, where)
        if isinstance(value, list) and "items" in schema:
            for i, element in enumerate(value):
                self.check(schema["items"], element, f"{where}[{i}]")

    def check_object(self, schema, value, where):
        members = schema.get("properties", {})
        more = schema.get("additionalProperties", True)
        for name in schema.get("required", []):
            if name not in value:
                raise ValueError(f"{where}: {name} is missing")
        for name, member in value.items():
            if name in members:
                self.check(members[name], member, f"{where}.{name}")
            elif more is False:
                raise ValueError(f"{where}: {name} is not described")
            elif isinstance(more, dict):
                self.check(more, member, f"{where}.{name}")


def check_answer(doc, method, path, status, body):
    found = doc.call(method, path)
    if found is None:
        return  # a path that does not exist, on purpose
    answers = found[3]["responses"]
    answer = answers.get(status)
    if answer is None:
        raise ValueError(f"status {status} is not described")
    content = doc.resolve(answer).get("content", {})
    kind = "application/json" if status < "400" else "application/problem+json"
    if body.strip() and kind in content:
        doc.check(content[kind]["schema"], json.loads(body), "answer")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        doc = Document(file.read())
    wrong = 0
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as file:
            method, path, status, body = file.read().split("\n", 3)
        try:
            check_answer(doc, method, path, status, body)
        except ValueError as error:
            wrong += 1
            print(f"{method} {path} {status}: {error}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
