#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sidetone_media_fuzz::tcp_reassembly(data));
