//! A map of an index: its cells and points over two axes.
//!
//! The axes are the two leading principal components of a sample of the points, in the space of the cells. The map of an
//! index is kept until the index changes.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use garlic_any::AnyIndex;
use garlic_core::pool::Workers;
use garlic_core::{CellShapes, Matrix, NeighborIndex, Transform};
use garlic_linalg::{random_stream, top_components, uniform_below};
use garlic_table::Snapshot;
use tokio::sync::Mutex;

use crate::api::change;
use crate::error::{ApiError, ApiResult};

/// Points that the axes are found with, and points that a map has at most.
const SAMPLE_POINTS: usize = 2000;
const MAX_POINTS: usize = 1_000_000;
/// A map of an index that changes all the time is made anew no more often than this.
const RENEW_AFTER: Duration = match cfg!(test) {
    true => Duration::from_millis(200),
    false => Duration::from_secs(10),
};
const SEED: u64 = 1;

/// A cell on the map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ellipse {
    pub(crate) centre: [f32; 2],
    /// Standard deviations along the longer and the shorter axis.
    pub(crate) axes: [f32; 2],
    /// Angle of the longer axis.
    pub(crate) angle: f32,
    pub(crate) points: usize,
}

/// A map.
#[derive(Debug)]
pub(crate) struct Map {
    projection: Projection,
    /// The same for maps with the same axes, on which places can be compared.
    pub(crate) axes: u64,
    transform: Transform,
    pub(crate) cells: Vec<Ellipse>,
    /// Places of points and the numbers of these, in random order, so that the first of them are a sample.
    pub(crate) places: Vec<[f32; 2]>,
    pub(crate) numbers: Vec<u64>,
    /// Left, top, right and bottom of the places.
    pub(crate) bounds: [f32; 4],
}

/// The two axes, in the space of the cells.
#[derive(Clone, Debug)]
pub(crate) struct Projection {
    axes: Matrix,
    /// Share of the variance of the sample that lies along them.
    pub(crate) kept: f32,
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Projection {
    /// The place of a point of the space of the cells.
    pub(crate) fn place(&self, point: &[f32]) -> [f32; 2] {
        [dot(self.axes.row(0), point), dot(self.axes.row(1), point)]
    }
}

/// A vector of the user in the space of the cells.
fn transformed(index: &dyn NeighborIndex, vector: &[f32]) -> Vec<f32> {
    let transform = index.transform();
    let mut out = vec![0.0; transform.out_dim()];
    transform.apply(&index.embedding().stored(vector), &mut out);
    out
}

impl Map {
    /// Draws an index, along the axes of an earlier map unless the index has been trained since.
    fn of(snapshot: &Snapshot, before: Option<&Self>) -> ApiResult<Self> {
        let index = snapshot.index();
        let mut numbers = index.ids();
        numbers.sort_unstable();
        shuffle_first(&mut numbers, MAX_POINTS);
        let (projection, axes) = match before {
            Some(map) if map.transform == *index.transform() => (map.projection.clone(), map.axes),
            _ => (
                projection(sample(index, &numbers), index.transform().out_dim())?,
                before.map_or(0, |map| map.axes + 1),
            ),
        };
        let mut places = Vec::with_capacity(numbers.len());
        let mut kept = Vec::with_capacity(numbers.len());
        let combined = Combined::new(&**index, &projection);
        for number in numbers {
            if let Some(vector) = index.get(number) {
                places.push(combined.place(&index.embedding().stored(&vector)));
                kept.push(number);
            }
        }
        Ok(Self {
            cells: ellipses(index, &projection),
            bounds: bounds(&places),
            numbers: kept,
            places,
            projection,
            axes,
            transform: index.transform().clone(),
        })
    }

    /// The place of a vector of the user.
    pub(crate) fn place_of(&self, index: &AnyIndex, vector: &[f32]) -> [f32; 2] {
        self.projection.place(&transformed(&**index, vector))
    }

    /// The place of a point of the space of the cells.
    pub(crate) fn place(&self, point: &[f32]) -> [f32; 2] {
        self.projection.place(point)
    }

    pub(crate) fn variance_kept(&self) -> f32 {
        self.projection.kept
    }

