//! Adam, with the moments of every cell kept apart so that cells can come and go.

use rayon::prelude::*;

use super::schedule::Schedule;
use crate::config::Config;
use crate::gaussians::{Gaussians, raise_diagonal};
use crate::losses::Gradient;

/// The optimiser of one training.
#[derive(Debug)]
pub(super) struct Adam {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    floor: f32,
    mean_rate: Schedule,
    factor_rate: Schedule,
    means: Moments,
    factors: Moments,
    /// Steps each cell has made, for the bias correction.
    steps: Vec<u32>,
}

/// First and second moments, laid out like the parameters.
#[derive(Debug)]
struct Moments {
    first: Vec<f32>,
    second: Vec<f32>,
}

impl Moments {
    fn zeros(len: usize) -> Self {
        Self {
            first: vec![0.0; len],
            second: vec![0.0; len],
        }
    }

    /// Keeps the rows named by `origin`; a row without one starts at zero.
    fn rearrange(&mut self, origin: &[Option<usize>], stride: usize) {
        for values in [&mut self.first, &mut self.second] {
            let mut next = vec![0.0; origin.len() * stride];
            for (row, from) in next.chunks_exact_mut(stride).zip(origin) {
                if let Some(from) = from {
                    row.copy_from_slice(&values[from * stride..(from + 1) * stride]);
                }
            }
            *values = next;
        }
    }
}

impl Adam {
    pub(super) fn new(config: &Config, model: &Gaussians) -> Self {
        let training = &config.training;
        let rate = |rates| Schedule::new(rates, training.warmup_epochs, training.epochs);
        Self {
            beta1: training.adam_beta1 as f32,
            beta2: training.adam_beta2 as f32,
            epsilon: training.adam_epsilon as f32,
            floor: training.diagonal_floor as f32,
            mean_rate: rate(training.mean_rate),
            factor_rate: rate(training.factor_rate),
            means: Moments::zeros(model.len() * model.dim()),
            factors: Moments::zeros(model.len() * model.stride()),
            steps: vec![0; model.len()],
        }
    }

    /// One step at a (fractional) epoch. Diagonals of factors stay at or above the floor.
    pub(super) fn step(&mut self, model: &mut Gaussians, gradient: &Gradient, epoch: f64) {
        for steps in &mut self.steps {
            *steps += 1;
        }
        let step = Step {
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            steps: &self.steps,
        };
        let (dim, stride, floor) = (model.dim(), model.stride(), self.floor);
        let covariance = model.factors.covariance();
        let rate = self.mean_rate.rate(epoch);
        let means = model.means.as_mut_slice();
        step.update(means, &gradient.means, &mut self.means, dim, rate);
        let rate = self.factor_rate.rate(epoch);
        let factors = model.factors.values_mut();
        step.update(factors, &gradient.factors, &mut self.factors, stride, rate);
        let factors = factors.par_chunks_mut(stride);
        factors.for_each(|factor| raise_diagonal(factor, covariance, dim, floor));
    }

    /// Follows a change of the cells: `origin` names the old cell each new one continues, if any.
    pub(super) fn rearrange(&mut self, origin: &[Option<usize>], model: &Gaussians) {
        self.means.rearrange(origin, model.dim());
        self.factors.rearrange(origin, model.stride());
        self.steps = origin
            .iter()
            .map(|o| o.map_or(0, |cell| self.steps[cell]))
            .collect();
    }
}

/// What one step has in common for all parameters.
struct Step<'a> {
    beta1: f32,
    beta2: f32,
    epsilon: f32,
    steps: &'a [u32],
}

impl Step<'_> {
    /// Moves the values of every cell, `stride` each.
    fn update(
        &self,
        values: &mut [f32],
        gradient: &[f32],
        moments: &mut Moments,
        stride: usize,
        rate: f64,
    ) {
        let (beta1, beta2, epsilon) = (self.beta1, self.beta2, self.epsilon);
        values
            .par_chunks_mut(stride)
            .zip(gradient.par_chunks(stride))
            .zip(moments.first.par_chunks_mut(stride))
            .zip(moments.second.par_chunks_mut(stride))
            .zip(self.steps.par_iter())
            .for_each(|((((value, gradient), first), second), steps)| {
                let t = *steps as i32;
                let rate = (rate / (1.0 - f64::from(beta1).powi(t))) as f32;
                let correction = (1.0 / (1.0 - f64::from(beta2).powi(t)).sqrt()) as f32;
                let moments = first.iter_mut().zip(second.iter_mut());
                for ((v, g), (m, s)) in value.iter_mut().zip(gradient).zip(moments) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *s = beta2 * *s + (1.0 - beta2) * g * g;
                    *v -= rate * *m / (s.sqrt() * correction + epsilon);
                }
            });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussians::Factors;
    use garlic_linalg::Matrix;

    fn model() -> Gaussians {
        Gaussians {
            means: Matrix::from_vec(vec![1.0, 2.0, 3.0, 4.0], 2).unwrap(),
            factors: Factors::Diagonal(vec![1.0; 4]),
        }
    }

    /// The first step of Adam is the rate times the gradient's sign, whatever its size.
    #[test]
    fn first_step_has_the_size_of_the_rate() {
        let mut config = Config::default();
        config.training.warmup_epochs = 0;
        config.training.mean_rate = [0.1, 0.1, 0.1];
        config.training.factor_rate = [10.0, 10.0, 10.0];
        let mut m = model();
        let mut adam = Adam::new(&config, &m);
        let gradient = Gradient {
            means: vec![5.0, -1e-3, 0.0, 2.0],
            factors: vec![1.0, -1.0, 0.0, 0.0],
        };
        adam.step(&mut m, &gradient, 0.0);
        for (got, want) in m.means.as_slice().iter().zip([0.9, 2.1, 3.0, 3.9]) {
            assert!((got - want).abs() < 1e-4, "{got} {want}");
        }
        assert_eq!(m.factors.values()[0], config.training.diagonal_floor as f32);
        assert!((m.factors.values()[1] - 11.0).abs() < 1e-3);
    }

    #[test]
    fn survivors_keep_their_moments() {
        let config = Config::default();
        let m = model();
        let mut adam = Adam::new(&config, &m);
        adam.means.first.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        adam.steps = vec![7, 9];
        adam.rearrange(&[Some(1), None, Some(0)], &m);
        assert_eq!(adam.means.first, [3.0, 4.0, 0.0, 0.0, 1.0, 2.0]);
        assert_eq!(adam.steps, [9, 0, 7]);
    }
}
