//! The steps of a streamed build after its vectors were read.

use std::sync::Arc;
use std::time::Instant;

use garlic_core::metric::{Embedded, Embedding};
use garlic_core::vector_file::VectorFile;
use garlic_core::vectors::{StoredType, StoredVectors};
use garlic_core::{Cancel, Error, Metric, Result, Stage, Transform};
use garlic_linalg::Matrix;

use super::encoded::{self, CodeShape};
use super::groups::{GroupWriter, Groups, Record, Records, gather};
use super::journal::{Grouped, load_cells, load_transform, save_cells, save_transform};
use super::memory::{Sizes, mebibytes};
use super::points::{PointFile, PointWriter, block_rows};
use super::rows::{RowFile, Summary};
use super::{StreamedBuild, StreamedIndex};
use crate::build::storage::{Place, first_value, rounded, stored_type};
use crate::config::UseGraph;
use crate::partition::{AnisotropicCells, NO_CELL, SCORED_CELLS, assign, code_bits, renumber};
use crate::plan::Calibration;
use crate::quantize::code_width;
use crate::segment::{BuildStats, Index, Segment};
use crate::transform::{BLOCK_MULTIPLE, fit_sample, residuals_squared, sample_rows};
use crate::tune;

/// Where the stored vectors are, in the order of the index.
pub(super) const VECTORS: &str = "vectors";

/// The vectors of a build as they are embedded and stored.
struct Vectors<'a> {
    file: RowFile,
    summary: &'a Summary,
    embedding: Embedding,
    element: StoredType,
}

impl Vectors<'_> {
    /// Some rows, embedded and rounded.
    fn read(&self, first: usize, count: usize) -> Result<Embedded<'static>> {
        let mut values = Vec::new();
        self.file.read(first, count, &mut values)?;
        self.made(values)
    }

    /// The rows of these numbers.
    fn gather(&self, rows: &[u32]) -> Result<Embedded<'static>> {
        let mut values = Vec::with_capacity(rows.len() * self.summary.dim);
        for row in rows {
            self.file.read(*row as usize, 1, &mut values)?;
        }
        self.made(values)
    }

    /// The first embedded value that `is_wanted`.
    fn first(&self, is_wanted: fn(f32) -> bool, cancel: &Cancel) -> Result<Option<Place>> {
        let is_embedded = self.embedding.metric() != Metric::Euclidean;
        // Bytes fit into every type.
        if !is_embedded && self.summary.are_bytes() {
            return Ok(None);
        }
        let most = block_rows(self.summary.dim, 1);
        for first in (0..self.summary.rows).step_by(most) {
            cancel.check()?;
            let block = self.read(first, most.min(self.summary.rows - first))?;
            if let Some(place) = first_value(block.rows(), is_wanted) {
                let row = first + place.row;
                return Ok(Some(Place { row, ..place }));
            }
        }
        Ok(None)
    }

    fn made(&self, values: Vec<f32>) -> Result<Embedded<'static>> {
        let given = Matrix::from_vec(values, self.summary.dim)?;
        rounded(self.embedding.own_vectors(given)?, self.element)
    }
}

