-- What Kong expects of OpenResty, as far as the plugins and schemas of a generated kong.yml use it, for a plain LuaJIT
-- with lua-cjson, lua-rex-pcre2, lua-socket and Penlight. Kong's own modules are not replaced. A module of OpenResty that is not here is
-- an empty table: a schema that calls it fails loudly.

local cjson = require "cjson.safe"
local rex = require "rex_pcre2"

local function module(name, value)
  package.preload[name] = function() return value end
end

-- OpenResty's lua-cjson has this option; Debian's has not. Only bodies need it.
local new = cjson.new
cjson.new = function()
  local one = new()
  one.decode_array_with_array_mt = one.decode_array_with_array_mt or function() end
  return one
end

module("table.new", function() return {} end)
module("table.clear", function(t) for k in pairs(t) do t[k] = nil end end)
module("table.nkeys", function(t) local n = 0; for _ in pairs(t) do n = n + 1 end; return n end)
module("table.isempty", function(t) return next(t) == nil end)
module("table.isarray", function(t)
  local n = 0
  for k in pairs(t) do
    if type(k) ~= "number" then return false end
    n = n + 1
  end
  return n == #t
end)
module("table.clone", function(t) local c = {}; for k, v in pairs(t) do c[k] = v end; return c end)

-- Patterns of Kong are PCRE.
local function compiled(pattern, options)
  return rex.new(pattern, (options or ""):find("i") and "i" or nil)
end

local function captured(subject, from, to, groups)
  local found = { [0] = subject:sub(from, to) }
  for i = 1, #groups, 2 do
    found[(i + 1) / 2] = groups[i] and subject:sub(groups[i], groups[i + 1]) or false
  end
  return found
end

local function match(subject, pattern, options)
  local from, to, groups = compiled(pattern, options):exec(subject)
  return from and captured(subject, from, to, groups) or nil
end

local function gmatch(subject, pattern, options)
  local at = 1
  return function()
    local from, to, groups = compiled(pattern, options):exec(subject, at)
    if not from then return nil end
    at = to + 1
    return captured(subject, from, to, groups)
  end
end

local function find(subject, pattern, options)
  local from, to = compiled(pattern, options):exec(subject)
  return from, to
end

local DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local function decode_base64(text)
  text = text:gsub("[^%w%+/]", "")
  local bytes, bits, length = {}, 0, 0
  for digit in text:gmatch(".") do
    bits, length = bits * 64 + DIGITS:find(digit, 1, true) - 1, length + 6
    if length >= 8 then
      length = length - 8
      bytes[#bytes + 1] = string.char(math.floor(bits / 2 ^ length))
      bits = bits % 2 ^ length
    end
  end
  return table.concat(bytes)
end

ngx = {
  null = cjson.null,
  DEBUG = 8, INFO = 7, NOTICE = 6, WARN = 5, ERR = 4, CRIT = 3, ALERT = 2, EMERG = 1, STDERR = 0,
  HTTP_OK = 200,
  ctx = {}, var = {}, header = {},
  config = { subsystem = "http", prefix = function() return "/tmp" end, ngx_lua_version = 10028 },
  worker = { id = function() return 0 end, count = function() return 1 end, pid = function() return 1 end,
             exiting = function() return false end },
  shared = setmetatable({}, { __index = function() return {} end }),
  re = { match = match, gmatch = gmatch, find = find },
  log = function() end,
  sleep = function() end,
  now = os.time, time = os.time, update_time = function() end,
  get_phase = function() return "access" end,
  timer = { at = function() end, every = function() end },
  socket = {}, req = {}, thread = {},
  md5 = function(text) return text end,
  decode_base64 = decode_base64,
  escape_uri = function(text)
    return (text:gsub("[^%w%-%._~]", function(c) return string.format("%%%02X", c:byte()) end))
  end,
  unescape_uri = function(text)
    return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
  end,
}
module("ngx.re", ngx.re)

-- Random numbers and identities: only their form matters here.
local count = 0
local function uuid()
  count = count + 1
  return string.format("00000000-0000-4000-8000-%012d", count)
end
module("resty.jit-uuid", {
  generate_v4 = uuid, seed = function() end,
  factory_v5 = function() return uuid end, generate_v5 = uuid,
  is_valid = function(text)
    return type(text) == "string"
       and text:match("^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$") ~= nil
  end,
})
module("kong.tools.uuid", { uuid = uuid, is_valid_uuid = function(text) return type(text) == "string" end })
module("kong.tools.rand", { random_string = uuid, get_rand_bytes = uuid })

-- No field of these plugins has a JSON schema of its own.
module("kong.db.schema.json", { DRAFT_4 = "draft4", DRAFT_7 = "draft7" })

-- The file has no references to vaults.
module("kong.pdk.vault", { is_reference = function(text)
  return type(text) == "string" and text:sub(1, 9) == "{vault://"
end })

-- A digest that keeps different texts different is enough to compare passwords.
local sha1 = {}
sha1.__index = sha1
function sha1.new() return setmetatable({ text = "" }, sha1) end
function sha1:update(text) self.text = self.text .. text; return true end
function sha1:final() return self.text end
module("resty.sha1", sha1)
module("resty.string", { to_hex = function(text)
  return (text:gsub(".", function(c) return string.format("%02x", c:byte()) end))
end })

local lru = {}
lru.__index = lru
function lru.new() return setmetatable({ kept = {} }, lru) end
function lru:get(key) return self.kept[key] end
function lru:set(key, value) self.kept[key] = value end
module("resty.lrucache", lru)

local buffer = {}
buffer.__index = buffer
function buffer.new() return setmetatable({ parts = {} }, buffer) end
function buffer:put(...) for _, part in ipairs({ ... }) do self.parts[#self.parts + 1] = tostring(part) end; return self end
function buffer:putf(...) return self:put(string.format(...)) end
function buffer:get() local all = table.concat(self.parts); self.parts = {}; return all end
buffer.tostring = function(self) return table.concat(self.parts) end
buffer.reset = function(self) self.parts = {}; return self end
package.loaded["string.buffer"] = nil
module("string.buffer", buffer)

-- Everything else of OpenResty, and what Kong loads and does not use here.
local UNUSED = {
  "^resty%.", "^ngx%.", "^lmdb", "^lyaml$", "^multipart$", "^system$", "^kong%.runloop%.", "^kong%.resty%.",
  "^kong%.vaults", "^kong%.tools%.yield$", "^kong%.observability%.", "^kong%.clustering", "^kong%.db%.declarative%.export$",
  "^kong%.workspaces$", "^kong%.concurrency$", "^kong%.tools%.gzip", "^pgmoon", "^version$", "^lapis",
}
local function stub()
  return setmetatable({}, {
    __index = function(t, key) local s = stub(); rawset(t, key, s); return s end,
    __call = function() return nil end,
  })
end
table.insert(package.loaders, 2, function(name)
  for _, pattern in ipairs(UNUSED) do
    if name:match(pattern) and not package.preload[name] then return function() return stub() end end
  end
end)
