//! Pages from the templates of this crate.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::Result;

const TEMPLATES: [(&str, &str); 5] = [
    ("style.css", include_str!("../templates/style.css")),
    ("page.html", include_str!("../templates/page.html")),
    ("parts.html", include_str!("../templates/parts.html")),
    ("demo.html", include_str!("../templates/demo.html")),
    (
        "diagnosis.html",
        include_str!("../templates/diagnosis.html"),
    ),
];

/// Fills a template. Everything but drawings is escaped.
pub(crate) fn render(template: &str, content: Value) -> Result<String> {
    let mut env = Environment::new();
    // A name that a template misspells is an error, not a gap in the page.
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    env.set_syntax(syntax.keep_trailing_newline(true).build()?);
    env.add_filter("number", number);
    env.add_filter("count", thousands);
    env.add_filter("percent", |share: f64| format!("{:.1} %", 100.0 * share));
    env.add_filter("recall", |recall: Option<f64>| {
        recall.map_or("-".into(), |r| format!("{r:.4}"))
    });
    env.add_filter("above", above);
    for (name, source) in TEMPLATES {
        env.add_template(name, source)?;
    }
    Ok(env.get_template(template)?.render(content)?)
}

/// How far a recall is above the better one of two others, with its sign.
fn above(own: Option<f64>, a: Option<f64>, b: Option<f64>) -> String {
    let other = a.into_iter().chain(b).reduce(f64::max);
    let difference = own.zip(other).map(|(own, other)| own - other);
    difference.map_or("-".into(), |d| format!("{d:+.4}"))
}

/// A whole number with thousands separated by commas.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    if value < 0.0 && digits != "0" {
        out.push('-');
    }
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with about three digits; a dash for what is none.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        _ if !value.is_finite() => return "-".into(),
        size if size >= 1000.0 => return thousands(value),
        size if size >= 100.0 => return format!("{value:.0}"),
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let of = [
            0.0,
            0.12345,
            1.0,
            2.34567,
            23.4567,
            100.0,
            234.567,
            23456.7,
            -0.5,
            f64::NAN,
        ];
        let expected = [
            "0", "0.123", "1", "2.35", "23.5", "100", "235", "23,457", "-0.5", "-",
        ];
        assert_eq!(of.map(number), expected);
        let whole = [0.0, 999.0, 1000.0, 1234567.0, -1000.0, -0.2].map(thousands);
        assert_eq!(whole, ["0", "999", "1,000", "1,234,567", "-1,000", "0"]);
    }

    #[test]
    fn a_misspelt_name_is_an_error() {
        assert!(render("demo.html", minijinja::context! {}).is_err());
    }
}
