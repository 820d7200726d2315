//! Tests of the index directory: a scripted workload and its model, run on disks that fail in every way.

mod basics;
mod device;
mod faults;
mod fuzz;
mod power;
mod schedules;
mod script;
mod sim;
mod training;
