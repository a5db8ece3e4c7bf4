//! The arguments of `stanchion run`. Each also has an environment variable.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use secrecy::SecretString;
use stanchion_gitlab::charts::{self, Tenants};
use stanchion_kernel::admission::{Endpoint, EndpointError};
use stanchion_kernel::telemetry::logs;
use stanchion_postgres::network::Network;
use stanchion_user::Openings;

use crate::controllers::Choice;

/// The port of the health checks.
pub(crate) const HEALTH_PORT: u16 = 8081;
/// The port of the webhooks.
pub(crate) const WEBHOOK_PORT: u16 = 9443;
/// The Service in front of the operator's pods.
pub(crate) const SERVICE: &str = "stanchion";

/// Arguments of `stanchion run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) controllers: Choice,

    /// Namespace to watch; can be repeated. Default: the whole cluster
    #[arg(long, env = "STANCHION_NAMESPACE", value_name = "NS", value_delimiter = ',')]
    pub(super) namespace: Vec<String>,

    /// Namespace of the operator itself, with its Lease, its certificate and its Service. Default: the namespace of its
    /// pod, or of the kubeconfig's context
    #[arg(long, env = "STANCHION_OPERATOR_NAMESPACE", value_name = "NS")]
    pub(super) operator_namespace: Option<String>,

    /// Enable leader election, for more than one replica
    #[arg(long, env = "STANCHION_LEADER_ELECT", value_parser = BoolishValueParser::new())]
    pub(super) leader_elect: bool,

    /// Address for /livez and /readyz
    #[arg(
        long,
        env = "STANCHION_HEALTH_ADDR",
        value_name = "ADDR",
        default_value_t = (Ipv4Addr::LOCALHOST, HEALTH_PORT).into()
    )]
    pub(super) health_addr: SocketAddr,

    /// Address for /metrics
    #[arg(
        long,
        env = "STANCHION_METRICS_ADDR",
        value_name = "ADDR",
        default_value = "127.0.0.1:8080"
    )]
    pub(super) metrics_addr: SocketAddr,

    #[command(flatten)]
    pub(super) admission: Admission,

    #[command(flatten)]
    pub(super) instance: InstanceArguments,

    #[command(flatten)]
    pub(super) gitlab: GitlabArguments,

    /// Maximum number of concurrent reconciles per controller; one namespace has at most half of them
    #[arg(long, env = "STANCHION_CONCURRENCY", value_name = "N", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(super) concurrency: u16,

    /// Minimum interval between two reconciles of an unchanged object, whatever its spec asks for
    #[arg(long, env = "STANCHION_MIN_INTERVAL", value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(super) min_interval: Duration,

    /// Prefix that images of a `SupabaseProject` must have, such as `registry.example.com/`; can be repeated. Without
    /// it all images are allowed; the operator's default images always are
    #[arg(
        long = "allow-image",
        env = "STANCHION_ALLOW_IMAGE",
        value_name = "PREFIX",
        value_delimiter = ','
    )]
    pub(super) allowed_images: Vec<String>,

    /// Log format: text or json
    #[arg(long, env = "STANCHION_LOG_FORMAT", value_name = "FORMAT", default_value_t)]
    pub(super) log_format: logs::Format,

    /// Log filter, such as `info,stanchion_kernel=debug`
    #[arg(long, env = "STANCHION_LOG", value_name = "FILTER", default_value = logs::DEFAULT_FILTER)]
    pub(super) log: String,

    /// Send traces and metrics to this OpenTelemetry collector, such as `http://collector:4318`. Default:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` and the variables for single signals
    #[cfg(feature = "otlp")]
    #[arg(long, env = "STANCHION_OTLP_ENDPOINT", value_name = "URL")]
    pub(super) otlp_endpoint: Option<String>,
}

impl Arguments {
    /// Parses arguments of a command line without the environment, for code that runs the operator in the same process.
    #[cfg(feature = "sandbox")]
    pub(crate) fn of_words(words: &[String]) -> Result<Self, clap::Error> {
        use clap::{Args as _, FromArgMatches as _, builder::Resettable};
        let command = Self::augment_args(clap::Command::new("run").no_binary_name(true))
            .mut_args(|argument| argument.env(Resettable::Reset));
        Self::from_arg_matches(&command.try_get_matches_from(words)?)
    }
}

