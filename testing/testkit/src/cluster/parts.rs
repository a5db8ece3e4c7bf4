//! Files, ports and flags of the programs of a control plane.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use super::{AUDIT_LOG, KUBECONFIG, connection};
use crate::{
    certificates::{self, Authority, write},
    error::{Attempt, Error},
    port,
};

/// kwok's configuration for the simulated kubelet.
const KUBELET: &str = include_str!("kubelet.yaml");

/// Requests of the control plane's own programs are not logged: they are most of the traffic, and no test is about
/// them.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [control-plane, 'system:apiserver']
- level: Metadata
";

/// The files and ports that the programs share.
pub(super) struct Parts {
    directory: PathBuf,
    pub(super) admin: PathBuf,
    pub(super) components: PathBuf,
    signing_key: PathBuf,
    checking_key: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
    etcd: String,
    api_port: u16,
}

impl Parts {
    pub(super) fn lay_out(directory: &Path) -> Result<Self, Error> {
        let authority = Authority::new();
        let (certificate, key) = authority.issue_into(
            directory,
            &[
                "127.0.0.1".to_owned(),
                "localhost".to_owned(),
                "kubernetes.default.svc".to_owned(),
            ],
        )?;
        let ca = write(directory.join("ca.crt"), authority.pem(), 0o644)?;
        let (private, public) = certificates::signing_keys();
        let [admin, components] = [random()?, random()?];
        let tokens = format!(
            "{admin},admin,admin,\"system:masters\"\n{components},control-plane,control-plane,\"system:masters\"\n"
        );
        write(directory.join("tokens.csv"), &tokens, 0o600)?;
        write(directory.join("audit-policy.yaml"), AUDIT_POLICY, 0o644)?;
        write(directory.join("kubelet.yaml"), KUBELET, 0o644)?;
        let api_port = port::free();
        let server = format!("https://127.0.0.1:{api_port}");
        Ok(Self {
            admin: connection::write_kubeconfig(&directory.join(KUBECONFIG), &server, &ca, &admin)?,
            components: connection::write_kubeconfig(
                &directory.join("components.kubeconfig"),
                &server,
                &ca,
                &components,
            )?,
            signing_key: write(directory.join("service-accounts.key"), &private, 0o600)?,
            checking_key: write(directory.join("service-accounts.pub"), &public, 0o644)?,
            directory: directory.to_owned(),
            certificate,
            key,
            etcd: format!("http://127.0.0.1:{}", port::free()),
            api_port,
        })
    }

    fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    pub(super) fn etcd_arguments(&self) -> Vec<String> {
        let url = &self.etcd;
        let peer = format!("http://127.0.0.1:{}", port::free());
        vec![
            format!("--data-dir={}", self.path("etcd")),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ]
    }

    pub(super) fn api_server_arguments(&self) -> Vec<String> {
        vec![
            format!("--etcd-servers={}", self.etcd),
            format!("--secure-port={}", self.api_port),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.certificate.display()),
            format!("--tls-private-key-file={}", self.key.display()),
            format!("--token-auth-file={}", self.path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.checking_key.display()),
            format!(
                "--service-account-signing-key-file={}",
                self.signing_key.display()
            ),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            format!("--audit-policy-file={}", self.path("audit-policy.yaml")),
            format!("--audit-log-path={}", self.path(AUDIT_LOG)),
            "--audit-log-maxsize=10000".to_owned(),
            // Pods need no token, and the node is schedulable without the taint controller.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition".to_owned(),
            // All operators of the tests look like one client: queues would distort what a test measures.
            "--enable-priority-and-fairness=false".to_owned(),
            "--profiling=false".to_owned(),
        ]
    }

    pub(super) fn controller_manager_arguments(&self) -> Vec<String> {
        vec![
            format!(
                "--service-account-private-key-file={}",
                self.signing_key.display()
            ),
            format!("--root-ca-file={}", self.path("ca.crt")),
            "--use-service-account-credentials=false".to_owned(),
            "--secure-port=0".to_owned(),
            // There is no cloud, and a busy machine must not look like a lost node.
            "--controllers=*,-node-ipam-controller,-node-route-controller,-service-lb-controller,\
             -cloud-node-lifecycle-controller,-node-lifecycle-controller,-taint-eviction-controller"
                .to_owned(),
        ]
    }

    pub(super) fn kubelet_arguments(&self) -> Vec<String> {
        vec![
            "--manage-all-nodes".to_owned(),
            format!("--server-address=127.0.0.1:{}", port::free()),
            format!("--config={}", self.path("kubelet.yaml")),
        ]
    }
}

/// A random token.
fn random() -> Result<String, Error> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .attempting(|| "read /dev/urandom".to_owned())?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
