//! One row of the webhook table.

use std::sync::Arc;

use futures::future::BoxFuture;
use json_patch::Patch;
use kube::core::{DynamicObject, admission::AdmissionRequest};

/// What the API server asks about.
pub type Request = AdmissionRequest<DynamicObject>;

/// Why an object is refused, in words that its author can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What is wrong and what would be right.
    pub message: String,
    /// The field that is wrong, as `spec.role`.
    pub field: Option<String>,
}

impl Denial {
    /// Refuses the object as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: None,
        }
    }

    /// Refuses it because of one field.
    pub fn of_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: Some(field.into()),
        }
    }
}

/// What can be reviewed. There is no DELETE: a webhook must never keep an object from going away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A changed object.
    Update,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
        }
    }
}

/// The resource that a webhook is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The resource's plural, lower-case name.
    pub plural: String,
    /// What is reviewed.
    pub operations: Vec<Operation>,
}

impl Target {
    /// Creations and updates of a kind.
    pub fn of<K: kube::Resource<DynamicType = ()>>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            operations: vec![Operation::Create, Operation::Update],
        }
    }
}

/// A reviewed request: what to answer.
#[derive(Debug)]
pub(super) enum Outcome {
    Allow { warnings: Vec<String> },
    Change(Patch),
    Deny(Denial),
}

type Handler = Arc<dyn Fn(Arc<Request>) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// Which of the two configurations the webhook belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Mutating,
    Validating,
}

impl Stage {
    /// Part of the webhook's name and path.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Mutating => "mutate",
            Self::Validating => "validate",
        }
    }
}

/// A rule for one resource. What a rule may answer is in its type: a validating one cannot change
/// the object, and a mutating one cannot let it pass with a warning.
#[derive(Clone)]
pub struct Webhook {
    pub(super) stage: Stage,
    pub(super) target: Target,
    pub(super) handler: Handler,
    /// The end of its path, which only the API server knows.
    secret: Option<Arc<str>>,
}

impl Webhook {
    /// The same at a path that nobody can guess. The API server does not log in to webhooks; but only it, and
    /// administrators, can read where they are. Nobody else can have a request answered, or even read.
    #[must_use]
    pub fn behind(self, secret: &str) -> Self {
        Self {
            secret: Some(secret.into()),
            ..self
        }
    }

    /// A pure rule. `Ok` lets the object pass, with warnings that kubectl shows to the user.
    pub fn validating(
        target: Target,
        rule: impl Fn(&Request) -> Result<Vec<String>, Denial> + Send + Sync + 'static,
    ) -> Self {
        let rule = Arc::new(rule);
        Self::validating_with(target, move |request| {
            let rule = rule.clone();
            async move { rule(&request) }
        })
    }

    /// A rule that looks at other objects. What it finds may have changed a moment later, so it can
    /// only warn early: the controller must check the same again.
    pub fn validating_with<F>(
        target: Target,
        rule: impl Fn(Arc<Request>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Vec<String>, Denial>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request| {
            let review = rule(request);
            Box::pin(async move {
                match review.await {
                    Ok(warnings) => Outcome::Allow { warnings },
                    Err(denial) => Outcome::Deny(denial),
                }
            })
        });
        Self {
            stage: Stage::Validating,
            target,
            handler,
            secret: None,
        }
    }

    /// Changes the object on its way in. An empty patch leaves it as it is.
    pub fn mutating(
        target: Target,
        rule: impl Fn(&Request) -> Result<Patch, Denial> + Send + Sync + 'static,
    ) -> Self {
        let rule = Arc::new(rule);
        let handler: Handler = Arc::new(move |request| {
            let rule = rule.clone();
            Box::pin(async move {
                match rule(&request) {
                    Ok(patch) => Outcome::Change(patch),
                    Err(denial) => Outcome::Deny(denial),
                }
            })
        });
        Self {
            stage: Stage::Mutating,
            target,
            handler,
            secret: None,
        }
    }

    /// Where the webhook is served: `/validate/db.example.com/v1alpha1/postgresusers`, and what it is behind.
    pub(super) fn path(&self) -> String {
        let Target { version, plural, .. } = &self.target;
        let path = format!("/{}/{}/{version}/{plural}", self.stage.verb(), self.group());
        match &self.secret {
            Some(secret) => format!("{path}/{secret}"),
            None => path,
        }
    }

    /// The webhook's name in its configuration: `validate.v1alpha1.postgresusers.db.example.com`.
    pub(super) fn name(&self) -> String {
        let Target { version, plural, .. } = &self.target;
        format!("{}.{version}.{plural}.{}", self.stage.verb(), self.group())
    }

    /// The oldest group has no name, which neither a path nor a name can carry.
    fn group(&self) -> &str {
        Some(self.target.group.as_str())
            .filter(|group| !group.is_empty())
            .unwrap_or("core")
    }
}
