//! Reads fixed-width integers from a slice, in the byte order of a capture's header.

/// The byte order in which the capturing host wrote its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// The 16-bit number at `offset`; `None` beyond the end.
    pub(super) fn u16(self, bytes: &[u8], offset: usize) -> Option<u16> {
        let raw = array::<2>(bytes, offset)?;
        Some(match self {
            Order::Big => u16::from_be_bytes(raw),
            Order::Little => u16::from_le_bytes(raw),
        })
    }

    /// The 32-bit number at `offset`; `None` beyond the end.
    #[inline]
    pub(super) fn u32(self, bytes: &[u8], offset: usize) -> Option<u32> {
        let raw = array::<4>(bytes, offset)?;
        Some(match self {
            Order::Big => u32::from_be_bytes(raw),
            Order::Little => u32::from_le_bytes(raw),
        })
    }

    /// The signed 64-bit number at `offset`; `None` beyond the end.
    pub(super) fn i64(self, bytes: &[u8], offset: usize) -> Option<i64> {
        let raw = array::<8>(bytes, offset)?;
        Some(match self {
            Order::Big => i64::from_be_bytes(raw),
            Order::Little => i64::from_le_bytes(raw),
        })
    }
}

/// `N` bytes at `offset`; `None` beyond the end.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

/// The 16-bit number in network byte order at `offset`.
pub(super) fn be16(bytes: &[u8], offset: usize) -> Option<u16> {
    array(bytes, offset).map(u16::from_be_bytes)
}

/// The 32-bit number in network byte order at `offset`.
pub(super) fn be32(bytes: &[u8], offset: usize) -> Option<u32> {
    array(bytes, offset).map(u32::from_be_bytes)
}
