// SPDX-License-Identifier: Apache-2.0

// Package endpoint is what clients of registries share: where a registry is, what
// it is reached with, and an HTTP client that keeps the rules for both. It belongs
// to the first step of the flow source -> render -> store -> deliver -> apply ->
// observe -> report.
//
// The rules: every connection, that of a redirect or of a token service too, is
// checked against the policy of addresses; http goes to ranges that were opened by
// name only; credentials and client certificates go to the scheme, host and port
// that the user named; the one proxy is the operator's, and the policy holds for what
// lies behind it.
package endpoint

import (
	"net"
	"net/url"
	"strings"

	"kumodo.io/convoy/hub/source/address"
	"kumodo.io/convoy/hub/source/fault"
)

// Auth are the credentials for a registry. It goes to a fetch worker over its
// stdin and is nowhere else.
type Auth struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	// Docker is a docker configuration, JSON; with it Username and Password are unused.
	Docker []byte `json:"docker,omitempty"`
	// ClientCert and ClientKey are shown to the server, PEM.
	ClientCert []byte `json:"clientCert,omitempty"`
	ClientKey  []byte `json:"clientKey,omitempty"`
}

// Remote is a repository of charts, or a repository in an OCI registry.
type Remote struct {
	// URL: https://host/path of a chart repository, or oci://host/path.
	URL string `json:"url"`
	Auth
	// CA is trusted besides the system's certificates, PEM.
	CA []byte `json:"ca,omitempty"`
	// Policy says what may be dialled.
	Policy address.Policy `json:"policy"`
	// PassCredentials sends credentials also to other hosts that an index names.
	PassCredentials bool `json:"passCredentials,omitempty"`
}

// Schemes of URLs.
const (
	SchemeHTTPS = "https"
	SchemeHTTP  = "http"
	SchemeOCI   = "oci"
)

// ParseURL checks the URL of a registry: https, http, which the dialler allows for
// ranges that were opened by name, or oci.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The error of net/url repeats the whole text, password included.
		return nil, fault.Failf(fault.ClassInvalid, "the URL cannot be read")
	}
	switch u.Scheme {
	case SchemeHTTPS, SchemeHTTP, SchemeOCI:
	case "":
		return nil, fault.Failf(fault.ClassInvalid, "the URL has no scheme: write https://HOST/PATH or oci://HOST/PATH")
	default:
		return nil, fault.Failf(fault.ClassInvalid, "the URL's scheme is not supported: only https and oci are")
	}
	if u.User != nil {
		return nil, fault.Failf(fault.ClassInvalid, "the URL holds a user name: credentials belong in a Secret")
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return nil, fault.Failf(fault.ClassInvalid, "the URL needs a host and a path, and nothing else")
	}
	return u, nil
}

// Origin is scheme, host and port of a URL, for comparing. That of oci:// is the
// one of https://.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if scheme == SchemeOCI {
		scheme = SchemeHTTPS
	}
	if port == "" {
		port = "443"
		if scheme == SchemeHTTP {
			port = "80"
		}
	}
	return scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
