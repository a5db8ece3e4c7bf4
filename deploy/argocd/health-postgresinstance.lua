-- Health of a PostgresInstance (db.example.com) for Argo CD.
-- Goes into the ConfigMap argocd-cm under resource.customizations.health.db.example.com_PostgresInstance.
-- Argo CD runs it without Lua's string library; os.time and os.date are there.
local os = require("os")

-- What usually passes by itself: a server that restarts, a Secret that is applied after the object.
local transient = { ConnectionFailed = true, AdminSecretNotFound = true }
local timeout = 5 * 60

local function health(status, message)
  return { status = status, message = message or "" }
end

-- Times are compared as text: both are UTC in the same form. os.time reads the fields of the UTC clock as local
-- time and os.date writes them as local time, so the zone of the machine cancels out.
local function since(seconds)
  return os.date("%Y-%m-%dT%H:%M:%SZ", os.time(os.date("!*t")) - seconds)
end

if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", "being deleted")
end

local connected = nil
for _, condition in ipairs(obj.status and obj.status.conditions or {}) do
  if condition.type == "Connected" then
    connected = condition
  end
end

if connected == nil then
  return health("Progressing", "waiting for the operator")
end
if (connected.observedGeneration or obj.status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return health("Progressing", "waiting for the operator to see the change")
end
if connected.status == "True" then
  return health("Healthy", connected.message)
end
if connected.status ~= "False" then
  return health("Progressing", connected.message)
end
if transient[connected.reason] and (connected.lastTransitionTime or "") > since(timeout) then
  return health("Progressing", connected.message)
end
return health("Degraded", connected.message)
