//! Hostile servers that speak enough of PostgreSQL's protocol to be listened to.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a server does to a client that has sent a query.
#[derive(Clone, Copy)]
pub(crate) enum Malice {
    /// Accepts connections and never says a word.
    Silent,
    /// Answers with rows of one kilobyte that never end.
    EndlessRows,
    /// Answers with a single row that claims to have a gigabyte.
    HugeRow,
    /// Answers with an error of three megabytes.
    HugeError,
}

/// Starts a server and returns where it listens. It ends with the task.
pub(crate) async fn start(malice: Malice) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = async move {
        while let Ok((stream, _)) = listener.accept().await {
            // The client may leave at any time.
            tokio::spawn(async move { drop(attend(stream, malice).await) });
        }
    };
    (address, tokio::spawn(serve))
}

async fn attend(mut stream: TcpStream, malice: Malice) -> io::Result<()> {
    let mut scratch = [0; 4096];
    if matches!(malice, Malice::Silent) {
        while stream.read(&mut scratch).await? > 0 {}
        return Ok(());
    }
    // The request for TLS is declined; any user is welcome without a password.
    loop {
        let length = stream.read_u32().await?;
        let mut body = vec![
            0;
            usize::try_from(length.saturating_sub(4))
                .unwrap_or_default()
                .min(10_000)
        ];
        stream.read_exact(&mut body).await?;
        if body.starts_with(&80_877_103_u32.to_be_bytes()) {
            stream.write_all(b"N").await?;
        } else {
            break;
        }
    }
    stream.write_all(&message(b'R', &[0, 0, 0, 0])).await?;
    stream
        .write_all(&message(b'S', b"server_version\x0017.0\x00"))
        .await?;
    stream.write_all(&message(b'K', &[0; 8])).await?;
    stream.write_all(&message(b'Z', b"I")).await?;
    if stream.read(&mut scratch).await? == 0 {
        return Ok(());
    }
    // One column of text, as an answer to a parsed, described and executed query.
    stream.write_all(&message(b'1', &[])).await?;
    stream.write_all(&message(b't', &[0, 0])).await?;
    let column = [
        b"c\0".as_slice(),
        &[0; 6],
        &25_u32.to_be_bytes(),
        &[0xff, 0xff],
        &[0xff; 4],
        &[0, 0],
    ]
    .concat();
    stream
        .write_all(&message(b'T', &[&[0, 1], column.as_slice()].concat()))
        .await?;
    match malice {
        Malice::Silent => {}
        Malice::EndlessRows => {
            let row = message(
                b'D',
                &[&[0, 1], &1024_u32.to_be_bytes()[..], &[b'x'; 1024]].concat(),
            );
            let rows = row.repeat(64);
            loop {
                stream.write_all(&rows).await?;
            }
        }
        Malice::HugeRow => {
            let gigabyte: u32 = 1 << 30;
            stream.write_all(b"D").await?;
            stream.write_u32(gigabyte).await?;
            loop {
                stream.write_all(&[0; 8192]).await?;
            }
        }
        Malice::HugeError => {
            let text = "\x1b[31mforged line\n".repeat(200_000);
            let fields = format!("SERROR\0VERROR\0C42501\0M{text}\0\0");
            stream.write_all(&message(b'E', fields.as_bytes())).await?;
            while stream.read(&mut scratch).await? > 0 {}
        }
    }
    Ok(())
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind], &length.to_be_bytes()[..], body].concat()
}
