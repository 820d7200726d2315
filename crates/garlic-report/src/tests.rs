//! Whole pages, made from numbers that are given.

use garlic_eval::demo::{
    Budget, DemoOptions, DemoResult, DemoSeconds, Ellipse, Epoch, ShapeRecall, TrainedCells,
};
use garlic_eval::diagnose::{Diagnosis, Histogram, Quantity, Step, Summary};
use garlic_eval::metrics::WorkMeans;
use garlic_eval::synthetic::Stratum;
use garlic_eval::{Params, Row};
use roxmltree::{Document, Node, ParsingOptions};

use crate::plot::{Axis, BLUE, Chart, Drawing, Mark, Series, heatmap};
use crate::{demo_page, diagnosis_page};

fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).unwrap()
}

fn count(text: &str, tag: &str) -> usize {
    let document = parsed(text);
    let all = document.descendants();
    all.filter(|n| n.tag_name().name() == tag).count()
}

/// What every page keeps: well-formed, alone, a picture first, then one table, then what is folded away.
fn check(page: &str) {
    let document = parsed(page);
    for word in ["NaN", "inf<", "<script", "href=", "src=", "url(", "@import"] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert!(page.contains("width=device-width") && page.contains("prefers-color-scheme: dark"));
    let body = document
        .descendants()
        .find(|n| n.has_tag_name("body"))
        .unwrap();
    let holds = |n: Node<'_, '_>, tag| n.descendants().any(|d| d.tag_name().name() == tag);
    let place = |tag| body.children().position(|n| holds(n, tag)).unwrap();
    assert!(place("svg") < place("table") && place("table") < place("details"));
    let open = body.children().filter(|n| !n.has_tag_name("details"));
    assert_eq!(open.filter(|n| holds(*n, "table")).count(), 1);
}

fn histogram(counts: &[usize]) -> Histogram {
    Histogram {
        edges: (0..=counts.len()).map(|i| i as f64).collect(),
        counts: counts.to_vec(),
        log: false,
    }
}

fn diagnosis() -> Diagnosis {
    let values = Summary::of([1.0, 2.0, 4.5, 123.456]);
    let quantity = Quantity {
        summary: values,
        histogram: histogram(&[3, 0, 5]),
        values: Vec::new(),
    };
    let mut d = Diagnosis::default();
    d.subject.preset = "paper";
    d.subject.overlapping = true;
    d.subject.points = 12_345;
    d.subject.metric = "<b>\"metric\" & co</b>".into();
    d.radius.reason = "because of <em>tau</em>".into();
    (d.radius.config_tau, d.radius.value) = (3.0, 3.0);
    (d.landscape.x, d.landscape.y) = ([-1.0, 1.0], [0.0, 2.0]);
    (d.landscape.columns, d.landscape.rows) = (2, 2);
    d.landscape.nearest = vec![1.0, 1.0, 2.0, 9.0];
    d.landscape.covered = vec![0, 1, 2, 3];
    d.landscape.points_nearest = vec![None, Some(0.5), None, Some(7.0)];
    d.landscape.points_covered = vec![None, Some(1.0), None, Some(2.0)];
    d.landscape.drawn = vec![(0.0, 1.0); 5];
    d.coverage.share = 0.876;
    d.coverage.counts = histogram(&[9, 4]);
    d.coverage.nearest = quantity.clone();
    d.density.covered_correlation = Some(-0.377);
    d.anisotropy.ratio = quantity.clone();
    d.anisotropy.explained = vec![
        Step {
            at: 1,
            share: values,
            plain: 0.1,
        },
        Step {
            at: 20,
            share: values,
            plain: 1.0,
        },
    ];
    d.cell_sizes.summary = values;
    d
}

#[test]
fn the_page_of_a_diagnosis_has_its_numbers_and_escapes_its_texts() {
    let page = diagnosis_page(&diagnosis()).unwrap();
    check(&page);
    for part in [
        "12,345",
        "87.6 %",
        "12.4 %",
        "-0.377",
        "not defined",
        "radius tau = 3",
        "32.7",
        "123",
    ] {
        assert!(page.contains(part), "no `{part}`");
    }
    assert!(page.contains("&lt;b&gt;") && !page.contains("<b>") && !page.contains("<em>"));
    assert_eq!((count(&page, "details"), count(&page, "svg")), (10, 19));
}

#[test]
fn an_index_of_which_nothing_is_known_has_a_page() {
    let page = diagnosis_page(&Diagnosis::default()).unwrap();
    check(&page);
    assert!(page.contains("too small for neighbourhoods") && page.contains(": no data"));
}

fn row(method: &str, candidates: f64, recall: f64, front: bool) -> Row {
    Row {
        method: method.into(),
        cells: 77,
        params: Params::new(10),
        recall_at_1: recall,
        recall_at_10: None,
        recall_at_k: None,
        quality: None,
        target: None,
        gap: Some(-0.0123),
        candidates,
        cells_scored: 0.0,
        distance_equivalents: 2.0 * candidates,
        qps: 4321.0,
        p50_us: 1.0,
        p99_us: 2.0,
        qps_batch: None,
        threads: 1,
        queries: 10,
        timed_queries: 10,
        work: WorkMeans::default(),
        front,
        front_work: front,
    }
}

