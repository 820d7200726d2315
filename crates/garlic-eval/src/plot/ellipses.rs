//! Cells seen from above: the first two coordinates of the model's space, points as dots, cells as ellipses.

use garlic_ann::Index;
use garlic_ann::model::Factors;
use garlic_linalg::Rows;

use super::axis::Axis;
use super::chart::{Area, frame, legend};
use super::svg::{Svg, Text, escape};

/// Cells drawn strongly; more would hide the points and each other.
const STRONG: usize = 16;
const ONE: &str = r##"fill="none" stroke="#0072B2" stroke-width="1.6""##;
const TAU: &str = r##"fill="none" stroke="#0072B2" stroke-width="1" stroke-opacity="0.55" stroke-dasharray="5 4""##;
const OTHER: &str = r##"fill="none" stroke="#8a8a8a" stroke-width="0.7" stroke-opacity="0.45""##;

/// A kind of points with a colour of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name in the legend.
    pub name: String,
    /// Colour of its points.
    pub colour: String,
}

/// A Gaussian seen in two dimensions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ellipse {
    /// Centre.
    pub centre: (f64, f64),
    /// Marginal covariance: variance of x, covariance, variance of y.
    pub covariance: [f64; 3],
}

impl Ellipse {
    /// Half axes at Mahalanobis radius 1, the longer first, and the angle of the longer one to the x axis in
    /// radians.
    pub fn axes(&self) -> (f64, f64, f64) {
        let [xx, xy, yy] = self.covariance;
        let middle = (xx + yy) / 2.0;
        let spread = ((xx - yy) / 2.0).hypot(xy);
        let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
        (
            (middle + spread).max(0.0).sqrt(),
            (middle - spread).max(0.0).sqrt(),
            angle,
        )
    }
}

/// A two-dimensional view of points and cells.
#[derive(Clone, Debug, PartialEq)]
pub struct CellView {
    /// Title above everything.
    pub title: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Kinds of points.
    pub groups: Vec<Group>,
    /// Points and the number of their group.
    pub points: Vec<(f64, f64, usize)>,
    /// Cells, the most important first: the first few are drawn strongly, with their outer ellipse, the others
    /// faintly at radius 1.
    pub cells: Vec<Ellipse>,
    /// Mahalanobis radius of the outer ellipse.
    pub tau: f64,
}

impl CellView {
    /// Looks at `index` along the first two coordinates of its space, which are the first two principal
    /// components when it rotates. At most `sample` rows of `base` are drawn, evenly spaced.
    ///
    /// `group_of` holds each row's group; with none, all rows are in group 0. Rows of another dimension than
    /// the index are not drawn. `None` when the cells of the index are no Gaussians.
    pub fn of_index(
        index: &Index,
        base: Rows<'_>,
        groups: Vec<Group>,
        group_of: Option<&[usize]>,
        sample: usize,
    ) -> Option<Self> {
        let published = index.published()?;
        let model = published.model();
        let axis = |n: usize| match index.config().rotates() {
            true => format!("principal component {n} (normalised)"),
            false => format!("coordinate {n} (normalised)"),
        };
        let mut view = Self {
            title: format!("{} cells and a sample of the points", model.len()),
            x_label: axis(1),
            y_label: axis(2),
            groups,
            points: Vec::new(),
            cells: Vec::with_capacity(model.len()),
            tau: index.config().tau,
        };
        let flat = index.dim() < 2;
        let mut order: Vec<usize> = (0..model.len()).collect();
        order.sort_by_key(|&c| std::cmp::Reverse(published.cell(c).bins.members().len()));
        for cell in order {
            let (mean, factor) = (model.mean(cell), model.factor(cell));
            let l = |i: usize| factor.get(i).copied().map_or(0.0, f64::from);
            let [l00, l10, l11] = match &model.factors {
                Factors::Full(_) => [l(0), l(1), l(2)],
                Factors::Diagonal(_) => [l(0), 0.0, l(1)],
                Factors::Isotropic(_) => [l(0), 0.0, if flat { 0.0 } else { l(0) }],
            };
            view.cells.push(Ellipse {
                centre: (
                    f64::from(mean[0]),
                    mean.get(1).copied().map_or(0.0, f64::from),
                ),
                covariance: [l00 * l00, l00 * l10, l10 * l10 + l11 * l11],
            });
        }
        if base.dim() == index.dim() && sample > 0 {
            let mut out = vec![0.0; index.dim()];
            for row in (0..base.len()).step_by(base.len().div_ceil(sample).max(1)) {
                index.space().apply(base.row(row), &mut out);
                let group = group_of.and_then(|g| g.get(row).copied()).unwrap_or(0);
                let y = out.get(1).copied().map_or(0.0, f64::from);
                view.points.push((f64::from(out[0]), y, group));
            }
        }
        Some(view)
    }

