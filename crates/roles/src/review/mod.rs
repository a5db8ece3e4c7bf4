//! A plan in a file for reviewers: the changes of roles, without sensitive values (passwords, comments, settings).
//!
//! The file is pgroles' `pgroles.review-artifact.v3`. It is evidence and approves nothing: `apply` takes a saved plan.
//! It claims only what was checked; the rest is `unknown`.

mod change;
mod evidence;

pub use change::{Priority, priority, redacted};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::expand::Desired;
use crate::facts::ServerFacts;
use crate::graph::{self, Graph, ManagedScope};
use crate::plan::{Change, Mode, Plan};
use crate::render;
use evidence::Evidence;

const VERSION: &str = "pgroles.review-artifact.v3";

/// The largest file that readers accept.
pub const MAX_BYTES: usize = 4 << 20;

/// The input of a review.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The plan under review.
    pub plan: &'a Plan,
    /// The desired state.
    pub desired: &'a Desired,
    /// The mode of the plan.
    pub mode: Mode,
    /// The server, the database and the inspecting role.
    pub server: &'a ServerFacts,
    /// The manifest's text.
    pub policy: &'a [u8],
    /// Its revision.
    pub commit: Option<&'a str>,
    /// A label of the database for people.
    pub target_label: Option<&'a str>,
    /// The role that will apply the plan, if it is not the inspecting one.
    pub executor: Option<&'a str>,
    /// Time of the inspection, in RFC 3339.
    pub captured_at: &'a str,
    /// The document of a bundle for each change.
    pub sources: Option<&'a [Value]>,
}

/// The review artifact.
#[derive(Debug, Serialize)]
pub struct Artifact<'a> {
    schema_version: &'static str,
    provenance: Provenance<'a>,
    context: Context<'a>,
    preflight: Vec<Evidence>,
    recorded: Recorded,
    exploration: Value,
}

#[derive(Debug, Serialize)]
struct Provenance<'a> {
    tool_version: &'static str,
    captured_at: &'a str,
    policy: Policy<'a>,
    target_label: &'a str,
    pg_major_version: u32,
}

#[derive(Debug, Serialize)]
struct Policy<'a> {
    content_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct Context<'a> {
    mode: &'static str,
    managed_scope: ManagedScope,
    inspector: Identity<'a>,
    intended_executor: Identity<'a>,
    authority_graph_complete: bool,
}

#[derive(Debug, Serialize)]
struct Identity<'a> {
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    superuser: Option<bool>,
}

#[derive(Debug, Serialize)]
struct Recorded {
    changes: Vec<RecordedChange>,
    phases: Vec<Phase>,
    findings: Vec<Value>,
    visual: Graph,
    sql_preview: SqlPreview,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omissions: Vec<Omission>,
    review_fingerprint: String,
}

#[derive(Debug, Serialize)]
struct RecordedChange {
    index: usize,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Value>,
    change: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    omissions: Vec<Omission>,
}

#[derive(Debug, Serialize)]
struct Omission {
    field: &'static str,
    reason: &'static str,
}

impl Omission {
    fn of(field: &'static str) -> Self {
        Self {
            field,
            reason: "sensitive_value",
        }
    }
}

/// Consecutive changes of one kind. Which roles the executor could act as in between is not tracked.
#[derive(Debug, Serialize)]
struct Phase {
    #[serde(rename = "phase")]
    name: &'static str,
    change_indices: Vec<usize>,
    executor_reachability_delta: Delta,
    executor_usage_delta: Delta,
}

#[derive(Debug, Default, Serialize)]
struct Delta {
    changed: [Value; 0],
    removed: [Value; 0],
}

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
enum SqlPreview {
    Available {
        sql: String,
    },
    Omitted {
        reason: &'static str,
        sensitive_change_indices: Vec<usize>,
    },
}

