//! A real browser without a window: Debian's Chromium, driven by its `chromedriver`.
//!
//! We start the browser ourselves and the driver attaches to it: so both are children that cannot outlive the test,
//! however it ends.

mod axe;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};

pub use axe::Finding;

use crate::{port, process::Launch, process::Process, report, scratch::Scratch, wait};

const START: Duration = Duration::from_mins(1);

/// Options of a browser without a window that contacts nobody but the page, also for root.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

/// The colours that a user prefers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on a light ground.
    Light,
    /// Light text on a dark ground.
    Dark,
}

impl Scheme {
    fn word(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// A browser with one page.
pub struct Browser {
    client: Client<HttpConnector, Full<Bytes>>,
    /// `http://127.0.0.1:PORT/session/ID`.
    session: String,
    // Dropped in this order: the driver, the browser, its profile.
    _driver: Process,
    _chromium: Process,
    _profile: Scratch,
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser")
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// Chromium and its driver, or what is missing.
fn programs() -> Result<(PathBuf, PathBuf), &'static str> {
    let find = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path)
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    };
    match (find("chromium"), find("chromedriver")) {
        (Some(chromium), Some(driver)) => Ok((chromium, driver)),
        (None, _) => Err("chromium is missing"),
        (_, None) => Err("chromedriver is missing"),
    }
}

impl Browser {
    /// A browser, or `None` if this machine has none. The report then lists the test as skipped, and the test returns.
    pub async fn start() -> Option<Self> {
        match programs() {
            Ok((chromium, driver)) => Some(Self::launch(&chromium, &driver).await),
            Err(why) => {
                report::skipped(&report::this_test(), why);
                None
            }
        }
    }

    async fn launch(chromium: &Path, driver: &Path) -> Self {
        let profile = Scratch::new("stanchion-browser-").unwrap();
        let (debugging, driving) = (port::free(), port::free());
        let chromium = Launch::new(chromium, profile.path().join("chromium.log"))
            .args(OPTIONS.iter().copied())
            .args([
                format!("--user-data-dir={}", profile.path().join("profile").display()),
                format!("--remote-debugging-port={debugging}"),
                "about:blank".to_owned(),
            ])
            .spawn()
            .unwrap();
        let driver = Launch::new(driver, profile.path().join("driver.log"))
            .args([format!("--port={driving}")])
            .spawn()
            .unwrap();
        let mut browser = Self {
            client: Client::builder(TokioExecutor::new()).build_http(),
            session: format!("http://127.0.0.1:{driving}"),
            _driver: driver,
            _chromium: chromium,
            _profile: profile,
        };
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": { "debuggerAddress": format!("127.0.0.1:{debugging}") },
        } } });
        let id = wait::within(START)
            .eventually("a session of the browser", async || {
                let answer = browser.request("POST", "/session", &wanted).await?;
                let id = answer.pointer("/sessionId").and_then(Value::as_str);
                id.map(str::to_owned).ok_or_else(|| answer.to_string())
            })
            .await;
        browser.session = format!("{}/session/{id}", browser.session);
        browser
    }

    /// Sends a command of `WebDriver` and returns its value.
    async fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.session))
            .header("content-type", "application/json")
            .body(Full::from(if method == "GET" {
                String::new()
            } else {
                body.to_string()
            }))
            .unwrap();
        let answer = self
            .client
            .request(request)
            .await
            .map_err(|error| format!("{error:?}"))?;
        let bytes = answer
            .into_body()
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        let mut answer: Value =
            serde_json::from_slice(&bytes.to_bytes()).map_err(|error| error.to_string())?;
        let value = answer["value"].take();
        match value.get("error").filter(|_| value.get("stacktrace").is_some()) {
            Some(error) => Err(format!("{error}: {}", value["message"])),
            None => Ok(value),
        }
    }

    async fn command(&self, path: &str, body: &Value) -> Value {
        match self.request("POST", path, body).await {
            Ok(value) => value,
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Opens an address, and waits until it is loaded.
    pub async fn open(&self, address: &str) {
        self.command("/url", &json!({ "url": address })).await;
    }

    /// Runs a script in the page; it returns a value with `return`.
    pub async fn run(&self, script: &str) -> Value {
        self.command("/execute/sync", &json!({ "script": script, "args": [] }))
            .await
    }

    /// Runs a script that calls its last argument with the result.
    pub(super) async fn run_async(&self, script: &str) -> Value {
        self.command("/execute/async", &json!({ "script": script, "args": [] }))
            .await
    }

    /// Waits until a script returns true.
    pub async fn until(&self, what: &str, script: &str) {
        wait::within(Duration::from_mins(1))
            .eventually(what, async || match self.run(script).await {
                Value::Bool(true) => Ok(()),
                other => Err(other.to_string()),
            })
            .await;
    }

    /// Presses keys, one after the other.
    pub async fn press(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let body = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.command("/actions", &body).await;
    }

    /// A command of Chromium's own protocol.
    async fn protocol(&self, command: &str, parameters: &Value) -> Value {
        self.command(
            "/goog/cdp/execute",
            &json!({ "cmd": command, "params": parameters }),
        )
        .await
    }

    /// Prefers these colours.
    pub async fn prefer(&self, scheme: Scheme) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme.word() }]);
        self.protocol("Emulation.setEmulatedMedia", &json!({ "features": features }))
            .await;
    }

    /// A screen of this size.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.protocol("Emulation.setDeviceMetricsOverride", &size).await;
    }

    /// Writes what is visible as a PNG file.
    pub async fn screenshot(&self, file: &Path) {
        let shot = self
            .protocol(
                "Page.captureScreenshot",
                &json!({ "format": "png", "optimizeForSpeed": false }),
            )
            .await;
        let bytes = STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}