    /// The first points in a rectangle from a position on, as positions in the lists, and where the next ones begin.
    pub(crate) fn within(
        &self,
        [left, top, right, bottom]: [f32; 4],
        from: usize,
        limit: usize,
    ) -> (Vec<usize>, Option<usize>) {
        let inside = |[x, y]: &[f32; 2]| left <= *x && *x <= right && top <= *y && *y <= bottom;
        let later = self.places.iter().enumerate().skip(from);
        let mut found = later.filter(|(_, place)| inside(place)).map(|(at, _)| at);
        let taken = found.by_ref().take(limit).collect();
        (taken, found.next())
    }
}

/// Some points in the space of the cells.
fn sample(index: &AnyIndex, numbers: &[u64]) -> Vec<f32> {
    let vectors = numbers
        .iter()
        .take(SAMPLE_POINTS)
        .filter_map(|number| index.get(*number));
    vectors
        .flat_map(|vector| transformed(&**index, &vector))
        .collect()
}

/// Transform and projection in one, which is faster for many points.
struct Combined {
    axes: [Vec<f32>; 2],
    offset: [f32; 2],
}

impl Combined {
    fn new(index: &dyn NeighborIndex, projection: &Projection) -> Self {
        let transform = index.transform();
        let axis = |number: usize| -> Vec<f32> {
            let along = projection.axes.row(number);
            let mut axis = match &transform.rotation {
                None => along.to_vec(),
                Some(rotation) => {
                    let mut axis = vec![0.0; transform.dim()];
                    for (weight, row) in along.iter().zip(rotation.as_rows().iter()) {
                        axis.iter_mut().zip(row).for_each(|(a, r)| *a += weight * r);
                    }
                    axis
                }
            };
            axis.iter_mut()
                .zip(&transform.scale)
                .for_each(|(a, s)| *a *= s);
            axis
        };
        let axes = [axis(0), axis(1)];
        let offset = [0, 1].map(|number: usize| dot(&axes[number], &transform.mean));
        Self { axes, offset }
    }

