//! Environment variables that every program knows: `NO_COLOR`, `KUBECONFIG`, `SSL_CERT_FILE`, `HTTPS_PROXY` and its kin.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::{Value, json};
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::cluster::Cluster;
use stanchion_testkit::http_proxy::{HttpProxy, TlsFront};
use stanchion_testkit::postgres::{Postgres, any};
use stanchion_testkit::s3::S3;
use stanchion_testkit::scratch::Scratch;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::operator::{command, text};

/// The variables that a test sets itself.
const OWN: [&str; 10] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "KUBECONFIG",
    "NO_COLOR",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "https_proxy",
];

fn with(words: &[&str], variables: &[(&str, OsString)]) -> std::process::Command {
    let mut command = command(words);
    for name in OWN {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

async fn run(words: &[&str], variables: &[(&str, OsString)]) -> Output {
    let mut command = with(words, variables);
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

/// What a terminal shows.
async fn shown(words: &[&str], variables: &[(&str, OsString)]) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, flags).unwrap();
    let mut command = with(words, variables);
    command.stdout(Stdio::from(theirs)).stderr(Stdio::null());
    tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().unwrap();
        // Its end of the terminal is also in the command.
        drop(command);
        let (mut screen, mut all) = (File::from(ours), Vec::new());
        let mut chunk = [0; 4096];
        // A terminal that nobody has open any more is an error.
        while let Ok(length @ 1..) = screen.read(&mut chunk) {
            all.extend_from_slice(&chunk[..length]);
        }
        child.wait().unwrap();
        text(&all)
    })
    .await
    .unwrap()
}

/// A file of a scratch directory.
fn file(scratch: &Scratch, name: &str, content: &str) -> PathBuf {
    let path = scratch.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

/// The administrator's kubeconfig.
fn kubeconfig(cluster: &Cluster) -> Value {
    serde_saphyr::from_str(&std::fs::read_to_string(cluster.kubeconfig_path()).unwrap()).unwrap()
}

async fn namespace(cluster: &Cluster) -> String {
    cluster.install_crds(stanchion_api::crds()).await;
    let namespace = cluster.namespace("environment").await;
    let user = json!({
        "apiVersion": "db.example.com/v1alpha1", "kind": "PostgresUser", "metadata": { "name": "alice" },
        "spec": { "username": "a", "database": "none", "privileges": ["CONNECT"], "password": { "generate": {} } },
    });
    cluster.apply(&user.to_string(), &namespace).await;
    namespace
}

#[tokio::test]
async fn no_color_means_no_colours_on_a_terminal() {
    let cluster = Cluster::shared().await;
    let namespace = namespace(cluster).await;
    let words = ["status", "-n", &namespace];
    let on = |no_color: Option<&str>| {
        let kubeconfig = ("KUBECONFIG", cluster.kubeconfig_path().into_os_string());
        let no_color = no_color.map(|value| ("NO_COLOR", value.into()));
        let variables: Vec<_> = [kubeconfig, ("TERM", "xterm".into())]
            .into_iter()
            .chain(no_color)
            .collect();
        async move { shown(&words, &variables).await }
    };
    for (no_color, coloured) in [(None, true), (Some("1"), false), (Some(""), true)] {
        let screen = on(no_color).await;
        assert!(screen.contains("alice"), "{no_color:?}: {screen}");
        assert_eq!(screen.contains('\u{1b}'), coloured, "{no_color:?}: {screen}");
    }
}

/// One file has the cluster, another the user, a third the context; a file that does not exist is passed over.
#[tokio::test]
async fn a_kubeconfig_of_several_files() {
    let cluster = Cluster::shared().await;
    let namespace = namespace(cluster).await;
    let whole = kubeconfig(cluster);
    let scratch = Scratch::new("stanchion-kubeconfig-").unwrap();
    let part = |names: &[&str], file_name: &str| {
        let mut part = json!({ "apiVersion": "v1", "kind": "Config" });
        for name in names {
            part[name] = whole[name].clone();
        }
        file(&scratch, file_name, &part.to_string())
    };
    let files = [
        part(&["clusters"], "clusters"),
        scratch.path().join("no-such-file"),
        part(&["users"], "users"),
        part(&["contexts", "current-context"], "contexts"),
    ];
    let joined = |files: &[PathBuf]| [("KUBECONFIG", std::env::join_paths(files).unwrap())];
    let words = ["status", "-n", &namespace];
    let output = run(&words, &joined(&files)).await;
    assert!(text(&output.stdout).contains("alice"), "{output:?}");
    let output = run(&words, &joined(&files[..3])).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// The API server through a proxy, which alone knows its name.
#[tokio::test]
async fn a_cluster_behind_a_proxy() {
    let cluster = Cluster::shared().await;
    let namespace = namespace(cluster).await;
    let mut config = kubeconfig(cluster);
    let entry = &mut config["clusters"][0]["cluster"];
    let address = entry["server"]
        .as_str()
        .unwrap()
        .trim_start_matches("https://")
        .to_owned();
    entry["server"] = json!("https://kubernetes.example.test:6443");
    entry["tls-server-name"] = json!("127.0.0.1");
    let scratch = Scratch::new("stanchion-kubeconfig-").unwrap();
    let kubeconfig = file(&scratch, "kubeconfig", &config.to_string());
    let address = address.trim_end_matches('/').parse().unwrap();
    let proxy = HttpProxy::start(&[("kubernetes.example.test:6443", address)]).await;
    let words = ["status", "-n", &namespace];
    let variables = |no_proxy: &str| {
        [
            ("KUBECONFIG", kubeconfig.clone().into_os_string()),
            ("HTTPS_PROXY", proxy.url().into()),
            ("NO_PROXY", no_proxy.into()),
        ]
    };
    let output = run(&words, &variables("localhost")).await;
    assert!(text(&output.stdout).contains("alice"), "{output:?}");
    let asked = proxy.requests().len();
    assert!(asked > 0);
    let output = run(&words, &variables(".example.test")).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(proxy.requests().len(), asked, "NO_PROXY has the name");

    // The machine itself is reached directly.
    let mut direct = variables("");
    direct[0].1 = cluster.kubeconfig_path().into_os_string();
    let output = run(&words, &direct).await;
    assert!(text(&output.stdout).contains("alice"), "{output:?}");
    assert_eq!(proxy.requests().len(), asked);
}

/// A project whose bucket is at this endpoint, in a namespace of its own.
async fn project(cluster: &Cluster, s3: &S3, endpoint: &str) -> String {
    let namespace = namespace(cluster).await;
    let secret = |name: &str, values: Value| json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name }, "stringData": values });
    let bucket = json!({
        "endpoint": endpoint, "region": S3::REGION, "bucket": s3.bucket(),
        "accessKeyId": s3.access_key(), "secretAccessKey": s3.secret_key(),
    });
    let database =
        json!({ "host": "127.0.0.1", "port": "1", "database": "x", "username": "x", "password": "x" });
    let project = json!({
        "apiVersion": "supabase.strrl.dev/v1alpha1", "kind": "SupabaseProject", "metadata": { "name": "shop" },
        "spec": {
            "projectId": "shop", "database": { "secretRef": { "name": "db" } },
            "storage": { "secretRef": { "name": "s3" } },
        },
    });
    for object in [secret("s3", bucket), secret("db", database), project] {
        cluster.apply(&object.to_string(), &namespace).await;
    }
    namespace
}

