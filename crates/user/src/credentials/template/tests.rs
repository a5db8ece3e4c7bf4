//! Valid templates, and errors with their position.

use proptest::prelude::*;

use super::*;

fn value(field: Field) -> String {
    let text = match field {
        Field::Username => "ann",
        Field::Password => " p@ss \"w'ö\\:rd ",
        Field::Host => "db",
        Field::Port => "5432",
        Field::Database => "app",
        Field::SslMode => "require",
        Field::Params => "sslmode=require",
    };
    text.to_owned()
}

fn render(text: &str) -> String {
    Template::parse(text)
        .unwrap()
        .render(|field| Some(value(field)))
        .unwrap()
}

fn refused(text: &str) -> String {
    Template::parse(text).unwrap_err().to_string()
}

#[test]
fn every_field_is_there() {
    let all = "{{ .Username }} {{.Host}} {{ .Port }} {{\n.Database\t}} {{ .SSLMode }} {{ .Params }}";
    assert_eq!(render(all), "ann db 5432 app require sslmode=require");
}

#[test]
fn every_function_writes_its_own_syntax() {
    let cases = [
        ("urlquery", r"%20p%40ss%20%22w%27%C3%B6%5C%3Ard%20"),
        ("b64enc", "IHBAc3MgIncnw7ZcOnJkIA=="),
        ("quote", r#"" p@ss \"w'ö\\:rd ""#),
        ("squote", r#"' p@ss "w'\''ö\:rd '"#),
        ("conninfo", r#"' p@ss "w\'ö\\:rd '"#),
        ("dotnet", r#"" p@ss ""w'ö\:rd ""#),
        ("pgpass", r#" p@ss "w'ö\\\:rd "#),
        ("trim", r#"p@ss "w'ö\:rd"#),
        ("lower", r#" p@ss "w'ö\:rd "#),
        ("upper", r#" P@SS "W'Ö\:RD "#),
    ];
    assert_eq!(
        cases.map(|(name, _)| name).as_slice(),
        FUNCTIONS.iter().map(|f| f.0).collect::<Vec<_>>()
    );
    for (name, expected) in cases {
        assert_eq!(render(&format!("{{{{ .Password | {name} }}}}")), expected);
        assert_eq!(render(&format!("{{{{{name} .Password}}}}")), expected);
    }
    assert_eq!(
        render("{{ trim .Password | upper|urlquery }}"),
        "P%40SS%20%22W%27%C3%96%5C%3ARD"
    );
}

#[test]
fn trim_markers_take_white_space_and_nothing_else() {
    assert_eq!(render("a \n {{- .Host -}} \t b"), "adbb");
    assert_eq!(render("a {{ .Host -}}\n{{- .Port }} b"), "a db5432 b");
}

#[test]
fn braces_that_are_no_action_are_text() {
    assert_eq!(render(r#"{"a":{"b":"{{ .Host }}"}}"#), r#"{"a":{"b":"db"}}"#);
    assert_eq!(render(r#"{{ "{{ \"x\\n\" }}" }}"#), r#"{{ "x\n" }}"#);
    assert_eq!(render(""), "");
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let cases = [
        (
            "{{ .Nope }}",
            "line 1, column 4: there is no field `.Nope`; there are Username, Password, Host",
        ),
        (
            "é\nab{{ .Host | printf }}",
            "line 2, column 14: there is no function `printf`; there are urlquery, b64enc",
        ),
        (
            "{{ range .Hosts }}",
            "line 1, column 4: there is no function `range`",
        ),
        ("a {{ .Host", "line 1, column 3: the closing `}}` is missing"),
        ("a {{", "line 1, column 3: the closing `}}` is missing"),
        (
            "{{ }}",
            "line 1, column 4: expected a field such as `.Password`, or a text in double quotes",
        ),
        ("{{ .Host .Port }}", "line 1, column 10: expected `|` or `}}`"),
        ("{{ .Host | }}", "line 1, column 12: there is no function ``"),
        ("{{ \"open }}", "line 1, column 4: the closing `\"` is missing"),
        ("{{ \"a\\x\" }}", "line 1, column 6: after `\\` comes"),
        ("{{ {{ .Host }} }}", "line 1, column 4: expected a field"),
    ];
    for (text, expected) in cases {
        let message = refused(text);
        assert!(message.starts_with(expected), "{text}: {message}");
    }
    assert!(refused(&format!("{{{{ .{} }}}}", "x".repeat(4000))).len() < 200);
}

#[test]
fn a_password_that_is_not_known_is_a_mistake_of_the_template_that_wants_it() {
    let none = |_| None;
    let mistake = Template::parse("x{{ .Password }}")
        .unwrap()
        .render(none)
        .unwrap_err();
    assert_eq!(
        mistake.to_string(),
        "line 1, column 2: the role has no password, or only a hash of it is known"
    );
    assert_eq!(Template::parse("plain").unwrap().render(none).unwrap(), "plain");
}

#[test]
fn a_short_template_cannot_ask_for_unlimited_memory() {
    let bomb = format!("{{{{ .Password{} }}}}", " | quote".repeat(500));
    let message = Template::parse(&bomb)
        .unwrap()
        .render(|field| Some(value(field)))
        .unwrap_err()
        .to_string();
    assert_eq!(message, "line 1, column 1: the value is too large for a Secret");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\{\\{|\\}\\}|-|\\.|\"|\\\\|[|a-zA-Z \nö]|\\.Host|\\.Port|trim){0,40}") {
        if let Ok(template) = Template::parse(&text) {
            template.render(|field| Some(value(field))).unwrap();
        }
    }

    #[test]
    fn text_without_an_action_stays_as_it_is(text in "[^{]{0,200}") {
        prop_assert_eq!(render(&text), text);
    }

    #[test]
    fn a_value_is_never_read_as_a_template(password in "(\\{\\{ \\.Host \\}\\}|.){0,20}") {
        let template = Template::parse("{{ .Password }}").unwrap();
        prop_assert_eq!(template.render(|_| Some(password.clone())).unwrap(), password);
    }
}