    fn place(&self, stored: &[f32]) -> [f32; 2] {
        [0, 1].map(|number: usize| dot(&self.axes[number], stored) - self.offset[number])
    }
}

/// Moves `count` random entries to the front, and drops the others.
fn shuffle_first(numbers: &mut Vec<u64>, count: usize) {
    let mut rng = random_stream(SEED, 0);
    for at in 0..numbers.len().min(count) {
        let other = at + uniform_below(&mut rng, numbers.len() - at);
        numbers.swap(at, other);
    }
    numbers.truncate(count);
}

/// The leading axes of a sample; the first coordinates where it has fewer.
fn projection(sample: Vec<f32>, wide: usize) -> ApiResult<Projection> {
    let sample = Matrix::from_vec(sample, wide).map_err(garlic_core::Error::from)?;
    let rows = sample.as_rows();
    // In threads of its own: the global pool belongs to the program.
    let pool = Workers::of(1).get()?;
    let found = pool.install(|| top_components(rows, 2, SEED));
    let mean: Vec<f64> = (0..wide)
        .map(|at| rows.iter().map(|row| f64::from(row[at])).sum::<f64>() / rows.len().max(1) as f64)
        .collect();
    let spread = |row: &[f32]| {
        row.iter()
            .zip(&mean)
            .map(|(x, m)| (f64::from(*x) - m).powi(2))
            .sum::<f64>()
    };
    let all = rows.iter().map(spread).sum::<f64>() / rows.len().max(1) as f64;
    let along: f64 = found.values.iter().map(|v| f64::from(*v)).sum();
    let mut axes = Matrix::zeros(2, wide);
    for number in 0..2 {
        match number < found.basis.rows() {
            true => {
                // The sign of an axis is arbitrary: the largest weight is positive.
                let axis = found.basis.row(number);
                let largest = axis
                    .iter()
                    .fold(0.0_f32, |m, a| if a.abs() > m.abs() { *a } else { m });
                let sign = if largest < 0.0 { -1.0 } else { 1.0 };
                let pairs = axes.row_mut(number).iter_mut().zip(axis);
                pairs.for_each(|(out, a)| *out = sign * a);
            }
            false if number < wide => axes.row_mut(number)[number] = 1.0,
            false => {}
        }
    }
    let kept = if all > 0.0 { (along / all) as f32 } else { 1.0 };
    Ok(Projection { axes, kept })
}

fn ellipses(index: &AnyIndex, projection: &Projection) -> Vec<Ellipse> {
    let sizes = index.cell_sizes();
    let shapes = index.shapes();
    let cells = 0..sizes.len().min(shapes.len());
    cells
        .map(|cell| {
            let (centre, [xx, xy, yy]) = match index
                .updatable()
                .ok()
                .and_then(|index| index.cell_shape(cell))
            {
                Some(shape) => {
                    let axes = shape.axes.chunks_exact(shape.mean.len().max(1));
                    let axes = axes.zip(shape.variances).filter(|(_, v)| **v > 0.0);
                    let residual = shape.residual_variance;
                    let mut covariance = [residual, 0.0, residual];
                    for (axis, variance) in axes {
                        let [x, y] = projection.place(axis);
                        let more = variance - residual;
                        covariance[0] += more * x * x;
                        covariance[1] += more * x * y;
                        covariance[2] += more * y * y;
                    }
                    (projection.place(shape.mean), covariance)
                }
                None => (
                    projection.place(shapes.mean(cell)),
                    dense(&*shapes, cell, projection),
                ),
            };
            // Eigenvalues of a symmetric matrix of two rows.
            let (middle, half) = ((xx + yy) / 2.0, (xx - yy) / 2.0);
            let root = (half * half + xy * xy).sqrt();
            Ellipse {
                centre,
                axes: [middle + root, middle - root].map(|v| v.max(0.0).sqrt()),
                angle: 0.5 * (2.0 * xy).atan2(xx - yy),
                points: sizes[cell],
            }
        })
        .collect()
}

/// The covariance of a cell along the axes of the map: from a full matrix.
fn dense(shapes: &dyn CellShapes, cell: usize, projection: &Projection) -> [f32; 3] {
    let (dim, lower) = (shapes.dim(), shapes.covariance(cell));
    let at = |i: usize, j: usize| lower[i.max(j) * dim + i.min(j)];
    let product = |a: &[f32], b: &[f32]| -> f32 {
        let row = |i: usize| (0..dim).map(|j| at(i, j) * f64::from(b[j])).sum::<f64>();
        (0..dim).map(|i| f64::from(a[i]) * row(i)).sum::<f64>() as f32
    };
    let (x, y) = (projection.axes.row(0), projection.axes.row(1));
    [product(x, x), product(x, y), product(y, y)]
}

fn bounds(places: &[[f32; 2]]) -> [f32; 4] {
    let mut bounds = [
        f32::INFINITY,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NEG_INFINITY,
    ];
    for [x, y] in places {
        bounds = [
            bounds[0].min(*x),
            bounds[1].min(*y),
            bounds[2].max(*x),
            bounds[3].max(*y),
        ];
    }
    match places.is_empty() {
        true => [-1.0, -1.0, 1.0, 1.0],
        false => bounds,
    }
}

/// The latest map of an index.
#[derive(Default)]
pub(crate) struct MapCache(Arc<Mutex<Option<Kept>>>);

struct Kept {
    /// What was drawn, for as long as the map is shown with it.
    snapshot: Option<Arc<Snapshot>>,
    /// The same afterwards: the map alone must not keep an index in memory that has changed.
    drawn: Weak<Snapshot>,
    map: Arc<Map>,
    made: Instant,
}

impl MapCache {
    /// The map of a snapshot, or of one a few seconds older. It is made once, however many ask for it, and kept even if all of
    /// them give up.
    pub(crate) async fn get(
        &self,
        snapshot: &Arc<Snapshot>,
    ) -> ApiResult<(Arc<Snapshot>, Arc<Map>)> {
        if snapshot.index().is_empty() {
            return Err(ApiError::invalid(
                "an index without points has no map; add some",
            ));
        }
        let (cache, snapshot) = (Arc::clone(&self.0), Arc::clone(snapshot));
        let made = tokio::spawn(async move {
            let mut kept = cache.lock().await;
            if let Some(known) = &*kept
                && let Some(drawn) = known.drawn.upgrade()
                && (Arc::ptr_eq(&drawn, &snapshot) || known.made.elapsed() < RENEW_AFTER)
            {
                return Ok((drawn, Arc::clone(&known.map)));
            }
            let of = Arc::clone(&snapshot);
            let before = kept.as_ref().map(|known| Arc::clone(&known.map));
            let map = Arc::new(change(move || Map::of(&of, before.as_deref())).await?);
            let made = Instant::now();
            *kept = Some(Kept {
                drawn: Arc::downgrade(&snapshot),
                snapshot: Some(Arc::clone(&snapshot)),
                map: Arc::clone(&map),
                made,
            });
            tokio::spawn(release(Arc::clone(&cache), made));
            Ok((snapshot, map))
        });
        made.await.unwrap_or_else(|_| Err(ApiError::internal()))
    }
}

/// Lets go of the snapshot of a map that was made at a time, once it is too old to be shown with it.
async fn release(cache: Arc<Mutex<Option<Kept>>>, made: Instant) {
    tokio::time::sleep(RENEW_AFTER).await;
    if let Some(kept) = cache.lock().await.as_mut()
        && kept.made == made
    {
        kept.snapshot = None;
    }
}

#[cfg(test)]
mod tests {
    use garlic_core::Rows;

    use super::*;

