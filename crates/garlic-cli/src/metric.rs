//! The metric of a data set and that of an index.

use std::path::Path;

use garlic_ann::{Metric, NeighborIndex};

use crate::exit::Fault;

/// Reads the name of a metric.
pub(crate) fn parse(text: &str) -> Result<Metric, String> {
    text.parse()
        .map_err(|_| "must be euclidean (l2), cosine (cos) or inner_product (ip, dot)".into())
}

/// What the library calls the metric of a data set.
pub(crate) fn of_data(metric: garlic_data::Metric) -> Metric {
    match metric {
        garlic_data::Metric::Euclidean => Metric::Euclidean,
        garlic_data::Metric::Cosine => Metric::Cosine,
        garlic_data::Metric::InnerProduct => Metric::InnerProduct,
    }
}

/// What the ground truth of `garlic-data` calls the metric of an index.
pub(crate) fn of_index(metric: Metric) -> garlic_data::Metric {
    match metric {
        Metric::Euclidean => garlic_data::Metric::Euclidean,
        Metric::Cosine => garlic_data::Metric::Cosine,
        Metric::InnerProduct => garlic_data::Metric::InnerProduct,
    }
}

/// Refuses to measure an index by another metric than its own, or with data that were made for another one unless
/// `said` confirms it. Returns whether the data's own true neighbours are those of the index's metric.
pub(crate) fn check(
    index: &dyn NeighborIndex,
    said: Option<Metric>,
    data: Option<garlic_data::Metric>,
    path: &Path,
) -> anyhow::Result<bool> {
    let own = index.metric();
    if let Some(said) = said
        && said != own
    {
        return Err(Fault::usage(format!(
            "--metric {said}: the index was built for {own}; build it with --metric {said} to measure that"
        )));
    }
    match data.map(of_data) {
        Some(data) if data != own && said.is_none() => Err(Fault::input(format!(
            "{}: made for the metric {data}, the index was built for {own}; build it with --metric {data}, or add \
             --metric {own} to measure it as it is",
            path.display()
        ))),
        data => Ok(data.is_none_or(|data| data == own)),
    }
}

#[cfg(test)]
mod tests {
    use garlic_ann::{Index, Rows};

    use super::*;

    #[test]
    fn metrics_that_differ_need_a_word() {
        for metric in Metric::ALL {
            assert_eq!(of_data(of_index(metric)), metric);
            assert_eq!(parse(metric.name()), Ok(metric));
        }
        let short = ["l2", "cos", "ip", "dot"].map(|name| parse(name).unwrap().name());
        assert_eq!(
            short,
            ["euclidean", "cosine", "inner_product", "inner_product"]
        );
        assert!(parse("angular").unwrap_err().contains("cosine"));

        let rows = Rows::new(&[1.0, 2.0, 3.0, 1.0], 2).unwrap();
        let builder = Index::builder().metric(Metric::Cosine).threads(1);
        let index = builder.build(rows).unwrap();
        let ask = |said, data| check(&index, said, data, Path::new("set.hdf5"));
        let (cosine, euclidean) = (garlic_data::Metric::Cosine, garlic_data::Metric::Euclidean);
        assert!(ask(None, None).unwrap() && ask(None, Some(cosine)).unwrap());
        assert!(!ask(Some(Metric::Cosine), Some(euclidean)).unwrap());
        let error = ask(None, Some(euclidean)).unwrap_err().to_string();
        assert!(error.contains("set.hdf5") && error.contains("--metric cosine"));
        assert!(ask(Some(Metric::Euclidean), Some(cosine)).is_err());
    }
}
