//! Parses an exposition as strictly as a scraper does.

use std::collections::BTreeMap;

/// The series of one exposition.
#[derive(Debug)]
pub(crate) struct Scrape {
    series: BTreeMap<String, String>,
    kinds: BTreeMap<String, String>,
}

impl Scrape {
    /// Panics where a scraper would reject it: no end mark, a duplicate family or series, a value that is not a number,
    /// a sample outside of its family.
    pub(crate) fn parse(text: &str) -> Self {
        let body = text
            .strip_suffix("# EOF\n")
            .expect("the text ends with its end mark");
        let (mut series, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        let mut family = String::new();
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type has a name");
                name.clone_into(&mut family);
                assert_eq!(
                    kinds.insert(name.to_owned(), kind.to_owned()),
                    None,
                    "the family {name} comes twice"
                );
            } else if !line.starts_with('#') {
                let (key, value) = line.rsplit_once(' ').expect("a sample has a value");
                assert!(key.starts_with(&family), "{key} is outside its family {family}");
                assert!(value.parse::<f64>().is_ok(), "{line} has no number");
                assert_eq!(
                    series.insert(key.to_owned(), value.to_owned()),
                    None,
                    "the series {key} comes twice"
                );
            }
        }
        Self { series, kinds }
    }

    /// The integer value of this series, labels in the order of the output.
    pub(crate) fn count(&self, series: &str) -> u64 {
        self.text(series)
            .parse()
            .unwrap_or_else(|_| panic!("{series} is no whole number"))
    }

    /// The value of this series, whole or not.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.text(series)
            .parse()
            .unwrap_or_else(|_| panic!("{series} is no number"))
    }

    /// Whether any series has this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.series.keys().any(|key| key.split('{').next() == Some(name))
    }

    fn text(&self, series: &str) -> &str {
        self.series
            .get(series)
            .unwrap_or_else(|| panic!("no {series} in {:#?}", self.series.keys()))
    }

    /// The type of this family.
    pub(crate) fn kind(&self, family: &str) -> &str {
        self.kinds.get(family).map_or("none", String::as_str)
    }
}