    /// Two elongated clusters in six dimensions.
    fn snapshot(metric: &str) -> Snapshot {
        let mut rng = random_stream(3, 0);
        let mut number = || garlic_linalg::uniform_unit(&mut rng) as f32 - 0.5;
        let data: Vec<f32> = (0..5000 * 6)
            .map(|i| {
                let far = if (i / 6) % 2 == 0 { 20.0 } else { 0.0 };
                match i % 6 {
                    0 => 10.0 * number() + 0.5,
                    1 => far + number(),
                    _ => number(),
                }
            })
            .collect();
        let builder = garlic_ann::Index::builder()
            .threads(1)
            .set("metric", metric)
            .unwrap();
        let index = builder.build(Rows::new(&data, 6).unwrap()).unwrap();
        Snapshot::new(index.into()).unwrap()
    }

    #[test]
    fn a_map_keeps_no_snapshot_that_nobody_else_has() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        let (cache, old) = (MapCache::default(), Arc::new(snapshot("euclidean")));
        let later = async || tokio::time::sleep(2 * RENEW_AFTER).await;
        let get = |of: &Arc<Snapshot>| runtime.block_on(cache.get(of)).unwrap();
        let (_, first) = get(&old);
        // An index that has changed is shown as it was, for a while.
        let (index, new) = (Arc::downgrade(&old), Arc::new(Snapshot::clone(&old)));
        drop(old);
        assert!(Arc::ptr_eq(&get(&new).1, &first));
        runtime.block_on(later());
        assert!(index.upgrade().is_none());
        let (_, second) = get(&new);
        assert_eq!((first.axes, &first.places), (second.axes, &second.places));
        runtime.block_on(later());
        assert!(Arc::ptr_eq(&get(&new).1, &second), "it is the same still");
    }

    #[test]
    fn points_lie_where_their_vectors_are_placed_and_cells_among_them() {
        for metric in ["euclidean", "cosine", "inner_product"] {
            let snapshot = snapshot(metric);
            let map = Map::of(&snapshot, None).unwrap();
            assert_eq!((map.places.len(), map.numbers.len()), (5000, 5000));
            let scale = map.bounds[2] - map.bounds[0];
            for (place, number) in map.places.iter().zip(&map.numbers).take(50) {
                let vector = snapshot.index().get(*number).unwrap();
                let again = map.place_of(snapshot.index(), &vector);
                assert!(
                    (again[0] - place[0]).hypot(again[1] - place[1]) < 1e-3 * scale,
                    "{metric}"
                );
            }
            assert_eq!(
                map.cells.iter().map(|cell| cell.points).sum::<usize>(),
                5000
            );
            for cell in &map.cells {
                let [left, top, right, bottom] = map.bounds;
                assert!(left <= cell.centre[0] && cell.centre[0] <= right);
                assert!(top <= cell.centre[1] && cell.centre[1] <= bottom);
                assert!(cell.axes[0] >= cell.axes[1]);
            }
            let (first, next) = map.within(map.bounds, 0, 100);
            assert_eq!((first.len(), next), (100, Some(100)));
            let (last, next) = map.within(map.bounds, 4990, 100);
            assert_eq!((last.len(), next), (10, None));
            assert_eq!(map.within([1e9, 1e9, 2e9, 2e9], 0, 100), (vec![], None));
        }
        let map = Map::of(&snapshot("euclidean"), None).unwrap();
        assert!(
            map.variance_kept() > 0.95,
            "two directions hold nearly all of the variance"
        );
    }

    #[test]
    fn axes_stay_until_an_index_is_trained_again() {
        let first = Map::of(&snapshot("euclidean"), None).unwrap();
        let snapshot = snapshot("euclidean");
        let AnyIndex::Cells(mut index) = snapshot.index().clone() else {
            panic!("cells");
        };
        index.remove(&(0..3000).collect::<Vec<u64>>()).unwrap();
        let changed = Snapshot::new(index.clone().into()).unwrap();
        let again = Map::of(&changed, Some(&first)).unwrap();
        assert_eq!((again.axes, again.places.len()), (0, 2000));
        assert_eq!(again.projection.axes, first.projection.axes);
        index.retrain().unwrap();
        let trained = Snapshot::new(index.into()).unwrap();
        assert_eq!(Map::of(&trained, Some(&again)).unwrap().axes, 1);
    }

    #[test]
    fn few_points_have_a_map() {
        let index = garlic_ann::Index::builder()
            .threads(1)
            .build(Rows::new(&[1.0, 2.0], 1).unwrap())
            .unwrap();
        let map = Map::of(&Snapshot::new(index.into()).unwrap(), None).unwrap();
        assert_eq!(map.places.len(), 2);
        assert!(map.places.iter().flatten().all(|v| v.is_finite()));
    }
}
