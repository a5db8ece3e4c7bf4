-- Health of a PostgresUser (db.example.com) for Argo CD.
-- Goes into the ConfigMap argocd-cm under resource.customizations.health.db.example.com_PostgresUser.
-- Argo CD runs it without Lua's string library; os.time and os.date are there.
local os = require("os")

-- What usually passes by itself: a server that restarts, a Secret that is applied after the object.
local transient = { ConnectionFailed = true, SecretNotFound = true }
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
  return health("Progressing", obj.status and obj.status.message or "being deleted")
end
if obj.spec.suspend then
  return health("Suspended", "spec.suspend is true")
end
if obj.spec.mode == "Plan" then
  return health("Suspended", "spec.mode is Plan: the statements are in status.plan")
end

local ready = nil
for _, condition in ipairs(obj.status and obj.status.conditions or {}) do
  if condition.type == "Ready" then
    ready = condition
  end
end

if ready == nil then
  return health("Progressing", "waiting for the operator")
end
if (ready.observedGeneration or obj.status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return health("Progressing", "waiting for the operator to see the change")
end
if ready.status == "True" then
  return health("Healthy", ready.message)
end
if ready.status ~= "False" then
  return health("Progressing", ready.message)
end
if transient[ready.reason] and (ready.lastTransitionTime or "") > since(timeout) then
  return health("Progressing", ready.message)
end
return health("Degraded", ready.message)
