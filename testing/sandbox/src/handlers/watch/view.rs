//! Which changes a watch sends, and in which format.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::json;

use crate::clock::Clock;
use crate::handlers::render;
use crate::request::Form;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::Server;
use crate::store::{Change, Object};
use crate::table;

/// The selection and the format of one watch.
pub(super) struct View {
    pub(super) server: Arc<Server>,
    pub(super) resource: Arc<Resource>,
    pub(super) selector: Selector,
    pub(super) namespace: Option<String>,
    pub(super) form: Form,
    pub(super) include: String,
    pub(super) bookmarks: bool,
}

impl View {
    pub(super) fn selects(&self, object: &Object) -> bool {
        self.namespace
            .as_deref()
            .is_none_or(|namespace| object.namespace() == namespace)
            && self.selector.matches(object.value())
    }

    /// The event of a change, if this watch selects it. With a selector, a change can become an addition or a deletion.
    pub(super) fn event(&self, change: &Change) -> Option<Bytes> {
        let before = change
            .before
            .as_deref()
            .is_some_and(|before| self.selects(before));
        let after = !change.deleted && self.selects(&change.after);
        let kind = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return None,
        };
        if kind == "DELETED"
            && !change.deleted
            && let Some(before) = &change.before
        {
            // The object left the selection: the client gets its last selected state, with the revision of the change.
            let last = Object::new(before.value().clone(), change.revision);
            return Some(self.frame(kind, &last));
        }
        Some(self.frame(kind, &change.after))
    }

    pub(super) fn frame(&self, kind: &str, object: &Object) -> Bytes {
        match self.form {
            Form::Json | Form::Yaml
                if kind == "MODIFIED" && render::is_stored_as(&self.resource, object.value()) =>
            {
                object.modified_event()
            }
            Form::Json | Form::Yaml => frame(kind, &render::json(&self.resource, object)),
            Form::Metadata => frame(kind, object.metadata_json()),
            Form::Table => {
                let value = render::converted(&self.resource, object.value())
                    .unwrap_or_else(|| object.value().clone());
                let meta = json!({"resourceVersion": object.revision().to_string()});
                let clock: &Clock = &self.server.clock;
                let table = table::table(&self.resource, &[&value], &meta, &self.include, clock);
                frame(kind, table.to_string().as_bytes())
            }
        }
    }

    pub(super) fn bookmark(&self, revision: u64, end_of_initial: bool) -> Bytes {
        let (kind, api_version) = match self.form {
            Form::Metadata => ("PartialObjectMetadata".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (self.resource.kind.clone(), self.resource.api_version()),
        };
        let mut object = json!({
            "kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": revision.to_string()},
        });
        if end_of_initial {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        if self.form == Form::Table {
            object = table::table(
                &self.resource,
                &[&object],
                &object["metadata"],
                &self.include,
                &self.server.clock,
            );
        }
        frame("BOOKMARK", object.to_string().as_bytes())
    }
}

pub(super) fn frame(kind: &str, object: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(object.len() + 40);
    bytes.put(&b"{\"type\":\""[..]);
    bytes.put(kind.as_bytes());
    bytes.put(&b"\",\"object\":"[..]);
    bytes.put(object);
    bytes.put(&b"}\n"[..]);
    bytes.freeze()
}