impl StreamedBuild<'_> {
    /// What the build is expected to need.
    pub(super) fn expected(&self, vectors: usize, dim: usize) -> Sizes {
        let config = &self.builder.config;
        let inner = dim + usize::from(config.metric == Metric::InnerProduct);
        Sizes::expected(vectors, inner, config, self.threads)
    }

    /// The memory that a neighbour graph needs, with everything else that is there then.
    fn needed_for_graph(&self, sizes: &Sizes) -> u64 {
        sizes.base() + sizes.finished() + sizes.graph() + self.given_bytes()
    }

    /// Fails if a graph is asked for that does not fit.
    pub(super) fn check_graph(&self, sizes: &Sizes) -> Result<()> {
        let needed = self.needed_for_graph(sizes);
        match self.builder.config.graph.graph == UseGraph::On && needed > self.memory {
            true => Err(Error::Config {
                key: "graph".into(),
                message: format!(
                    "a neighbour graph of {} vectors is built in memory and needs {}; raise the memory limit, or use \
                     graph auto or off",
                    sizes.points,
                    mebibytes(needed)
                ),
            }),
            false => Ok(()),
        }
    }

    /// All steps. Runs in the pool of the build.
    pub(super) fn finish(&mut self, summary: &Summary) -> Result<StreamedIndex> {
        let embedding = summary.embedding(self.builder.config.metric)?;
        let grouped = match &self.journal.grouped {
            Some(grouped) => {
                self.check_groups(grouped, summary)?;
                grouped.clone()
            }
            None => {
                let grouped = self.group(summary, embedding)?;
                self.journal.grouped = Some(grouped.clone());
                self.journal.save(&self.folder)?;
                grouped
            }
        };
        RowFile::discard(&self.folder);
        PointFile::discard(&self.folder);
        let transform = load_transform(&self.folder, &grouped.record)?;
        let start = Instant::now();
        let held = Records::held(&self.folder, grouped.record)?;
        let cells = match self.journal.fitted {
            true => load_cells(&self.folder, &grouped, &self.builder.config)?,
            false => {
                let cells = self.fit_cells(&grouped)?;
                save_cells(&self.folder, &cells)?;
                self.journal.fitted = true;
                self.journal.save(&self.folder)?;
                cells
            }
        };
        let others = gather(
            (0..held.len()).map(|at| (&held, at)),
            grouped.record.out_dim,
        )?;
        let labels = cells.assign(others.as_rows(), SCORED_CELLS, &self.builder.cancel)?;
        drop(others);
        self.encode(&grouped, &cells, &held, &labels, summary.rows)?;
        let held_rows: Vec<u32> = (0..held.len()).map(|at| held.row(at)).collect();
        drop(held);
        let (index, held) =
            self.assemble(&grouped, summary, embedding, transform, cells, &held_rows)?;
        self.seconds.bins = start.elapsed().as_secs_f64();
        self.measure(index, &held, &grouped)
    }

    /// Trains cells, assigns every point, and writes the points by group.
    fn group(&mut self, summary: &Summary, embedding: Embedding) -> Result<Grouped> {
        let start = Instant::now();
        let (builder, folder) = (&self.builder, &self.folder);
        let (config, cancel) = (&builder.config, &builder.cancel);
        let file = RowFile::open(folder, summary)?;
        let dim = embedding.inner_dim(summary.dim);
        let mut vectors = Vectors {
            file,
            summary,
            embedding,
            element: StoredType::F32,
        };
        let first = |is_wanted: fn(f32) -> bool| vectors.first(is_wanted, cancel);
        vectors.element = stored_type(dim, config.metric, config.storage.store, first)?;
        let sample = match sample_rows(summary.rows, config.seed) {
            Some(rows) => vectors.gather(&rows)?,
            None => vectors.read(0, summary.rows)?,
        };
        let transform = fit_sample(sample.rows(), &config.transform, config.seed, cancel)?;
        drop(sample);
        save_transform(folder, &transform)?;
        let longest = self.transform_all(&vectors, &transform)?;
        self.seconds.prepare += start.elapsed().as_secs_f64();

        let start = Instant::now();
        let held = tune::held_out(summary.rows, dim, config);
        let points = PointFile::open(folder, summary.rows, transform.out_dim(), cancel)?;
        let step = |done, total| builder.report_progress(Stage::Train, done, total);
        let mut assigned = assign(&points, &held, config, cancel, &step)?;
        for row in &held {
            assigned.labels[*row as usize] = NO_CELL;
        }
        let cells = renumber(&mut assigned.labels, assigned.cells);
        self.seconds.train = start.elapsed().as_secs_f64();

        let start = Instant::now();
        let mut sizes = vec![0; cells];
        for label in assigned.labels.iter().filter(|label| **label != NO_CELL) {
            sizes[*label as usize] += 1;
        }
        let record = Record {
            dim,
            out_dim: transform.out_dim(),
            element: vectors.element,
        };
        let mut grouped = Grouped {
            groups: Groups::default(),
            largest_cell: sizes.iter().copied().max().unwrap_or(0) as usize + held.len(),
            largest_group: 0,
            record,
            cells,
            rank: assigned.axes.rank,
            scored_axes: assigned.axes.scored_axes,
            longest,
        };
        let needs = self.known(&grouped, summary.rows, summary.dim);
        let free = self.memory.saturating_sub(self.given_bytes());
        let most = needs.group_size(free, grouped.largest_cell)?;
        grouped.groups = Groups::new(&sizes, most);
        grouped.largest_group = grouped.groups.largest(&sizes);
        self.write_groups(&vectors, &points, &assigned.labels, &grouped.groups, record)?;
        self.seconds.assign = start.elapsed().as_secs_f64();
        Ok(grouped)
    }

    /// What the build needs once its cells are known.
    fn known(&self, grouped: &Grouped, vectors: usize, dim: usize) -> Sizes {
        Sizes {
            out_dim: grouped.record.out_dim,
            cells: grouped.cells,
            rank: grouped.rank,
            element: grouped.record.element,
            ..self.expected(vectors, dim)
        }
    }

    /// Fails if a group that an earlier build made does not fit into the memory of this one.
    fn check_groups(&self, grouped: &Grouped, summary: &Summary) -> Result<()> {
        if self.journal.encoded.len() == grouped.groups.len() {
            return Ok(());
        }
        let sizes = self.known(grouped, summary.rows, summary.dim);
        let group = sizes.group(grouped.largest_group, grouped.largest_cell);
        let needed = sizes.base() + group + self.given_bytes();
        match needed <= self.memory {
            true => Ok(()),
            false => Err(Error::Config {
                key: "memory".into(),
                message: format!(
                    "the build that was stopped had more memory, and its parts need {} with {} threads; give as much, \
                     or begin anew",
                    mebibytes(needed),
                    self.threads
                ),
            }),
        }
    }

    /// Writes the transformed vectors. Returns the length of the longest, for inner products.
    fn transform_all(&self, vectors: &Vectors<'_>, transform: &Transform) -> Result<f32> {
        let mut out = PointWriter::new(&self.folder)?;
        let rows = vectors.summary.rows;
        let most = block_rows(transform.dim(), transform.rows_per_task());
        let mut longest = 0.0f32;
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first);
            let block = vectors.read(first, count)?;
            let points = transform.apply_all(block.rows(), &self.builder.cancel)?;
            let residuals = residuals_squared(block.rows(), transform, points.as_rows());
            longest = longest.max(vectors.embedding.longest_stored(block.rows().iter()));
            out.push(points.as_slice(), &residuals)?;
            self.report_read(first + count, rows);
        }
        out.finish()?;
        Ok(longest)
    }

    fn write_groups(
        &self,
        vectors: &Vectors<'_>,
        points: &PointFile<'_>,
        labels: &[u32],
        groups: &Groups,
        record: Record,
    ) -> Result<()> {
        let mut out = GroupWriter::new(&self.folder, groups, record)?;
        let rows = labels.len();
        let most = block_rows(record.dim.max(record.out_dim), BLOCK_MULTIPLE);
        for first in (0..rows).step_by(most) {
            self.builder.cancel.check()?;
            let count = most.min(rows - first);
            let block = vectors.read(first, count)?;
            let (points, residuals) = (points.read(first, count)?, points.residuals(first, count)?);
            let labels = &labels[first..first + count];
            out.push(
                &self.folder,
                first,
                labels,
                block.rows(),
                &points,
                &residuals,
            )?;
            let progress = first + count;
            self.builder.report_progress(Stage::Assign, progress, rows);
        }
        out.finish()
    }

    /// The index without its calibration, and the positions of held-out points.
    fn assemble(
        &self,
        grouped: &Grouped,
        summary: &Summary,
        embedding: Embedding,
        transform: Transform,
        cells: AnisotropicCells,
        held: &[u32],
    ) -> Result<(Index, Vec<u32>)> {
        for group in 0..grouped.groups.len() {
            Records::discard(&self.folder, group);
        }
        let config = &self.builder.config;
        let shape = CodeShape {
            bits: code_bits(config, summary.rows),
            width: code_width(grouped.rank),
            rank: grouped.rank,
        };
        let ids = self.builder.ids.as_deref();
        let id = |row: u32| ids.map_or(u64::from(row), |ids| ids[row as usize]);
        let (encoded, ids, held) =
            encoded::assemble(&self.folder, &self.journal.encoded, shape, id, held)?;
        let build_stats = BuildStats {
            built: summary.rows as u64,
            radius: encoded.mean_norm(),
            longest: grouped.longest,
            ..BuildStats::default()
        };
        let record = &grouped.record;
        let vectors = VectorFile::open(&self.folder.file(VECTORS), record.element, record.dim)?;
        let vectors = StoredVectors::File(vectors);
        let segment = Segment::new(&transform, cells, encoded, vectors, ids);
        let table = Calibration::default();
        let index = Index::new(
            config.clone(),
            embedding,
            transform,
            segment,
            table,
            build_stats,
        );
        Ok((index, held))
    }

    /// Calibrates the index, and builds its graph if it is wanted and fits.
    fn measure(
        &mut self,
        mut index: Index,
        held: &[u32],
        grouped: &Grouped,
    ) -> Result<StreamedIndex> {
        let mut seconds = self.seconds;
        let builder = &self.builder;
        let (mut table, measurements) = builder.calibrate(&index, held, &mut seconds)?;
        let start = Instant::now();
        let wanted = builder.wants_graph(&index, &mut table, &measurements)?;
        seconds.graph = start.elapsed().as_secs_f64();
        let sizes = self.known(grouped, index.len(), index.dim());
        let needed = self.needed_for_graph(&sizes);
        let graph_left_out = (wanted && needed > self.memory).then_some(needed);
        if let StoredVectors::File(file) = &index.segment.vectors {
            file.check()?;
            if wanted && graph_left_out.is_none() {
                let loaded = file.load(&builder.cancel)?;
                Arc::make_mut(&mut index.segment).vectors = loaded;
                builder.add_graph(&mut index, &mut table, &measurements, &mut seconds)?;
            }
        }
        index.calibration = Arc::new(table);
        seconds.total = self.start.elapsed().as_secs_f64();
        Ok(StreamedIndex {
            index,
            report: seconds.into(),
            graph_left_out,
        })
    }
}
