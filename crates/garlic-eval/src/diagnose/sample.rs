//! The points that a diagnosis looks at, as the index keeps them and as its model sees them.

use garlic_core::NeighborIndex;
use garlic_linalg::{Matrix, permutation};
use rayon::prelude::*;

use crate::error::{Error, Result};

/// Stream of the choice of points.
const STREAM: u64 = 0xD1A6;

/// Points chosen at random, in random order: the first n of them are a sample, too.
pub(super) struct Sample {
    /// Vectors as they are stored.
    pub(super) vectors: Matrix,
    /// The same points in the space of the model.
    pub(super) placed: Matrix,
}

impl Sample {
    /// At most `limit` points of the index; the same ones for the same points and seed.
    pub(super) fn of(index: &dyn NeighborIndex, limit: usize, seed: u64) -> Result<Self> {
        let mut ids = index.ids();
        if ids.is_empty() || limit == 0 {
            return Err(Error::Parameter {
                name: "points",
                value: ids.len().min(limit).to_string(),
                rule: "there is nothing to look at; add vectors to the index and look at one point or more",
            });
        }
        // Identifiers come in the order of the layout, which an update may change.
        ids.sort_unstable();
        let mut chosen = permutation(ids.len(), seed, STREAM);
        chosen.truncate(limit);
        let rows: Vec<(Vec<f32>, Vec<f32>)> = chosen
            .par_iter()
            .filter_map(|at| {
                let vector = index.get(ids[*at as usize])?;
                let placed = place(index, &vector);
                Some((vector, placed))
            })
            .collect();
        let (mut vectors, mut placed) = (Vec::new(), Vec::new());
        for (vector, inside) in rows {
            vectors.extend(vector);
            placed.extend(inside);
        }
        Ok(Self {
            vectors: Matrix::from_vec(vectors, index.dim())?,
            placed: Matrix::from_vec(placed, index.transform().out_dim())?,
        })
    }

    /// Number of points.
    pub(super) fn len(&self) -> usize {
        self.vectors.rows()
    }
}

/// A stored vector in the space of the cells.
fn place(index: &dyn NeighborIndex, vector: &[f32]) -> Vec<f32> {
    let transform = index.transform();
    let mut out = vec![0.0; transform.out_dim()];
    transform.apply(&index.embedding().stored(vector), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use garlic_ann::{Index, Metric};
    use garlic_linalg::{Rows, random_stream, uniform_unit};

    use super::*;

    fn data(n: usize, dim: usize) -> Vec<f32> {
        let mut rng = random_stream(3, 1);
        (0..n * dim)
            .map(|_| uniform_unit(&mut rng) as f32 + 0.1)
            .collect()
    }

    #[test]
    fn every_metric_places_its_points_where_the_model_has_them() {
        let data = data(400, 5);
        let rows = Rows::new(&data, 5).unwrap();
        for metric in [Metric::Euclidean, Metric::Cosine, Metric::InnerProduct] {
            let index = Index::builder()
                .metric(metric)
                .seed(1)
                .threads(1)
                .build(rows)
                .unwrap();
            let sample = Sample::of(&index, 50, 7).unwrap();
            assert_eq!((sample.len(), sample.vectors.cols()), (50, 5));
            assert_eq!(sample.placed.cols(), index.transform().out_dim());
            let again = Sample::of(&index, 50, 7).unwrap();
            assert_eq!(sample.vectors, again.vectors);
            // All points together are centred where the space is.
            let all = Sample::of(&index, 1000, 7).unwrap();
            assert_eq!(all.len(), 400);
            for j in 0..all.placed.cols() {
                let mean: f32 = all.placed.as_rows().iter().map(|r| r[j]).sum::<f32>() / 400.0;
                assert!(mean.abs() < 1e-3, "{metric} {j} {mean}");
            }
        }
    }

    #[test]
    fn nothing_to_look_at_is_an_error() {
        let data = data(30, 4);
        let mut index = Index::builder()
            .build(Rows::new(&data, 4).unwrap())
            .unwrap();
        assert!(Sample::of(&index, 0, 1).is_err());
        index.remove(&(0..30).collect::<Vec<u64>>()).unwrap();
        let error = Sample::of(&index, 10, 1).err().unwrap().to_string();
        assert!(error.contains("`points` is 0"), "{error}");
    }
}
