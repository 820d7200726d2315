//! The section GRAPH: neighbour lists and row codes. An index without a neighbour graph has no such section.

use std::io::{self, Write};

use super::validate::{MAX_AXIS_COORDINATE, coordinate_limit};
use crate::graph::{Graph, Line, NO_NEIGHBOUR, RowCodes};
use crate::quantize::RowQuantizer;
use garlic_core::file::{
    Aligned, Fault, Kind, Reader, Section, Source, Word, inconsistent, product,
};

/// Upper limit of the length of a list, so that a damaged file cannot demand any amount of work.
const MAX_DEGREE: u64 = 1024;

/// Layout of the section, in the high half of its first word. Codes of layout 0 had one part.
const LAYOUT: u64 = 1;

pub(super) fn write(graph: &Graph, out: &mut dyn Write) -> io::Result<()> {
    let mut out = Aligned::new(out);
    let codes = &graph.codes;
    let (crumbs, steps) = codes.quantizer.parameters();
    let [head, rest] = codes.quantizer.lines();
    out.put(&[
        LAYOUT << 32 | graph.degree as u64,
        graph.centres.len() as u64,
        codes.mean.len() as u64,
        crumbs.len() as u64,
        head as u64,
        rest as u64,
        u64::from(codes.head_ratio.to_bits()),
        u64::from(codes.quantizer.rest_share().to_bits()),
    ])?;
    out.array(&codes.mean)?;
    out.array(&codes.rotation)?;
    out.array(crumbs)?;
    out.array(steps)?;
    out.array(&graph.centres)?;
    out.array(&graph.neighbours)?;
    out.array(&codes.heads)?;
    out.array(&codes.rests)
}

/// Reads the section, for an index of `points` points of dimension `dim`. A graph of another layout is skipped: the
/// index answers without it, and the next training builds one.
pub(super) fn read<R: Source>(
    reader: &mut Reader<R>,
    points: u64,
    dim: u64,
) -> Result<Option<Graph>, Fault> {
    let checked = !reader.is_mapped();
    let graph = reader.large_section(Kind::Graph, |section| {
        let first = section.word::<u64>()?;
        if first >> 32 == LAYOUT {
            return read_graph(section, first, points, dim).map(Some);
        }
        section.buffer::<u8>(section.left())?;
        Ok(None)
    })?;
    if let Some(graph) = graph.as_ref().filter(|_| checked) {
        check(graph)?;
    }
    Ok(graph)
}

fn wrong(message: impl Into<String>) -> Fault {
    inconsistent(Kind::Graph, message.into())
}

fn read_graph<R: Source>(
    section: &mut Section<'_, R>,
    first: u64,
    points: u64,
    dim: u64,
) -> Result<Graph, Fault> {
    let degree = first & u64::from(u32::MAX);
    let mut header = [0_u64; 7];
    for word in &mut header {
        *word = section.word()?;
    }
    let [cells, found_dim, axes, head, rest, head_ratio, rest_share] = header;
    if found_dim != dim || axes == 0 || axes > dim {
        return Err(wrong(format!(
            "{axes} axes of dimension {found_dim} for vectors of dimension {dim}"
        )));
    }
    if degree == 0 || degree > MAX_DEGREE {
        return Err(wrong(format!("lists of {degree} neighbours")));
    }
    let [rotation, edges] = [product(&[axes, dim]), product(&[points, degree])];
    let [heads, rests] = [product(&[points, head]), product(&[points, rest])];
    section.expect_arrays(&[
        (Some(dim), 4),
        (rotation, 4),
        (Some(axes), 4),
        (Some(axes), 4),
        (Some(cells), 4),
        (edges, 4),
        (heads, size_of::<Line>()),
        (rests, size_of::<Line>()),
    ])?;
    let mean = section.array(dim)?;
    let rotation = section.array(axes * dim)?;
    let crumbs = section.array::<u32>(axes)?.to_vec();
    let steps = section.array::<f32>(axes)?.to_vec();
    let quantizer = RowQuantizer::restore([head as usize, rest as usize], crumbs, steps);
    let quantizer = quantizer.ok_or_else(|| wrong("bits and steps of the codes do not fit"))?;
    let centres = section.array(cells)?;
    let neighbours = section.array(points * degree)?;
    let [head_ratio, rest_share] = [head_ratio, rest_share].map(|bits| f32::from_bits(bits as u32));
    if !(head_ratio >= 1.0 && (0.0..=1.0).contains(&rest_share)) {
        return Err(wrong(format!(
            "heads of codes with a ratio of {head_ratio} and a share of {rest_share}"
        )));
    }
    let quantizer = quantizer.with_rest_share(rest_share);
    let codes = [section.array(points * head)?, section.array(points * rest)?];
    Ok(Graph {
        degree: degree as usize,
        neighbours,
        centres,
        codes: RowCodes::new(mean, rotation, quantizer, codes, head_ratio),
    })
}

/// Checks the content of a graph with checked shapes.
pub(super) fn check(graph: &Graph) -> Result<(), Fault> {
    let points = graph.points() as u32;
    let exists = |at: &u32| *at < points;
    let lists = graph.neighbours.chunks_exact(graph.degree);
    for (at, list) in lists.enumerate() {
        let end = list.iter().position(|n| *n == NO_NEIGHBOUR);
        let (own, rest) = list.split_at(end.unwrap_or(list.len()));
        if !own.iter().all(exists) || rest.iter().any(|n| *n != NO_NEIGHBOUR) {
            return Err(wrong(format!(
                "the list of point {at} names a point that does not exist"
            )));
        }
    }
    let centre = |at: &u32| exists(at) || *at == NO_NEIGHBOUR;
    if !graph.centres.iter().all(centre) {
        return Err(wrong("a cell starts at a point that does not exist"));
    }
    let codes = &graph.codes;
    let limit = coordinate_limit(codes.mean.len());
    if !codes.mean.iter().all(|v| v.abs() <= limit) {
        return Err(wrong("a coordinate of the mean is out of range"));
    }
    if !codes
        .rotation
        .iter()
        .all(|v| v.abs() <= MAX_AXIS_COORDINATE)
    {
        return Err(wrong("a value of the rotation is above 1"));
    }
    let valid = |at: u32| codes.norm(at).is_some_and(f32::is_finite);
    match (0..points).find(|at| !valid(*at)) {
        Some(at) => Err(wrong(format!("the norm of point {at} is out of range"))),
        None => Ok(()),
    }
}

impl Word for Line {
    /// Bytes have no order.
    fn swapped(self) -> Self {
        self
    }
}
