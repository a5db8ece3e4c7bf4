//! An HTTP proxy in this process, and TLS in front of a server.
//!
//! The proxy has its own table of names, as the proxy of a company has its own DNS: a test uses names that the machine
//! cannot resolve, and sees that only the proxy was asked for them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Authority;

/// A running proxy. Dropping the value ends it.
#[derive(Debug)]
pub struct HttpProxy {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: AbortHandle,
}

impl HttpProxy {
    /// Starts a proxy that knows these servers, by `host:port`; it answers 403 to requests for others.
    pub async fn start(servers: &[(&str, SocketAddr)]) -> Self {
        let servers: Arc<[(String, SocketAddr)]> = servers
            .iter()
            .map(|(name, address)| ((*name).to_owned(), *address))
            .collect();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let (address, task) = serve(move |stream| {
            let (servers, seen) = (Arc::clone(&servers), Arc::clone(&seen));
            async move {
                // A client that disconnects ends its connection only.
                let _ = forward(stream, &servers, &seen).await;
            }
        })
        .await;
        Self {
            address,
            requests,
            task,
        }
    }

    /// For `HTTPS_PROXY`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same with a user and a password.
    pub fn url_of(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{}@{}", password.replace(' ', "%20"), self.address)
    }

    /// The head of each request so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    mut client: TcpStream,
    servers: &[(String, SocketAddr)],
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    seen.lock().unwrap().push(head.clone());
    let mut words = head.splitn(3, ' ');
    let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let rest = words.next().unwrap_or_default();
    let (name, path) = match target.strip_prefix("http://") {
        None => (target.to_owned(), ""),
        Some(url) => {
            let (host, path) = url.split_at(url.find('/').unwrap_or(url.len()));
            let port = if host.contains(':') { "" } else { ":80" };
            (format!("{host}{port}"), path)
        }
    };
    let Some((_, address)) = servers.iter().find(|(known, _)| *known == name) else {
        return client
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            .await;
    };
    let mut server = TcpStream::connect(address).await?;
    if verb == "CONNECT" {
        client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").await?;
    } else {
        server
            .write_all(format!("{verb} {path} {rest}").as_bytes())
            .await?;
    }
    copy_bidirectional(&mut client, &mut server).await.map(|_| ())
}

/// TLS in front of a server that has none. Dropping the value ends it.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    task: AbortHandle,
}

impl TlsFront {
    /// Starts with a certificate of this authority for these names.
    pub async fn start(server: SocketAddr, authority: &Authority, names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let (certificate, key) = authority.issue(&names);
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| {
                config
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate], key)
            })
            .expect("a TLS server");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let (address, task) = serve(move |stream| {
            let acceptor = acceptor.clone();
            async move {
                // A client that does not trust the certificate disconnects.
                if let Ok(mut client) = acceptor.accept(stream).await
                    && let Ok(mut server) = TcpStream::connect(server).await
                {
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                }
            }
        })
        .await;
        Self { address, task }
    }

    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves each connection in a task of its own, until the returned task is aborted.
async fn serve<F: Future<Output = ()> + Send + 'static>(
    each: impl Fn(TcpStream) -> F + Send + 'static,
) -> (SocketAddr, AbortHandle) {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bind a free port on loopback");
    let address = listener.local_addr().expect("a bound listener has an address");
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(each(stream));
            while connections.try_join_next().is_some() {}
        }
    });
    (address, task.abort_handle())
}
