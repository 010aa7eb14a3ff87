-- Creates requests for wrk. Arguments: the kind of request, the number before the first request's, and the parameters of the function for
-- this kind. Prints the measurements as JSON, with times in microseconds.
local kinds = {}

-- Contacts to call, so that consecutive requests differ. More than a thousand are spread over all numbers.
local function contact_bodies(count)
  local step = count > 1000 and 8 * math.floor(1e7 / count) or 7
  local bodies = {}
  for n = 1, count do
    bodies[n] = string.format('{"contact":{"phone":"+4930%08d","name":"Ada Lovelace"},"variables":{"orderNumber":"%d"}}', 10000000 + n * step, n)
  end
  return bodies
end

local function json_headers(key)
  return { ["X-API-Key"] = key, ["Content-Type"] = "application/json" }
end

-- The key is optional.
function kinds.get(_, key)
  wrk.headers["X-API-Key"] = key
end

-- Places calls, and uses the keys, which are separated by commas, in turn.
function kinds.place(_, path, keys, contacts)
  local headers = {}
  for key in string.gmatch(keys, "[^,]+") do headers[#headers + 1] = json_headers(key) end
  local requests = {}
  for n, body in ipairs(contact_bodies(tonumber(contacts))) do requests[n] = wrk.format("POST", path, headers[n % #headers + 1], body) end
  local n = 0
  function request()
    n = n % #requests + 1
    return requests[n]
  end
end

-- Places calls with the request IDs `c1`, `c2` and so on.
function kinds.place_numbered(n, path, key)
  local bodies = contact_bodies(1000)
  local headers = json_headers(key)
  function request()
    n = n + 1
    return wrk.format("POST", path, headers, '{"requestId":"c' .. n .. '",' .. string.sub(bodies[n % 1000 + 1], 2))
  end
end

-- Cancels the calls with the request IDs `c1`, `c2` and so on, each once.
function kinds.cancel(n, path, key)
  wrk.headers["X-API-Key"] = key
  function request()
    n = n + 1
    return wrk.format("DELETE", path .. "/by-request-id/c" .. n)
  end
end

-- Half of the requests place a call, a quarter cancel one of those calls, and a quarter use a key that doesn't exist.
function kinds.mix(run, path, key, unknown, pause_ms)
  local bodies = contact_bodies(1000)
  local place, cancel, strange = json_headers(key), { ["X-API-Key"] = key }, json_headers(unknown)
  local n, turn = 0, 0
  function delay() return math.random(0, 2 * pause_ms) end
  function request()
    turn = turn % 4 + 1
    if turn == 2 and n > 400 then return wrk.format("DELETE", path .. "/by-request-id/s" .. run .. "-" .. (n - 400), cancel) end
    if turn == 4 then return wrk.format("POST", path, strange, bodies[1]) end
    n = n + 1
    return wrk.format("POST", path, place, '{"requestId":"s' .. run .. "-" .. n .. '",' .. string.sub(bodies[n % 1000 + 1], 2))
  end
end

-- Tries passwords, each time for a different user and from a different network, as if a trusted proxy had forwarded the request.
function kinds.sign_in(seed)
  wrk.method = "POST"
  math.randomseed(os.time() + seed)
  function request()
    local from = "10." .. math.random(0, 255) .. "." .. math.random(0, 255) .. "." .. math.random(1, 254)
    local body = '{"email":"user-' .. math.random(1, 1000000) .. '@example.com","password":"no such password"}'
    return wrk.format("POST", "/console/session", { ["Content-Type"] = "application/json", ["X-Forwarded-For"] = from }, body)
  end
end

function init(args)
  kinds[args[1]](tonumber(args[2]), unpack(args, 3))
end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d}',
    summary.requests, summary.duration, errors.status, broken, latency:percentile(50), latency:percentile(99)))
end
