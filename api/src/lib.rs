//! The HTTP face of Sidetone.
