//! Writing SVG and HTML text: escaping and number formats.

use std::fmt::Write;

/// Text made safe inside elements and quoted attributes. Control characters that XML forbids are dropped.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => {}
            c => out.push(c),
        }
    }
    out
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

/// Estimated width of `text` in a sans-serif face of `size` pixels; errs on the wide side.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

/// Where and how a text is set.
pub(crate) struct Text<'a> {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) size: f64,
    /// `start`, `middle` or `end`.
    pub(crate) anchor: &'a str,
    pub(crate) bold: bool,
}

/// SVG elements under construction.
#[derive(Default)]
pub(crate) struct Svg {
    out: String,
}

impl Svg {
    /// Appends formatted markup; the caller escapes.
    pub(crate) fn raw(&mut self, markup: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(markup);
        self.out.push('\n');
    }

    pub(crate) fn line(
        &mut self,
        (x1, y1): (f64, f64),
        (x2, y2): (f64, f64),
        stroke: &str,
        width: f64,
    ) {
        self.raw(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}" stroke-width="{width}"/>"#
        ));
    }

    pub(crate) fn text(&mut self, at: &Text<'_>, text: &str) {
        let weight = if at.bold {
            r#" font-weight="bold""#
        } else {
            ""
        };
        self.raw(format_args!(
            r#"<text x="{:.1}" y="{:.1}" font-size="{}" text-anchor="{}"{weight} fill="{INK}">{}</text>"#,
            at.x,
            at.y,
            at.size,
            at.anchor,
            escape(text)
        ));
    }

    /// The finished drawing, `title` being what screen readers say.
    pub(crate) fn finish(self, title: &str, width: f64, height: f64) -> String {
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" "#,
                r#"role="img" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">"#,
                "\n<title>{t}</title>\n",
                r##"<rect width="{w}" height="{h}" fill="#ffffff"/>"##,
                "\n{body}</svg>\n"
            ),
            w = width,
            h = height,
            t = escape(title),
            body = self.out
        )
    }
}

/// Colour of text and axes.
pub(crate) const INK: &str = "#222222";
/// Colour of grid lines.
pub(crate) const GRID: &str = "#e4e4e4";

/// Checks that `text` is well-formed as far as this crate writes XML: tags balance, attributes are quoted,
/// ampersands belong to entities. Returns what is wrong.
#[cfg(test)]
pub(crate) fn well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        entities(&rest[..start])?;
        let end = start + rest[start..].find('>').ok_or("a tag without end")?;
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if tag.contains('<') {
            return Err(format!("`<` inside the tag `{tag}`"));
        }
        if tag.starts_with('!') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return Err(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let body = tag.strip_suffix('/').unwrap_or(tag);
        let name = body.split_whitespace().next().ok_or("an empty tag")?;
        if !body.matches('"').count().is_multiple_of(2) {
            return Err(format!("unbalanced quotes in `{tag}`"));
        }
        for (i, part) in body[name.len()..].split('"').enumerate() {
            entities(part)?;
            let between = part.trim();
            if i % 2 == 0
                && !between.is_empty()
                && (between.contains(' ') || !between.ends_with('='))
            {
                return Err(format!("attribute without quotes in `{tag}`"));
            }
        }
        if !tag.ends_with('/') && !matches!(name, "meta" | "br") {
            open.push(name);
        }
    }
    entities(rest)?;
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("not closed: {open:?}"))
    }
}

#[cfg(test)]
fn entities(text: &str) -> Result<(), String> {
    if text.contains('>') {
        return Err(format!("bare `>` in `{text}`"));
    }
    for after in text.split('&').skip(1) {
        let name = after.split(';').next().unwrap_or("");
        if !after.contains(';') || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '#') {
            return Err(format!("bare `&` in `{text}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_leaves_no_markup() {
        assert_eq!(
            escape("a<b & \"c\" 'd'\u{0}>"),
            "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;"
        );
    }

    #[test]
    fn thousands_are_grouped() {
        let all: Vec<String> = [0.0, 999.0, 1000.0, 1234567.0, -1000.0, -0.2]
            .map(thousands)
            .into();
        assert_eq!(all, ["0", "999", "1,000", "1,234,567", "-1,000", "0"]);
    }

    #[test]
    fn the_checker_finds_mistakes() {
        assert!(well_formed(r#"<a x="1"><b/>t &lt; u</a>"#).is_ok());
        for bad in [
            "<a>",
            "<a></b>",
            "<a x=1/>",
            "<a>&</a>",
            r#"<a x="1/>"#,
            "<a> > </a>",
        ] {
            assert!(well_formed(bad).is_err(), "{bad}");
        }
    }
}
