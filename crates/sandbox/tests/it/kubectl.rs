//! kubectl's own flows over the TLS door. They run where a kubectl is found: in `$KUBEBUILDER_ASSETS` or in
//! `$PATH`.

use std::path::{Path, PathBuf};
use std::process::Output;

use stanchion_sandbox::Sandbox;
use tokio::process::Command;

fn kubectl() -> Option<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    assets
        .into_iter()
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join("kubectl"))
        .find(|file| file.exists())
}

struct Kubectl {
    program: PathBuf,
    folder: tempfile::TempDir,
    _sandbox: Sandbox,
}

impl Kubectl {
    async fn start() -> Option<Self> {
        let Some(program) = kubectl() else {
            eprintln!("skipped: no kubectl in $KUBEBUILDER_ASSETS or $PATH");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut sandbox = Sandbox::builder().start().unwrap();
        sandbox.listen(0).await.unwrap();
        sandbox.write_kubeconfig(&folder.path().join("config")).unwrap();
        Some(Self {
            program,
            folder,
            _sandbox: sandbox,
        })
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_string_lossy().into_owned()
    }

    async fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        let home: &Path = self.folder.path();
        command
            .args(arguments)
            .env("KUBECONFIG", home.join("config"))
            .env("HOME", home)
            .kill_on_drop(true);
        command
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N")
            .env("KUBE_EDITOR", "sed -i s/size:.*/size:\\ 9/");
        tokio::time::timeout(std::time::Duration::from_mins(1), command.output())
            .await
            .unwrap()
            .unwrap()
    }

    /// Runs a command that must succeed, and returns what it prints.
    async fn run(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.output(&arguments).await;
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns what it complains about.
    async fn fail(&self, line: &str) -> String {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = self.output(&arguments).await;
        assert!(!output.status.success(), "kubectl {line} should have failed");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: 'web:1', ports: [{containerPort: 80}]}]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workloads_are_applied_rolled_and_described() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let file = kubectl.file("web.yaml", DEPLOYMENT);
    holds(
        &kubectl.run(&format!("apply -f {file}")).await,
        &["deployment.apps/web created"],
    );
    holds(
        &kubectl.run(&format!("apply -f {file}")).await,
        &["deployment.apps/web unchanged"],
    );
    kubectl.run("rollout status deployment/web --timeout=30s").await;
    holds(
        &kubectl.run("get deployments").await,
        &["NAME", "READY", "UP-TO-DATE", "web", "2/2"],
    );
    holds(
        &kubectl.run("get pods -o wide").await,
        &["web-", "1/1", "Running", "simulated"],
    );
    holds(
        &kubectl.run("get all").await,
        &[
            "pod/web-",
            "deployment.apps/web",
            "replicaset.apps/web-",
            "service/kubernetes",
        ],
    );

