//! A stand-in for live updates: every change builds the index anew. To be deleted when the real one lands.

use garlic_linalg::Rows;

use super::Index;
use crate::error::{Error, Result};

fn refuse(message: String) -> Error {
    Error::Config {
        key: "ids".into(),
        message,
    }
}

impl Index {
    /// Adds vectors under new identifiers, all or none.
    pub fn add(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check(vectors, ids)?;
        let mut seen = std::collections::BTreeSet::new();
        for id in ids {
            if self.contains(*id) || *id >= 1 << 63 || !seen.insert(*id) {
                return Err(refuse(format!("{id} is taken or too large")));
            }
        }
        let (mut data, mut all) = self.everything(&[]);
        data.extend_from_slice(vectors.data());
        all.extend_from_slice(ids);
        self.rebuild(&data, &all)
    }

    /// Removes points; returns how many were there.
    pub fn remove(&mut self, ids: &[u64]) -> Result<usize> {
        let (data, all) = self.everything(ids);
        let removed = self.len() - all.len();
        if removed > 0 {
            self.rebuild(&data, &all)?;
        }
        Ok(removed)
    }

    /// Gives points that exist new vectors, all or none.
    pub fn update(&mut self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        self.check(vectors, ids)?;
        if let Some(id) = ids.iter().find(|id| !self.contains(**id)) {
            return Err(refuse(format!("{id} is not there")));
        }
        let (mut data, mut all) = self.everything(ids);
        data.extend_from_slice(vectors.data());
        all.extend_from_slice(ids);
        self.rebuild(&data, &all)
    }

    /// Drops removed points.
    pub fn compact(&mut self) -> Result<()> {
        Ok(())
    }

    /// Whether there is a point of this identifier.
    pub fn contains(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    /// The vector of a point.
    pub fn get(&self, id: u64) -> Option<Vec<f32>> {
        let position = self.ids.iter().position(|other| *other == id)?;
        let mut out = Vec::new();
        self.vectors.read(self.dim(), position, &mut out);
        Some(out)
    }

    fn check(&self, vectors: Rows<'_>, ids: &[u64]) -> Result<()> {
        if vectors.dim() != self.dim() {
            return Err(Error::Dimension {
                expected: self.dim(),
                found: vectors.dim(),
            });
        }
        if vectors.len() != ids.len() {
            return Err(refuse("as many as vectors".into()));
        }
        Ok(())
    }

    fn everything(&self, but: &[u64]) -> (Vec<f32>, Vec<u64>) {
        let but: std::collections::BTreeSet<u64> = but.iter().copied().collect();
        let (mut data, mut ids, mut row) = (Vec::new(), Vec::new(), Vec::new());
        for (position, id) in self.ids.iter().enumerate() {
            if !but.contains(id) {
                self.vectors.read(self.dim(), position, &mut row);
                data.extend_from_slice(&row);
                ids.push(*id);
            }
        }
        (data, ids)
    }

    fn rebuild(&mut self, data: &[f32], ids: &[u64]) -> Result<()> {
        let builder = Self::builder().config(self.config.clone()).threads(1);
        let mut index = builder.build(Rows::new(data, self.dim())?)?;
        for id in &mut index.ids {
            *id = ids[*id as usize];
        }
        *self = index;
        Ok(())
    }
}
