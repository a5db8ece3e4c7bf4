//! Parses the actions between braces.

use super::{FIELDS, FUNCTIONS, Function, Mistake, Value, mistake};

/// A position in a template.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) offset: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    pub(super) fn skip(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.offset += token.len();
        }
        found
    }

    /// Parses an action including the closing braces; returns whether the text after them is trimmed.
    pub(super) fn action(&mut self, start: usize) -> Result<(Value, Vec<Function>, bool), Mistake> {
        let mut functions = Vec::new();
        self.space();
        if self.rest().starts_with(|c: char| c.is_ascii_alphabetic()) {
            functions.push(self.function()?);
            self.space();
        }
        let value = self.value(start)?;
        loop {
            self.space();
            if self.skip("-}}") {
                return Ok((value, functions, true));
            }
            if self.skip("}}") {
                return Ok((value, functions, false));
            }
            if !self.skip("|") {
                return Err(self.unexpected(start, "`|` or `}}`"));
            }
            self.space();
            functions.push(self.function()?);
        }
    }

    fn value(&mut self, start: usize) -> Result<Value, Mistake> {
        let at = self.offset;
        if self.skip(".") {
            let name = self.name();
            let field = FIELDS
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, field)| Value::Field(*field));
            return field
                .ok_or_else(|| self.unknown(at, "field", &format!(".{name}"), FIELDS.iter().map(|f| f.0)));
        }
        if !self.skip("\"") {
            return Err(self.unexpected(start, "a field such as `.Password`, or a text in double quotes"));
        }
        let mut literal = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((place, c)) = characters.next() {
            match c {
                '"' => {
                    self.offset += place + 1;
                    return Ok(Value::Literal(literal));
                }
                '\\' => match characters.next() {
                    Some((_, escaped @ ('"' | '\\'))) => literal.push(escaped),
                    Some((_, 'n')) => literal.push('\n'),
                    Some((_, 't')) => literal.push('\t'),
                    _ => {
                        return Err(mistake(
                            self.text,
                            self.offset + place,
                            r#"after `\` comes `"`, `\`, `n` or `t`"#,
                        ));
                    }
                },
                c => literal.push(c),
            }
        }
        Err(mistake(self.text, at, "the closing `\"` is missing"))
    }

    fn function(&mut self) -> Result<Function, Mistake> {
        let at = self.offset;
        let name = self.name();
        let function = FUNCTIONS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, function)| *function);
        function.ok_or_else(|| self.unknown(at, "function", name, FUNCTIONS.iter().map(|f| f.0)))
    }

    fn name(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(rest.len());
        self.offset += end;
        rest.get(..end).unwrap_or_default()
    }

    fn space(&mut self) {
        self.offset += self.rest().len() - self.rest().trim_start().len();
    }

    fn unexpected(&self, start: usize, wanted: &str) -> Mistake {
        if self.rest().contains("}}") {
            mistake(self.text, self.offset, &format!("expected {wanted}"))
        } else {
            mistake(self.text, start, "the closing `}}` is missing")
        }
    }

    fn unknown(
        &self,
        at: usize,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'static str>,
    ) -> Mistake {
        let known: Vec<&str> = known.collect();
        let name = stanchion_kernel::text::shorten(name, 32);
        mistake(
            self.text,
            at,
            &format!("there is no {what} `{name}`; there are {}", known.join(", ")),
        )
    }
}
