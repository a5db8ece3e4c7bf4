//! Findings in a manifest, with their path and location.

use std::fmt;

use crate::yaml::{Location, Node, Segment};

/// A path into a manifest: `grants[3].object.name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Segment>);

impl Path {
    /// The path to a top-level key.
    pub fn root(key: &str) -> Self {
        Self::default().key(key)
    }

    /// One key further down.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Segment::Key(key.to_owned()))
    }

    /// One item further down.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Segment::Index(index))
    }

    fn then(&self, segment: Segment) -> Self {
        let mut path = self.0.clone();
        path.push(segment);
        Self(path)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if position > 0 => write!(f, ".{key}")?,
                Segment::Key(key) => f.write_str(key)?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Does not stop.
    Warning,
    /// pgroles accepts it; Stanchion accepts it in lenient mode.
    Strict,
    /// Always invalid.
    Error,
}

/// Whether findings that pgroles accepts are errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Strictness {
    #[default]
    Strict,
    Lenient,
}

/// One finding in a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// The path in the manifest.
    pub path: Path,
    /// The location in the file, if the manifest came from one.
    pub location: Option<Location>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A finding at a path.
    pub fn new(severity: Severity, path: Path, message: impl Into<String>) -> Self {
        Self {
            severity,
            path,
            location: None,
            message: message.into(),
            help: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the location from the parsed file.
    pub(super) fn locate(&mut self, document: &Node) {
        if self.location.is_none() {
            self.location = Some(document.locate(&self.path.0));
        }
    }

    /// Whether the finding makes the manifest unusable.
    pub fn is_fatal(&self, strictness: Strictness) -> bool {
        match self.severity {
            Severity::Warning => false,
            Severity::Strict => strictness == Strictness::Strict,
            Severity::Error => true,
        }
    }
}

/// `12:5: grants[3].privileges: EXECUTE …; help`
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = self.location {
            write!(f, "{location}: ")?;
        }
        if !self.path.0.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

/// A manifest that cannot be used, with every reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Invalid {
    /// The reasons, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, diagnostic) in self.diagnostics.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl From<Diagnostic> for Invalid {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            diagnostics: vec![diagnostic],
        }
    }
}

/// Splits findings into an error, if any is fatal, and warnings.
pub(crate) fn judge(
    mut diagnostics: Vec<Diagnostic>,
    strictness: Strictness,
) -> Result<Vec<Diagnostic>, Invalid> {
    diagnostics.sort_by_key(|diagnostic| diagnostic.location);
    if diagnostics
        .iter()
        .any(|diagnostic| diagnostic.is_fatal(strictness))
    {
        diagnostics.retain(|diagnostic| diagnostic.is_fatal(strictness));
        return Err(Invalid { diagnostics });
    }
    Ok(diagnostics)
}
