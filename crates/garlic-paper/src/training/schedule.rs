//! Learning rates: a linear warm-up, then an exponential decay.

/// One learning rate over the whole training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    start: f64,
    peak: f64,
    end: f64,
    warmup: f64,
    epochs: f64,
}

impl Schedule {
    /// `rates` at the start, after `warmup` epochs and after `epochs` epochs. The warm-up is cut to the
    /// number of epochs there are.
    pub(super) fn new(rates: [f64; 3], warmup: usize, epochs: usize) -> Self {
        Self {
            start: rates[0],
            peak: rates[1],
            end: rates[2],
            warmup: warmup.min(epochs) as f64,
            epochs: epochs as f64,
        }
    }

    /// Rate after a (fractional) number of epochs.
    pub(super) fn rate(&self, epoch: f64) -> f64 {
        if epoch < self.warmup {
            return self.start + (self.peak - self.start) * epoch / self.warmup;
        }
        let span = (self.epochs - self.warmup).max(f64::MIN_POSITIVE);
        let share = ((epoch - self.warmup) / span).min(1.0);
        self.peak * (self.end / self.peak).powf(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_linearly_then_falls_exponentially() {
        let s = Schedule::new([1e-7, 9e-3, 3e-3], 35, 120);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(s.rate(0.0), 1e-7));
        assert!(near(s.rate(17.5), (1e-7 + 9e-3) / 2.0));
        assert!(near(s.rate(35.0), 9e-3));
        assert!(near(s.rate(77.5), (9e-3f64 * 3e-3).sqrt()));
        assert!(near(s.rate(120.0), 3e-3));
        let short = Schedule::new([1e-7, 1.0, 0.5], 35, 10);
        assert!(near(short.rate(5.0), 0.5 + 0.5e-7));
        assert!(short.rate(10.0).is_finite());
    }
}
