//! The figures as a table, with the original's beside them if they were measured.

use crate::measure::{Figures, Load, number};

/// A figure by name, with its number of decimals.
type Row = (&'static str, usize, fn(&Figures) -> f64);

const ROWS: [Row; 13] = [
    ("all Ready after, s", 1, |it| it.ready.as_secs_f64()),
    ("  API calls", 0, |it| number(it.made.calls())),
    ("  of which writes", 0, |it| number(it.made.writes)),
    ("  SQL statements", 0, |it| number(it.made.statements)),
    ("  CPU, ms", 0, |it| it.made_cpu.as_secs_f64() * 1000.0),
    ("  connections at once", 0, |it| number(it.made.connections)),
    ("at rest, API calls a minute", 1, |it| {
        it.a_minute(it.rest.calls())
    }),
    ("  of which writes", 1, |it| it.a_minute(it.rest.writes)),
    ("  SQL statements a minute", 1, |it| {
        it.a_minute(it.rest.statements)
    }),
    ("  CPU, ms a minute", 0, |it| {
        it.rest_cpu.as_secs_f64() * 1000.0 / it.minutes
    }),
    ("memory, MiB", 1, |it| it.resident_mib),
    ("  of which pages of files", 1, |it| it.file_mib),
    ("  at most", 1, |it| it.peak_mib),
];

/// Prints one load.
pub(crate) fn print(load: Load, ours: &Figures, rival: Option<&Figures>) {
    let title = format!("{} policies, {} database(s)", load.policies, load.databases);
    match rival {
        None => println!("\n{title:<32}{:>12}", "stanchion"),
        Some(_) => println!("\n{title:<32}{:>12}{:>12}{:>10}", "stanchion", "pgroles", "ratio"),
    }
    for (name, decimals, figure) in ROWS {
        let first = figure(ours);
        print!("{name:<32}{first:>12.decimals$}");
        if let Some(rival) = rival {
            let second = figure(rival);
            print!("{second:>12.decimals$}{:>10}", ratio(first, second));
        }
        println!();
    }
}

/// The ratio of both figures.
fn ratio(first: f64, second: f64) -> String {
    if first > 0.0 {
        format!("{:.1}", second / first)
    } else {
        "-".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::ratio;

    #[test]
    fn nothing_has_no_ratio() {
        assert_eq!(ratio(2.0, 5.0), "2.5");
        assert_eq!(ratio(0.0, 5.0), "-");
    }
}
