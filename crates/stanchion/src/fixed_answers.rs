//! An API server for unit tests that gives fixed answers.

use kube::{Client, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster::Cluster;

/// A cluster that answers a request with the text after its path and query, and with 404 if no text has that path.
pub(crate) async fn cluster(answers: &[(&str, &str)]) -> Cluster {
    let answers: Vec<(String, String)> = answers
        .iter()
        .map(|(target, text)| ((*target).to_owned(), (*text).to_owned()))
        .collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the runtime of the test.
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, &answers).await;
        }
    });
    Cluster {
        client: Client::try_from(Config::new(url.parse().unwrap())).unwrap(),
        url,
        namespace: None,
    }
}

async fn answer(mut stream: TcpStream, answers: &[(String, String)]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let found = answers.iter().find(|(known, _)| known == target);
    let (status, text) = match found {
        Some((_, text)) => ("200 OK", text.clone()),
        None => (
            "404 Not Found",
            format!(
                r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":404,"reason":"NotFound","message":"no answer for {}"}}"#,
                target.replace('"', "")
            ),
        ),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    // A client that has gone away needs no answer.
    let _ = stream.write_all(answer.as_bytes()).await;
}
