-- Health of a SupabaseProject (supabase.strrl.dev) for Argo CD.
-- Goes into the ConfigMap argocd-cm under resource.customizations.health.supabase.strrl.dev_SupabaseProject.
-- Argo CD runs it without Lua's string library; os.time and os.date are there.
local os = require("os")

-- What usually passes by itself: a server that restarts, a Secret that is applied after the object.
local transient = { DependencyValidationFailed = true }
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

local ready = nil
for _, condition in ipairs(obj.status and obj.status.conditions or {}) do
  if condition.type == "Ready" then
    ready = condition
  end
end

if ready == nil then
  return health("Progressing", obj.status and obj.status.message or "waiting for the operator")
end
if (obj.status.observedGeneration or 0) < (obj.metadata.generation or 0) then
  return health("Progressing", "waiting for the operator to see the change")
end
-- A project that was suspended has the condition of the time before.
if obj.status.phase == "Suspended" then
  return health("Progressing", "waiting for the operator to go on")
end
if obj.status.phase == "Running" then
  return health("Healthy", obj.status.message)
end
if transient[ready.reason] then
  local recent = (ready.lastTransitionTime or "") > since(timeout)
  return health(recent and "Progressing" or "Degraded", obj.status.message)
end
if obj.status.phase == "Failed" then
  return health("Degraded", obj.status.message)
end
return health("Progressing", obj.status.message)
