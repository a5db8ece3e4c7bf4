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
    /// Answers with an error of nearly a megabyte, the longest that is accepted, with terminal sequences and line breaks.
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
    let mut scratch = vec![0; 1 << 20];
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
    let welcome = [
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0017.0\x00"),
        message(b'K', &[0; 8]),
        message(b'Z', b"I"),
    ];
    stream.write_all(&welcome.concat()).await?;
    // A session begins with a query for the identity of the server and the database. A server that answers it normally
    // gets more queries.
    if stream.read(&mut scratch).await? == 0 {
        return Ok(());
    }
    let identity = [
        columns(4),
        row(&[b"7000000000000000001", b"5", b"app", b"170000"]),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ];
    stream.write_all(&identity.concat()).await?;
    loop {
        let length = stream.read(&mut scratch).await?;
        if length == 0 {
            return Ok(());
        }
        for (tag, describes_statement) in requests(scratch.get(..length).unwrap_or_default()) {
            match tag {
                b'P' => stream.write_all(&message(b'1', &[])).await?,
                b'B' => stream.write_all(&message(b'2', &[])).await?,
                b'D' => {
                    if describes_statement {
                        stream.write_all(&message(b't', &[0, 0])).await?;
                    }
                    stream.write_all(&columns(1)).await?;
                }
                b'S' => stream.write_all(&message(b'Z', b"I")).await?,
                b'Q' => {
                    stream.write_all(&columns(1)).await?;
                    harm(&mut stream, malice).await?;
                }
                b'E' => harm(&mut stream, malice).await?,
                _ => {}
            }
        }
    }
}

/// The tags of a client's requests, and whether a Describe is about a statement.
fn requests(mut bytes: &[u8]) -> Vec<(u8, bool)> {
    let mut found = Vec::new();
    while let [tag, a, b, c, d, rest @ ..] = bytes {
        found.push((*tag, rest.first() == Some(&b'S')));
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).unwrap_or_default();
        bytes = rest.get(length.saturating_sub(4)..).unwrap_or_default();
    }
    found
}

/// The server's behaviour instead of an answer, until the client disconnects.
async fn harm(stream: &mut TcpStream, malice: Malice) -> io::Result<()> {
    match malice {
        Malice::Silent => {}
        Malice::EndlessRows => {
            let rows = row(&[&[b'x'; 1024]]).repeat(64);
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
            let text = "\x1b[31mforged line\n".repeat(50_000);
            let fields = format!("SERROR\0VERROR\0C42501\0M{text}\0\0");
            stream.write_all(&message(b'E', fields.as_bytes())).await?;
        }
    }
    Ok(())
}

/// Columns of text.
fn columns(count: u16) -> Vec<u8> {
    let column = [
        b"c\0".as_slice(),
        &[0; 6],
        &25_u32.to_be_bytes(),
        &[0xff, 0xff],
        &[0xff; 4],
        &[0, 0],
    ]
    .concat();
    let mut body = count.to_be_bytes().to_vec();
    body.extend(column.repeat(usize::from(count)));
    message(b'T', &body)
}

fn row(values: &[&[u8]]) -> Vec<u8> {
    let count = u16::try_from(values.len()).expect("few columns");
    let mut body = count.to_be_bytes().to_vec();
    for value in values {
        body.extend(u32::try_from(value.len()).expect("a short value").to_be_bytes());
        body.extend(*value);
    }
    message(b'D', &body)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a short message");
    [&[kind], &length.to_be_bytes()[..], body].concat()
}
