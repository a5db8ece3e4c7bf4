-- Health of a PostgresPolicy (pgroles.io) for Argo CD. `stanchion generate` writes this file.
-- Put it into the ConfigMap argocd-cm under resource.customizations.health.pgroles.io_PostgresPolicy.
-- Argo CD runs it without Lua's string library; os.time and os.date are there.
local os = require("os")

-- What usually passes by itself: a server that restarts, an object that is applied after this one.
local transient = {
  DatabaseConnectionFailed = true,
  SecretFetchFailed = true,
  ProfilesMissing = true,
}
local timeout = 5 * 60

local function health(status, message)
  return { status = status, message = message or "" }
end

-- Times are compared as text: both are UTC in the same form. os.time reads the fields of the UTC clock as local
-- time and os.date writes them as local time, so the zone of the machine cancels out.
local function since(seconds)
  return os.date("%Y-%m-%dT%H:%M:%SZ", os.time(os.date("!*t")) - seconds)
end

local status = obj.status or {}
if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", status.message or "being deleted")
end
if obj.spec.suspend then
  return health("Suspended", "spec.suspend is true")
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local current = conditions.Ready

if current == nil then
  return health("Progressing", status.message or "waiting for the operator")
end
if (current.observedGeneration or status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return health("Progressing", "waiting for the operator to see the change")
end
local passes = transient[current.reason] and (current.lastTransitionTime or "") > since(timeout)
if current.status == "True" then
  if current.reason == "Planned" and conditions.Drifted and conditions.Drifted.status == "True" then
    return health("Suspended", current.message)
  end
  return health("Healthy", current.message)
end
if passes or current.status ~= "False" then
  return health("Progressing", current.message)
end
return health("Degraded", current.message)
