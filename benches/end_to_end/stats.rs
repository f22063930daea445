//! Medians and spreads.

/// The value below which this share of the others lies.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = (values.len() as f64 * share) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

/// Figures of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Rounds(pub Vec<f64>);

impl Rounds {
    pub fn median(&self) -> f64 {
        quantile(&mut self.0.clone(), 0.5)
    }

    /// Least and most.
    pub fn spread(&self) -> (f64, f64) {
        let least = self.0.iter().copied().fold(f64::INFINITY, f64::min);
        (least, self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }
}
