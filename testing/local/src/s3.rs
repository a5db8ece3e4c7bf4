//! An S3 server in this process, on loopback. Buckets are folders, objects are files in them. Dropping the value ends
//! it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::error::{Attempt, Error};

/// The region that every request must be signed for.
pub const REGION: &str = "us-east-1";

/// The access key with full access.
#[derive(Clone, Copy)]
pub struct AccessKey<'a> {
    /// The key's id.
    pub id: &'a str,
    /// The secret that signs requests.
    pub secret: &'a str,
}

/// A running server. Dropping the value ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: AbortHandle,
}

impl Server {
    /// Serves a folder, with this bucket in it, on a free port.
    pub async fn start(folder: &Path, bucket: &str, key: AccessKey<'_>) -> Result<Self, Error> {
        let place = folder.join(bucket);
        fs::create_dir_all(&place).attempting(|| format!("create {}", place.display()))?;
        let storage = FileSystem::new(folder).map_err(|error| Error::Start {
            what: format!("S3 in {}", folder.display()),
            why: format!("{error:?}"),
            log: String::new(),
        })?;
        let mut service = S3ServiceBuilder::new(storage);
        service.set_auth(SimpleAuth::from_single(key.id, key.secret));
        let service = service.build();
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .attempting(|| "find a free port on loopback".to_owned())?;
        let address = listener
            .local_addr()
            .attempting(|| "read the address of a socket".to_owned())?;
        let task = tokio::spawn(async move {
            // Dropped with the task, which also drops the connections.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                connections.spawn(async move {
                    // Ignore clients that disconnect.
                    let _ = auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self {
            address,
            task: task.abort_handle(),
        })
    }

    /// The address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL; buckets are in the path.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
