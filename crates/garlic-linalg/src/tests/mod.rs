//! Every function against the plain loops of `reference`, and the promises that cut across them.

mod clustering;
mod decompositions;
mod leading;
mod matrices;
mod products;
mod threads;