/// What `doctor --connect` says about the bucket; `None` if it answers.
async fn complaint(cluster: &Cluster, namespace: &str, variables: &[(&str, OsString)]) -> Option<String> {
    let kubeconfig = ("KUBECONFIG", cluster.kubeconfig_path().into_os_string());
    let variables = [&[kubeconfig], variables].concat();
    let output = run(
        &["doctor", "-n", namespace, "--connect", "-o", "json"],
        &variables,
    )
    .await;
    let said: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let findings = said["findings"].as_array().unwrap();
    // The database is never there: the connections were made.
    assert!(
        findings
            .iter()
            .any(|finding| finding["check"] == "connect-database"),
        "{said}"
    );
    let bucket = findings
        .iter()
        .find(|finding| finding["check"] == "connect-bucket");
    bucket.map(ToString::to_string)
}

#[tokio::test]
async fn ssl_cert_file_names_the_trusted_authorities_of_s3() {
    let (cluster, s3, authority) = (Cluster::shared().await, S3::start().await, Authority::new());
    let front = TlsFront::start(s3.address(), &authority, &["127.0.0.1"]).await;
    let namespace = project(cluster, &s3, &format!("https://{}", front.address())).await;
    let scratch = Scratch::new("stanchion-ca-").unwrap();
    let own = file(&scratch, "ca.pem", authority.pem());
    let other = file(&scratch, "other.pem", Authority::new().pem());
    let trusting = |file: PathBuf| [("SSL_CERT_FILE", file.into_os_string())];
    assert_eq!(complaint(cluster, &namespace, &trusting(own)).await, None);
    for variables in [&trusting(other)[..], &[]] {
        let said = complaint(cluster, &namespace, variables).await.unwrap();
        assert!(said.contains("CertificateUntrusted"), "{said}");
    }
}

