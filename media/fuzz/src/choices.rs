//! Decisions read from bytes; after the last byte every decision is the first one.

use std::net::SocketAddr;

pub struct Choices<'a> {
    rest: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Choices { rest: data }
    }

    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// The next bytes; the two bytes before them give their number, which is limited to the bytes left.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.u16());
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// One of a few addresses, so that some of them repeat.
    pub fn address(&mut self) -> SocketAddr {
        let choice = self.byte();
        let port = 4_000 + u16::from(choice >> 4);
        match choice & 7 {
            0..=2 => ([10, 0, 0, 1], port).into(),
            3 => ([192, 0, 2, 7], port).into(),
            4 => ([127, 0, 0, 1], port).into(),
            5 => ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], port).into(),
            6 => ([0, 0, 0, 0, 0, 0xffff, 0x0a00, 1], port).into(),
            _ => ([0, 0, 0, 0], 0).into(),
        }
    }
}
