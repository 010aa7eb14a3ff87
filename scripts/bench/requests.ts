import type { Target } from './wrk.ts';

/** Contacts to call, so that consecutive requests differ. @param step the distance between their numbers */
const makeContacts = (count: number, step: number) => `
local bodies = {}
for n = 1, ${count} do
  bodies[n] = string.format('{"contact":{"phone":"+4930%08d","name":"Ada Lovelace"},"variables":{"orderNumber":"%d"}}', 10000000 + n * ${step}, n)
end`;
const contacts = makeContacts(1_000, 7);

export function getting(url: string): Target {
  return { url, script: 'wrk.method = "GET"', successes: 1 };
}

/** Places calls, and uses the keys in turn. @param contacted the number of contacts, which are spread over all numbers if there are more than a thousand */
export function placing(url: string, path: string, keys: readonly string[], successes = 1, contacted = 1_000): Target {
  const script = `${contacted > 1_000 ? makeContacts(contacted, 8 * Math.floor(1e7 / contacted)) : contacts}
local keys = { ${keys.map((key) => `"${key}"`).join(', ')} }
local requests = {}
function init(args)
  for n = 1, ${contacted} do
    local headers = { ["X-API-Key"] = keys[n % #keys + 1], ["Content-Type"] = "application/json" }
    requests[n] = wrk.format("POST", "${path}", headers, bodies[n])
  end
end
local n = 0
function request()
  n = n % ${contacted} + 1
  return requests[n]
end`;
  return { url, script, successes };
}

/** Places calls with the request IDs `c1`, `c2` and so on. */
export function placingNumbered(url: string, path: string, key: string): Target {
  const script = `${contacts}
local n
function init(args) n = tonumber(args[1]) end
local headers = { ["X-API-Key"] = "${key}", ["Content-Type"] = "application/json" }
function request()
  n = n + 1
  return wrk.format("POST", "${path}", headers, '{"requestId":"c' .. n .. '",' .. string.sub(bodies[n % 1000 + 1], 2))
end`;
  return { url, script, successes: 1 };
}

/** Sends a key, and only expects a response. */
export function verifying(url: string, key: string): Target {
  return { url, script: `wrk.method = "GET"\nwrk.headers["X-API-Key"] = "${key}"`, successes: 1 };
}

/** Cancels the calls with the request IDs \`c1\`, \`c2\` and so on, each once. */
export function cancelling(url: string, path: string, key: string): Target {
  const script = `
local n
function init(args) n = tonumber(args[1]) end
wrk.headers["X-API-Key"] = "${key}"
function request()
  n = n + 1
  return wrk.format("DELETE", "${path}/by-request-id/c" .. n)
end`;
  return { url, script, successes: 1 };
}

/** Half of the requests place a call, a quarter cancel one of those calls, and a quarter use a key that doesn't exist. */
export function mixing(url: string, path: string, key: string, unknown: string, pauseMs: number): Target {
  const script = `${contacts}
local n, turn = 0, 0
local run
function init(args) run = args[1] end
local place = { ["X-API-Key"] = "${key}", ["Content-Type"] = "application/json" }
local cancel = { ["X-API-Key"] = "${key}" }
local strange = { ["X-API-Key"] = "${unknown}", ["Content-Type"] = "application/json" }
function delay() return math.random(0, ${2 * pauseMs}) end
function request()
  turn = turn % 4 + 1
  if turn == 2 and n > 400 then return wrk.format("DELETE", "${path}/by-request-id/s" .. run .. "-" .. (n - 400), cancel) end
  if turn == 4 then return wrk.format("POST", "${path}", strange, bodies[1]) end
  n = n + 1
  local body = string.gsub(bodies[n % 1000 + 1], "{", '{"requestId":"s' .. run .. "-" .. n .. '",', 1)
  return wrk.format("POST", "${path}", place, body)
end`;
  return { url, script, successes: 0.75 };
}

/** Tries passwords, each time for a different user and from a different network, as a trusted proxy would forward it. */
export function flooding(url: string): Target {
  const script = `
wrk.method = "POST"
function init(args) math.randomseed(os.time() + tonumber(args[1])) end
function request()
  local from = "10." .. math.random(0, 255) .. "." .. math.random(0, 255) .. "." .. math.random(1, 254)
  local body = '{"email":"user-' .. math.random(1, 1000000) .. '@example.com","password":"no such password"}'
  return wrk.format("POST", "/console/session", { ["Content-Type"] = "application/json", ["X-Forwarded-For"] = from }, body)
end`;
  return { url, script, successes: null };
}
