//! A cursor over `OpenAPI` schemas of built-in kinds and CRDs. Everything that depends on the structure of an object
//! (pruning, defaults, merging, field ownership) uses it.

pub(crate) mod builtin;
pub(crate) mod crd;
pub(crate) mod custom;
pub(crate) mod decode;
pub(crate) mod definition;
pub(crate) mod embedded;
pub(crate) mod formats;
mod lists;
mod paths;
pub(crate) mod prune;
pub(crate) mod quantity;
pub(crate) mod validate;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::data;

const REF: &str = "#/components/schemas/";

/// The schema of built-in kinds by group, version and kind.
static BY_KIND: LazyLock<HashMap<(&str, &str, &str), &str>> = LazyLock::new(|| {
    let text = |value: &'static Value, key: &str| value.get(key).and_then(Value::as_str);
    let mut names = HashMap::new();
    for (name, schema) in data::schemas() {
        for gvk in schema
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if let (Some(group), Some(version), Some(kind)) =
                (text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"))
            {
                names.insert((group, version, kind), name.as_str());
            }
        }
    }
    names
});

/// An empty schema.
static NOTHING: LazyLock<Value> = LazyLock::new(|| Value::Object(serde_json::Map::new()));

/// One node of a schema. Copies are cheap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema<'a> {
    /// The node that declares the field: it has the default, list type and patch strategy.
    outer: &'a Value,
    /// The node that it refers to: it has the type and the properties.
    node: &'a Value,
    /// The name of the type, for nodes reached by reference.
    name: Option<&'a str>,
    /// In built-in types an object without properties is opaque; in a CRD it is empty.
    builtin: bool,
}

/// How a list is merged and owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ListType {
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The type of a node's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    List,
    Scalar,
    /// Anything: the structure follows the value, lists are atomic.
    Any,
}

impl<'a> Schema<'a> {
    /// The schema of a custom resource's version.
    pub(crate) fn custom(root: &'a Value) -> Self {
        Self::at(root, false)
    }

    /// The schema of a built-in kind, if there is one.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<Schema<'static>> {
        let name = BY_KIND.get(&(group, version, kind))?;
        Schema::named(name)
    }

    /// A built-in schema by its full name.
    pub(crate) fn named(name: &str) -> Option<Schema<'static>> {
        let (name, node) = data::schemas().get_key_value(name)?;
        Some(Schema {
            outer: node,
            node,
            name: Some(name),
            builtin: true,
        })
    }

    /// The schema of object metadata.
    pub(crate) fn object_meta() -> Option<Schema<'static>> {
        Schema::named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    }

    /// Whether it is of a built-in type.
    pub(crate) fn is_builtin(self) -> bool {
        self.builtin
    }

    fn at(outer: &'a Value, builtin: bool) -> Self {
        let target = outer
            .get("$ref")
            .or_else(|| {
                outer
                    .get("allOf")
                    .and_then(|all| all.get(0))
                    .and_then(|first| first.get("$ref"))
            })
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix(REF))
            .and_then(|name| data::schemas().get_key_value(name));
        match target {
            Some((name, node)) => Self {
                outer,
                node,
                name: Some(name),
                builtin: true,
            },
            None => Self {
                outer,
                node: outer,
                name: None,
                builtin,
            },
        }
    }

    fn attribute(self, key: &str) -> Option<&'a Value> {
        self.outer.get(key).or_else(|| self.node.get(key))
    }

    fn flag(self, key: &str) -> bool {
        self.attribute(key).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn node(self) -> &'a Value {
        self.node
    }

    pub(crate) fn type_name(self) -> Option<&'a str> {
        self.name
    }

    /// The last part of the type's name, which is the name of the Go struct.
    pub(crate) fn short_name(self) -> &'a str {
        self.name
            .and_then(|name| name.rsplit('.').next())
            .unwrap_or_default()
    }

    pub(crate) fn json_type(self) -> &'a str {
        self.node.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn format(self) -> &'a str {
        self.node
            .get("format")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn shape(self) -> Shape {
        if self.is_scalar_union() {
            return Shape::Scalar;
        }
        match self.json_type() {
            "object" if self.is_opaque() => Shape::Any,
            "object" => Shape::Object,
            "array" => Shape::List,
            "" => Shape::Any,
            _ => Shape::Scalar,
        }
    }

    /// Quantities and int-or-string: two types, but never a container.
    fn is_scalar_union(self) -> bool {
        self.flag("x-kubernetes-int-or-string") || (self.builtin && self.node.get("oneOf").is_some())
    }

    /// An object without declared fields, which keeps everything.
    fn is_opaque(self) -> bool {
        let undeclared =
            self.node.get("properties").is_none() && self.node.get("additionalProperties").is_none();
        undeclared && (self.builtin || self.keeps_unknown())
    }

    pub(crate) fn field(self, name: &str) -> Option<Self> {
        self.node
            .get("properties")?
            .get(name)
            .map(|node| Self::at(node, self.builtin))
    }

    pub(crate) fn fields(self) -> impl Iterator<Item = (&'a str, Self)> {
        let properties = self.node.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .map(move |(name, node)| (name.as_str(), Self::at(node, self.builtin)))
    }

    /// The schema of a map's values.
    pub(crate) fn values(self) -> Option<Self> {
        match self.node.get("additionalProperties")? {
            // Values of any type, without declared fields.
            Value::Bool(true) if !self.builtin => Some(Self::at(&NOTHING, false)),
            node => node.is_object().then(|| Self::at(node, self.builtin)),
        }
    }

    /// Whether it allows any value and declares no fields.
    pub(crate) fn says_nothing(self) -> bool {
        !self.builtin && self.node.as_object().is_some_and(serde_json::Map::is_empty)
    }

    /// The schema of the value under `key`: a declared field, or a value of a map.
    pub(crate) fn child(self, key: &str) -> Option<Self> {
        self.field(key).or_else(|| self.values())
    }

    pub(crate) fn items(self) -> Option<Self> {
        self.node.get("items").map(|node| Self::at(node, self.builtin))
    }

    pub(crate) fn default(self) -> Option<&'a Value> {
        self.outer.get("default")
    }

    pub(crate) fn nullable(self) -> bool {
        self.flag("nullable")
    }

    pub(crate) fn keeps_unknown(self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(crate) fn is_embedded_resource(self) -> bool {
        self.flag("x-kubernetes-embedded-resource")
    }

    pub(crate) fn is_int_or_string(self) -> bool {
        self.flag("x-kubernetes-int-or-string") || self.format() == "int-or-string"
    }

    pub(crate) fn required(self) -> impl Iterator<Item = &'a str> {
        self.node
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    pub(crate) fn list_type(self) -> ListType {
        match self.attribute("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map(
                self.attribute("x-kubernetes-list-map-keys")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .filter_map(|key| key.as_str().map(str::to_owned))
                    .collect(),
            ),
            _ => ListType::Atomic,
        }
    }

    /// Whether an object is owned and replaced as a whole.
    pub(crate) fn is_atomic_object(self) -> bool {
        self.attribute("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic")
    }

    /// The strategic merge options of this field: the strategies and the key of a list.
    pub(crate) fn patch_strategy(self) -> (&'a str, Option<&'a str>) {
        let text = |key| self.attribute(key).and_then(Value::as_str);
        (
            text("x-kubernetes-patch-strategy").unwrap_or_default(),
            text("x-kubernetes-patch-merge-key"),
        )
    }
}
