// SPDX-License-Identifier: Apache-2.0

package options

import "testing"

func TestWhereTheObserverIs(t *testing.T) {
	t.Parallel()
	hosted, alone := []string{"--embedded-etcd", "--data-dir=/d"}, []string{"--standalone", "--data-dir=/d"}
	tests := map[string]struct {
		args []string
		want Observer
	}{
		"with a host, behind its Service":                {hosted, Observer{Addr: ":8080", URL: DefaultObserverURL}},
		"with a host, where it is said to be":            {append(hosted, "--serve-addr=127.0.0.1:9", "--observer-url=http://127.0.0.1:9"), Observer{Addr: "127.0.0.1:9", URL: "http://127.0.0.1:9"}},
		"with a host, nowhere":                           {append(hosted, "--observer-url="), Observer{Addr: ":8080"}},
		"alone, on a port of its own, and on loopback":   {alone, Observer{Addr: "127.0.0.1:0", Own: true}},
		"alone, on the port that is given":               {append(alone, "--serve-addr=127.0.0.1:9"), Observer{Addr: "127.0.0.1:9", Own: true}},
		"alone, with none of its own and none elsewhere": {append(alone, "--serve-addr="), Observer{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, test.args...)
			if got := (Observer{Addr: c.ServeAddr, URL: c.ObserverURL, Own: c.ownObserver}); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
