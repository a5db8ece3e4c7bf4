//! The two hands of a reconcile: one that can only read, and one that writes.
//!
//! `observe` gets a [`Reader`] and `apply` a [`Writer`], so that a write in the wrong step does not compile.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, ClusterResourceScope, NamespaceResourceScope, ObjectMeta};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

use crate::apply::{Intent, Takeover, succession};
use crate::family::{Child, Families, Member, Step};
use crate::lease::Fence;
use crate::problem::Problem;
use crate::reconciler::Object;
use crate::scope::Scope;
use crate::watch::bells::Bells;
use crate::watch::references::{Key, Known, Reference, References};

/// The object under reconciliation, as far as reads and writes need to know it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name as a key.
    pub key: Key,
    /// Its uid: a child is ours when it names this one.
    pub uid: String,
    /// How children refer to it.
    pub owner: OwnerReference,
}

impl Subject {
    /// The subject that an object is.
    pub fn of<O: Object>(object: &O) -> Self {
        let uid = object.uid().unwrap_or_default();
        let owner = OwnerReference {
            api_version: O::api_version(&()).into(),
            kind: O::kind(&()).into(),
            name: object.name_any(),
            uid: uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Self {
            key: crate::watch::primary::key(object.meta()),
            uid,
            owner,
        }
    }
}

/// Reads, and remembers what was read: a change of it wakes the object.
pub struct Reader {
    client: Client,
    subject: Subject,
    references: Arc<References>,
    families: Families,
    bells: Bells,
    read: Mutex<HashSet<Reference>>,
}

impl Reader {
    /// A reader for one pass over one object.
    pub fn new(
        client: Client,
        subject: Subject,
        references: Arc<References>,
        families: Families,
        bells: Bells,
    ) -> Self {
        Self {
            client,
            subject,
            references,
            families,
            bells,
            read: Mutex::default(),
        }
    }

    /// The object that is reconciled.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// The object's children of a kind, by name, as far as they are known: nothing is asked. Empty for a kind
    /// that is not in [`Reconciler::families`](crate::Reconciler::families).
    pub fn children<K: Member>(&self) -> Vec<Child<K::Kept>> {
        let family = self.families.of::<K>();
        family.map_or_else(Vec::new, |family| family.children(&self.subject))
    }

    /// Reads an object of the same namespace.
    pub async fn get<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.get_in(&self.subject.key.namespace, name).await
    }

    /// Reads an object of any namespace.
    pub async fn get_in<K>(&self, namespace: &str, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.remember(
            &Api::<K>::namespaced(self.client.clone(), namespace),
            Some(namespace),
            name,
        )
        .await
    }

    /// Reads an object of a kind without namespaces.
    pub async fn get_cluster_wide<K>(&self, name: &str) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + DeserializeOwned + Debug,
    {
        self.remember(&Api::<K>::all(self.client.clone()), None, name)
            .await
    }

    async fn remember<K>(
        &self,
        api: &Api<K>,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<K>, Problem>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let what = Reference::new(&ApiResource::erase::<K>(&()), namespace, name);
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(what.clone());
        self.references.about_to_read(&self.subject.key, &what);
        let found = api.get_opt(name).await?;
        self.references.have_read(
            &self.subject.key,
            &what,
            Known::from_read(found.as_ref().map(K::meta)),
        );
        Ok(found)
    }

    /// Reads the objects of the same namespace that carry these labels; a change of any of them wakes.
    pub async fn list<K>(&self, labels: &str) -> Result<Vec<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), &self.subject.key.namespace);
        let found = api.list(&ListParams::default().labels(labels)).await?.items;
        let kind = crate::watch::references::kind_key(&ApiResource::erase::<K>(&()));
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        for object in &found {
            let what = Reference::of(&kind, object.meta());
            self.references.about_to_read(&self.subject.key, &what);
            self.references
                .have_read(&self.subject.key, &what, Known::from_read(Some(object.meta())));
            read.insert(what);
        }
        Ok(found)
    }

    /// Reads all objects of a kind that the operator's scope has. Their changes do not wake.
    pub async fn survey<K>(&self, scope: &Scope) -> Result<Vec<K>, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        Ok(scope
            .api::<K>(&self.client)
            .list(&ListParams::default())
            .await?
            .items)
    }

    /// Whether an object of the same namespace, read in an earlier pass, is still what it was: no watch has told
    /// otherwise. It goes on to wake, as if it had been read in this pass, too.
    pub fn is_unchanged<K: Resource<DynamicType = ()>>(&self, name: &str) -> bool {
        let what = Reference::new(
            &ApiResource::erase::<K>(&()),
            Some(&self.subject.key.namespace),
            name,
        );
        let unchanged = self.references.is_unchanged(&self.subject.key, &what);
        self.read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(what);
        unchanged
    }

    /// Asks for a pass over another object, whose lot depends on this one.
    pub fn wake<K: Resource<DynamicType = ()>>(&self, other: &Key) {
        self.bells.ring::<K>(other);
    }

    /// Ends the pass: what was not read in it wakes the object no longer.
    pub fn finish(self) {
        let read = self.read.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.references.keep(&self.subject.key, &read);
    }
}

/// Writes children.
pub struct Writer {
    client: Client,
    subject: Subject,
    references: Arc<References>,
    families: Families,
    bells: Bells,
    field_manager: String,
    fence: Fence,
}

