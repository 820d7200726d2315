//! Cloning: a copy of a cell in the midst of the points just outside of it.

use garlic_linalg::{Matrix, Rows};

use super::sample;
use crate::config::{Config, ShellEnd};
use crate::gaussians::Assignment;

/// The points of a cell's shell, if they are many enough for a clone.
///
/// The shell has the points whose nearest cell it is, farther than tau and nearer than e tau or (1 + e) tau. They are
/// many when they are more than beta times those that the cell covers.
pub(super) fn shell(
    assignment: &Assignment,
    held: &[u32],
    cell: u32,
    config: &Config,
) -> Option<Vec<u32>> {
    let tau = config.loss.tau as f32;
    let radius = match config.refinement.clone_shell_end {
        ShellEnd::ETau => config.refinement.clone_shell,
        ShellEnd::OnePlusETau => 1.0 + config.refinement.clone_shell,
    };
    let outer = (radius * config.loss.tau) as f32;
    let in_shell = |p: &u32| {
        let distance = assignment.distance[*p as usize];
        assignment.nearest[*p as usize] == cell && distance > tau && distance < outer
    };
    let shell: Vec<u32> = held.iter().copied().filter(in_shell).collect();
    let is_inside = |p: &&u32| assignment.covering(**p as usize).contains(&cell);
    let inside = held.iter().filter(is_inside).count();
    let many = shell.len() as f64 > config.refinement.clone_ratio * inside as f64;
    (!shell.is_empty() && many).then_some(shell)
}

/// The sampled shell point in the densest place: the smallest mean distance to its nearest sampled others.
pub(super) fn centre(points: Rows<'_>, shell: &[u32], config: &Config, stream: u64) -> Vec<f32> {
    let rules = &config.refinement;
    let share = (shell.len() as f64 * rules.clone_sample).ceil() as usize;
    let sampled = sample(
        shell,
        share.clamp(1, rules.clone_sample_most),
        config,
        stream,
    );
    let gathered = Matrix::gather(points, &sampled);
    let rows = gathered.as_rows();
    let spread = |i: usize| {
        let mut others: Vec<f32> = (0..rows.len())
            .filter(|j| *j != i)
            .map(|j| garlic_simd::l2_squared(rows.row(i), rows.row(j)))
            .collect();
        let near = rules.clone_neighbours.min(others.len());
        if near > 0 {
            others.select_nth_unstable_by(near - 1, f32::total_cmp);
        }
        others[..near].iter().map(|d| d.sqrt()).sum::<f32>()
    };
    let densest = (0..rows.len())
        .map(|i| (spread(i), i))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    rows.row(densest.map_or(0, |(_, i)| i)).to_vec()
}
