//! `apply --prune`: deletes objects that were applied before and are no longer in the configuration, by a selector or
//! as a set. On both clusters.

use super::{Kubectl, holds};

const ALL: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {app: shop}}
---
apiVersion: v1
kind: Secret
metadata: {name: two, labels: {app: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: shop}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1'}]}
";

/// A namespace with an unrelated object, the files of all objects and of the first alone.
struct Shop<'a> {
    kubectl: &'a Kubectl,
    namespace: String,
    all: String,
    first: String,
}

impl<'a> Shop<'a> {
    async fn open(kubectl: &'a Kubectl, name: &str) -> Self {
        let (first, _) = ALL.split_once("---").unwrap();
        let shop = Self {
            kubectl,
            namespace: format!("{name}-{}", std::process::id()),
            all: kubectl.file("all.yaml", ALL),
            first: kubectl.file("first.yaml", first),
        };
        kubectl.run(&format!("create namespace {}", shop.namespace)).await;
        shop.run("create configmap others").await;
        shop.run("label configmap others app=shop").await;
        shop
    }

    async fn run(&self, line: &str) -> String {
        self.kubectl
            .run(&format!("{line} --namespace {}", self.namespace))
            .await
    }

    async fn fail(&self, line: &str) -> String {
        self.kubectl
            .fail(&format!("{line} --namespace {}", self.namespace))
            .await
    }

    /// The existing objects, by their label.
    async fn objects(&self) -> Vec<String> {
        let names = self
            .run("get configmaps,secrets,deployments -l app=shop -o name")
            .await;
        names.lines().map(str::to_owned).collect()
    }

    async fn close(self) {
        self.kubectl
            .run(&format!("delete namespace {} --timeout=60s", self.namespace))
            .await;
    }
}

const EVERYTHING: [&str; 4] = [
    "configmap/one",
    "configmap/others",
    "secret/two",
    "deployment.apps/web",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_applied_no_more_is_pruned_by_its_label() {
    for kubectl in Kubectl::on_both().await {
        let shop = Shop::open(&kubectl, "prune-label").await;
        let (all, first) = (&shop.all, &shop.first);
        shop.run(&format!("apply --prune -l app=shop -f {all}")).await;
        assert_eq!(shop.objects().await, EVERYTHING);

        let dry = shop
            .run(&format!("apply --prune -l app=shop --dry-run=server -f {first}"))
            .await;
        holds(
            &dry,
            &[
                "configmap/one unchanged (server dry run)",
                "secret/two pruned (server dry run)",
                "deployment.apps/web pruned (server dry run)",
            ],
        );
        assert_eq!(shop.objects().await, EVERYTHING);

        let pruned = shop.run(&format!("apply --prune -l app=shop -f {first}")).await;
        holds(&pruned, &["secret/two pruned", "deployment.apps/web pruned"]);
        // Objects that were never applied are not pruned.
        assert_eq!(shop.objects().await, ["configmap/one", "configmap/others"]);
        holds(
            &shop.fail(&format!("apply --prune -f {first}")).await,
            &["pass the --all flag"],
        );

        shop.run(&format!("apply -f {all}")).await;
        let secrets = "--prune-allowlist=core/v1/Secret";
        let pruned = shop
            .run(&format!("apply --prune --all {secrets} -f {first}"))
            .await;
        holds(&pruned, &["secret/two pruned"]);
        assert_eq!(
            shop.objects().await,
            ["configmap/one", "configmap/others", "deployment.apps/web"]
        );
        shop.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_applied_no_more_is_pruned_from_its_set() {
    for kubectl in Kubectl::on_both().await {
        let shop = Shop::open(&kubectl, "prune-set").await;
        let (all, first) = (&shop.all, &shop.first);
        let set = "--prune --applyset=set";
        let kinds = "get secret set -o \
                     jsonpath={.metadata.annotations.applyset\\.kubernetes\\.io/contains-group-kinds}";
        shop.run(&format!("apply {set} -f {all}")).await;
        assert_eq!(shop.objects().await, EVERYTHING);
        assert_eq!(shop.run(kinds).await, "ConfigMap,Deployment.apps,Secret");
        let members = "get configmaps,secrets,deployments -l applyset.kubernetes.io/part-of -o name";
        holds(&shop.run(members).await, &["/one", "/two", "/web"]);

        let dry = shop
            .run(&format!("apply {set} --dry-run=server -f {first}"))
            .await;
        holds(
            &dry,
            &[
                "secret/two pruned (server dry run)",
                "deployment.apps/web pruned (server dry run)",
            ],
        );
        assert_eq!(shop.objects().await, EVERYTHING);

        // Now with server-side apply: the set is the same.
        let pruned = shop
            .run(&format!("apply --server-side --force-conflicts {set} -f {first}"))
            .await;
        holds(
            &pruned,
            &[
                "configmap/one serverside-applied",
                "secret/two pruned",
                "deployment.apps/web pruned",
            ],
        );
        assert_eq!(shop.objects().await, ["configmap/one", "configmap/others"]);
        assert_eq!(shop.run(kinds).await, "ConfigMap");
        shop.close().await;
    }
}
