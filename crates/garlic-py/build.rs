//! Tells the linker that the symbols of Python come from the interpreter, where it wants to be told (macOS).

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
