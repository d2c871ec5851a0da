-- SPDX-License-Identifier: Apache-2.0
-- What wrk sends to the daemon, for bench/http: wrk ... URL -- KIND SECONDS CONNECTIONS TOKENS FILES RESULT
--   KIND         init, init_key, confirm, get, delete, mark, mark_many, restore or hold
--   SECONDS      how long new requests are sent; FILES may end before
--   CONNECTIONS  of one thread
--   TOKENS       a file with one token a line, each of a tenant of its own
--   FILES        "ID TENANT" a line, TENANT being the number of its token; a get begins again at the end, all others stop
--   RESULT       a file that done() writes
-- After the last request a connection is sent nothing more, so that every request has its answer when all are idle: what
-- was answered is then exactly what was done.
local ffi = require("ffi")
ffi.cdef [[
struct bench_time { long s, ns; };
int clock_gettime(int clock, struct bench_time *out);
int getpid(void);
int kill(int pid, int signal);
]]
local THREADS, SIGINT, MONOTONIC, SIZE, ITEMS = 2, 2, 1, 100, 100
local endless = { init = true, init_key = true, hold = true } -- they need no list
local now_is = ffi.new("struct bench_time")
local function now_s()
   ffi.C.clock_gettime(MONOTONIC, now_is)
   return tonumber(now_is.s) + tonumber(now_is.ns) / 1e9
end

-- ---- of the whole program ----

local threads = {}

function setup(thread)
   thread:set("index", #threads)
   threads[#threads + 1] = thread
end

function done(summary, latency)
   local elapsed_s, result_file = 0, threads[1]:get("result_file")
   for _, thread in ipairs(threads) do
      elapsed_s = math.max(elapsed_s, thread:get("elapsed_s"))
   end
   if elapsed_s == 0 then elapsed_s = summary.duration / 1e6 end -- cut off
   local errors = summary.errors
   local out = assert(io.open(result_file, "w"))
   out:write(string.format("%d %d %d %.6f %.3f %.3f\n", summary.requests, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout, elapsed_s,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
   out:close()
end

-- ---- of one thread ----

elapsed_s = 0
local kind, send_s, connections, begun_s
local heads, files, at, sent, idle = {}, {}, 0, 0, 0

local function read_lines(name)
   local lines = {}
   for line in io.lines(name) do lines[#lines + 1] = line end
   return lines
end

local function head_of(token)
   local common = " HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " .. token .. "\r\n"
   return {
      post = common .. "Content-Type: application/json\r\n",
      plain = common .. "\r\n",
   }
end

function init(args)
   kind, send_s, connections = args[1], tonumber(args[2]), tonumber(args[3])
   for i, token in ipairs(read_lines(args[4])) do heads[i - 1] = head_of(token) end
   if not endless[kind] then
      for i, line in ipairs(read_lines(args[5])) do
         if i % THREADS == index then files[#files + 1] = line end
      end
   end
   result_file = args[6]
   math.randomseed(index + 1)
end

local function post(path, heads_of, body)
   return "POST " .. path .. heads_of.post .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
end

local function tenant_heads(n)
   return heads[n % (#heads + 1)]
end

local function init_request(n, extra)
   local body = string.format('{"name":"photos/%d/%d/%08d.jpg","size":%d,"content_type":"image/jpeg"}', index, begun_s, n, SIZE)
   return "POST /v1/files" .. tenant_heads(n).post .. extra .. "Content-Length: " .. #body .. "\r\n\r\n" .. body
end

local function next_file()
   at = at + 1
   if kind == "get" and at > #files then at = 1 end
   local line = files[at]
   if line == nil then return nil end
   local space = string.find(line, " ", 1, true)
   return string.sub(line, 1, space - 1), heads[tonumber(string.sub(line, space + 1))]
end

local makers = {
   init = function(n) return init_request(n, "") end,
   init_key = function(n)
      local key = string.format("%08x%08x%08x%08x", math.random(0, 2 ^ 31), math.random(0, 2 ^ 31), index, n)
      return init_request(n, "Idempotency-Key: " .. key .. "\r\n")
   end,
   confirm = function(_, id, heads_of)
      return "POST /v1/files/" .. id .. "/confirm" .. heads_of.post .. "Content-Length: 2\r\n\r\n{}"
   end,
   get = function(_, id, heads_of) return "GET /v1/files/" .. id .. heads_of.plain end,
   delete = function(_, id, heads_of) return "DELETE /v1/files/" .. id .. heads_of.plain end,
   mark = function(_, key, heads_of)
      return post("/v1/marks", heads_of, '{"store":"main","key":"' .. key .. '","grace":"5d","reason":"bench"}')
   end,
   mark_many = function(_, key, heads_of)
      local items = { '{"key":"' .. key .. '"}' }
      while #items < ITEMS do
         local more = next_file()
         if more == nil then break end
         items[#items + 1] = '{"key":"' .. more .. '"}'
      end
      return post("/v1/marks", heads_of, '{"store":"main","grace":"5d","items":[' .. table.concat(items, ",") .. "]}")
   end,
   restore = function(_, id, heads_of) return post("/v1/marks/" .. id .. "/restore", heads_of, "") end,
   hold = function(n)
      return post("/v1/holds", heads[0], string.format('{"scope":"main:held/%d/%d","reason":"bench"}', index, n))
   end,
}

-- Nothing to send: the connection stays idle. When all of them are, this thread has all of its answers.
local function rest()
   idle = idle + 1
   if idle == connections then
      elapsed_s = now_s() - begun_s
      local marks = assert(io.open(result_file .. ".threads", "a"))
      marks:write(".")
      marks:flush()
      local all = marks:seek("end") == THREADS
      marks:close()
      if all then ffi.C.kill(ffi.C.getpid(), SIGINT) end
   end
   return ""
end

function request()
   local now = now_s()
   begun_s = begun_s or now
   if now - begun_s >= send_s then return rest() end
   if endless[kind] then
      sent = sent + 1
      return makers[kind](sent)
   end
   local id, heads_of = next_file()
   if id == nil then return rest() end
   return makers[kind](sent, id, heads_of)
end
