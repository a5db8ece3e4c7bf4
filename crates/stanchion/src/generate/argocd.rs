//! `deploy/argocd`: a health check for each kind, in Lua, for the `ConfigMap` `argocd-cm` of Argo CD.

use std::fmt::Write as _;

/// What the checks differ in.
struct Check {
    group: &'static str,
    kind: &'static str,
    /// The condition that describes the object.
    condition: &'static str,
    /// Reasons of that condition that usually pass by themselves, such as a Secret that is applied after the object.
    transient: &'static [&'static str],
    /// Whether `spec.suspend` exists.
    suspends: bool,
    /// More states in which Argo CD does not wait for the object: a condition in Lua, and the message.
    suspended: &'static [(&'static str, &'static str)],
    health: Health,
}

/// What decides whether the object is healthy.
enum Health {
    /// The status of the condition. The Lua expression excludes objects that wait for a person.
    Condition { waits: Option<&'static str> },
    /// `status.phase`: the healthy one, and the degraded ones. The message is `status.message`.
    Phase {
        healthy: &'static str,
        degraded: &'static [&'static str],
    },
}

const CHECKS: &[Check] = &[
    Check {
        group: "k8s.bnerd.com",
        kind: "GitlabInstance",
        condition: "Ready",
        transient: &[
            "VersionMapMissing",
            "ProfileMissing",
            "FluxMissing",
            "LicenseMissing",
            "SmtpSecretMissing",
            "PostgresSecretMissing",
            "RedisSecretMissing",
            "S3SecretMissing",
            "PostgresOperatorMissing",
            "RedisOperatorMissing",
            "ElasticsearchOperatorMissing",
        ],
        suspends: true,
        suspended: &[],
        health: Health::Phase {
            healthy: "Ready",
            degraded: &["Failed", "Degraded"],
        },
    },
    Check {
        group: "db.example.com",
        kind: "PostgresInstance",
        condition: "Connected",
        transient: &["ConnectionFailed", "AdminSecretNotFound"],
        suspends: false,
        suspended: &[],
        health: Health::Condition { waits: None },
    },
    Check {
        group: "pgroles.io",
        kind: "PostgresPolicy",
        condition: "Ready",
        transient: &["DatabaseConnectionFailed", "SecretFetchFailed", "ProfilesMissing"],
        suspends: true,
        suspended: &[],
        // A plan that waits for approval is no failure, and not done.
        health: Health::Condition {
            waits: Some(
                "current.reason == \"Planned\" and conditions.Drifted and conditions.Drifted.status == \"True\"",
            ),
        },
    },
    Check {
        group: "db.example.com",
        kind: "PostgresUser",
        condition: "Ready",
        transient: &["ConnectionFailed", "SecretNotFound"],
        suspends: true,
        suspended: &[(
            "obj.spec.mode == \"Plan\"",
            "spec.mode is Plan: the statements are in status.plan",
        )],
        health: Health::Condition { waits: None },
    },
    Check {
        group: "supabase.strrl.dev",
        kind: "SupabaseProject",
        condition: "Ready",
        transient: &["DependencyValidationFailed"],
        suspends: true,
        suspended: &[],
        health: Health::Phase {
            healthy: "Running",
            degraded: &["Failed"],
        },
    },
];

/// The name and the content of each file.
pub(super) fn files() -> impl Iterator<Item = (String, String)> {
    CHECKS.iter().map(|check| {
        (
            format!("health-{}.lua", check.kind.to_lowercase()),
            check.script(),
        )
    })
}

impl Check {
    fn script(&self) -> String {
        let (group, kind, condition) = (self.group, self.kind, self.condition);
        let transient = self.transient.iter().fold(String::new(), |mut table, reason| {
            let _ = writeln!(table, "  {reason} = true,");
            table
        });
        let suspend = self
            .suspends
            .then_some(("obj.spec.suspend", "spec.suspend is true"));
        let suspended =
            suspend
                .iter()
                .chain(self.suspended)
                .fold(String::new(), |mut text, (state, message)| {
                    let _ = writeln!(
                        text,
                        "if {state} then\n  return health(\"Suspended\", \"{message}\")\nend"
                    );
                    text
                });
        let (observed, decision) = (self.health.observed(), self.health.decision());
        format!(
            r#"-- Health of a {kind} ({group}) for Argo CD. `stanchion generate` writes this file.
-- Put it into the ConfigMap argocd-cm under resource.customizations.health.{group}_{kind}.
-- Argo CD runs it without Lua's string library; os.time and os.date are there.
local os = require("os")

-- What usually passes by itself: a server that restarts, an object that is applied after this one.
local transient = {{
{transient}}}
local timeout = 5 * 60

local function health(status, message)
  return {{ status = status, message = message or "" }}
end

-- Times are compared as text: both are UTC in the same form. os.time reads the fields of the UTC clock as local
-- time and os.date writes them as local time, so the zone of the machine cancels out.
local function since(seconds)
  return os.date("%Y-%m-%dT%H:%M:%SZ", os.time(os.date("!*t")) - seconds)
end

local status = obj.status or {{}}
if obj.metadata.deletionTimestamp ~= nil then
  return health("Progressing", status.message or "being deleted")
end
{suspended}
local conditions = {{}}
for _, condition in ipairs(status.conditions or {{}}) do
  conditions[condition.type] = condition
end
local current = conditions.{condition}

if current == nil then
  return health("Progressing", status.message or "waiting for the operator")
end
if ({observed} or 0) < (obj.metadata.generation or 0) then
  return health("Progressing", "waiting for the operator to see the change")
end
local passes = transient[current.reason] and (current.lastTransitionTime or "") > since(timeout)
{decision}"#
        )
    }
}

impl Health {
    /// The generation that decides. A condition may be older than the phase.
    const fn observed(&self) -> &'static str {
        match self {
            Self::Condition { .. } => "current.observedGeneration or status.observedGeneration",
            Self::Phase { .. } => "status.observedGeneration",
        }
    }

    fn decision(&self) -> String {
        match self {
            Self::Condition { waits } => {
                let waits = waits.map_or_else(String::new, |waits| {
                    format!("  if {waits} then\n    return health(\"Suspended\", current.message)\n  end\n")
                });
                format!(
                    r#"if current.status == "True" then
{waits}  return health("Healthy", current.message)
end
if passes or current.status ~= "False" then
  return health("Progressing", current.message)
end
return health("Degraded", current.message)
"#
                )
            }
            Self::Phase { healthy, degraded } => {
                let degraded = degraded
                    .iter()
                    .map(|phase| format!("status.phase == \"{phase}\""))
                    .collect::<Vec<_>>()
                    .join(" or ");
                format!(
                    r#"-- An object that was suspended has the condition of the time before.
if status.phase == "Suspended" then
  return health("Progressing", "waiting for the operator to go on")
end
if status.phase == "{healthy}" then
  return health("Healthy", status.message)
end
if passes then
  return health("Progressing", status.message)
end
if transient[current.reason] or {degraded} then
  return health("Degraded", status.message)
end
return health("Progressing", status.message)
"#
                )
            }
        }
    }
}
