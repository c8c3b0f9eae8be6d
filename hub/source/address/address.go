// SPDX-License-Identifier: Apache-2.0

// Package address decides which addresses the hub may connect to on behalf of a
// user: in the flow source -> render -> store -> deliver -> apply -> observe ->
// report it guards the first step, where a name that a tenant wrote is dialled.
//
// The check is made on the address of the very connection, after the name was
// resolved: a name that answers with another address the second time gains
// nothing.
package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// ErrDenied: the address is one that sources may not be fetched from.
var ErrDenied = errors.New("the address is not allowed for sources")

// denied are ranges that lead to the hub itself, to its node, or to the metadata
// service of a cloud, where credentials are to be had for the asking.
var denied = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("100.100.100.200/32"),
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("fd20:ce::254/128"),
}

// embedding are IPv6 ranges that hold an IPv4 address in the given byte.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

const (
	dialTimeout = 10 * time.Second
	keepAlive   = 30 * time.Second
)

// Policy says what may be dialled. The zero value denies what nobody should reach.
type Policy struct {
	// Allow opens ranges again; it wins over everything.
	Allow []netip.Prefix `json:"allow,omitempty"`
	// Deny closes further ranges: the host's Services.
	Deny []netip.Prefix `json:"deny,omitempty"`
	// Proxy that connections of https go through; not those of ssh, nor those without TLS.
	Proxy Proxy `json:"proxy,omitzero"`
}

// Allowed reports whether an address is opened by name.
func (p Policy) Allowed(ip netip.Addr) bool { return contains(p.Allow, ip.Unmap().WithZone("")) }

// Check gives ErrDenied for an address that may not be dialled.
func (p Policy) Check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if contains(p.Allow, ip) {
		return nil
	}
	if contains(denied, ip) || contains(p.Deny, ip) {
		return fmt.Errorf("%w: %s", ErrDenied, ip)
	}
	for _, e := range embedding {
		if e.prefix.Contains(ip) {
			bytes := ip.As16()
			return p.Check(netip.AddrFrom4([4]byte(bytes[e.at : e.at+4])))
		}
	}
	return nil
}

func contains(ranges []netip.Prefix, ip netip.Addr) bool {
	for _, r := range ranges {
		if r.Contains(ip) {
			return true
		}
	}
	return false
}

// Dial connects over TCP. onlyAllowed is for connections without TLS: they may go
// to ranges that were opened by name and nowhere else.
func (p Policy) Dial(ctx context.Context, address string, onlyAllowed bool) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout: dialTimeout, KeepAlive: keepAlive,
		Control: func(_, address string, _ syscall.RawConn) error {
			found, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %s", ErrDenied, address)
			}
			if onlyAllowed && !p.Allowed(found.Addr()) {
				return fmt.Errorf("%w: %s without TLS", ErrDenied, found.Addr())
			}
			return p.Check(found.Addr())
		},
	}
	return dialer.DialContext(ctx, "tcp", address)
}
