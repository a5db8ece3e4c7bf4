//! A model of an S3 server with one bucket: it answers the request that lists the bucket, and knows one access key.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use stanchion_postgres::Wire;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::sleep;

use super::Network;
use super::sql::Health;

/// The port on which it is reached.
pub const PORT: u16 = 9000;
/// The id of the access key that it knows.
pub const ACCESS_KEY: &str = "access";

const LIST: &str = "<ListBucketResult><Name>files</Name></ListBucketResult>";
const REFUSAL: &str = "<Error><Code>InvalidAccessKeyId</Code><Message>no such key</Message></Error>";

/// The server, and how it is reached. Clones are the same.
#[derive(Clone, Default)]
pub struct Bucket(Arc<Mutex<Health>>);

impl Bucket {
    /// From now on, it is reached like this.
    pub fn set(&self, health: Health) {
        *self.0.lock() = health;
    }

    /// A replica's connection to it.
    pub(super) fn open(&self, network: &Network, replica: usize) -> io::Result<Box<dyn Wire>> {
        if *self.0.lock() == Health::Down {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = tokio::io::duplex(1 << 14);
        let (network, health) = (network.clone(), Arc::clone(&self.0));
        tokio::spawn(async move {
            let like = format!("{replica} s3");
            sleep(network.0.latency.next(&like)).await;
            network.reached(replica).await;
            network.record().note(&like);
            let health = *health.lock();
            match health {
                Health::Up => {}
                Health::Down => return,
                Health::Silent => std::future::pending().await,
            }
            // A client that has gone does not read the answer.
            let _ = serve(server).await;
        });
        Ok(Box::new(client))
    }
}

/// Answers one request.
pub async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let (mut head, mut part) = (Vec::new(), [0; 1 << 12]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            length => head.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let known = head.contains(&format!("X-Amz-Credential={ACCESS_KEY}%2F"));
    let (status, body) = if known {
        ("200 OK", LIST)
    } else {
        ("403 Forbidden", REFUSAL)
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_key_decides_about_the_answer() {
        for (key, status) in [(ACCESS_KEY, "200"), ("another", "403")] {
            let (mut client, server) = tokio::io::duplex(1 << 12);
            let serving = tokio::spawn(serve(server));
            let request =
                format!("GET /files?X-Amz-Credential={key}%2F20300101 HTTP/1.1\r\nhost: here\r\n\r\n");
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
            serving.await.unwrap().unwrap();
        }
    }
}