    /// The view as SVG text. `id` must be unique in the document that the drawing becomes a part of.
    pub fn svg(&self, id: &str) -> String {
        const WIDTH: f64 = 720.0;
        const HEIGHT: f64 = 640.0;
        let mut svg = Svg::default();
        svg.text(
            &Text {
                x: 14.0,
                y: 24.0,
                size: 16.0,
                anchor: "start",
                bold: true,
            },
            &self.title,
        );
        let strong = self.cells.len().min(STRONG);
        let (one, tau) = match self.cells.len() > STRONG {
            true => (
                format!("{strong} largest cells, radius 1"),
                format!("radius {}", self.tau),
            ),
            false => (
                "cell at radius 1".to_owned(),
                format!("radius {}", self.tau),
            ),
        };
        let mut names: Vec<(&str, usize)> = self
            .groups
            .iter()
            .enumerate()
            .map(|(i, g)| (g.name.as_str(), i))
            .collect();
        let own = self.groups.len();
        names.extend([(one.as_str(), own), (tau.as_str(), own + 1)]);
        if self.cells.len() > STRONG {
            names.push(("the other cells, radius 1", own + 2));
        }
        let bottom = legend(&mut svg, &names, 42.0, WIDTH, |svg, i, x, y| {
            match self.groups.get(i) {
                Some(group) => dot(svg, x + 12.0, y, 4.0, &escape(&group.colour), 0.9),
                None => svg.raw(format_args!(
                    r#"<ellipse cx="{:.1}" cy="{y:.1}" rx="12" ry="5.5" {}/>"#,
                    x + 12.0,
                    [ONE, TAU, OTHER][(i - own).min(2)]
                )),
            }
        });
        let area = Area {
            left: 74.0,
            right: WIDTH - 24.0,
            top: bottom + 10.0,
            bottom: HEIGHT - 52.0,
        };
        let ((x0, x1), (y0, y1)) = self.window((area.right - area.left) / (area.bottom - area.top));
        let x = Axis::linear("").from(x0).to(x1).scale(None);
        let y = Axis::linear("").from(y0).to(y1).scale(None);
        let unit = (area.right - area.left) / (x1 - x0);
        frame(&mut svg, &area, &x, &y, &self.x_label, &self.y_label);
        let id = escape(id);
        svg.raw(format_args!(
            r#"<clipPath id="{id}"><rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}"/></clipPath><g clip-path="url(#{id})">"#,
            area.left,
            area.top,
            area.right - area.left,
            area.bottom - area.top
        ));
        let outline = |svg: &mut Svg, cell: &Ellipse, radius: f64, style: &str| {
            let (long, short, angle) = cell.axes();
            let (rx, ry) = (long * radius * unit, short * radius * unit);
            let (px, py) = (x.at(cell.centre.0), y.at(cell.centre.1));
            if [px, py, rx, ry].iter().all(|v| v.is_finite()) {
                let (px, py) = area.place(px, py);
                let degrees = -angle.to_degrees();
                svg.raw(format_args!(
                    r#"<ellipse cx="{px:.1}" cy="{py:.1}" rx="{rx:.2}" ry="{ry:.2}" transform="rotate({degrees:.1} {px:.1} {py:.1})" {style}/>"#
                ));
            }
        };
        self.cells[strong..]
            .iter()
            .for_each(|cell| outline(&mut svg, cell, 1.0, OTHER));
        for &(px, py, group) in &self.points {
            let colour = self
                .groups
                .get(group)
                .map_or("#777777", |g| g.colour.as_str());
            let (px, py) = (x.at(px), y.at(py));
            if (0.0..=1.0).contains(&px) && (0.0..=1.0).contains(&py) {
                let (px, py) = area.place(px, py);
                dot(&mut svg, px, py, 1.7, &escape(colour), 0.55);
            }
        }
        self.cells[..strong]
            .iter()
            .for_each(|cell| outline(&mut svg, cell, self.tau, TAU));
        self.cells[..strong]
            .iter()
            .for_each(|cell| outline(&mut svg, cell, 1.0, ONE));
        svg.raw(format_args!("</g>"));
        svg.finish(&self.title, WIDTH, HEIGHT)
    }

