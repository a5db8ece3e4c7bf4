//! The API server: the shared state, and the processing of a request.

use std::sync::Arc;

use bytes::Bytes;
use http::Request;

use crate::admission::Webhooks;
use crate::answer::{self, Answer};
use crate::audit::Audit;
use crate::auth::rbac::{self, Attributes, Decision};
use crate::auth::tokens::Tokens;
use crate::auth::{self, User};
use crate::clock::Clock;
use crate::controllers::Logs;
use crate::error::{About, ApiError};
use crate::faults::Faults;
use crate::handlers;
use crate::lifecycle::ServiceNumbers;
use crate::nonresource;
use crate::request::{Call, Form, Query, Target, Verb};
use crate::resource::{Registry, has_verb};
use crate::store::Store;
use crate::write_locks::WriteLocks;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) store: Arc<Store>,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) tokens: Tokens,
    /// Whether RBAC is enforced.
    pub(crate) rbac: bool,
    pub(crate) faults: Faults,
    pub(crate) audit: Audit,
    pub(crate) webhooks: Webhooks,
    pub(crate) logs: Logs,
    pub(crate) write_locks: WriteLocks,
    /// The addresses and ports of Services.
    pub(crate) services: ServiceNumbers,
}

impl Server {
    /// Answers one request. `door` is the user of the in-process service, if it has one.
    pub(crate) async fn handle(self: &Arc<Self>, request: Request<Bytes>, door: Option<&User>) -> Answer {
        let user = match auth::authenticate(self, &request, door) {
            Ok(user) => user,
            Err(error) => return error.into(),
        };
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let target = Target::parse(request.uri().path());
        let line = Audit::line(&self.clock, &user, &request, target.as_ref(), &query);
        let answer = match target {
            None => nonresource::answer(self, &user, &request).unwrap_or_else(Answer::from),
            Some(target) => match self.understand(user, request, target, query) {
                Ok(call) => Box::pin(self.perform(&call)).await,
                Err(error) => error.into(),
            },
        };
        self.audit.finish(line, answer.status().as_u16(), &self.clock);
        answer
    }

    /// Parses the request and rejects it if it is not allowed or not served.
    fn understand(
        &self,
        user: User,
        request: Request<Bytes>,
        target: Target,
        query: Query,
    ) -> Result<Call, ApiError> {
        let verb = target
            .verb(request.method(), &query)
            .ok_or_else(ApiError::method_not_allowed)?;
        self.authorize(&user, &Attributes::of(&target, verb, &query))?;
        if !self.registry.serves(&target.group, &target.version) {
            return Err(if target.group.is_empty() {
                ApiError::no_such_path()
            } else {
                ApiError::page_not_found()
            });
        }
        let about = About {
            group: &target.group,
            kind: &target.plural,
            name: &target.name,
        };
        let resource = target.resource(&self.registry).ok_or_else(|| {
            if self.registry.is_custom(&target.group) {
                ApiError::page_not_found()
            } else {
                ApiError::no_such_path()
            }
        })?;
        let entry = match target.subresource.as_str() {
            "" => &resource.discovery,
            name => resource.subresource(name).ok_or_else(|| match &resource.custom {
                Some(_) => ApiError::not_found(about).after(&resource.warnings),
                None => ApiError::no_such_path(),
            })?,
        };
        let misplaced = resource.namespaced
            && target.namespace.is_empty()
            && !(target.name.is_empty() && !verb.writes() || target.plural == "namespaces");
        // A review without a namespace is allowed; a namespaced object without one is not.
        if misplaced && resource.custom.is_some() {
            return Err(ApiError::page_not_found());
        }
        if misplaced && resource.allows("get") || !has_verb(entry, verb.name()) {
            return Err(match &resource.custom {
                Some(_) if !target.subresource.is_empty() => ApiError::verb_not_supported(verb.name(), about),
                _ => ApiError::method_not_allowed(),
            });
        }
        let header = |name: &str| {
            let value = request.headers().get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let form = Form::negotiate(request.headers())?;
        let include = query.text("includeObject");
        if form == Form::Table && !matches!(include, "" | "None" | "Metadata" | "Object") {
            return Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
            )));
        }
        Ok(Call {
            form,
            content_type: header("content-type"),
            user_agent: header("user-agent"),
            body: request.into_body(),
            user,
            verb,
            target,
            resource,
            query,
        })
    }

    /// Rejects a request that RBAC does not allow.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes<'_>) -> Result<(), ApiError> {
        match rbac::authorize(self, user, wanted) {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied { why, .. } => {
                let about = About {
                    group: wanted.group,
                    kind: wanted.plural,
                    name: wanted.name,
                };
                Err(ApiError::forbidden(about, &why))
            }
        }
    }

    /// An update or a patch that creates an object also needs the permission to create.
    pub(crate) fn authorize_creation(&self, call: &Call) -> Result<(), ApiError> {
        self.authorize(
            &call.user,
            &Attributes::of(&call.target, Verb::Create, &call.query),
        )
    }

    async fn perform(self: &Arc<Self>, call: &Call) -> Answer {
        let fault = self.faults.find(call);
        if let Some(answer) = fault.before(self).await {
            return answer;
        }
        let answer = Box::pin(handlers::dispatch(self, call))
            .await
            .unwrap_or_else(Answer::from);
        let answer = answer::with_warnings(answer, &call.resource.warnings);
        fault.after(self, answer).await
    }
}
