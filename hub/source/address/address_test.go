// SPDX-License-Identifier: Apache-2.0

package address_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"kumodo.io/convoy/hub/source/address"
)

func TestAddressesThatLeadToTheHubItselfAreDenied(t *testing.T) {
	services := address.Policy{Deny: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12")}}
	opened := address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.96.1.0/24")}, Deny: services.Deny}
	tests := []struct {
		ip          string
		plain, open bool // denied by: the services policy, the opened one
		byName      bool
	}{
		{"127.0.0.1", true, false, true},
		{"127.8.9.10", true, false, true},
		{"::1", true, true, false},
		{"::ffff:127.0.0.1", true, false, true},
		{"::127.0.0.1", true, false, false},
		{"0.0.0.0", true, true, false},
		{"::", true, true, false},
		{"169.254.169.254", true, true, false},
		{"::ffff:169.254.169.254", true, true, false},
		{"64:ff9b::169.254.169.254", true, true, false},
		{"2002:a9fe:a9fe::1", true, true, false},
		{"fe80::1%eth0", true, true, false},
		{"fd00:ec2::254", true, true, false},
		{"168.63.129.16", true, true, false},
		{"224.0.0.1", true, true, false},
		{"255.255.255.255", true, true, false},
		{"10.96.0.1", true, true, false},
		{"10.96.1.1", true, false, true},
		{"10.0.0.1", false, false, false},
		{"192.168.1.1", false, false, false},
		{"140.82.112.3", false, false, false},
		{"2606:4700::1111", false, false, false},
	}
	for _, test := range tests {
		t.Run(test.ip, func(t *testing.T) {
			ip := netip.MustParseAddr(test.ip)
			if err := services.Check(ip); errors.Is(err, address.ErrDenied) != test.plain {
				t.Errorf("by default: %v", err)
			}
			if err := opened.Check(ip); errors.Is(err, address.ErrDenied) != test.open {
				t.Errorf("with ranges opened: %v", err)
			}
			if got := opened.Allowed(ip); got != test.byName {
				t.Errorf("opened by name: %v", got)
			}
		})
	}
}

func TestANameThatResolvesToLoopbackIsDeniedAtTheDial(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := (address.Policy{}).Dial(ctx, "localhost:"+port, false); !errors.Is(err, address.ErrDenied) {
		t.Errorf("by default: %v", err)
	}
	opened := address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	conn, err := opened.Dial(ctx, "127.0.0.1:"+port, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	all := address.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}}
	if _, err := all.Dial(ctx, "127.0.0.1:"+port, true); !errors.Is(err, address.ErrDenied) {
		t.Errorf("without TLS to a range that is not opened: %v", err)
	}
}
