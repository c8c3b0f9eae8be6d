// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestRequestsBetweenRolesProveThemselves(t *testing.T) {
	t.Parallel()
	const url = "/preview/team/shop?revision=v1"
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ours := (&Keyring{MACKey: []byte("key")}).Prover()
	tests := map[string]struct {
		by     Prover
		method string
		url    string
		body   string
		at     time.Time
		spoil  func(http.Header)
		want   error
	}{
		"as it was signed":                   {by: ours, at: now},
		"by a hub with other keys":           {by: (&Keyring{MACKey: []byte("other")}).Prover(), at: now, want: ErrProof},
		"with another method":                {by: ours, method: http.MethodPost, at: now, want: ErrProof},
		"for another object":                 {by: ours, url: "/preview/team/other?revision=v1", at: now, want: ErrProof},
		"for another revision":               {by: ours, url: "/preview/team/shop?revision=v2", at: now, want: ErrProof},
		"with another body":                  {by: ours, body: "{}", at: now, want: ErrProof},
		"played again later":                 {by: ours, at: now.Add(2 * time.Minute), want: ErrProof},
		"from a clock far ahead":             {by: ours, at: now.Add(-2 * time.Minute), want: ErrProof},
		"from a clock that is a bit behind":  {by: ours, at: now.Add(30 * time.Second)},
		"with another time":                  {by: ours, at: now, spoil: func(h http.Header) { h.Set(headerTime, "0") }, want: ErrProof},
		"without a proof":                    {by: ours, at: now, spoil: func(h http.Header) { h.Del(headerProof) }, want: ErrProof},
		"with a proof that is no text of it": {by: ours, at: now, spoil: func(h http.Header) { h.Set(headerProof, "zz") }, want: ErrProof},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := httptest.NewRequest(http.MethodGet, url, http.NoBody)
			test.by.Sign(sent, nil, now)
			if test.spoil != nil {
				test.spoil(sent.Header)
			}
			method, to := http.MethodGet, url
			if test.method != "" {
				method = test.method
			}
			if test.url != "" {
				to = test.url
			}
			got := httptest.NewRequest(method, to, http.NoBody)
			got.Header = sent.Header
			if err := ours.Check(got, []byte(test.body), test.at); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}
