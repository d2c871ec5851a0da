// SPDX-License-Identifier: Apache-2.0
// node receiver.mjs: a receiver as users write one. Whoever holds the secret `new` or `old` verifies each call with the library
// of standardwebhooks.com; what came is a line of the file `told`. POST /references answers what the file `references` holds;
// all else 204, or 503 while there is a file `refuse`. Its port is in the file `port`.
import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const holders = { new: new Webhook(process.env.NEW), old: new Webhook(process.env.OLD, { format: "raw" }) };

function fits(holder, body, headers) {
  try {
    holder.verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

function answer(path) {
  if (path === "/references") return [200, readFileSync("references")];
  return existsSync("refuse") ? [503, ""] : [204, ""];
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const part of request) body += part;
  const [status, text] = answer(request.url);
  const line = {
    path: request.url,
    event: request.headers["reprieve-event"],
    id: request.headers["webhook-id"],
    timestamp: request.headers["webhook-timestamp"],
    signature: request.headers["webhook-signature"],
    fits: Object.keys(holders).filter((name) => fits(holders[name], body, request.headers)),
    status,
    body: JSON.parse(body),
  };
  appendFileSync("told", JSON.stringify(line) + "\n");
  response.writeHead(status).end(text);
});
server.listen(0, "127.0.0.1", () => {
  writeFileSync("port.tmp", String(server.address().port));
  renameSync("port.tmp", "port");
});