impl<'a> Artifact<'a> {
    /// The review artifact of a plan.
    pub fn of(subject: &Subject<'a>) -> Self {
        let mut artifact = Self {
            schema_version: VERSION,
            provenance: Provenance {
                tool_version: env!("CARGO_PKG_VERSION"),
                captured_at: subject.captured_at,
                policy: Policy {
                    content_digest: digest(subject.policy),
                    commit: subject.commit,
                },
                target_label: subject.target_label.unwrap_or("unspecified"),
                pg_major_version: subject.plan.version / 10_000,
            },
            context: context(subject),
            preflight: evidence::preflight(subject),
            recorded: recorded(subject),
            exploration: serde_json::json!({"status": "omitted", "reason": "recorded_only_export"}),
        };
        artifact.recorded.review_fingerprint = artifact.computed_fingerprint();
        artifact
    }

    /// Identifies the content, independent of the time and the version of the program.
    pub fn fingerprint(&self) -> &str {
        &self.recorded.review_fingerprint
    }

    fn computed_fingerprint(&self) -> String {
        let recorded = &self.recorded;
        let shown = (
            self.schema_version,
            &self.provenance.policy,
            self.provenance.target_label,
            self.provenance.pg_major_version,
            &self.context,
            &self.preflight,
            &recorded.changes,
            &recorded.phases,
            &recorded.findings,
            &recorded.visual,
            &recorded.sql_preview,
            &recorded.omissions,
        );
        digest(&serde_json::to_vec(&shown).unwrap_or_default())
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

fn context<'a>(subject: &Subject<'a>) -> Context<'a> {
    let mut managed_scope: ManagedScope = (&subject.desired.scope).into();
    let is_external = |name: &String| subject.desired.roles.get(name).is_some_and(|role| role.external);
    managed_scope.roles.retain(|name| !is_external(name));
    let inspector = subject.server.user.as_str();
    let executor = subject.executor.unwrap_or(inspector);
    Context {
        mode: subject.mode.name(),
        managed_scope,
        inspector: Identity {
            role: inspector,
            superuser: Some(subject.server.superuser),
        },
        intended_executor: Identity {
            role: executor,
            superuser: (executor == inspector).then_some(subject.server.superuser),
        },
        authority_graph_complete: false,
    }
}

fn recorded(subject: &Subject<'_>) -> Recorded {
    let plan = subject.plan;
    let changes: Vec<_> = plan
        .changes
        .iter()
        .enumerate()
        .map(|(index, change)| RecordedChange {
            index,
            priority: priority(change),
            source: subject.sources.and_then(|sources| sources.get(index)).cloned(),
            change: change::shown(change),
            omissions: change::hidden(change).into_iter().map(Omission::of).collect(),
        })
        .collect();
    let sensitive: Vec<_> = changes
        .iter()
        .filter(|change| !change.omissions.is_empty())
        .map(|change| change.index)
        .collect();
    let mut visual = graph::desired(subject.desired);
    let has_comment = visual.nodes.iter().any(|node| node.comment.is_some());
    visual.nodes.iter_mut().for_each(|node| node.comment = None);
    Recorded {
        changes,
        phases: phases(&plan.changes),
        findings: evidence::findings(subject),
        visual,
        sql_preview: if sensitive.is_empty() {
            SqlPreview::Available {
                sql: render::script(plan),
            }
        } else {
            SqlPreview::Omitted {
                reason: "sensitive_changes",
                sensitive_change_indices: sensitive,
            }
        },
        omissions: has_comment
            .then(|| Omission::of("visual.nodes[].comment"))
            .into_iter()
            .collect(),
        review_fingerprint: String::new(),
    }
}

fn phases(changes: &[Change]) -> Vec<Phase> {
    let mut next = 0;
    changes
        .chunk_by(|one, other| change::phase(one) == change::phase(other))
        .filter_map(|run| {
            let indices = next..next + run.len();
            next = indices.end;
            Some(Phase {
                name: change::phase(run.first()?),
                change_indices: indices.collect(),
                executor_reachability_delta: Delta::default(),
                executor_usage_delta: Delta::default(),
            })
        })
        .collect()
}
