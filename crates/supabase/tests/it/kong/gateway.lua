-- usage: luajit gateway.lua KONG OPENRESTY < input.json
--
-- Reads { config, requests } and runs Kong's own schemas on the configuration and Kong's own plugins on each request, in
-- the order of their priorities. Prints { errors } or { answers }: the status that a plugin gives, or what the service
-- behind the gateway receives. The request names its service: the router is not part of this.

local place, openresty = arg[1], arg[2]
package.path = place .. "/?.lua;" .. place .. "/?/init.lua;" .. package.path
dofile(openresty)
local cjson = require "cjson.safe"
local input = assert(cjson.decode(io.read("*a")))

local request -- the current one

-- Header names have no case, and `_` in place of `-` is the same.
local function headers_of(values)
  local kept = {}
  for name, value in pairs(values or {}) do kept[name:lower()] = value end
  return setmetatable(kept, { __index = function(t, name) return rawget(t, (name:lower():gsub("_", "-"))) end })
end

local function silent() end
kong = {
  configuration = {
    untrusted_lua = "sandbox", untrusted_lua_sandbox_requires = {}, untrusted_lua_sandbox_environment = {},
    database = "off", router_flavor = "traditional", loaded_plugins = {},
    remove_sensitive = function() return {} end,
  },
  log = setmetatable({}, { __index = function() return silent end }),
  ctx = { shared = {}, plugin = {} },
  table = { new = function() return {} end },
  db = {},
  cache = { get = function(_, _, _, load, ...) return load(...) end },
  request = {
    get_method = function() return request.method or "GET" end,
    -- A header that a plugin sets is seen by the plugins after it.
    get_headers = function() return headers_of(request.sent) end,
    get_header = function(name) return headers_of(request.sent)[name] end,
    get_query = function()
      local copy = {}
      for name, value in pairs(request.query or {}) do copy[name] = value end
      return copy
    end,
  },
  service = { request = {
    set_header = function(name, value) request.sent[name:lower()] = tostring(value) end,
    set_headers = function(all) for name, value in pairs(all) do request.sent[name:lower()] = value end end,
    clear_header = function(name) request.sent[name:lower()] = nil end,
    set_query = function(all) request.asked = all end,
  } },
  response = { set_header = silent, add_header = silent, clear_header = silent },
  client = {
    authenticate = function(consumer, credential) request.consumer, request.credential = consumer, credential end,
    get_consumer = function() return request.consumer end,
    get_credential = function() return request.credential end,
  },
}
function kong.response.exit(status) error({ status = status }) end
kong.response.error = kong.response.exit

local plugins = {}
for _, name in ipairs(input.plugins) do plugins[name] = true end
local schema = assert(require("kong.db.schema.others.declarative_config").load(plugins, {}))
local entities, errors = schema:flatten(input.config)
if not entities then
  print(cjson.encode({ errors = errors }))
  return
end

-- A value without nulls, as plugins get it.
local function plain(value)
  if value == ngx.null then return nil end
  if type(value) ~= "table" then return value end
  local copy = {}
  for key, inner in pairs(value) do copy[key] = plain(inner) end
  return copy
end

-- Kong hashes passwords when it loads the file.
local Entity = require "kong.db.schema.entity"
for _, name in ipairs(input.plugins) do
  local known, daos = pcall(require, "kong.plugins." .. name .. ".daos")
  for _, definition in ipairs(known and daos or {}) do
    local rows, stored = entities[definition.name] or {}, assert(Entity.new(definition))
    for id, row in pairs(rows) do
      rows[id] = stored:has_transformations(row) and assert(stored:transform(row)) or row
    end
  end
end

-- The tables of the file, as Kong's DAO returns them.
local function find(kind, field, value)
  for _, entity in pairs(entities[kind] or {}) do
    if entity[field] == value then return plain(entity) end
  end
end
local function dao(kind, field)
  return {
    cache_key = function(_, key) return kind .. ":" .. tostring(key) end,
    ["select_by_" .. field] = function(_, value) return find(kind, field, value) end,
    each_for_consumer = function(_, consumer)
      local rows = {}
      for _, entity in pairs(entities[kind] or {}) do
        if entity.consumer.id == consumer.id then rows[#rows + 1] = entity end
      end
      local at = 0
      return function() at = at + 1; return rows[at] end
    end,
  }
end
kong.db.keyauth_credentials = dao("keyauth_credentials", "key")
kong.db.basicauth_credentials = dao("basicauth_credentials", "username")
kong.db.acls = dao("acls", "group")
kong.db.consumers = dao("consumers", "username")
kong.client.load_consumer = function(id) return find("consumers", "id", id) end

local configured = {}
for _, plugin in pairs(entities.plugins) do
  local handler = require("kong.plugins." .. plugin.name .. ".handler")
  local service = entities.services[plugin.service.id].name
  configured[service] = configured[service] or {}
  table.insert(configured[service], { handler = handler, config = plain(plugin.config) })
end

local answers = {}
for at, one in ipairs(input.requests) do
  request = one
  request.sent = {}
  for name, value in pairs(one.headers or {}) do request.sent[name:lower()] = value end
  request.asked = one.query or {}
  local all = configured[one.service] or error("no service " .. one.service)
  table.sort(all, function(a, b) return a.handler.PRIORITY > b.handler.PRIORITY end)
  local answer
  for _, plugin in ipairs(all) do
    kong.ctx.plugin = {}
    if plugin.handler.access then
      local ok, exit = pcall(plugin.handler.access, plugin.handler, plugin.config)
      if not ok then
        if type(exit) ~= "table" then error(exit) end
        answer = exit
        break
      end
    end
  end
  answers[at] = answer or { headers = request.sent, query = request.asked }
end
print(cjson.encode({ answers = answers }))
