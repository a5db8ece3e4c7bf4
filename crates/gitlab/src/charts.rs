//! Allowed chart repositories. A chart is code that runs in the cluster: only an administrator decides which are
//! allowed.

use std::fmt;
use std::str::FromStr;

use stanchion_api::gitlab::ChartRepository;

/// GitLab's own charts.
pub const GITLAB: &str = "https://charts.gitlab.io";
/// The registry of the group that GitLab's charts belong to.
pub const GITLAB_OCI: &str = "oci://registry.gitlab.com/gitlab-org/charts";

/// The address of a chart repository, in a canonical form for comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

/// A text that is not an address of a chart repository.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not the address of a chart repository: write a scheme (https or oci), a host and perhaps a port and a path, such as \
     https://charts.example.com/stable, without a user, a query or a fragment"
)]
pub struct NotAnAddress;

impl Address {
    /// The address as Flux gets it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the connection is encrypted and the server verified.
    fn is_secure(&self) -> bool {
        !self.0.starts_with("http://")
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    /// Scheme and host are case-insensitive, and a trailing slash is ignored. Everything ambiguous (users, queries,
    /// fragments, escapes, dot segments) is refused.
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let (scheme, rest) = text.split_once("://").ok_or(NotAnAddress)?;
        let scheme = scheme.to_ascii_lowercase();
        if !["https", "http", "oci"].contains(&scheme.as_str()) {
            return Err(NotAnAddress);
        }
        let rest = rest.trim_end_matches('/');
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.to_ascii_lowercase();
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(NotAnAddress);
        }
        let is_segment = |segment: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-._~+".contains(c);
            !segment.is_empty() && segment != "." && segment != ".." && segment.chars().all(plain)
        };
        if path.is_empty() {
            return Ok(Self(format!("{scheme}://{host}")));
        }
        if !path.split('/').all(is_segment) {
            return Err(NotAnAddress);
        }
        Ok(Self(format!("{scheme}://{host}/{path}")))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The permissions of tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenants {
    /// Whether tenants are trusted, as in the original operator: Flux installs any chart that a tenant names, with its
    /// own permissions.
    pub trusted: bool,
    /// The repositories that every instance may use. The first is the default.
    pub repositories: Vec<Address>,
}

impl Default for Tenants {
    fn default() -> Self {
        Self {
            trusted: false,
            repositories: [GITLAB, GITLAB_OCI]
                .iter()
                .filter_map(|url| url.parse().ok())
                .collect(),
        }
    }
}

/// The message for a repository that an instance may not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl Tenants {
    /// The chart repository of an instance. It must be allowed for every instance, or be set by an administrator in the
    /// profile or the version map.
    pub fn repository(
        &self,
        named: Option<&ChartRepository>,
        profile: Option<&ChartRepository>,
        map: Option<&ChartRepository>,
    ) -> Result<ChartRepository, Refused> {
        let Some(named) = named else {
            return self.given(profile.or(map));
        };
        if self.trusted {
            return Ok(named.clone());
        }
        let address: Address = named
            .url
            .parse()
            .map_err(|error| Refused(format!("helm.repository.url {error}")))?;
        let of = |given: Option<&ChartRepository>| given.and_then(|it| it.url.parse::<Address>().ok());
        let by_administrator = [of(profile), of(map)].into_iter().flatten();
        let mut allowed = self.repositories.iter().cloned().chain(by_administrator);
        if !allowed.any(|allowed| allowed == address) {
            return Err(Refused(format!(
                "helm.repository.url {address} is not among the chart repositories that the administrator allows ({}). \
                 Use one of these, or let the administrator allow it: with --allow-chart-repository, in \
                 GitlabProfile.spec.release.repository, or in GitlabVersionMap.spec.repository",
                self.repositories
                    .iter()
                    .map(Address::as_str)
                    .collect::<Vec<_>>()
                    .join(", ")
            )));
        }
        Ok(ChartRepository {
            url: address.0,
            ..named.clone()
        })
    }

    /// The repository of an instance that names none.
    fn given(&self, by_administrator: Option<&ChartRepository>) -> Result<ChartRepository, Refused> {
        if let Some(given) = by_administrator {
            return Ok(given.clone());
        }
        let url = match self.repositories.first() {
            Some(first) => first.as_str(),
            None if self.trusted => GITLAB,
            None => {
                let words =
                    "the operator allows no chart repository at all: start it with --allow-chart-repository";
                return Err(Refused(words.into()));
            }
        };
        Ok(ChartRepository {
            url: url.to_owned(),
            credentials_secret: None,
        })
    }
}

