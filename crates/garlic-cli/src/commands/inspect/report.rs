//! `garlic inspect --report`: a diagnosis of the index as a page, and its numbers beside it.

use std::path::{Path, PathBuf};

use garlic_ann::NeighborIndex;
use garlic_eval::diagnose::{Options, diagnose};

use crate::exit::Fault;
use crate::output;
use crate::report;

/// The two files of a report.
pub(super) struct Files {
    /// The page.
    pub(super) html: PathBuf,
    /// All numbers behind it.
    pub(super) json: PathBuf,
}

impl Files {
    /// Where a report called `html` goes. Fails when one of its files cannot be written, before there is work to lose.
    pub(super) fn checked(html: &Path, index: &Path) -> anyhow::Result<Self> {
        report::check()?;
        output::check_regular(html, &[index])?;
        let json = html.with_extension("json");
        if json == html {
            return Err(Fault::usage(format!(
                "{}: is where the numbers of the report go; name the page, such as {}",
                html.display(),
                html.with_extension("html").display()
            )));
        }
        output::check_regular(&json, &[index])?;
        Ok(Self {
            html: html.to_owned(),
            json,
        })
    }

    /// Looks at the index and writes both files.
    pub(super) fn write(&self, index: &dyn NeighborIndex) -> anyhow::Result<()> {
        let diagnosis = diagnose(index, &Options::default())?;
        let numbers = serde_json::to_string(&diagnosis)?;
        output::write_file(&self.json, |out| writeln!(out, "{numbers}"))?;
        let page = report::diagnosis_page(&diagnosis)?;
        output::write_file(&self.html, |out| out.write_all(page.as_bytes()))
    }
}