/// Options of the webhooks.
#[derive(Debug, clap::Args)]
pub(crate) struct Admission {
    /// Serve no webhooks: mistakes are then reported in the status only
    #[arg(long, env = "STANCHION_NO_WEBHOOKS", value_parser = BoolishValueParser::new(),
          conflicts_with_all = ["webhook_addr", "webhook_url", "webhook_service", "webhook_cert_dir"])]
    pub(super) no_webhooks: bool,

    /// Address for webhooks
    #[arg(
        long,
        env = "STANCHION_WEBHOOK_ADDR",
        value_name = "ADDR",
        default_value_t = (Ipv4Addr::UNSPECIFIED, WEBHOOK_PORT).into()
    )]
    pub(super) webhook_addr: SocketAddr,

    /// URL by which the API server reaches this process, for an operator outside of the cluster
    #[arg(long, env = "STANCHION_WEBHOOK_URL", value_name = "URL", value_parser = url,
          conflicts_with = "webhook_service")]
    pub(super) webhook_url: Option<Endpoint>,

    /// Service by which the API server reaches the operator's pods, on port 443
    #[arg(
        long,
        env = "STANCHION_WEBHOOK_SERVICE",
        value_name = "NAME",
        default_value = SERVICE
    )]
    pub(super) webhook_service: String,

    /// Folder with tls.crt and tls.key, such as a mounted Secret of cert-manager. Without it the operator creates and
    /// rotates its own certificate
    #[arg(long, env = "STANCHION_WEBHOOK_CERT_DIR", value_name = "DIR")]
    pub(super) webhook_cert_dir: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    stanchion_api::duration::parse(text).ok_or_else(|| "write it like 90s, 10m or 1h30m".to_owned())
}

fn url(text: &str) -> Result<Endpoint, EndpointError> {
    Endpoint::url(text)
}

/// What authors of a `GitlabInstance` may do.
#[derive(Debug, clap::Args)]
pub(crate) struct GitlabArguments {
    /// Chart repository that every `GitlabInstance` may use, https or oci; can be repeated. Instances without a
    /// repository use the first
    #[arg(
        long,
        env = "STANCHION_ALLOW_CHART_REPOSITORY",
        value_name = "URL",
        value_delimiter = ',',
        default_values = [charts::GITLAB, charts::GITLAB_OCI],
        value_parser = charts::allowed
    )]
    allow_chart_repository: Vec<charts::Address>,

    /// Let everyone who may write a `GitlabInstance` install any chart with the permissions of Flux, which are usually
    /// those of a cluster administrator. Only for a cluster with a single tenant
    #[arg(long, env = "STANCHION_TRUST_TENANTS", value_parser = BoolishValueParser::new())]
    trust_tenants: bool,
}

impl GitlabArguments {
    pub(super) fn tenants(&self) -> Tenants {
        Tenants {
            trusted: self.trust_tenants,
            repositories: self.allow_chart_repository.clone(),
        }
    }
}

/// The default server of `PostgresUser` objects.
#[derive(Debug, clap::Args)]
pub(crate) struct InstanceArguments {
    /// URL of the PostgreSQL server for every `PostgresUser` without an instanceRef. Other processes can read
    /// arguments: prefer the variable, or the file
    #[arg(
        long,
        env = "STANCHION_POSTGRES_URL",
        hide_env_values = true,
        value_name = "URL",
        conflicts_with = "postgres_url_file"
    )]
    pub(super) postgres_url: Option<SecretString>,

    /// File with the URL of the default PostgreSQL server
    #[arg(long, env = "STANCHION_POSTGRES_URL_FILE", value_name = "FILE")]
    pub(super) postgres_url_file: Option<PathBuf>,

    /// Network of servers (PostgreSQL, S3) that objects may use although it is the operator's own; can be repeated.
    /// Without it, an operator in a pod does not connect to loopback and link-local addresses and the API server
    #[arg(
        long,
        env = "STANCHION_ALLOW_NETWORK",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub(super) allow_network: Vec<Network>,

    /// Existing databases of the default server that every namespace may use, but not own; a * matches any characters, an
    /// empty value selects none. Never postgres, and no template
    #[arg(
        long,
        env = "STANCHION_POSTGRES_DATABASES",
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "*"
    )]
    pub(super) postgres_databases: Vec<String>,

    /// Existing roles of the default server that every namespace may become a member of, or reassign to. Default: none. A role
    /// whose name begins with pg_ must be listed by its exact name
    #[arg(
        long,
        env = "STANCHION_POSTGRES_ROLES",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(super) postgres_roles: Vec<String>,

    /// Existing roles of the default server that every namespace may adopt. Default: none
    #[arg(
        long,
        env = "STANCHION_POSTGRES_ADOPTION",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(super) postgres_adoption: Vec<String>,

    /// Extensions that may be created on the default server although PostgreSQL does not mark them as trusted
    #[arg(
        long,
        env = "STANCHION_POSTGRES_EXTENSIONS",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(super) postgres_extensions: Vec<String>,

    /// Parameters that a role of the default server may have in addition to those that every user may set, for instance
    /// app.tenant
    #[arg(
        long,
        env = "STANCHION_POSTGRES_PARAMETERS",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(super) postgres_parameters: Vec<String>,
}

impl InstanceArguments {
    /// What every namespace may use on the default server.
    pub(super) fn openings(&self) -> Openings {
        let named = |names: &[String]| names.iter().filter(|name| !name.is_empty()).cloned().collect();
        Openings {
            databases: named(&self.postgres_databases),
            roles: named(&self.postgres_roles),
            adoption: named(&self.postgres_adoption),
            extensions: named(&self.postgres_extensions),
            parameters: named(&self.postgres_parameters),
        }
    }
}
