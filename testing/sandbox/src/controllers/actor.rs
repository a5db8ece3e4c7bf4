//! The client of the simulated controllers: the same verbs, without HTTP.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::auth::{MASTERS, User};
use crate::error::ApiError;
use crate::handlers::{self, DeleteOptions, Endpoint};
use crate::request::{Call, Form, Query, Target, Verb};
use crate::resource::Resource;
use crate::server::Server;
use crate::store::{Object, Store};

#[derive(Debug, Clone)]
pub(crate) struct Actor {
    pub(crate) server: Arc<Server>,
    user: User,
    name: String,
}

impl Actor {
    pub(crate) fn new(server: &Arc<Server>, name: &str) -> Self {
        let user = User::new(&format!("system:serviceaccount:kube-system:{name}"), &[MASTERS]);
        Self {
            server: server.clone(),
            user,
            name: "kube-controller-manager".to_owned(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.server.store
    }

    fn call(&self, resource: Arc<Resource>, namespace: &str, name: &str, verb: Verb, body: Bytes) -> Call {
        Call {
            user: self.user.clone(),
            verb,
            target: Target {
                group: resource.group.clone(),
                version: resource.version.clone(),
                plural: resource.plural.clone(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                subresource: String::new(),
                watch: false,
            },
            resource,
            query: Query::default(),
            form: Form::Json,
            content_type: String::new(),
            user_agent: self.name.clone(),
            body,
        }
    }

    fn resource(&self, storage: &str) -> Result<Arc<Resource>, ApiError> {
        self.server
            .registry
            .of_storage(storage)
            .ok_or_else(ApiError::no_such_path)
    }

    /// Creates an object; succeeds if it exists already.
    pub(crate) async fn create(
        &self,
        storage: &str,
        namespace: &str,
        object: &Value,
    ) -> Result<(), ApiError> {
        let call = self.call(
            self.resource(storage)?,
            namespace,
            "",
            Verb::Create,
            object.to_string().into(),
        );
        match Box::pin(handlers::create(&self.server, &call)).await {
            Err(error) if error.reason != "AlreadyExists" => Err(error),
            _ => Ok(()),
        }
    }

    /// Changes an object, and retries if another writer was faster. Does nothing if the object is gone.
    pub(crate) async fn modify(
        &self,
        storage: &str,
        namespace: &str,
        name: &str,
        endpoint: Endpoint,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<(), ApiError> {
        let mut call = self.call(
            self.resource(storage)?,
            namespace,
            name,
            Verb::Update,
            Bytes::new(),
        );
        if endpoint == Endpoint::Status {
            "status".clone_into(&mut call.target.subresource);
        }
        loop {
            let Some(old) = self.store().get(storage, &call.key()) else {
                return Ok(());
            };
            let mut new = old.value().clone();
            change(&mut new);
            if new == *old.value() {
                return Ok(());
            }
            let written = Box::pin(handlers::write(
                &self.server,
                &call,
                endpoint,
                &old,
                new,
                false,
                true,
            ))
            .await?;
            if written.is_some() {
                return Ok(());
            }
        }
    }

    /// Deletes an object; succeeds if it is gone.
    pub(crate) async fn delete(
        &self,
        storage: &str,
        object: &Object,
        options: &DeleteOptions,
    ) -> Result<(), ApiError> {
        let call = self.call(
            self.resource(storage)?,
            object.namespace(),
            object.name(),
            Verb::Delete,
            Bytes::new(),
        );
        match Box::pin(handlers::delete_object(
            &self.server,
            &call,
            &options.clone().only(object.uid()),
        ))
        .await
        {
            Err(error) if error.code != 404 && error.code != 409 => Err(error),
            _ => Ok(()),
        }
    }
}

/// A controller continues after a failure; the next change triggers it again.
pub(crate) fn note(what: &str, result: Result<(), ApiError>) {
    if let Err(error) = result {
        tracing::debug!(what, %error, "a controller of the sandbox failed");
    }
}
