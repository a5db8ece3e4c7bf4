//! `OpenAPI` v3: the original's documents for the built-in groups, and a generated one for each group of CRDs. The v2
//! document is empty, and exists because kubectl reads it before it sends a `List`.

use serde_json::{Map, Value, json};

use crate::answer::{self, Answer};
use crate::data;
use crate::resource::Resource;
use crate::server::Server;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// Schemas that every document of a CRD needs.
const COMMON: [&str; 8] = [
    OBJECT_META,
    LIST_META,
    "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Preconditions",
];

/// `OpenAPI` v2 without definitions. A client that validates with it, as kubectl does with a `List`, leaves validation
/// to the server.
pub(crate) fn second(accept: &str) -> Answer {
    if !accept.contains("protobuf") {
        let info = json!({"title": "Kubernetes", "version": data::version()["gitVersion"]});
        let document = json!({"swagger": "2.0", "info": info, "paths": {}, "definitions": {}});
        return answer::json(200, &document);
    }
    // The same in protobuf: `swagger` is field 1, `info` is field 2 and contains `title` and `version`.
    let version = crate::store::text(data::version(), "/gitVersion");
    let field = |number: u8, content: &[u8]| {
        let length = u8::try_from(content.len()).unwrap_or_default();
        [&[(number << 3) | 2, length], content].concat()
    };
    let info = [field(1, b"Kubernetes"), field(2, version.as_bytes())].concat();
    let document = [field(1, b"2.0"), field(2, &info)].concat();
    answer::bytes(
        200,
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        document,
    )
}

pub(crate) fn index(server: &Server) -> Answer {
    let mut names: Vec<String> = data::documents().keys().cloned().collect();
    for resource in server.registry.custom() {
        let name = format!("apis/{}/{}", resource.group, resource.version);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    // The hash allows clients to cache; it changes with every write, which is often enough.
    let hash = server.store.revision();
    let paths: Map<String, Value> = names
        .into_iter()
        .map(|name| {
            let url = format!("/openapi/v3/{name}?hash={hash:X}");
            (name, json!({"serverRelativeURL": url}))
        })
        .collect();
    answer::json(200, &json!({"paths": paths}))
}

/// The document of a group and version; empty for an unknown one.
pub(crate) fn document(server: &Server, name: &str) -> Answer {
    if let Some(document) = data::documents().get(name) {
        let mut document = document.clone();
        if let Some(schemas) = document
            .pointer_mut("/components/schemas")
            .and_then(Value::as_object_mut)
        {
            for (name, schema) in schemas {
                if schema.is_null() {
                    *schema = data::schemas().get(name).cloned().unwrap_or_default();
                }
            }
        }
        return answer::json(200, &document);
    }
    let resources: Vec<_> = server
        .registry
        .custom()
        .into_iter()
        .filter(|resource| format!("apis/{}/{}", resource.group, resource.version) == name)
        .collect();
    if resources.is_empty() {
        return answer::bytes(404, "text/plain; charset=utf-8", "");
    }
    let mut paths = Map::new();
    let mut schemas: Map<String, Value> = COMMON
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), data::schemas().get(*name)?.clone())))
        .collect();
    for resource in &resources {
        describe(resource, &mut paths, &mut schemas);
    }
    answer::json(
        200,
        &json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
            "paths": paths, "components": {"schemas": schemas},
        }),
    )
}

/// Expresses an extension in standard terms.
fn spell_out(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("x-kubernetes-int-or-string") == Some(&json!(true)) && !map.contains_key("anyOf") {
                map.insert(
                    "anyOf".to_owned(),
                    json!([{"type": "integer"}, {"type": "string"}]),
                );
            }
            map.values_mut().for_each(spell_out);
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        _ => {}
    }
}

/// The name of a kind's schema: the group in reverse.
fn schema_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn describe(resource: &Resource, paths: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    let Some(custom) = &resource.custom else { return };
    let name = schema_name(resource);
    let gvk = json!({"group": resource.group, "version": resource.version, "kind": resource.kind});
    let mut schema = custom.declared.clone();
    spell_out(&mut schema);
    schema["properties"]["metadata"] = json!({"allOf": [{"$ref": format!("#/components/schemas/{OBJECT_META}")}],
        "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"});
    for (key, description) in [
        (
            "apiVersion",
            "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
        ),
        (
            "kind",
            "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
        ),
    ] {
        schema["properties"][key] = json!({"type": "string", "description": description});
    }
    schema["x-kubernetes-group-version-kind"] = json!([gvk]);
    let reference = json!({"$ref": format!("#/components/schemas/{name}")});
    let list = format!("{name}List");
    schemas.insert(list.clone(), json!({
        "type": "object", "required": ["items"],
        "description": format!("{} is a list of {}", resource.list_kind(), resource.kind),
        "properties": {
            "apiVersion": schema["properties"]["apiVersion"], "kind": schema["properties"]["kind"],
            "items": {"type": "array", "items": reference, "description": format!("List of {}. More info: {CONVENTIONS}", resource.plural)},
            "metadata": {
                "allOf": [{"$ref": format!("#/components/schemas/{LIST_META}")}],
                "description": format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds"),
            },
        },
        "x-kubernetes-group-version-kind": [{"group": resource.group, "version": resource.version, "kind": resource.list_kind()}],
    }));
    schemas.insert(name, schema);

    let scope = if resource.namespaced {
        "/namespaces/{namespace}"
    } else {
        ""
    };
    let root = format!(
        "/apis/{}/{}{scope}/{}",
        resource.group, resource.version, resource.plural
    );
    let list = json!({"$ref": format!("#/components/schemas/{list}")});
    paths.insert(
        root.clone(),
        json!({
            "get": operation("list", &gvk, &list, &[]),
            "post": operation("post", &gvk, &reference, &["fieldManager", "dryRun", "fieldValidation"]),
        }),
    );
    let one = |paths: &mut Map<String, Value>, path: String| {
        let mut patch = operation(
            "patch",
            &gvk,
            &reference,
            &["fieldManager", "dryRun", "fieldValidation", "force"],
        );
        let body = json!({"schema": {"type": "object"}});
        patch["requestBody"] = json!({"content": {
            "application/json-patch+json": body, "application/merge-patch+json": body, "application/apply-patch+yaml": body,
        }});
        paths.insert(
            path,
            json!({
                "get": operation("get", &gvk, &reference, &[]),
                "put": operation("put", &gvk, &reference, &["fieldManager", "dryRun", "fieldValidation"]),
                "patch": patch,
            }),
        );
    };
    one(paths, format!("{root}/{{name}}"));
    for subresource in resource
        .discovery
        .get("subresources")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        one(
            paths,
            format!(
                "{root}/{{name}}/{}",
                crate::store::text(subresource, "/subresource")
            ),
        );
    }
}

fn operation(action: &str, gvk: &Value, schema: &Value, parameters: &[&str]) -> Value {
    let parameters: Vec<Value> = parameters
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
    })
}