#[tokio::test]
async fn s3_behind_a_proxy() {
    let (cluster, s3, authority) = (Cluster::shared().await, S3::start().await, Authority::new());
    let front = TlsFront::start(s3.address(), &authority, &["s3.example.test"]).await;
    let servers = [
        ("s3.example.test:443", front.address()),
        ("s3.example.test:9000", s3.address()),
    ];
    let proxy = HttpProxy::start(&servers).await;
    let scratch = Scratch::new("stanchion-ca-").unwrap();
    let ca = (
        "SSL_CERT_FILE",
        file(&scratch, "ca.pem", authority.pem()).into_os_string(),
    );
    let rows = [
        (
            "https://s3.example.test",
            "HTTPS_PROXY",
            "CONNECT s3.example.test:443 ",
        ),
        (
            "http://s3.example.test:9000",
            "HTTP_PROXY",
            "GET http://s3.example.test:9000/",
        ),
    ];
    for (endpoint, variable, request) in rows {
        let namespace = project(cluster, &s3, endpoint).await;
        let to = (variable, OsString::from(proxy.url_of("ann", "pass-word")));
        let before = proxy.requests().len();
        let said = complaint(cluster, &namespace, &[ca.clone(), to.clone()]).await;
        assert_eq!(said, None, "{endpoint}");
        let asked = proxy.requests().split_off(before);
        assert!(asked.iter().all(|asked| asked.starts_with(request)), "{asked:?}");
        assert!(
            asked
                .iter()
                .all(|asked| asked.to_lowercase().contains("proxy-authorization: basic ")),
            "{asked:?}"
        );
        assert!(!asked.is_empty());

        // Directly it is not there, and no proxy is asked.
        for variables in [
            &[ca.clone()][..],
            &[ca.clone(), to, ("NO_PROXY", "example.test".into())],
        ] {
            let said = complaint(cluster, &namespace, variables).await.unwrap();
            assert!(!said.contains("Proxy") && !said.contains("pass-word"), "{said}");
        }
        assert_eq!(proxy.requests().len(), before + asked.len());
    }
    // A proxy that does not know the server.
    let namespace = project(cluster, &s3, "https://files.example.test").await;
    let to = ("HTTPS_PROXY", OsString::from(proxy.url_of("ann", "pass-word")));
    let said = complaint(cluster, &namespace, &[ca, to]).await.unwrap();
    assert!(said.contains("ProxyFailed") && said.contains("403"), "{said}");
    assert!(!said.contains("pass-word"), "{said}");
}

/// A token endpoint that only the proxy reaches; its token is the password of the database.
#[tokio::test]
async fn a_token_through_a_proxy() {
    let (server, authority) = (Postgres::start(any()).await, Authority::new());
    server
        .execute("postgres", "CREATE ROLE app LOGIN PASSWORD 'the-token'")
        .await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = String::new();
        while !request.contains("client_assertion=") {
            let mut chunk = [0; 4096];
            let length = stream.read(&mut chunk).await.unwrap();
            request.push_str(&text(&chunk[..length]));
        }
        let body = r#"{"access_token": "the-token"}"#;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
        request
    });
    let front = TlsFront::start(endpoint, &authority, &["login.example.test"]).await;
    let proxy = HttpProxy::start(&[("login.example.test:443", front.address())]).await;
    let scratch = Scratch::new("stanchion-token-").unwrap();
    let variables = [
        (
            "SSL_CERT_FILE",
            file(&scratch, "ca.pem", authority.pem()).into_os_string(),
        ),
        (
            "AZURE_FEDERATED_TOKEN_FILE",
            file(&scratch, "token", "the-proof").into_os_string(),
        ),
        ("AZURE_AUTHORITY_HOST", "https://login.example.test/".into()),
        ("AZURE_TENANT_ID", "contoso".into()),
        ("AZURE_CLIENT_ID", "app".into()),
        ("HTTPS_PROXY", proxy.url().into()),
    ];
    let url = format!("postgresql://app@127.0.0.1:{}/postgres", server.port());
    let auth = "azure-workload-identity";
    let words = ["roles", "inspect", "--database-url", &url, "--auth", auth];
    let output = run(&words, &variables).await;
    assert!(output.status.success(), "{output:?}");
    let request = answering.await.unwrap();
    assert!(
        request.starts_with("POST /contoso/oauth2/v2.0/token "),
        "{request}"
    );
    let asked = proxy.requests();
    assert!(
        asked[0].starts_with("CONNECT login.example.test:443 "),
        "{asked:?}"
    );
    assert!(!asked[0].contains("the-proof"), "{asked:?}");
}
