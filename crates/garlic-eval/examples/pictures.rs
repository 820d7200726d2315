//! The pictures of docs/internals/how-it-works.md: `cargo run --release -p garlic-eval --example pictures -- docs/internals/pictures`.

#![allow(clippy::print_stdout, reason = "says what it has written")]

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or("which folder?")?;
    std::fs::create_dir_all(&folder)?;
    for picture in garlic_eval::pictures::draw()? {
        let path = folder.join(picture.name);
        std::fs::write(&path, &picture.svg)?;
        println!("{}: {} bytes", path.display(), picture.svg.len());
    }
    Ok(())
}