impl Writer {
    /// A writer for one pass over one object.
    pub fn new(
        client: Client,
        subject: Subject,
        references: Arc<References>,
        families: Families,
        bells: Bells,
        field_manager: String,
        fence: Fence,
    ) -> Self {
        Self {
            client,
            subject,
            references,
            families,
            bells,
            field_manager,
            fence,
        }
    }

    /// To be asked before a write that does not go through Kubernetes: whoever lost the lease writes nothing more.
    pub fn may_write(&self) -> Result<(), Problem> {
        self.fence
            .check()
            .map_err(|lost| Problem::transient("NotLeading", "another replica leads now").caused_by(lost))
    }

    /// The object that is reconciled.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Applies a child as [`crate::apply::decide`] has decided.
    pub async fn apply<K>(&self, intent: &Intent) -> Result<K, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Serialize
            + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.subject.key.namespace);
        let params = PatchParams {
            force: intent.replaces(),
            ..PatchParams::apply(&self.field_manager)
        };
        let written = api
            .patch(intent.name(), &params, &Patch::Apply(intent.patch()))
            .await
            .map_err(|error| {
                Problem::from(error).while_doing(&format!("{} {}", K::kind(&()), intent.name()))
            })?;
        self.wrote::<K>(written.meta());
        Ok(written)
    }

    /// The object's children of a kind as they are after what was written.
    pub fn children<K: Member>(&self) -> Vec<Child<K::Kept>> {
        let family = self.families.of::<K>();
        family.map_or_else(Vec::new, |family| family.children(&self.subject))
    }

    /// Carries out what [`crate::family::decide`] has decided. Says whether the child was written.
    pub async fn carry_out<K: Member>(&self, step: Step, takeover: Takeover) -> Result<bool, Problem> {
        match step {
            Step::Keep => Ok(false),
            Step::Write(intent) => self.write_member::<K>(&intent).await,
            Step::Look(intent) => self.look::<K>(intent, takeover).await,
            Step::Create(intent) => match self.write_member::<K>(&intent).await {
                // The name is taken, by somebody else or by one that the watch has not told of yet.
                Err(problem) if problem.reason == "Conflict" => self.look::<K>(intent, takeover).await,
                written => written,
            },
        }
    }

    async fn look<K: Member>(&self, intent: Intent, takeover: Takeover) -> Result<bool, Problem> {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.subject.key.namespace);
        let live = api.get_opt(intent.name()).await?;
        let (name, subject) = (intent.name().to_owned(), &self.subject);
        if let Some(intent) = crate::apply::decide(intent, live.as_ref(), subject, takeover)? {
            if let Some(live) = live.as_ref().filter(|_| takeover == Takeover::Succeed) {
                self.succeed(&api, live).await?;
            }
            return self.write_member::<K>(&intent).await;
        }
        if let (Some(family), Some(live)) = (self.families.of::<K>(), live) {
            family.wrote(&live);
            family.verified(&subject.key, &name);
        }
        Ok(false)
    }

    /// Makes the fields that a predecessor has set ours, so that the write to come takes away those that are not
    /// intended.
    async fn succeed<K: Member>(&self, api: &Api<K>, live: &K) -> Result<(), Problem> {
        let entries = live.managed_fields();
        let Some(ours) = succession(entries, &self.field_manager) else {
            return Ok(());
        };
        let patch = serde_json::json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version() },
            { "op": "replace", "path": "/metadata/managedFields", "value": ours },
        ]);
        let patch: json_patch::Patch = serde_json::from_value(patch).map_err(|error| {
            Problem::permanent("Unserializable", "a patch could not be written down").caused_by(error)
        })?;
        let params = PatchParams {
            field_manager: Some(self.field_manager.clone()),
            ..PatchParams::default()
        };
        api.patch(&live.name_any(), &params, &Patch::<K>::Json(patch))
            .await?;
        Ok(())
    }

    async fn write_member<K: Member>(&self, intent: &Intent) -> Result<bool, Problem> {
        let written: K = self.apply(intent).await?;
        if let Some(family) = self.families.of::<K>() {
            family.wrote(&written);
        }
        Ok(true)
    }

    /// Applies a child's status. What others have written into it stays.
    pub async fn apply_status<K>(&self, name: &str, status: &impl Serialize) -> Result<K, Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.subject.key.namespace);
        let body = serde_json::json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name, "namespace": self.subject.key.namespace },
            "status": status,
        });
        let params = PatchParams::apply(&self.field_manager).force();
        let written = api
            .patch_status(name, &params, &Patch::Apply(&body))
            .await
            .map_err(|error| {
                Problem::from(error).while_doing(&format!("status of {} {name}", K::kind(&())))
            })?;
        self.wrote::<K>(written.meta());
        Ok(written)
    }

    /// Asks for a pass over another object, whose lot depends on this one.
    pub fn wake<K: Resource<DynamicType = ()>>(&self, other: &Key) {
        self.bells.ring::<K>(other);
    }

    /// Deletes a child, if it is still the one that was observed.
    pub async fn delete<K>(&self, child: &ObjectMeta) -> Result<(), Problem>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.subject.key.namespace);
        let preconditions = Preconditions {
            uid: child.uid.clone(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match api
            .delete(child.name.as_deref().unwrap_or_default(), &params)
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The echo of this write on a watch is no news.
    fn wrote<K: Resource<DynamicType = ()>>(&self, meta: &ObjectMeta) {
        let what = Reference::of(
            &crate::watch::references::kind_key(&ApiResource::erase::<K>(&())),
            meta,
        );
        self.references
            .have_written(&self.subject.key, &what, Known::from_read(Some(meta)));
    }
}
