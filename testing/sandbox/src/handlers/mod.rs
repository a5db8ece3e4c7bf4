//! The verbs of the API, one file each, and the dispatcher.

mod body;
mod create;
mod delete;
mod json;
mod list;
mod logs;
mod options;
mod patch;
mod render;
mod scale;
mod special;
mod tokens;
mod update;
mod watch;

use std::sync::Arc;

pub(crate) use create::create;
pub(crate) use delete::delete_object;
pub(crate) use options::{DeleteOptions, FOREGROUND, ORPHAN};
pub(crate) use update::{Endpoint, write};

use crate::answer::Answer;
use crate::error::ApiError;
use crate::request::{Call, Verb};
use crate::server::Server;
use crate::store::Object;

/// Sends a request to its handler.
pub(crate) async fn dispatch(server: &Arc<Server>, call: &Call) -> Result<Answer, ApiError> {
    call.check_options()?;
    let _turn = match call.verb {
        Verb::Update | Verb::Patch => server.write_locks.take(&call.resource.storage, &call.key()).await,
        _ => None,
    };
    match call.target.subresource.as_str() {
        "" => {}
        "status" => {
            return match call.verb {
                Verb::Get => get(server, call),
                Verb::Patch => Box::pin(patch::patch(server, call, Endpoint::Status)).await,
                _ => Box::pin(update::update(server, call, Endpoint::Status)).await,
            };
        }
        "scale" => return Box::pin(scale::scale(server, call)).await,
        _ => return Box::pin(special::subresource(server, call)).await,
    }
    match call.verb {
        Verb::Get => get(server, call),
        Verb::List => list::list(server, call),
        Verb::Watch => watch::watch(server, call),
        Verb::Create => Box::pin(create::create(server, call)).await,
        Verb::Update => Box::pin(update::update(server, call, Endpoint::Main)).await,
        Verb::Patch => Box::pin(patch::patch(server, call, Endpoint::Main)).await,
        Verb::Delete => Box::pin(delete::delete(server, call)).await,
        Verb::DeleteCollection => Box::pin(delete::delete_collection(server, call)).await,
    }
}

/// The object that a request names.
pub(crate) fn find(server: &Server, call: &Call) -> Result<Arc<Object>, ApiError> {
    server
        .store
        .get(&call.resource.storage, &call.key())
        .ok_or_else(|| ApiError::not_found(call.about()))
}

fn get(server: &Server, call: &Call) -> Result<Answer, ApiError> {
    if let Some(asked) = list::plain_revision(call.query.text("resourceVersion"))? {
        let current = server.store.revision();
        if asked > current {
            return Err(ApiError::too_large_version(asked, current));
        }
    }
    let object = find(server, call)?;
    Ok(render::object(server, call, 200, &object))
}
