//! The scenarios that there are, each about one controller.

mod database;
mod gitlab;
mod instance;
mod kernel;
mod policy;
mod roles;
mod supabase;
mod user;

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::Value;

pub use gitlab::Gitlab;
pub use instance::Instance;
pub use kernel::Kernel;
pub use policy::Policy;
pub use supabase::Supabase;
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

/// A condition of an object, or nothing.
fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == kind));
    found.unwrap_or(&Value::Null)
}

/// Our definitions of these kinds. Making all of them from the types takes longer than most of a run.
fn definitions(of: impl Fn(&CustomResourceDefinition) -> bool) -> Vec<CustomResourceDefinition> {
    static ALL: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(stanchion_api::crds);
    ALL.iter().filter(|definition| of(definition)).cloned().collect()
}
