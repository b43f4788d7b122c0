//! The supported link types.

/// The type of a frame's first header, as numbered in the registry of link types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: a protocol family in the byte order of the capturing host.
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet II, with or without VLAN tags.
    pub const ETHERNET: LinkType = LinkType(1);
    /// PPP, with or without its HDLC address and control bytes.
    pub const PPP: LinkType = LinkType(9);
    /// PPP in HDLC-like framing (RFC 1662).
    pub const PPP_HDLC: LinkType = LinkType(50);
    /// PPPoE session packets without an Ethernet header.
    pub const PPP_ETHER: LinkType = LinkType(51);
    /// Raw IP, as `LINKTYPE_RAW`.
    pub const RAW: LinkType = LinkType(101);
    /// Cisco's HDLC.
    pub const C_HDLC: LinkType = LinkType(104);
    /// OpenBSD loopback: a protocol family in network byte order.
    pub const LOOP: LinkType = LinkType(108);
    /// Linux cooked capture, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Raw IPv4.
    pub const IPV4: LinkType = LinkType(228);
    /// Raw IPv6.
    pub const IPV6: LinkType = LinkType(229);
    /// Linux cooked capture, version 2.
    pub const LINUX_SLL2: LinkType = LinkType(276);
}
