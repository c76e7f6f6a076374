#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::iscsi_pdus(bytes));
