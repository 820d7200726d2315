//! Pages with pictures, where the program was built with the feature `report`.

use crate::exit::Fault;

#[cfg(feature = "report")]
pub(crate) use garlic_report::{demo_page, diagnosis_page};

/// Whether this program makes reports.
pub(crate) const AVAILABLE: bool = cfg!(feature = "report");

/// What a program without reports says to those who ask for one.
pub(crate) const MISSING: &str =
    "this program was built without reports; build it with the feature `report`";

/// Fails where there are no reports, before there is work to lose.
pub(crate) fn check() -> anyhow::Result<()> {
    match AVAILABLE {
        true => Ok(()),
        false => Err(Fault::usage(MISSING)),
    }
}

#[cfg(not(feature = "report"))]
pub(crate) fn demo_page(
    _: &garlic_eval::demo::DemoOptions,
    _: &garlic_eval::demo::DemoResult,
) -> anyhow::Result<String> {
    Err(Fault::usage(MISSING))
}

#[cfg(not(feature = "report"))]
pub(crate) fn diagnosis_page(_: &garlic_eval::diagnose::Diagnosis) -> anyhow::Result<String> {
    Err(Fault::usage(MISSING))
}
