//! A plain HTTP server for the files of a folder, such as a repository of Helm charts.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    thread,
};

/// A running server on loopback. It has a thread of its own, so it serves several tests, and ends with the process.
#[derive(Debug)]
pub struct FileServer {
    address: SocketAddr,
}

impl FileServer {
    /// Serves the files that are in this folder at the time of each request.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("the address of a listener");
        let folder = folder.to_owned();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up early is no concern of the next one.
                let _ = answer(&stream, &folder);
            }
        });
        Self { address }
    }

    /// The address of the folder.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// Answers one request and ends the connection.
fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    for line in lines.by_ref() {
        if line?.is_empty() {
            break;
        }
    }
    let (status, body) = match file(folder, &request).and_then(|file| fs::read(file).ok()) {
        Some(body) => ("200 OK", body),
        None => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}

/// The file that a request asks for. Only files directly in the folder are served.
fn file(folder: &Path, request: &str) -> Option<PathBuf> {
    let path = request.strip_prefix("GET /")?.split([' ', '?']).next()?;
    let is_plain = !path.is_empty() && !path.contains('/') && path != "..";
    is_plain.then(|| folder.join(path))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn get(server: &FileServer, path: &str) -> String {
        let mut stream = TcpStream::connect(server.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn only_files_of_the_folder_are_served() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("served");
        fs::create_dir(&folder).unwrap();
        fs::write(outer.path().join("secret"), "no").unwrap();
        fs::write(folder.join("index.yaml"), "entries").unwrap();
        let server = FileServer::start(&folder);
        assert!(get(&server, "/index.yaml").ends_with("\r\n\r\nentries"));
        for path in ["/", "/missing", "/..", "/../secret"] {
            assert!(get(&server, path).starts_with("HTTP/1.1 404"), "{path}");
        }
    }
}