fn demo() -> DemoResult {
    let budget = Budget {
        cost: 2500.0,
        garlic_default: None,
        garlic_paper: Some(0.91),
        kmeans: Some(0.9),
        kmeans_fine: Some(0.85),
    };
    let mut trained = TrainedCells {
        tau: 3.0,
        epochs: (1..=4)
            .map(|epoch| Epoch {
                epoch,
                loss: 9.0,
                ..Epoch::default()
            })
            .collect(),
        ..TrainedCells::default()
    };
    trained.view.points = vec![(0.0, 0.0, 0), (4.0, 3.0, 2), (2.0, 5.0, 1)];
    trained.view.ellipses = vec![
        Ellipse {
            centre: (2.0, 2.0),
            factor: [0.2, 0.1, 0.1]
        };
        20
    ];
    DemoResult {
        rows: vec![
            row("garlic paper", 10.0, 0.5, true),
            row("garlic paper", 100.0, 0.75, true),
            row("garlic paper", 200.0, 0.7, false),
            row("<script>", 1000.0, 1.0, true),
        ],
        by_candidates: vec![budget],
        by_work: vec![budget],
        by_shape: vec![ShapeRecall {
            stratum: Stratum::Needle,
            queries: 33,
            budgets: vec![budget],
        }],
        cells: 77,
        default_cells: 88,
        covered: 0.5,
        seconds: DemoSeconds::default(),
        clusters: [24, 25, 26],
        kernels: "scalar".into(),
        trained,
        index: None,
        shapes: Vec::new(),
    }
}

#[test]
fn the_page_of_a_demo_has_its_numbers_and_escapes_its_names() {
    let page = demo_page(&DemoOptions::default(), &demo()).unwrap();
    check(&page);
    for part in [
        "2,500",
        "0.9100",
        "+0.0100",
        "needles",
        "33",
        "-0.0123",
        "4,321",
        "25 pancakes",
        "seed 7",
    ] {
        assert!(page.contains(part), "no `{part}`");
    }
    assert!(page.contains("&lt;script&gt;") && page.contains("All 4 settings measured"));
    let document = parsed(&page);
    // The thin outlines of the 16 strong cells, their strong ones, and the faint ones of the others.
    let svg = |n: &Node<'_, '_>| n.tag_name().name() == "svg";
    let last = document.descendants().rfind(svg);
    let outlines = last.unwrap().children().filter(|n| {
        n.attribute("points")
            .is_some_and(|p| p.split_whitespace().count() > 40)
    });
    assert_eq!(outlines.count(), 2 * 16 + 4);
    let empty = DemoResult {
        rows: vec![],
        trained: TrainedCells::default(),
        ..demo()
    };
    check(&demo_page(&DemoOptions::default(), &empty).unwrap());
}

fn chart(mark: Mark, points: &[(f64, f64)]) -> Drawing {
    Chart {
        x: Axis::linear("a < b"),
        y: Axis::linear("y"),
        series: vec![Series::new("name", BLUE, mark, points.to_vec())],
    }
    .draw()
    .unwrap()
}

#[test]
fn a_series_has_as_many_marks_as_data() {
    let blue = |svg: &str, tag: &str| -> Vec<String> {
        let own = |n: &Node<'_, '_>| {
            let colour = |name| n.attribute(name) == Some("#0072B2");
            n.tag_name().name() == tag && (colour("fill") || colour("stroke"))
        };
        let document = parsed(svg);
        let found = document.descendants().filter(own);
        found
            .map(|n| n.attribute("points").unwrap_or("").to_owned())
            .collect()
    };
    let points = [
        (1.0, 2.0),
        (2.0, 1.0),
        (f64::NAN, 1.0),
        (3.0, 5.0),
        (7.0, 4.0),
    ];
    let line = chart(Mark::Line, &points).svg;
    let corners: Vec<usize> = blue(&line, "polyline")
        .iter()
        .map(|p| p.split_whitespace().count())
        .collect();
    assert_eq!((corners, blue(&line, "circle").len()), (vec![4], 4));
    assert_eq!(blue(&chart(Mark::Dots, &points).svg, "circle").len(), 4);
    assert_eq!(blue(&chart(Mark::Bars, &points).svg, "rect").len(), 3);
    let ends = points.map(|p| (p.1 - 1.0, p.1 + 1.0)).to_vec();
    assert_eq!(
        blue(&chart(Mark::Spread(ends), &points).svg, "circle").len(),
        4
    );
    // Text and axes have the colour of the page's text.
    assert!(
        line.contains("currentColor") && line.contains("a &lt; b") && !line.contains("#222223")
    );
    let empty = chart(Mark::Line, &[]);
    assert!(empty.empty && empty.keys.is_empty());
}

#[test]
fn tiles_of_one_colour_share_a_rectangle_and_the_border_lies_between() {
    let d = diagnosis();
    let map = |values: Vec<Option<f64>>| {
        heatmap(&d.landscape, values, false, Some((2.0, "radius 2"))).unwrap()
    };
    // Two tiles below that share a colour, a blank one and one that is far.
    let drawing = map(vec![Some(1.0), Some(1.0), None, Some(9.0)]);
    assert_eq!(
        (count(&drawing.svg, "rect"), count(&drawing.svg, "circle")),
        (2, 0)
    );
    assert_eq!(drawing.colours.unwrap(), [1.0, 9.0]);
    assert_eq!(drawing.keys.len(), 2);
    // The border runs above the two tiles of the lower row.
    assert_eq!(drawing.svg.matches("#D55E00").count(), 2);
    // One colour, no border, nothing to see: still maps.
    let whole = map(vec![Some(5.0); 4]).svg;
    assert_eq!((count(&whole, "rect"), count(&whole, "circle")), (2, 5));
    assert_eq!(count(&map(vec![None; 4]).svg, "rect"), 0);
    assert_eq!(count(&map(Vec::new()).svg, "rect"), 0);
}
