//! Failures of S3 requests, from real answers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use secrecy::ExposeSecret;
use stanchion_kernel::{Class, Problem};
use stanchion_postgres::AllowedNetworks;
use stanchion_postgres::http::Connector;
use stanchion_supabase::dependencies::s3::{self, Store};
use stanchion_testkit::certificates::Authority;
use stanchion_testkit::proxy::{Cut, Framing, Proxy};
use stanchion_testkit::s3::S3;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

fn store(s3: &S3) -> Store {
    Store {
        endpoint: s3.endpoint(),
        region: S3::REGION.to_owned(),
        bucket: s3.bucket().to_owned(),
        access_key_id: s3.access_key().into(),
        secret_access_key: s3.secret_key().into(),
        force_path_style: true,
        ca: None,
    }
}

async fn probe(store: &Store) -> Result<Duration, Problem> {
    s3::probe(store, Connector::from_env(AllowedNetworks::everything())).await
}

async fn refused(store: &Store) -> Problem {
    let problem = probe(store).await.unwrap_err();
    assert!(problem.message.contains(&store.bucket), "{problem}");
    let secrets = [&store.access_key_id, &store.secret_access_key].map(ExposeSecret::expose_secret);
    for secret in secrets.into_iter().chain(["X-Amz"]) {
        assert!(!problem.message.contains(secret), "{problem}");
    }
    problem
}

#[tokio::test]
async fn a_bucket_answers() {
    let s3 = S3::start().await;
    probe(&store(&s3)).await.unwrap();
}

#[tokio::test]
async fn what_the_server_refuses_has_a_reason() {
    let s3 = S3::start().await;
    let good = store(&s3);
    let cases = [
        (
            Store {
                bucket: "no-such-bucket".to_owned(),
                ..good.clone()
            },
            "BucketNotFound",
        ),
        (
            Store {
                secret_access_key: "hunter2".into(),
                ..good.clone()
            },
            "SecretKeyWrong",
        ),
        (
            Store {
                access_key_id: "hunter1".into(),
                ..good.clone()
            },
            "AccessKeyUnknown",
        ),
    ];
    for (store, reason) in cases {
        let problem = refused(&store).await;
        assert_eq!(problem.reason, reason, "{problem}");
    }
}

/// A server with a fixed answer that the test environment's S3 never gives.
async fn saying(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            // Read the whole request; otherwise closing would look like an error.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") && socket.read_buf(&mut request).await.unwrap() > 0 {}
            socket.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

#[tokio::test]
async fn amazons_own_refusals_have_a_reason() {
    let s3 = S3::start().await;
    let cases = [
        (
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 40\r\n\r\n<Error><Code>AccessDenied</Code></Error>",
            "AccessDenied",
        ),
        (
            "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: us-west-2\r\ncontent-length: 45\r\n\r\n<Error><Code>PermanentRedirect</Code></Error>",
            "WrongRegion",
        ),
        (
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 82\r\n\r\n<Error><Code>AuthorizationHeaderMalformed</Code><Region>us-west-2</Region></Error>",
            "WrongRegion",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nwelcome", "NotS3"),
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", "Unavailable"),
    ];
    for (answer, reason) in cases {
        let store = Store {
            endpoint: format!("http://{}", saying(answer).await),
            ..store(&s3)
        };
        let problem = refused(&store).await;
        assert_eq!(problem.reason, reason, "{problem}");
        assert_eq!(
            problem.message.contains("us-west-2"),
            reason == "WrongRegion",
            "{problem}"
        );
    }
}

/// F16, held: a server that means harm gets one request, and nothing of its answer is repeated.
#[tokio::test]
async fn a_hostile_server_gets_one_request_and_no_echo() {
    let s3 = S3::start().await;
    let secret = "role-credentials-of-the-node";
    let elsewhere = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let redirect = format!(
        "HTTP/1.1 307 Moved\r\nlocation: http://{}/latest\r\ncontent-length: 0\r\n\r\n",
        elsewhere.local_addr().unwrap()
    );
    let metadata = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{secret}",
        secret.len()
    );
    let code = format!("<Error><Code>{secret}</Code></Error>");
    let code = format!(
        "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\n\r\n{code}",
        code.len()
    );
    for answer in [redirect, metadata, code] {
        let store = Store {
            endpoint: format!("http://{}", saying(answer.leak()).await),
            ..store(&s3)
        };
        let problem = refused(&store).await;
        assert!(!problem.message.contains(secret), "{problem}");
    }
    let followed = tokio::time::timeout(Duration::from_millis(200), elsewhere.accept()).await;
    assert!(followed.is_err(), "a redirect is not followed");
}

/// F16: in a pod, no request goes to the pod itself, its node or the API server, under any name and in any notation.
#[tokio::test]
async fn an_operator_in_a_pod_asks_nobody_at_home() {
    let s3 = S3::start().await;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let api_server = vec!["10.96.0.1".parse().unwrap()];
    let closed = AllowedNetworks::in_pod(Vec::new(), api_server.clone());
    for host in [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
        "10.96.0.1",
        "name:hunter2@127.0.0.1",
    ] {
        for scheme in ["http", "https"] {
            let store = Store {
                endpoint: format!("{scheme}://{host}:{port}"),
                ..store(&s3)
            };
            let problem = s3::probe(&store, Connector::from_env(closed.clone()))
                .await
                .unwrap_err();
            assert_eq!(
                (problem.class, problem.reason),
                (Class::Human, "AddressNotAllowed"),
                "{scheme}://{host}: {problem}"
            );
            assert!(problem.message.contains("--allow-network"), "{problem}");
            assert!(!problem.message.contains("hunter2"), "{problem}");
        }
    }
    let nobody = listener.accept().map(|_| ()).unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
    let open = AllowedNetworks::in_pod(vec!["127.0.0.0/8".parse().unwrap()], api_server);
    s3::probe(&store(&s3), Connector::from_env(open)).await.unwrap();
}

/// Held: an answer that never ends is given up after 64 KiB.
#[tokio::test]
async fn an_answer_that_never_ends_is_given_up() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && socket.read_buf(&mut request).await.unwrap() > 0 {}
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let (mut sent, chunk) = (0, vec![b'x'; 65536]);
        while socket.write_all(&chunk).await.is_ok() {
            sent += chunk.len();
        }
        sent
    });
    let s3 = S3::start().await;
    let problem = refused(&Store {
        endpoint,
        ..store(&s3)
    })
    .await;
    assert_eq!(problem.class, Class::Transient, "{problem}");
    // The rest is what the sockets between us hold.
    assert!(server.await.unwrap() < 32 << 20);
}

