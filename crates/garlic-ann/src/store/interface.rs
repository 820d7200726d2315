//! Implements the interface that all kinds of index share.

use std::path::Path;

use garlic_core::config::Parameters as _;
use garlic_core::metric::Embedding;
use garlic_core::{
    Answer, Attachment, CellShapes, Memory, Metric, NeighborIndex, NeighborSearcher, RangeSearch,
    Result, Rows, Search, Transform,
};
use serde_json::{Value, json};

use crate::search::Searcher;
use crate::segment::Index;

/// Number of neighbours for which recall targets are described.
const DESCRIBED_K: usize = 10;

impl NeighborIndex for Index {
    fn dim(&self) -> usize {
        self.dim()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn metric(&self) -> Metric {
        self.metric()
    }

    fn cells(&self) -> usize {
        self.cells()
    }

    fn cell_sizes(&self) -> Vec<usize> {
        let snapshot = self.snapshot();
        let cells = 0..snapshot.cells();
        cells.map(|cell| snapshot.points_in(cell)).collect()
    }

    fn stored_as(&self) -> &'static str {
        self.stored_as()
    }

    fn memory(&self) -> Memory {
        self.memory()
    }

    fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes()
    }

    fn preset(&self) -> &'static str {
        "default"
    }

    fn parameters(&self) -> Vec<(&'static str, Value)> {
        self.config.values()
    }

    fn details(&self) -> Vec<(&'static str, Value)> {
        let targets = self.exhaustive_targets();
        let exhaustive = targets.iter().map(|target| {
            let mut about = json!(target);
            about["why"] = json!(target.cause.to_string());
            about
        });
        let bins = self.bins();
        let memory = self.memory();
        let beyond = memory.total - memory.vectors;
        let floats = 4 * self.len() * self.dim();
        vec![
            ("space_dim", json!(self.transform.out_dim())),
            ("axes", json!(self.segment.cells.rank())),
            ("bins", json!(bins)),
            (
                "points_per_bin",
                json!(self.len() as f64 / bins.max(1) as f64),
            ),
            ("code_bits", json!(self.code_bits())),
            ("stored_as", json!(self.stored_as())),
            (
                "beyond_vectors",
                json!({ "bytes": beyond, "share": beyond as f64 / floats.max(1) as f64 }),
            ),
            ("recall", json!(self.config.tuning.recall)),
            ("calibration", json!(*self.calibration)),
            (
                "reads_everything",
                json!(self.reads_everything(DESCRIBED_K, self.config.tuning.recall)),
            ),
            ("exhaustive", exhaustive.collect()),
        ]
    }

    fn ids(&self) -> Vec<u64> {
        self.ids()
    }

    fn get(&self, id: u64) -> Option<Vec<f32>> {
        self.get(id)
    }

    fn contains(&self, id: u64) -> bool {
        self.contains(id)
    }

    fn next_id(&self) -> u64 {
        self.next_id()
    }

    fn attachment(&self) -> &Attachment {
        self.attachment()
    }

    fn transform(&self) -> &Transform {
        &self.transform
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn shapes(&self) -> Box<dyn CellShapes + '_> {
        Box::new(self.segment.shapes())
    }

    fn search(&self, query: &[f32], search: &Search) -> Result<Answer> {
        self.search(query, search)
    }

    fn search_batch(&self, queries: Rows<'_>, search: &Search) -> Result<Vec<Answer>> {
        self.search_batch(queries, search)
    }

    fn range_batch(&self, queries: Rows<'_>, range: &RangeSearch) -> Result<Vec<Answer>> {
        self.range_batch(queries, range)
    }

    fn searcher(&self) -> Box<dyn NeighborSearcher + '_> {
        Box::new(self.searcher())
    }

    fn takes_recall(&self) -> bool {
        true
    }

    fn route(&self, query: &[f32], count: usize) -> Result<Vec<u32>> {
        self.route(query, count)
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.save(path)
    }

    fn to_bytes(&self) -> Result<Vec<u8>> {
        self.to_bytes()
    }
}

impl NeighborSearcher for Searcher<'_> {
    fn search(&mut self, query: &[f32], search: &Search) -> Result<Answer> {
        self.search(query, search)
    }
}