/// An address for the list of allowed repositories, which must be encrypted.
pub fn allowed(text: &str) -> Result<Address, NotAnAddress> {
    let address: Address = text.parse()?;
    address.is_secure().then_some(address).ok_or(NotAnAddress)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(url: &str) -> ChartRepository {
        ChartRepository {
            url: url.into(),
            credentials_secret: Some("mirror".into()),
        }
    }

    #[test]
    fn an_address_has_one_spelling() {
        for (written, meant) in [
            ("https://charts.gitlab.io", "https://charts.gitlab.io"),
            ("HTTPS://Charts.GitLab.io//", "https://charts.gitlab.io"),
            (
                "oci://mirror.example.com:5000/Charts/",
                "oci://mirror.example.com:5000/Charts",
            ),
        ] {
            assert_eq!(written.parse::<Address>().unwrap().as_str(), meant);
        }
        for text in [
            "",
            "https://",
            "https:///charts",
            "ftp://charts.gitlab.io",
            "https://charts.gitlab.io@evil.example.com",
            "https://evil.example.com/?https://charts.gitlab.io",
            "https://evil.example.com#https://charts.gitlab.io",
            "https://mirror.example.com/charts/../evil",
            "https://mirror.example.com/charts/%2e%2e/evil",
            "https://mirror.example.com//evil",
            "https://charts.gitlab.io\\@evil.example.com",
            "https://charts.gitlab.io evil",
            "{{ .Values }}",
        ] {
            assert_eq!(text.parse::<Address>(), Err(NotAnAddress), "{text}");
        }
    }

    #[test]
    fn an_unencrypted_repository_cannot_be_allowed_for_all() {
        assert!(allowed("http://charts.example.com").is_err());
        assert!(allowed("https://charts.example.com").is_ok());
    }

    #[test]
    fn an_instance_uses_what_is_allowed_and_nothing_else() {
        let tenants = Tenants::default();
        let of = |url: &str| tenants.repository(Some(&repository(url)), None, None);
        assert_eq!(of("https://charts.gitlab.io/").unwrap().url, GITLAB);
        assert_eq!(of(GITLAB_OCI).unwrap().url, GITLAB_OCI);
        for url in [
            "http://charts.gitlab.io",
            "https://charts.gitlab.io.evil.example.com",
            "https://charts.gitlab.io/evil",
            "https://charts.gitlab.io:8443",
            "oci://registry.gitlab.com/evil/charts",
            "oci://registry.gitlab.com/gitlab-org",
            "oci://evil.example.com/gitlab-org/charts",
            "https://u@charts.gitlab.io",
        ] {
            assert!(of(url).is_err(), "{url}");
        }
        let words = of("https://evil.example.com").unwrap_err().0;
        assert!(
            words.contains("https://evil.example.com") && words.contains("--allow-chart-repository"),
            "{words}"
        );
    }

    #[test]
    fn what_an_administrator_gives_is_used_and_may_be_named() {
        let tenants = Tenants::default();
        let (profile, map) = (
            repository("http://mirror.local"),
            repository("oci://map.example.com/x"),
        );
        let of = |named: Option<&ChartRepository>| tenants.repository(named, Some(&profile), Some(&map));
        assert_eq!(of(None).unwrap(), profile);
        assert_eq!(tenants.repository(None, None, Some(&map)).unwrap(), map);
        assert_eq!(tenants.repository(None, None, None).unwrap().url, GITLAB);
        assert!(of(Some(&repository("http://mirror.local/"))).is_ok());
        assert!(of(Some(&map)).is_ok());
        assert!(of(Some(&repository("http://mirror.local/evil"))).is_err());
    }

    #[test]
    fn another_list_replaces_gitlabs_own() {
        let tenants = Tenants {
            repositories: vec![allowed("https://mirror.example.com").unwrap()],
            ..Tenants::default()
        };
        let url = tenants.repository(None, None, None).unwrap().url;
        assert_eq!(url, "https://mirror.example.com");
        assert!(tenants.repository(Some(&repository(GITLAB)), None, None).is_err());
        let none = Tenants {
            repositories: Vec::new(),
            ..Tenants::default()
        };
        assert!(none.repository(None, None, None).is_err());
    }

    #[test]
    fn trusted_tenants_name_what_they_like() {
        let tenants = Tenants {
            trusted: true,
            ..Tenants::default()
        };
        let evil = repository("http://anything.local/charts?x=1");
        assert_eq!(tenants.repository(Some(&evil), None, None).unwrap(), evil);
    }
}