/// Held: neither a file nor another path of the server can be named.
#[tokio::test]
async fn an_endpoint_is_a_server_and_a_bucket_is_a_name() {
    let s3 = S3::start().await;
    let file = Store {
        endpoint: "file:///etc/passwd".to_owned(),
        ..store(&s3)
    };
    let problem = probe(&file).await.unwrap_err();
    assert!(!problem.message.contains("root:"), "{problem}");
    for bucket in ["../admin", "..", "a/../../admin", "%2e%2e/admin"] {
        let store = Store {
            bucket: bucket.to_owned(),
            ..store(&s3)
        };
        assert!(probe(&store).await.is_err(), "{bucket}");
    }
}

#[tokio::test]
async fn the_way_there_has_reasons_too() {
    let s3 = S3::start().await;
    let proxy = Proxy::start(s3.address(), Framing::Raw).await;
    let through = Store {
        endpoint: format!("http://{}", proxy.address()),
        ..store(&s3)
    };
    probe(&through).await.unwrap();
    proxy.cut(Cut::Refuse).await;
    let problem = refused(&through).await;
    assert_eq!(
        (problem.class, problem.reason),
        (Class::Transient, "ConnectionRefused")
    );
    proxy.restore().await;
    probe(&through).await.unwrap();
    proxy.cut(Cut::Close).await;
    assert_eq!(refused(&through).await.reason, "Unreachable");

    let unknown = Store {
        endpoint: "http://s3.example.invalid".to_owned(),
        ..store(&s3)
    };
    assert_eq!(refused(&unknown).await.reason, "HostNotFound");
    let nonsense = Store {
        endpoint: "s3 over there".to_owned(),
        ..store(&s3)
    };
    assert_eq!(probe(&nonsense).await.unwrap_err().reason, "InvalidEndpoint");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_not_waited_for() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let store = Store {
        endpoint: format!("http://{}", listener.local_addr().unwrap()),
        region: "r".to_owned(),
        bucket: "b".to_owned(),
        access_key_id: "hunter1".into(),
        secret_access_key: "hunter2".into(),
        force_path_style: true,
        ca: None,
    };
    let problem = refused(&store).await;
    assert_eq!((problem.class, problem.reason), (Class::Transient, "Timeout"));
}

/// A TLS proxy in front of a server, with a certificate for `name`.
async fn behind_tls(authority: &Authority, name: &str, server: SocketAddr) -> SocketAddr {
    let (certificate, key) = authority.issue(&[name.to_owned()]);
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            if let Ok(mut socket) = acceptor.accept(socket).await {
                let mut inner = TcpStream::connect(server).await.unwrap();
                tokio::spawn(async move { tokio::io::copy_bidirectional(&mut socket, &mut inner).await });
            }
        }
    });
    address
}

#[tokio::test]
async fn certificates_are_checked() {
    let s3 = S3::start().await;
    let (authority, other) = (Authority::new(), Authority::new());
    let good = behind_tls(&authority, "127.0.0.1", s3.address()).await;
    let misnamed = behind_tls(&authority, "s3.example", s3.address()).await;
    let at = |address: SocketAddr, ca: Option<&str>| Store {
        endpoint: format!("https://{address}"),
        ca: ca.map(str::to_owned),
        ..store(&s3)
    };
    probe(&at(good, Some(authority.pem()))).await.unwrap();
    let cases = [
        (at(good, Some(other.pem())), "CertificateUntrusted"),
        (at(good, None), "CertificateUntrusted"),
        (at(misnamed, Some(authority.pem())), "CertificateName"),
        (at(s3.address(), Some(authority.pem())), "TlsFailed"),
    ];
    for (store, reason) in cases {
        let problem = refused(&store).await;
        assert_eq!(
            (problem.class, problem.reason),
            (Class::Human, reason),
            "{problem}"
        );
    }
    let garbage = probe(&at(good, Some("-----BEGIN nothing"))).await.unwrap_err();
    assert!(garbage.message.contains("PEM"), "{garbage}");
}
