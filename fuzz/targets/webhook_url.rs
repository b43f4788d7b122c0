#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sidetone_fuzz::webhook_url(data));
