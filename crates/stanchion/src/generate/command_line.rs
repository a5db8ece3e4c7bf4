//! The reference page of the command line, from clap's description of it.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::table::{MADE, table};

/// The page.
pub(super) fn page(cli: &Command) -> String {
    let mut text = format!("# Command line\n\n{MADE}\n");
    text.push_str(
        "Exit codes: 0 done, 1 failed, 2 usage error; `roles` has [its own](../roles/README.md). A failure is one line on \
         standard error.\n",
    );
    commands(&mut text, cli, "stanchion", "##");
    text
}

/// A section for each command, and below it one for each of its subcommands.
fn commands(text: &mut String, parent: &Command, path: &str, heading: &str) {
    for command in parent.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let path = format!("{path} {}", command.get_name());
        let _ = writeln!(text, "\n{heading} {path}\n\n{about}.");
        let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let rows: Vec<[String; 4]> = shown.filter_map(row).collect();
        if !rows.is_empty() {
            text.push('\n');
            text.push_str(&table(["option", "variable", "default", "meaning"], &rows));
        }
        commands(text, command, &path, &format!("{heading}#"));
    }
}

fn row(argument: &Arg) -> Option<[String; 4]> {
    let takes_value = argument.get_action().takes_values();
    let values: Vec<String> = argument
        .get_value_names()
        .filter(|_| takes_value)
        .unwrap_or_default()
        .iter()
        .map(|name| format!(" {name}"))
        .collect();
    let option = match argument.get_long() {
        Some(long) => format!("--{long}{}", values.concat()),
        None if argument.is_positional() => values.concat().trim().to_owned(),
        None => return None,
    };
    let variable = argument.get_env().map(|name| format!("`{}`", name.display()));
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|_| takes_value)
        .map(|value| format!("`{}`", value.display()))
        .collect();
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    Some([
        format!("`{option}`"),
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
        let inner = Command::new("off")
            .about("End it")
            .arg(Arg::new("who").value_name("WHO").help("Whom"));
        let command = command.mut_subcommand("run", |run| run.subcommand(inner));
        let page = page(&command);
        assert!(
            page.contains("| `--addr ADDR` | `X_ADDR` | `1.2.3.4` | Where |"),
            "{page}"
        );
        assert!(
            page.contains("### stanchion run off\n\nEnd it.\n") && page.contains("| `WHO` |  |  | Whom |"),
            "{page}"
        );
    }
}
