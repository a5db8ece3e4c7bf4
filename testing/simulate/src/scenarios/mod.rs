//! The stories that there are, each about one controller.

mod gitlab;
mod kernel;
mod policy;
mod roles;
mod user;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::Value;

pub use gitlab::Gitlab;
pub use kernel::Kernel;
pub use policy::Policy;
pub use user::User;

use crate::scenario::Kind;

const CONFIG_MAP: Kind = Kind {
    api_version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
};
const SECRET: Kind = Kind {
    api_version: "v1",
    kind: "Secret",
    plural: "secrets",
};

async fn apply(objects: &Api<DynamicObject>, object: &Value) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let params = PatchParams::apply("users").force();
    objects
        .patch(name, &params, &Patch::Apply(object))
        .await
        .expect("an object");
}

/// The marks of Secrets, and what follows from them: the key is another one in each run.
fn without_marks(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("v1.") => *value = Value::Null,
        Value::Array(list) => list.iter_mut().for_each(without_marks),
        Value::Object(map) => {
            map.shift_remove("stanchion.dev/intent");
            map.values_mut().for_each(without_marks);
        }
        _ => {}
    }
}
