//! `--run IMAGE=COMMAND`: maps images to local commands.

use std::str::FromStr;

/// A part of an image's name, and the command for such containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImageCommand {
    pub(super) image: String,
    pub(super) command: Vec<String>,
}

impl FromStr for ImageCommand {
    type Err = &'static str;

    /// No shell parses the command: its words are separated by spaces.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (image, command) = text.split_once('=').unwrap_or((text, ""));
        let command: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        if image.is_empty() || command.is_empty() {
            return Err("write it as IMAGE=COMMAND");
        }
        Ok(Self {
            image: image.to_owned(),
            command,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_equals_sign_divides_and_spaces_make_words() {
        assert_eq!(
            "local/web=env A=b  serve".parse(),
            Ok(ImageCommand {
                image: "local/web".into(),
                command: vec!["env".into(), "A=b".into(), "serve".into()],
            })
        );
        for wrong in ["", "local/web", "=serve", "local/web= "] {
            wrong.parse::<ImageCommand>().unwrap_err();
        }
    }
}
