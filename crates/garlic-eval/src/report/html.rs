//! The page itself.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::plot::svg::escape;

/// A table of texts; every column but the first `left` ones is set flush right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// Column names.
    pub header: Vec<String>,
    /// Rows of cells.
    pub rows: Vec<Vec<String>>,
    /// Columns set flush left.
    pub left: usize,
    /// Hidden behind its heading until the reader opens it.
    pub folded: bool,
}

/// Drawings with a heading and a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// How to read it.
    pub text: String,
    /// The drawings, SVG text each.
    pub svgs: Vec<String>,
}

/// A report: facts, tables, figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Title of the page.
    pub title: String,
    /// What was done, one paragraph each.
    pub intro: Vec<String>,
    /// Names and values: data, parameters, machine.
    pub facts: Vec<(String, String)>,
    /// Tables in order.
    pub tables: Vec<Table>,
    /// Figures in order.
    pub figures: Vec<Figure>,
}

const STYLE: &str = "\
body{font:16px/1.5 Helvetica,Arial,sans-serif;color:#222;background:#fff;max-width:900px;margin:2em auto;padding:0 1em}\
h1{font-size:1.7em;margin-bottom:.3em}h2{font-size:1.25em;margin:2em 0 .3em}\
table{border-collapse:collapse;margin:.8em 0;font-size:.9em;font-variant-numeric:tabular-nums}\
th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;vertical-align:top}\
th{border-bottom:2px solid #222}.l{text-align:left}\
.facts td,.facts th{text-align:left}.facts th{border-bottom:1px solid #ddd;white-space:nowrap}\
svg{max-width:100%;height:auto;display:block;margin:.6em 0}\
summary{cursor:pointer;font-weight:bold}\
@media print{body{max-width:none;margin:0}figure,tr{break-inside:avoid}}figure{margin:0}";

impl Report {
    /// An empty report.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// The whole page.
    pub fn html(&self) -> String {
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        );
        for paragraph in &self.intro {
            push(&mut out, format_args!("<p>{}</p>\n", escape(paragraph)));
        }
        if !self.facts.is_empty() {
            out.push_str("<table class=\"facts\"><tbody>\n");
            for (name, value) in &self.facts {
                push(
                    &mut out,
                    format_args!(
                        "<tr><th>{}</th><td>{}</td></tr>\n",
                        escape(name),
                        escape(value)
                    ),
                );
            }
            out.push_str("</tbody></table>\n");
        }
        for table in &self.tables {
            table.html(&mut out);
        }
        for figure in &self.figures {
            push(
                &mut out,
                format_args!("<h2>{}</h2>\n", escape(&figure.title)),
            );
            push(
                &mut out,
                format_args!("<p>{}</p>\n<figure>\n", escape(&figure.text)),
            );
            figure.svgs.iter().for_each(|svg| out.push_str(svg));
            out.push_str("</figure>\n");
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    /// Writes the page; folders that are missing are made, a file that is there is replaced as a whole.
    pub fn write(&self, path: &Path) -> Result<()> {
        let fail = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(fail)?;
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        fs::write(&name, self.html()).map_err(fail)?;
        fs::rename(&name, path).map_err(fail)
    }
}

impl Table {
    fn html(&self, out: &mut String) {
        let title = escape(&self.title);
        if self.folded {
            push(out, format_args!("<details><summary>{title}</summary>\n"));
        } else {
            push(out, format_args!("<h2>{title}</h2>\n"));
        }
        if !self.text.is_empty() {
            push(out, format_args!("<p>{}</p>\n", escape(&self.text)));
        }
        out.push_str("<table><thead><tr>");
        let class = |column: usize| {
            if column < self.left {
                " class=\"l\""
            } else {
                ""
            }
        };
        for (i, name) in self.header.iter().enumerate() {
            push(out, format_args!("<th{}>{}</th>", class(i), escape(name)));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, cell) in row.iter().enumerate() {
                push(out, format_args!("<td{}>{}</td>", class(i), escape(cell)));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table>\n");
        if self.folded {
            out.push_str("</details>\n");
        }
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::svg::well_formed;

    fn sample() -> Report {
        let mut report = Report::new("A <b> & \"c\"");
        report.intro.push("1 < 2".into());
        report
            .facts
            .push(("data & such".into(), "<script>alert(1)</script>".into()));
        for folded in [false, true] {
            report.tables.push(Table {
                title: "t".into(),
                text: "x & y".into(),
                header: vec!["a".into(), "b".into()],
                rows: vec![vec!["<1>".into(), "2".into()]],
                left: 1,
                folded,
            });
        }
        report.figures.push(Figure {
            title: "f".into(),
            text: "how".into(),
            svgs: vec!["<svg><g/></svg>".into()],
        });
        report
    }

    #[test]
    fn the_page_is_well_formed_and_escaped() {
        let html = sample().html();
        assert_eq!(well_formed(&html), Ok(()));
        assert!(!html.contains("<script"));
        for part in [
            "A &lt;b&gt; &amp; &quot;c&quot;",
            "1 &lt; 2",
            "&lt;1&gt;",
            "<svg><g/></svg>",
        ] {
            assert!(html.contains(part), "{part}");
        }
    }

    #[test]
    fn writing_makes_folders_and_names_the_file_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/report.html");
        sample().write(&path).unwrap();
        sample().write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), sample().html());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let error = sample()
            .write(&path.join("x.html"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("x.html"), "{error}");
    }
}
