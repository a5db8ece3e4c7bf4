//! One webhook: a resource and a rule.

use std::sync::Arc;

use futures::future::BoxFuture;
use json_patch::Patch;
use kube::core::{DynamicObject, admission::AdmissionRequest};

/// The request of the API server.
pub type Request = AdmissionRequest<DynamicObject>;

/// Why an object is rejected, in words that its author can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What is wrong and how to correct it.
    pub message: String,
    /// The field that is wrong, as `spec.role`.
    pub field: Option<String>,
}

impl Denial {
    /// Rejects the object as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: None,
        }
    }

    /// Rejects the object because of one field.
    pub fn of_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            field: Some(field.into()),
        }
    }
}

/// The operations that can be reviewed. There is no DELETE: a webhook must never block a deletion.
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

/// The resource of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookTarget {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// The resource's plural, lower-case name.
    pub plural: String,
    /// The reviewed operations.
    pub operations: Vec<Operation>,
}

impl WebhookTarget {
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

/// The result of a review.
#[derive(Debug)]
pub(super) enum Outcome {
    Allow { warnings: Vec<String> },
    Change(Patch),
    Deny(Denial),
}

type Handler = Arc<dyn Fn(Arc<Request>) -> BoxFuture<'static, Outcome> + Send + Sync>;

/// The webhook configuration that the webhook belongs to.
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

/// A rule for one resource. Its type limits the result: a validating rule cannot change the object, and a mutating one
/// cannot return warnings.
#[derive(Clone)]
pub struct Webhook {
    pub(super) stage: Stage,
    pub(super) target: WebhookTarget,
    pub(super) handler: Handler,
    /// The end of its path, which only the API server knows.
    secret: Option<Arc<str>>,
}

impl Webhook {
    /// The webhook at a path that cannot be guessed. The API server does not authenticate to webhooks, but only it and
    /// administrators can read their paths. A request with another path is not even parsed.
    #[must_use]
    pub fn behind(self, secret: &str) -> Self {
        Self {
            secret: Some(secret.into()),
            ..self
        }
    }

    /// A pure rule. `Ok` accepts the object, with warnings that kubectl shows to the user.
    pub fn validating(
        target: WebhookTarget,
        rule: impl Fn(&Request) -> Result<Vec<String>, Denial> + Send + Sync + 'static,
    ) -> Self {
        let rule = Arc::new(rule);
        Self::validating_with(target, move |request| {
            let rule = rule.clone();
            async move { rule(&request) }
        })
    }

    /// A rule that reads other objects. They may change a moment later, so it can only warn early: the controller must
    /// check the same again.
    pub fn validating_with<F>(
        target: WebhookTarget,
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

    /// Changes the object before it is stored. An empty patch leaves it unchanged.
    pub fn mutating(
        target: WebhookTarget,
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

    /// The path of the webhook: `/validate/db.example.com/v1alpha1/postgresusers`, and its secret end.
    pub(super) fn path(&self) -> String {
        let WebhookTarget { version, plural, .. } = &self.target;
        let path = format!("/{}/{}/{version}/{plural}", self.stage.verb(), self.group());
        match &self.secret {
            Some(secret) => format!("{path}/{secret}"),
            None => path,
        }
    }

    /// The webhook's name in its configuration: `validate.v1alpha1.postgresusers.db.example.com`.
    pub(super) fn name(&self) -> String {
        let WebhookTarget { version, plural, .. } = &self.target;
        format!("{}.{version}.{plural}.{}", self.stage.verb(), self.group())
    }

    /// The name of the core group is empty, which a path and a webhook name cannot contain.
    fn group(&self) -> &str {
        Some(self.target.group.as_str())
            .filter(|group| !group.is_empty())
            .unwrap_or("core")
    }
}
