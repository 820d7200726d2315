//! Tests of the index directory: a scripted workload and its model, run on disks that fail in every way.

mod basics;
mod faults;
mod fuzz;
mod power;
mod script;
mod sim;
mod swap;
