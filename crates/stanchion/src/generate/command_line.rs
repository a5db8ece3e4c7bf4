//! The page about the command line, from clap's own description of it.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::table::{MADE, table};

/// The page.
pub(super) fn page(cli: &Command) -> String {
    let mut text = format!("# Command line\n\n{MADE}\n");
    text.push_str("Exit codes: 0 done, 1 failed, 2 used wrongly. A failure is one line on standard error.\n");
    for command in cli.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(text, "\n## stanchion {}\n\n{about}.\n", command.get_name());
        let rows: Vec<[String; 4]> = command.get_arguments().filter_map(row).collect();
        text.push_str(&table(["option", "variable", "default", "meaning"], &rows));
    }
    text
}

fn row(argument: &Arg) -> Option<[String; 4]> {
    let long = argument.get_long()?;
    let takes_value = argument.get_action().takes_values();
    let values: Vec<String> = argument
        .get_value_names()
        .filter(|_| takes_value)
        .unwrap_or_default()
        .iter()
        .map(|name| format!(" {name}"))
        .collect();
    let variable = argument.get_env().map(|name| format!("`{}`", name.display()));
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.display()))
        .collect();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    Some([
        format!("`--{long}{}`", values.concat()),
        variable.unwrap_or_default(),
        defaults.join(", "),
        help,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_all_that_there_is_to_know() {
        let command = Command::new("x").subcommand(
            Command::new("run").about("Run it").arg(
                Arg::new("addr")
                    .long("addr")
                    .value_name("ADDR")
                    .env("X_ADDR")
                    .default_value("1.2.3.4")
                    .help("Where"),
            ),
        );
        let page = page(&command);
        assert!(
            page.contains("| `--addr ADDR` | `X_ADDR` | `1.2.3.4` | Where |"),
            "{page}"
        );
    }
}