    let changed = kubectl.file("web2.yaml", &DEPLOYMENT.replace("web:1", "web:2"));
    let diff = kubectl.output(&["diff", "-f", &changed]).await;
    assert_eq!(
        diff.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&diff.stderr)
    );
    holds(
        &String::from_utf8_lossy(&diff.stdout),
        &["-      - image: web:1", "+      - image: web:2"],
    );
    holds(
        &kubectl.run(&format!("apply -f {changed}")).await,
        &["configured"],
    );
    kubectl.run("rollout status deployment/web --timeout=30s").await;
    kubectl
        .run("wait --for=condition=Available deployment/web --timeout=30s")
        .await;
    holds(&kubectl.run("rollout history deployment/web").await, &["1", "2"]);
    holds(
        &kubectl.run("describe deployment web").await,
        &["RollingUpdate", "web:2", "Available", "NewReplicaSet"],
    );
    holds(
        &kubectl.run("scale deployment/web --replicas=1").await,
        &["scaled"],
    );
    kubectl.run("set image deployment/web web=web:3").await;
    holds(&kubectl.run("patch deployment web --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":0}]").await, &["patched"]);
    kubectl.run("annotate deployment web note=x").await;
    kubectl.run("label deployment web tier=front").await;
    holds(
        &kubectl.run("get deployments -l tier=front -o name").await,
        &["deployment.apps/web"],
    );
    holds(
        &kubectl.run("delete deployment web --wait --timeout=30s").await,
        &["deleted"],
    );
    holds(&kubectl.fail("get deployment web").await, &["NotFound"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_explained_validated_and_edited() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    let crd = kubectl.file("crd.json", include_str!("crd.json"));
    kubectl.run(&format!("apply -f {crd}")).await;
    kubectl
        .run("wait --for=condition=Established crd/gadgets.example.com --timeout=30s")
        .await;
    holds(
        &kubectl.run("api-resources --api-group=example.com").await,
        &["gadgets", "gd", "Gadget", "true"],
    );
    holds(
        &kubectl.run("explain gadget.spec").await,
        &["What is wanted.", "size", "How large.", "-required-"],
    );
    let gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: 3}\n";
    let file = kubectl.file("gadget.yaml", gadget);
    holds(
        &kubectl.run(&format!("apply --server-side -f {file}")).await,
        &["serverside-applied"],
    );
    holds(&kubectl.run("get gd").await, &["NAME", "SIZE", "AGE", "g", "3"]);
    holds(
        &kubectl.run("get gadgets g -o jsonpath={.spec.size}").await,
        &["3"],
    );
    let wrong = kubectl.file("wrong.yaml", &gadget.replace("size: 3", "size: 3, bogus: 1"));
    holds(
        &kubectl.fail(&format!("apply -f {wrong}")).await,
        &["unknown field \"spec.bogus\""],
    );
    let small = kubectl.file("small.yaml", &gadget.replace("size: 3", "size: 0"));
    holds(
        &kubectl.fail(&format!("apply --server-side -f {small}")).await,
        &["spec.size", "greater than or equal to 1"],
    );
    let other = kubectl.file("other.yaml", &gadget.replace("size: 3", "size: 4"));
    holds(
        &kubectl
            .fail(&format!("apply --server-side --field-manager=other -f {other}"))
            .await,
        &["conflict with \"kubectl\"", ".spec.size"],
    );
    kubectl
        .run(&format!(
            "apply --server-side --field-manager=other --force-conflicts -f {other}"
        ))
        .await;
    holds(&kubectl.run("edit gadget g").await, &["edited"]);
    holds(
        &kubectl.run("get gadget g -o yaml").await,
        &["size: 9", "generation: 3"],
    );
    kubectl.run("patch gadget g --subresource=status --type=merge -p {\"status\":{\"phase\":\"Ready\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}").await;
    kubectl
        .run("wait --for=condition=Ready gadget/g --timeout=30s")
        .await;
    kubectl
        .run("wait --for=jsonpath={.status.phase}=Ready gadget/g --timeout=30s")
        .await;
    kubectl.run("delete crd gadgets.example.com --timeout=30s").await;
    holds(&kubectl.fail("get gadgets").await, &["NotFound"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_small_commands_work() {
    let Some(kubectl) = Kubectl::start().await else {
        return;
    };
    holds(&kubectl.run("version").await, &["Server Version: v1."]);
    holds(&kubectl.run("cluster-info").await, &["Kubernetes control plane"]);
    holds(
        &kubectl.run("api-resources").await,
        &["deployments", "secrets", "customresourcedefinitions"],
    );
    holds(&kubectl.run("api-versions").await, &["apps/v1", "batch/v1"]);
    holds(
        &kubectl.run("explain deployment.spec.strategy").await,
        &["rollingUpdate", "FIELDS"],
    );
    holds(&kubectl.run("create namespace demo").await, &["created"]);
    kubectl
        .run("create secret generic s --from-literal=a=b -n demo")
        .await;
    holds(
        &kubectl.run("get secret s -n demo -o jsonpath={.data.a}").await,
        &["Yg=="],
    );
    kubectl.run("create configmap c --from-literal=a=b -n demo").await;
    holds(&kubectl.run("describe configmap c -n demo").await, &["a:", "b"]);
    kubectl.run("create serviceaccount robot -n demo").await;
    holds(&kubectl.run("create token robot -n demo").await, &["."]);
    kubectl
        .run("create role reader --verb=get,list --resource=configmaps -n demo")
        .await;
    kubectl
        .run("create rolebinding reader --role=reader --serviceaccount=demo:robot -n demo")
        .await;
    holds(
        &kubectl
            .run("auth can-i get configmaps -n demo --as=system:serviceaccount:demo:robot")
            .await,
        &["yes"],
    );
    let denied = kubectl
        .output(&[
            "auth",
            "can-i",
            "delete",
            "configmaps",
            "-n",
            "demo",
            "--as=system:serviceaccount:demo:robot",
        ])
        .await;
    holds(&String::from_utf8_lossy(&denied.stdout), &["no"]);
    holds(&kubectl.run("auth whoami").await, &["admin", "system:masters"]);
    holds(&kubectl.run("auth can-i --list").await, &["*.*"]);
    kubectl.run("run one --image=one -n demo").await;
    kubectl
        .run("wait --for=condition=Ready pod/one -n demo --timeout=30s")
        .await;
    holds(&kubectl.run("logs one -n demo").await, &["no container ran"]);
    holds(&kubectl.run("get events -n demo").await, &[""]);
    kubectl.run("create job once --image=once -n demo").await;
    kubectl
        .run("wait --for=condition=Complete job/once -n demo --timeout=30s")
        .await;
    kubectl.run("expose pod one --port=80 -n demo").await;
    holds(
        &kubectl.run("get service one -n demo").await,
        &["ClusterIP", "80/TCP"],
    );
    kubectl
        .run("create deployment d --image=d --replicas=2 -n demo")
        .await;
    kubectl.run("delete namespace demo --timeout=60s").await;
}