    /// Ranges of x and y that show all but the outermost points, one unit being as long in both directions;
    /// `aspect` is width over height.
    fn window(&self, aspect: f64) -> ((f64, f64), (f64, f64)) {
        let range = |pick: fn(&(f64, f64)) -> f64| {
            let from_points = self.points.iter().map(|p| (p.0, p.1));
            let from_cells = self.cells.iter().map(|c| c.centre);
            let mut values: Vec<f64> = from_points
                .chain(from_cells)
                .map(|p| pick(&p))
                .filter(|v| v.is_finite())
                .collect();
            values.sort_by(f64::total_cmp);
            match values.len() {
                0 => (0.0, 1.0),
                n => (values[n / 500], values[n - 1 - n / 500]),
            }
        };
        let ((x0, x1), (y0, y1)) = (range(|p| p.0), range(|p| p.1));
        let height = ((y1 - y0).max((x1 - x0) / aspect) * 1.08).max(1e-6);
        let (cx, cy, width) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0, height * aspect);
        (
            (cx - width / 2.0, cx + width / 2.0),
            (cy - height / 2.0, cy + height / 2.0),
        )
    }
}

fn dot(svg: &mut Svg, x: f64, y: f64, radius: f64, colour: &str, opacity: f64) {
    svg.raw(format_args!(
        r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{colour}" fill-opacity="{opacity}"/>"#
    ));
}

#[cfg(test)]
mod tests {
    use super::super::palette;
    use super::super::svg::well_formed;
    use super::*;

    #[test]
    fn axes_are_the_eigenvectors() {
        let (a, b, angle) = Ellipse {
            centre: (0.0, 0.0),
            covariance: [9.0, 0.0, 4.0],
        }
        .axes();
        assert!((a - 3.0).abs() < 1e-12 && (b - 2.0).abs() < 1e-12 && angle.abs() < 1e-12);
        let (a, b, angle) = Ellipse {
            centre: (0.0, 0.0),
            covariance: [4.0, 0.0, 9.0],
        }
        .axes();
        assert!((a - 3.0).abs() < 1e-12 && (b - 2.0).abs() < 1e-12);
        assert!((angle.abs() - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        // Covariance of a line along (1, 1): one axis vanishes, the other points at 45 degrees.
        let (a, b, angle) = Ellipse {
            centre: (0.0, 0.0),
            covariance: [1.0, 1.0, 1.0],
        }
        .axes();
        assert!((a - 2_f64.sqrt()).abs() < 1e-12 && b.abs() < 1e-7);
        assert!((angle - std::f64::consts::FRAC_PI_4).abs() < 1e-12);
    }

    #[test]
    fn views_are_well_formed() {
        let group = Group {
            name: "a & b".into(),
            colour: palette::GREEN.into(),
        };
        let mut view = CellView {
            title: "t".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            groups: vec![group],
            points: vec![],
            cells: vec![],
            tau: 3.0,
        };
        assert_eq!(well_formed(&view.svg("a")), Ok(()));
        view.points = vec![(0.0, 0.0, 0), (1.0, 5.0, 7), (f64::NAN, 1.0, 0)];
        view.cells = vec![Ellipse {
            centre: (0.5, 0.5),
            covariance: [1.0, 0.2, 0.5],
        }];
        let svg = view.svg("a");
        assert_eq!(well_formed(&svg), Ok(()));
        assert!(!svg.contains("NaN"));
        // Two in the legend, two for the cell.
        assert_eq!(svg.matches("<ellipse").count(), 4);
        // Three in the legend, an outer one for the strong cells only.
        view.cells = vec![view.cells[0]; STRONG + 5];
        assert_eq!(
            view.svg("a").matches("<ellipse").count(),
            3 + 2 * STRONG + 5
        );
    }
}
