//! A server in this process, asked over loopback.

mod access;
mod client;
mod connections;
mod explore;
mod formats;
mod fuzz;
mod indexes;
mod points;
mod search;
